"""Initial weights drawn by numpy: Keras' initialisers make XLA compile a program for every shape of a weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
import pytest


def drawn(self: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    """Uniform numbers with the variance of the initialiser; the same ones for the same seed of it."""
    import keras

    dtype = keras.backend.standardize_dtype(dtype)
    seed = self.seed if isinstance(self.seed, int) else 0
    fan_in, fan_out = prod(shape[:-1]), prod((*shape[:-2], *shape[-1:]))
    fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
    limit = sqrt(3 * self.scale / max(1, fan))
    numbers = np.random.default_rng(seed).uniform(-limit, limit, tuple(shape)).astype("float32")
    return keras.ops.convert_to_tensor(numbers, dtype)


@pytest.fixture(autouse=True, scope="module")
def quick_weights() -> Iterator[None]:
    """Every dense, convolutional and recurrent kernel of the module's models is drawn so."""
    import keras

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keras.initializers.VarianceScaling, "__call__", drawn)
        yield
