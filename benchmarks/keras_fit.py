"""What `fit` of a Keras model in a strategy's scope takes once it is compiled, against plain Keras.

The model, batches and steps are those of the user guide's first listing on the shipped digits, enlarged to 28 x 28.
Times are of this process alone and of fits in turn: the ratio is the median of theirs. Ends with 1 over its budget.
"""

from __future__ import annotations

import statistics
import sys
import time
from contextlib import nullcontext
from typing import Any

from harness import Budgets, Figures, main

BUDGETS: Budgets = (
    ("steps_1", "", 2.0, "fit of listing 1, one step an execution, over plain Keras, both compiled; the budget is 2"),
    ("steps_50", "", 2.0, "fit of listing 2, 50 steps an execution, over plain Keras, both compiled; the budget is 2"),
    ("ours_seconds", "s", None, "two epochs of 100 batches of 32 here, one step an execution"),
    ("keras_seconds", "s", None, "the same by plain Keras"),
)
ROUNDS = 3
BATCH, STEPS = 32, 100


def batches() -> tuple[Any, Any]:
    """Digits as the listing has MNIST: 28 x 28 numbers from 0 to 1, as many as 100 batches take."""
    import numpy as np

    from workbench import datasets

    images, labels = datasets.digits()[:2]
    small = np.asarray(images).reshape(-1, 8, 8)[:, 1:8, 1:8]
    large = np.kron(small, np.ones((4, 4))).astype("float32") / max(1.0, float(small.max()))
    wanted = np.arange(BATCH * STEPS) % len(large)
    return large[wanted], np.asarray(labels)[wanted].astype("int32")


def model(scope: Any, steps: int) -> Any:
    """The listing's model: two dense layers and a softmax, RMSprop, accuracy."""
    import keras

    with scope:
        layers = [keras.layers.Flatten(), keras.layers.Dense(256, activation="relu")]
        layers += [keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)]
        made = keras.Sequential(layers)
        loss, optimizer = keras.losses.SparseCategoricalCrossentropy(), keras.optimizers.RMSprop()
        made.compile(loss=loss, optimizer=optimizer, metrics=["accuracy"], steps_per_execution=steps)
    return made


def fit_seconds(model: Any, x: Any, y: Any) -> float:
    """Processor time of this process in two epochs: others that run beside it do not count."""
    start = time.process_time()
    model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0)
    return time.process_time() - start


def measure() -> Figures:
    """Ratios of `fit` here to plain Keras', in turn."""
    from workbench.ipu.config import IPUConfig
    from workbench.ipu.ipu_strategy import IPUStrategy

    config = IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()
    x, y = batches()
    found: Figures = {}
    for steps in (1, 50):
        ours, theirs = model(IPUStrategy().scope(), steps), model(nullcontext(), steps)

        for each in (ours, theirs):
            fit_seconds(each, x, y)
        pairs = [(fit_seconds(ours, x, y), fit_seconds(theirs, x, y)) for _ in range(ROUNDS)]
        found[f"steps_{steps}"] = statistics.median(one / other for one, other in pairs)
        if steps == 1:
            found["ours_seconds"], found["keras_seconds"] = (
                statistics.median(each) for each in zip(*pairs, strict=True)
            )
    return found


if __name__ == "__main__":
    sys.exit(main(__doc__, {"fit": measure}, BUDGETS))
