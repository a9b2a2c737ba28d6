"""Numbers of the seven applications at full size: what `run` predicts against what Keras predicts.

224 (InceptionV3: 299) pixels, random weights, batch 1. Ends with 1 when one differs by more than the budget.

Dense layers stay matrix products (`dot_strength` off): as a product and a sum the first of VGG16's would hold 392 MiB
of products beside 528 MiB of weights, and not fit.
"""

from __future__ import annotations

import sys
from functools import partial

from harness import Budgets, Figures, main
from model_width import IMAGE_SIZES

BATCH_SIZE = 1
LARGEST_DIFFERENCE = 1e-5

BUDGETS: Budgets = tuple(
    (f"{name}_difference", "", LARGEST_DIFFERENCE, "largest difference of a score over the largest score")
    for name in IMAGE_SIZES
)


def measure(name: str) -> Figures:
    """The largest difference of two predictions of one application, relative to the largest score."""
    import keras
    import numpy as np

    import workbench as wb

    config = wb.ipu.config.IPUConfig()
    config.optimizations.math.dot_strength = False
    size = IMAGE_SIZES[name]
    keras.utils.set_random_seed(5)
    model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3))
    images = np.random.default_rng(5).random((BATCH_SIZE, size, size, 3), "float32")
    ours = wb.compile(model, batch_size=BATCH_SIZE, mode="inference", config=config).run(images)
    theirs = model.predict_on_batch(images)
    return {f"{name}_difference": float(np.abs(ours - theirs).max() / np.abs(theirs).max())}


MEASUREMENTS = {name: partial(measure, name) for name in IMAGE_SIZES}

if __name__ == "__main__":
    sys.exit(main(__doc__, MEASUREMENTS, BUDGETS))
