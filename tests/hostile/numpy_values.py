"""Numbers, whole numbers and sizes as TensorFlow takes them, in NumPy; what is none of these raises."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

MOST = 2**31


def number(value: Any, kind: Any = None) -> Any:
    """A value as TensorFlow takes it: real numbers in 32 bits, whole ones too and inside them, or none."""
    if value is None:  # of which NumPy makes NaN where a type is asked for
        raise TypeError("no number")
    found = np.asarray(value) if kind is None or hasattr(value, "dtype") else np.asarray(value, dtype=kind)
    if found.dtype.kind not in "biuf":
        raise TypeError("no numbers")
    if found.dtype.kind in "iu" and found.size and (found.max() >= MOST or found.min() < -MOST):
        raise OverflowError("more than 32 bits")
    return found.astype({"f": "float32", "i": "int32", "u": "int32", "b": "bool"}[found.dtype.kind])


def whole_number(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError("no whole number")
    return operator.index(value)


def sizes_of(shape: Any) -> tuple[int, ...]:
    """Sizes of which one may follow from the others."""
    if isinstance(shape, str | bytes | dict | set):
        raise TypeError("no shape")
    found = (shape,) if isinstance(shape, int | np.integer) else shape
    return tuple(whole_number(each) for each in found)
