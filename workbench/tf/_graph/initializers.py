"""First values of variables, by the initialisers' names; Keras computes them."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from workbench.base.checked import checked
from workbench.base.host import refuse_beyond_host
from workbench.base.text import short
from workbench.errors import InputError
from workbench.tf._graph.dtypes import DType, cuts, given_type, holds_numbers
from workbench.tf._graph.shapes import known_sizes


def _size(shape: Any, dtype: DType) -> tuple[int, ...]:
    """The sizes of a first value, if this machine can hold it; where only its shape is asked for, it need not."""
    sizes = known_sizes(shape)
    if not isinstance(jnp.zeros(()), jax.core.Tracer):
        refuse_beyond_host(f"shape is {sizes}: the first value", math.prod(sizes) * dtype.size)
    return sizes


def _check_finite(**given: float) -> None:
    for name, value in given.items():
        if not math.isfinite(value):
            raise InputError(f"{name} is {short(value)}", expected="a finite number")


class constant_initializer:  # noqa: N801
    """The same value everywhere, or an array, which broadcasts unless `verify_shape`: then it has the shape asked for.

    Errors: `InputError` for a value that is no number, or of a shape that does not come to what is asked for.
    """

    @checked
    def __init__(self, value: Any = 0, dtype: Any = "float32", verify_shape: bool = False) -> None:
        if not holds_numbers(value):
            raise InputError(f"value is {short(value)}", expected="a number, or an array of numbers")
        self.value, self.dtype, self.verify_shape = value, given_type(dtype), verify_shape

    @checked
    def __call__(self, shape: Any, dtype: Any = None, partition_info: None = None) -> Any:
        wanted = self.dtype if dtype is None else given_type(dtype)
        if not hasattr(self.value, "dtype") and cuts(self.value, wanted):
            raise InputError(
                f"value is {short(self.value)}, which cannot be converted to {wanted}", expected="whole numbers"
            )
        made, sizes = jnp.asarray(np.asarray(self.value), str(wanted)), _size(shape, wanted)
        try:
            if not self.verify_shape or made.shape == sizes:
                return jnp.broadcast_to(made, sizes)
        except ValueError:
            pass
        raise InputError(f"an initializer of shape {made.shape} was asked for shape {sizes}", expected=f"{made.shape}")


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
    dtype: DType

    @checked
    def __call__(self, shape: Any, dtype: Any = None, partition_info: None = None) -> Any:
        wanted = self.dtype if dtype is None else given_type(dtype)
        return jnp.asarray(self.made(_size(shape, wanted), "float32"), str(wanted))


class random_normal_initializer(_FromKeras):  # noqa: N801
    """Numbers of a normal distribution."""

    @checked
    def __init__(self, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None, dtype: Any = "float32") -> None:
        _check_finite(mean=mean, stddev=stddev)
        self.made, self.dtype = keras.initializers.RandomNormal(mean, stddev, seed), given_type(dtype)


class truncated_normal_initializer(_FromKeras):  # noqa: N801
    """Numbers of a normal distribution within two standard deviations."""

    @checked
    def __init__(self, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None, dtype: Any = "float32") -> None:
        _check_finite(mean=mean, stddev=stddev)
        self.made, self.dtype = keras.initializers.TruncatedNormal(mean, stddev, seed), given_type(dtype)


class random_uniform_initializer(_FromKeras):  # noqa: N801
    """Numbers spread evenly."""

    @checked
    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None, dtype: Any = "float32"
    ) -> None:
        _check_finite(minval=minval, maxval=maxval)
        self.made, self.dtype = keras.initializers.RandomUniform(minval, maxval, seed), given_type(dtype)


class glorot_uniform_initializer(_FromKeras):  # noqa: N801
    """Glorot's uniform distribution, the default of `get_variable`."""

    @checked
    def __init__(self, seed: int | None = None, dtype: Any = "float32") -> None:
        self.made, self.dtype = keras.initializers.GlorotUniform(seed), given_type(dtype)


class glorot_normal_initializer(_FromKeras):  # noqa: N801
    """Glorot's normal distribution."""

    @checked
    def __init__(self, seed: int | None = None, dtype: Any = "float32") -> None:
        self.made, self.dtype = keras.initializers.GlorotNormal(seed), given_type(dtype)


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
