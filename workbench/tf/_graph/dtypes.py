"""Types of tensors: `tf.float32` is the name "float32", so Keras, JAX and numpy take it as it is."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from workbench.base.text import short
from workbench.errors import KindError


class DType(str):
    """A type by its name, with what programs ask of a TensorFlow type."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name."""
        return str(self)

    @property
    def as_numpy_dtype(self) -> Any:
        """The numpy scalar type."""
        if self == "bfloat16":
            import jax.numpy as jnp

            return jnp.bfloat16
        return np.dtype(str(self)).type

    @property
    def base_dtype(self) -> DType:
        """The type itself: there are no reference types."""
        return self

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return 2 if self == "bfloat16" else int(np.dtype(str(self)).itemsize)

    @property
    def is_floating(self) -> bool:
        """Whether it is a real type."""
        return "float" in self

    @property
    def is_integer(self) -> bool:
        """Whether it is a whole type."""
        return "int" in self

    def __repr__(self) -> str:
        return f"tf.{self}"


_ALSO = {"half": "float16", "float": "float32", "double": "float64"}  # TensorFlow's further names


def as_dtype(value: Any) -> DType:
    """A type from its name, numpy's or this module's; a `TypeError` for what is none."""
    if isinstance(value, DType):
        return value
    name = getattr(value, "name", None) or (value if isinstance(value, str) else _numpys(value))
    if not isinstance(name, str) or not _is_type(_ALSO.get(name, name)):
        raise TypeError(f"dtype is {short(value)}, which is no type")
    return DType(_ALSO.get(name, name))


def given_type(value: Any, called: str = "dtype") -> DType:
    """The type a user says; a `KindError` for what is none."""
    try:
        return as_dtype(value)
    except TypeError:
        expected = "such as tf.float32, or its name"
        raise KindError(f"{called} is {short(value)}, which is no type", expected=expected) from None


def holds_numbers(value: Any) -> bool:
    """Whether it is a number or yes and no, an array or lists of them."""
    try:
        return np.dtype(getattr(value, "dtype", None) or np.asarray(value).dtype).kind in "biufV"
    except (TypeError, ValueError, RecursionError):
        return False


def cuts(value: Any, wanted: str) -> bool:
    """Whether real numbers are given where a type has none: TensorFlow refuses 2.0 too, which int32 has."""
    found = value if hasattr(value, "dtype") else np.asarray(value)
    real = np.dtype(found.dtype).kind in "fcV"  # V: bfloat16 and those of 8 bits
    return real and getattr(found, "size", None) != 0 and _kind(wanted) in "iub"


def has(value: Any, wanted: str) -> bool:
    """Whether whole numbers are ones that a type has; what is only known when a program runs is not looked at."""
    return _kind(wanted) in "iu" and _beyond(value, wanted) is None


def check_has(value: Any, wanted: str) -> None:
    """No number comes out as another: a `TypeError` for what a type would cut, an `OverflowError` for what it would
    wrap round."""
    if cuts(value, wanted):
        said = f"{short(value)}, of type {value.dtype}," if hasattr(value, "dtype") else short(value)
        raise TypeError(f"{said} cannot be converted to {wanted}; tf.cast(x, tf.{wanted}) cuts it")
    beyond = _beyond(value, wanted) if _kind(wanted) in "iu" else None
    if beyond is not None:
        held = np.iinfo(wanted)
        raise OverflowError(f"{beyond} is none of the numbers from {held.min} to {held.max} that {wanted} has")


def _kind(name: str) -> str:
    return str(np.dtype(as_dtype(name).as_numpy_dtype).kind)


def _beyond(value: Any, wanted: str) -> Any:
    """A whole number that a type does not have; None where all are inside, or they are not known yet."""
    import jax

    if isinstance(value, jax.core.Tracer):
        return None
    found = np.asarray(value)
    if found.dtype.kind not in "iuO" or not found.size:
        return None
    held = np.iinfo(wanted)
    return next((each for each in (found.min(), found.max()) if not held.min <= each <= held.max), None)


def _numpys(value: Any) -> str | None:
    """What NumPy calls a type; None for what is none."""
    if value is None or isinstance(value, np.generic | np.ndarray):
        return None
    try:
        return str(np.dtype(value).name)
    except (TypeError, ValueError, RecursionError):
        return None


@functools.cache
def _is_type(name: str) -> bool:
    """Whether arrays can have it: NumPy's, or one of those that JAX adds, of 8 or 16 bits."""
    import jax.numpy as jnp

    try:
        return name in NAMES or (hasattr(jnp, name) and jnp.dtype(name).kind in "biufV")
    except (TypeError, ValueError):
        return False


NAMES = (
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)
DTYPES = {name: DType(name) for name in NAMES} | {"half": DType("float16")}

__all__ = ["DTYPES", "DType", "as_dtype", "check_has", "cuts", "given_type", "has", "holds_numbers"]
