"""What results of `wb.tf` beside its operations are held against, in NumPy: values of variables, draws, elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import workbench as wb

tf = wb.tf
WEIGHT = np.array([1.0, 2.0], "float32")  # the variable of `of_tf.Pieces`
CHANGED: Mapping[str, Callable[[Any], Any]] = {
    "assign": lambda value: np.full(2, value, "float32"),
    "assign_add": lambda value: WEIGHT + np.float32(value),
    "assign_sub": lambda value: WEIGHT - np.float32(value),
}


def assigned(call: Any, argument: str, value: Any, found: Any) -> None:
    """The new value is that of NumPy, of the number given or of 2; an operation gives none."""
    number = value if argument in ("value", "delta") else 2.0
    made = tf.Session(graph=found.graph).run(found)
    if isinstance(found, tf.Tensor):
        np.testing.assert_array_equal(made, CHANGED[call.name.rpartition(".")[2]](number))
    else:
        assert (made, argument, value) == (None, "read_value", False)


def drawn(call: Any, argument: str, value: Any, found: Any) -> None:
    """Of the shape asked for, and inside its bounds."""
    asked = value if argument == "shape" else [2, 2]
    sizes = (int(value),) if argument == "shape" and isinstance(value, int | np.integer) else tuple(asked)
    made = np.asarray(tf.Session(graph=found.graph).run(found) if isinstance(found, tf.Tensor) else found)
    assert made.shape == sizes
    assert np.all(np.isfinite(made))
    if call.name == "tf.random.uniform" and argument == "minval":
        low, high = np.sort(np.stack(np.broadcast_arrays(np.float32(1.0), np.asarray(value, "float32"))), axis=0)
        assert np.all((made >= low) & (made <= high))


def elements(call: Any, argument: str, value: Any, found: Any) -> None:
    """The first eight elements, as NumPy has them."""
    name, numbers = call.name.rpartition(".")[2], np.arange(4)
    given = {"count": 2, "batch_size": 2, argument: value}
    count = given["count"]
    wanted: Any = {
        "map": numbers * 2,
        "batch": numbers.reshape(2, 2),
        "repeat": np.tile(numbers, 8 if count is None or count < 0 else count)[:8],
        "take": numbers if count is not None and count < 0 else numbers[: int(count or 0)],
        "skip": numbers[4 if count is not None and count < 0 else int(count or 0) :],
        "shuffle": numbers,
        "prefetch": numbers,
        "cache": numbers,
    }[name]
    made = np.sort(found) if name == "shuffle" else np.asarray(found, "int64").reshape(wanted.shape)
    np.testing.assert_array_equal(made, wanted)


def ranged(call: Any, argument: str, value: Any, found: Any) -> None:
    stop = int(value) if argument == "args" else 4
    np.testing.assert_array_equal(np.asarray(found, "int64"), np.arange(max(0, min(stop, 8))))


def filled(call: Any, argument: str, value: Any, found: Any) -> None:
    """Twos of the shape asked for."""
    sizes = np.zeros(value if argument == "shape" else [2]).shape
    np.testing.assert_array_equal(found, np.full(sizes, 2.0, "float32"))


CHECKS: Mapping[str, Callable[[Any, str, Any, Any], None]] = {
    **{f"tf.{name}": assigned for name in CHANGED},
    **{f"tf.Variable.{name}": assigned for name in CHANGED},
    **{f"tf.random.{name}": drawn for name in ("uniform", "normal", "truncated_normal")},
    **{f"tf.Dataset.{name}": elements for name in ("map", "batch", "repeat", "take", "skip", "shuffle")},
    **{f"tf.Dataset.{name}": elements for name in ("prefetch", "cache")},
    "tf.Dataset.range": ranged,
    "tf.constant_initializer.__call__": filled,
}
