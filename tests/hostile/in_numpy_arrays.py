"""The operations of `tf` that make, cut and join arrays, in NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.hostile.numpy_values import MOST, number, sizes_of, whole_number

WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32")


def alike(values: Any) -> list[Any]:
    """Arrays of one type; plain numbers take it from the arrays."""
    if isinstance(values, str | bytes | dict | set):
        raise TypeError("no list")
    typed = next((each.dtype for each in values if hasattr(each, "dtype")), None)
    found = [number(each, typed) for each in values]
    if len({each.dtype for each in found}) > 1:
        raise TypeError("two types")
    return found


def of_type(dtype: Any) -> Any:
    """A type by its name, as the IPU has it: no numbers of 64 bits."""
    if not isinstance(dtype, str) or dtype not in (*WHOLE, *FLOATS, "bool", "float64"):
        raise TypeError("no type")
    return np.dtype({"float64": "float32", "int64": "int32", "uint64": "uint32"}.get(dtype, dtype))


def cast(x: Any, dtype: Any) -> Any:
    found, kind = number(x), of_type(dtype)
    if kind.kind in "iu" and found.dtype.kind == "f":  # as XLA: the nearest there is, and nought for what is no number
        held = np.iinfo(kind)
        found = np.clip(np.nan_to_num(found.astype("float64"), nan=0), held.min, held.max)
    return found.astype(kind)


def clipped(t: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    given = number(t)
    if given.dtype.kind != "f" and any(isinstance(each, float) for each in (clip_value_min, clip_value_max)):
        raise TypeError("real bounds of whole numbers")
    low, high = (alike([given, each])[1] for each in (clip_value_min, clip_value_max))
    return np.broadcast_to(np.clip(given, low, high), given.shape)


def constant(value: Any, dtype: Any = None, shape: Any = None) -> Any:
    found = number(value) if dtype is None else np.asarray(value).astype(of_type(dtype))
    if shape is None:
        return found
    sizes = held(shape)
    return np.reshape(found, sizes) if found.ndim else np.full(sizes, found)


def held(shape: Any) -> tuple[int, ...]:
    sizes = sizes_of(shape) if not isinstance(shape, int | np.integer) else _refuse()
    if any(size < 0 for size in sizes) or np.prod([float(size) for size in sizes]) > MOST:
        raise ValueError("no array")
    return sizes


def _refuse() -> Any:
    raise TypeError("refused")


def einsum(equation: Any, inputs: Any) -> Any:
    if not isinstance(equation, str):
        raise TypeError("no equation")
    return np.einsum(equation, *alike(list(inputs)))


def fill(dims: Any, value: Any) -> Any:
    found = number(value)
    if found.ndim:
        raise ValueError("not one number")
    return np.full(held(dims), found)


def whole(value: Any) -> Any:
    found = number(value)
    if found.dtype.kind != "i":
        raise TypeError("no whole numbers")
    return found


def gathered(params: Any, indices: Any, axis: Any = 0) -> Any:
    places = whole(indices)
    if places.size and places.min() < 0:
        raise IndexError("before the first")
    return np.take(number(params), places, axis=whole_number(axis))


def item(whole: Any, index: Any) -> Any:
    if isinstance(index, list):
        raise TypeError("arrays are cut by whole numbers, slices and arrays")
    return number(whole)[index]


def one_hot(indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, dtype: Any = "float32") -> Any:
    places, kind = whole(indices), of_type(dtype)
    count = whole_number(depth)
    if count < 0 or count > MOST:
        raise ValueError("no depth")
    on = single(1 if on_value is None else on_value, kind)
    off = single(0 if off_value is None else off_value, kind)
    return np.where(places[..., None] == np.arange(count), on, off)


def single(value: Any, kind: Any) -> Any:
    found = number(value) if hasattr(value, "dtype") else number(value, kind)
    if found.ndim or found.dtype != kind:
        raise TypeError("not one number of the type")
    return found


def padded(tensor: Any, paddings: Any, constant_values: Any = 0) -> Any:
    given = number(tensor)
    widths = [sizes_of(each) for each in paddings]
    if len(widths) != given.ndim or sum(map(sum, widths)) > MOST:
        raise ValueError("no pairs")
    return np.pad(given, widths, constant_values=single(constant_values, given.dtype))


def counted(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None) -> Any:
    ends = [number(each) for each in ((0, start, delta) if limit is None else (start, limit, delta))]
    if any(each.ndim or each.dtype == bool for each in ends):
        raise TypeError("not one number each")
    kind = "int32" if all(each.dtype.kind == "i" for each in ends) else "float32"
    if (float(ends[1]) - float(ends[0])) / float(ends[2]) > MOST:
        raise ValueError("too many")
    return np.arange(*(each.item() for each in ends)).astype(of_type(dtype) if dtype is not None else kind)


def sliced(input_: Any, begin: Any, size: Any) -> Any:
    given = number(input_)
    starts, sizes = sizes_of(begin), sizes_of(size)
    ends = [have if want == -1 else start + want for start, want, have in zip(starts, sizes, given.shape, strict=True)]
    if any(not 0 <= start <= end <= have for start, end, have in zip(starts, ends, given.shape, strict=True)):
        raise IndexError("outside")
    return given[tuple(slice(start, end) for start, end in zip(starts, ends, strict=True))]


def split(value: Any, num_or_size_splits: Any, axis: Any = 0) -> Any:
    given, along = number(value), whole_number(axis)
    if np.ndim(num_or_size_splits):
        sizes = list(sizes_of(num_or_size_splits))
        if sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = given.shape[along] - sum(sizes) - 1
        if min(sizes) < 0 or sum(sizes) != given.shape[along]:
            raise ValueError("no parts")
        return np.split(given, np.cumsum(sizes)[:-1], along)
    return np.split(given, whole_number(num_or_size_splits), along)


def squeezed(input: Any, axis: Any = None) -> Any:
    axes = sizes_of(axis) if isinstance(axis, list | np.ndarray) and len(axis) else axis
    if isinstance(axes, bool):
        raise TypeError("no axis")
    return np.squeeze(number(input), None if isinstance(axes, list) else axes)


def unstacked(value: Any, num: Any = None, axis: Any = 0) -> Any:
    parts = np.moveaxis(number(value), whole_number(axis), 0)
    if num is not None and whole_number(num) != len(parts):
        raise ValueError("another number")
    return parts


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if number(condition).dtype != bool or x is None or y is None:
        raise TypeError("neither yes nor no, or no values")
    return np.where(condition, *alike([x, y]))


def added(inputs: Any) -> Any:
    parts = alike(inputs)
    if len({each.shape for each in parts}) != 1:
        raise ValueError("several shapes, or none")
    total = parts[0]
    for each in parts[1:]:
        total = operator.add(total, each)
    return total


OF_ARRAYS: Mapping[str, Callable[..., Any]] = {
    "tf.add_n": added,
    "tf.cast": cast,
    "tf.clip_by_value": clipped,
    "tf.concat": lambda values, axis: np.concatenate(alike(values), whole_number(axis)),
    "tf.constant": constant,
    "tf.einsum": einsum,
    "tf.fill": fill,
    "tf.gather": gathered,
    "tf.one_hot": one_hot,
    "tf.pad": padded,
    "tf.range": counted,
    "tf.slice": sliced,
    "tf.split": split,
    "tf.squeeze": squeezed,
    "tf.stack": lambda values, axis=0: np.stack(alike(values), whole_number(axis)),
    "tf.unstack": unstacked,
    "tf.where": where,
    "tf.getitem": item,
}
