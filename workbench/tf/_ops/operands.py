"""What operations are given: real numbers, whole ones, yes and no, places inside a table; a `TypeError` for others."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.base.text import short
from workbench.tf._graph.convert import array
from workbench.tf._graph.dtypes import cuts


def typed(value: Any, other: Any) -> Any:
    """An array; a plain number takes the type of the array beside it."""
    if hasattr(value, "dtype"):
        return array(value)
    beside = str(other.dtype) if hasattr(other, "dtype") else None
    if beside is not None and cuts(value, beside):
        raise TypeError(
            f"{short(value)} cannot be converted to {beside}, the type beside it; cast that with "
            "tf.cast(x, tf.float32), or give it a first value such as 0.0"
        )
    return array(value, beside)


def truths(value: Any) -> Any:
    """Yes and no; numbers and texts are none, as in TensorFlow."""
    found = array(value)
    if found.dtype != bool:
        raise TypeError(f"{found.dtype} is neither yes nor no; tf.cast(x, tf.bool) makes it so")
    return found


def reals(value: Any) -> Any:
    """An array of a floating type."""
    found = array(value)
    if not jnp.issubdtype(found.dtype, jnp.floating):
        raise TypeError(f"{found.dtype} is no floating point; tf.cast(x, tf.float32) makes it so")
    return found


def numbers(value: Any) -> Any:
    """An array of numbers, whole or real."""
    found = array(value)
    if found.dtype == bool:
        raise TypeError("yes and no are no numbers; tf.cast(x, tf.int32) makes them some")
    return found


def wholes(value: Any) -> Any:
    """An array of whole numbers."""
    found = array(value)
    if not jnp.issubdtype(found.dtype, jnp.integer):
        raise TypeError(f"{found.dtype} is no whole number; tf.cast(x, tf.int32) makes it so")
    return found


def inside(places: Any, have: int, of: str) -> Any:
    """Places that are there, an `IndexError` for others; what is only known when the program runs is not looked at, as
    on the chip."""
    if isinstance(places, jax.core.Tracer):
        return places
    held = np.asarray(places)  # of a constant, also where a graph is traced
    if held.size and not 0 <= held.min() <= held.max() < have:
        raise IndexError(f"{of} from {held.min()} to {held.max()} are not all inside the {have} there are")
    return places
