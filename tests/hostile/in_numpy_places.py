"""The operations of `tf` on places and segments of arrays, and norms, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.hostile.in_numpy_arrays import held, of_type, whole
from tests.hostile.numpy_values import MOST, number, whole_number


def real(value: Any) -> Any:
    found = number(value)
    if found.dtype.kind != "f":
        raise TypeError("no real numbers")
    return found


def axes_of(axis: Any) -> Any:
    """None for all, an axis, or several in a list."""
    if axis is None or (isinstance(axis, int) and not isinstance(axis, bool)):
        return axis
    if isinstance(axis, list | tuple):
        return tuple(whole_number(each) for each in axis)
    raise TypeError("no axis")


def least(input: Any, axis: Any = 0) -> Any:
    found = number(input)
    if not found.ndim:
        raise ValueError("one number has no places")
    return np.argmin(found, whole_number(axis)).astype("int32")


def identity_matrix(num_rows: Any, num_columns: Any = None, dtype: Any = "float32") -> Any:
    sizes = held((num_rows, num_rows if num_columns is None else num_columns))
    return np.eye(*sizes, dtype=of_type(dtype))


def reversed_along(tensor: Any, axis: Any) -> Any:
    if not isinstance(axis, list | tuple):
        raise TypeError("no list of axes")
    return np.flip(number(tensor), axes_of(axis))


def places(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    found = whole(indices)
    if not found.ndim or found.shape[-1] > len(shape):
        raise ValueError("no places")
    if found.size and (found.min() < 0 or np.any(found >= shape[: found.shape[-1]])):
        raise IndexError("outside")
    return tuple(found[..., each] for each in range(found.shape[-1]))


def changed(add: bool) -> Callable[..., Any]:
    def of(tensor: Any, indices: Any, updates: Any) -> Any:
        made = np.array(number(tensor))
        given = number(updates) if hasattr(updates, "dtype") else number(updates, made.dtype)
        if given.dtype != made.dtype:
            raise TypeError("two types")
        at = places(indices, made.shape)
        if add:
            np.add.at(made, at, given)
        else:
            made[at] = given
        return made

    return of


def segments(mean: bool) -> Callable[..., Any]:
    def of(data: Any, segment_ids: Any, num_segments: Any) -> Any:
        rows, ids, count = number(data), whole(segment_ids), whole_number(num_segments)
        if ids.shape != rows.shape[: ids.ndim] or not 0 <= count <= MOST:
            raise ValueError("no segments")
        chosen = [rows[ids == each] for each in range(count)]
        sums = [each.sum(0) / (max(len(each), 1) if mean else 1) for each in chosen]
        return np.reshape(sums, (count, *rows.shape[ids.ndim :])).astype(rows.dtype)

    return of


def norm(tensor: Any, axis: Any = None, keepdims: Any = False) -> Any:
    if not isinstance(keepdims, bool):
        raise TypeError("neither yes nor no")
    return np.sqrt(np.sum(np.square(real(tensor)), axis=axes_of(axis), keepdims=keepdims))


def l2_normalized(x: Any, axis: Any = None, epsilon: Any = 1e-12) -> Any:
    if isinstance(epsilon, bool):
        raise TypeError("no number")
    squares = np.sum(np.square(real(x)), axis=axes_of(axis), keepdims=True)
    return real(x) / np.sqrt(np.maximum(squares, one_real(epsilon)))


def clipped_by_norm(t: Any, clip_norm: Any, axes: Any = None) -> Any:
    given, most = real(t), one_real(clip_norm)
    return given * most / np.maximum(norm(given, axes, True), most)


def global_norm(t_list: Any) -> Any:
    if not isinstance(t_list, list | tuple) or all(each is None for each in t_list):
        raise TypeError("no list, or of nothing")
    return np.sqrt(np.sum([np.sum(np.square(real(each))) for each in t_list if each is not None], dtype="float32"))


def one_real(value: Any) -> Any:
    found = number(value, "float32")
    if found.ndim or value is None:
        raise TypeError("not one number")
    return found


def ensured(x: Any, shape: Any) -> Any:
    given = number(x)
    if len(shape) != given.ndim or any(size not in (None, have) for size, have in zip(shape, given.shape, strict=True)):
        raise ValueError("another shape")
    return given


OF_PLACES: Mapping[str, Callable[..., Any]] = {
    "tf.broadcast_to": lambda input, shape: np.broadcast_to(number(input), held(shape)),
    "tf.size": lambda input, out_type="int32": np.asarray(np.size(number(input)), of_type(out_type)),
    "tf.rank": lambda input: np.asarray(number(input).ndim, "int32"),
    "tf.argmin": least,
    "tf.reverse": reversed_along,
    "tf.eye": identity_matrix,
    "tf.gather_nd": lambda params, indices: number(params)[places(indices, number(params).shape)],
    "tf.tensor_scatter_nd_add": changed(add=True),
    "tf.tensor_scatter_nd_update": changed(add=False),
    "tf.unsorted_segment_sum": segments(mean=False),
    "tf.unsorted_segment_mean": segments(mean=True),
    "tf.norm": norm,
    "tf.l2_normalize": l2_normalized,
    "tf.nn.l2_normalize": l2_normalized,
    "tf.clip_by_norm": clipped_by_norm,
    "tf.global_norm": global_norm,
    "tf.ensure_shape": ensured,
}
