"""A model with several inputs and outputs trains as Keras trains it, and names the loss of each output."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import workbench  # noqa: F401
from tests.engine.frontends.keras_models import furthest
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.run import Runner

BATCH, TOLERANCE = 4, 1e-5


def model() -> Any:
    """Two inputs; one output is regressed and the other classified, at half the weight."""
    keras.utils.set_random_seed(2)
    first, second = keras.Input((6,), name="first"), keras.Input((3,), name="second")
    joined = keras.layers.Concatenate(name="joined")([keras.layers.Dense(5, name="hidden")(first), second])
    outputs = {
        "value": keras.layers.Dense(1, name="value")(joined),
        "label": keras.layers.Dense(3, activation="softmax", name="label")(joined),
    }
    made = keras.Model({"first": first, "second": second}, outputs)
    made.compile(
        keras.optimizers.SGD(0.1), {"value": "mse", "label": "sparse_categorical_crossentropy"},
        loss_weights={"value": 1.0, "label": 0.5}, metrics={"label": ["accuracy"]},
    )  # fmt: skip
    return made


@pytest.mark.parametrize(("stages", "steps"), [(None, 1), (["hidden"], 2)])
def test_every_output_has_its_loss(stages: Any, steps: int) -> None:
    ours, theirs = model(), model()
    draw = np.random.default_rng(5)
    samples = BATCH * steps
    x = {name: draw.random((samples, size), dtype="float32") for name, size in (("first", 6), ("second", 3))}
    y = {"value": draw.random((samples, 1), dtype="float32"), "label": draw.integers(0, 3, samples)}
    runner = Runner(trace_keras(ours, batch_size=BATCH, stages=stages, gradient_accumulation_steps=steps))
    for _ in range(2):
        expected = theirs.train_on_batch(x, y, return_dict=True)
        assert expected["value_loss"] > 0
        assert runner.run(x, y) == pytest.approx(expected, abs=TOLERANCE)
    assert furthest(ours, theirs) < TOLERANCE
