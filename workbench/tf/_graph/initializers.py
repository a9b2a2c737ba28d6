"""First values of variables, by the initialisers' names; Keras computes them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import keras
import numpy as np

from workbench.tf._graph.dtypes import as_dtype


class constant_initializer:  # noqa: N801
    """The same value everywhere, or an array."""

    def __init__(self, value: Any = 0, dtype: Any = "float32", verify_shape: bool = False) -> None:
        self.value, self.dtype = value, dtype

    def __call__(self, shape: Any, dtype: Any = None, **others: Any) -> Any:
        wanted = str(as_dtype(dtype or self.dtype))
        return jnp.broadcast_to(jnp.asarray(np.asarray(self.value), wanted), tuple(shape))


class zeros_initializer(constant_initializer):  # noqa: N801
    """Zeros."""

    def __init__(self, dtype: Any = "float32") -> None:
        super().__init__(0, dtype)


class ones_initializer(constant_initializer):  # noqa: N801
    """Ones."""

    def __init__(self, dtype: Any = "float32") -> None:
        super().__init__(1, dtype)


class _FromKeras:
    """An initialiser of Keras in half precision too, which it does not draw in."""

    made: Any

    def __call__(self, shape: Any, dtype: Any = "float32", **others: Any) -> Any:
        return jnp.asarray(self.made(tuple(shape), "float32"), str(as_dtype(dtype)))


class random_normal_initializer(_FromKeras):  # noqa: N801
    """Numbers of a normal distribution."""

    def __init__(self, mean: float = 0.0, stddev: float = 1.0, seed: Any = None, dtype: Any = "float32") -> None:
        self.made = keras.initializers.RandomNormal(mean, stddev, seed)


class truncated_normal_initializer(_FromKeras):  # noqa: N801
    """Numbers of a normal distribution within two standard deviations."""

    def __init__(self, mean: float = 0.0, stddev: float = 1.0, seed: Any = None, dtype: Any = "float32") -> None:
        self.made = keras.initializers.TruncatedNormal(mean, stddev, seed)


class random_uniform_initializer(_FromKeras):  # noqa: N801
    """Numbers spread evenly."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None, dtype: Any = "float32") -> None:
        self.made = keras.initializers.RandomUniform(minval, maxval, seed)


class glorot_uniform_initializer(_FromKeras):  # noqa: N801
    """Glorot's uniform distribution, the default of `get_variable`."""

    def __init__(self, seed: Any = None, dtype: Any = "float32") -> None:
        self.made = keras.initializers.GlorotUniform(seed)


class glorot_normal_initializer(_FromKeras):  # noqa: N801
    """Glorot's normal distribution."""

    def __init__(self, seed: Any = None, dtype: Any = "float32") -> None:
        self.made = keras.initializers.GlorotNormal(seed)


__all__ = [
    "constant_initializer",
    "glorot_normal_initializer",
    "glorot_uniform_initializer",
    "ones_initializer",
    "random_normal_initializer",
    "random_uniform_initializer",
    "truncated_normal_initializer",
    "zeros_initializer",
]
