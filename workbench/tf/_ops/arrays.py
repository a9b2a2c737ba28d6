"""More of `tf.`: arrays by other shapes and places, rows added by number, norms and clipping, over `jax.numpy`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.tf._graph.convert import array, lift
from workbench.tf._graph.dtypes import as_dtype
from workbench.tf._ops.math import axes_of, public, sized
from workbench.tf._ops.operands import inside, numbers, reals, wholes


@public("broadcast_to")
def _broadcast_to(input: Any, shape: Any) -> Any:
    given = array(input)
    return jnp.broadcast_to(given, sized(shape, given.dtype))


@public("size")
def _size(input: Any, out_type: Any = "int32") -> Any:
    return jnp.asarray(jnp.size(array(input)), str(as_dtype(out_type)))


@public("rank")
def _rank(input: Any) -> Any:
    return jnp.asarray(array(input).ndim, "int32")


@public("argmin")
def _argmin(input: Any, axis: int = 0) -> Any:
    return jnp.argmin(array(input), axis).astype("int32")


@public("reverse")
def _reverse(tensor: Any, axis: list[int]) -> Any:
    return jnp.flip(array(tensor), tuple(axis))


@public("eye")
def _eye(num_rows: int, num_columns: int | None = None, dtype: Any = "float32") -> Any:
    rows, columns = sized((num_rows, num_rows if num_columns is None else num_columns), dtype)
    return jnp.eye(rows, columns, dtype=str(as_dtype(dtype)))


@public("gather_nd")
def _gather_nd(params: Any, indices: Any) -> Any:
    table = array(params)
    return table[_places(indices, table.shape)]


def _places(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The last size of the indices goes over dimensions of the shape, from the first on."""
    places = wholes(indices)
    if not places.ndim or places.shape[-1] > len(shape):
        raise ValueError(f"indices of shape {list(places.shape)} name no elements of an array of shape {list(shape)}")
    return tuple(inside(places[..., number], shape[number], "indices") for number in range(places.shape[-1]))


@public("tensor_scatter_nd_add")
def _scatter_add(tensor: Any, indices: Any, updates: Any) -> Any:
    whole = numbers(tensor)
    return whole.at[_places(indices, whole.shape)].add(_of_type(updates, whole))


@public("tensor_scatter_nd_update")
def _scatter_update(tensor: Any, indices: Any, updates: Any) -> Any:
    whole = array(tensor)
    return whole.at[_places(indices, whole.shape)].set(_of_type(updates, whole))


def _of_type(given: Any, beside: Any) -> Any:
    found = array(given, None if hasattr(given, "dtype") else beside.dtype)
    if found.dtype != beside.dtype:
        raise TypeError(f"the arrays have types {beside.dtype} and {found.dtype}; cast one of them with tf.cast")
    return found


def _segments(name: str, reduce: Callable[..., Any]) -> None:
    """`tf.math.unsorted_segment_...`: rows of one number become one; those of negative numbers are left out."""

    @public(name)
    def segments(data: Any, segment_ids: Any, num_segments: int) -> Any:
        rows, ids = numbers(data), wholes(segment_ids)
        if ids.shape != rows.shape[: ids.ndim]:
            raise ValueError(f"the ids have shape {list(ids.shape)}, and the data {list(rows.shape)}")
        if num_segments < 0:
            raise ValueError("there cannot be fewer than no segments")
        flat = rows.reshape(-1, *rows.shape[ids.ndim :])
        places = jnp.where(ids.ravel() < 0, num_segments, ids.ravel())  # a last segment that nobody sees
        return reduce(flat, places, num_segments + 1)[:num_segments]


def _mean(rows: Any, ids: Any, count: int) -> Any:
    found = jax.ops.segment_sum(jnp.ones(ids.shape, rows.dtype), ids, count)
    return jax.ops.segment_sum(rows, ids, count) / jnp.maximum(found, 1).reshape(-1, *[1] * (rows.ndim - 1))


_segments("unsorted_segment_sum", jax.ops.segment_sum)
_segments("unsorted_segment_mean", _mean)


@public("norm")
def _norm(tensor: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return jnp.sqrt(jnp.sum(jnp.square(reals(tensor)), axes_of(axis), keepdims=keepdims))


@public("l2_normalize")
def _l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12) -> Any:
    given = reals(x)
    least = np.float32(epsilon)
    return given * jax.lax.rsqrt(jnp.maximum(jnp.sum(jnp.square(given), axes_of(axis), keepdims=True), least))


@public("clip_by_norm")
def _clip_by_norm(t: Any, clip_norm: Any, axes: Any = None) -> Any:
    given = reals(t)
    most = jnp.asarray(clip_norm, given.dtype)
    found = _norm(given, axes, keepdims=True)
    return given * most / jnp.maximum(found, most)


def _one(value: Any, called: str) -> Any:
    found = numbers(value)
    if found.ndim:
        raise TypeError(f"{called} has shape {list(found.shape)}, and has to be one number")
    return found


@public("global_norm")
def _global_norm(t_list: Any) -> Any:
    """The norm of all elements of a list of tensors, as of gradients; None among them has none."""
    if not isinstance(t_list, list | tuple) or all(each is None for each in t_list):
        raise TypeError(f"t_list is {short(t_list)}, and has to be a list of tensors")
    return jnp.sqrt(sum(jnp.sum(jnp.square(reals(each))) for each in t_list if each is not None))


def _clipped_to(t_list: Any, clip_norm: Any, use_norm: Any = None) -> tuple[Any, Any]:
    found = _global_norm(t_list)
    norm = found if use_norm is None else jnp.asarray(_one(use_norm, "use_norm"), found.dtype)
    most = jnp.asarray(_one(clip_norm, "clip_norm"), found.dtype)
    share = jnp.where(jnp.isfinite(norm), most / jnp.maximum(norm, most), jnp.nan)  # as in TensorFlow
    return [each if each is None else reals(each) * share.astype(reals(each).dtype) for each in t_list], norm


_clipped = lift("clip_by_global_norm", _clipped_to)


@checked
def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """The tensors of a list, made smaller alike where their global norm is above `clip_norm`, and that norm.

    `use_norm`: a global norm that is known already. Where it is infinite, no element is a number. None among the
    tensors, as among gradients, stays None.
    """
    made: tuple[Any, Any] = _clipped(t_list, clip_norm, use_norm, name=name)
    return made


@public("ensure_shape")
def _ensure_shape(x: Any, shape: Any) -> Any:
    given = array(x)
    wanted = tuple(shape)
    if len(wanted) != given.ndim or any(
        size not in (None, have) for size, have in zip(wanted, given.shape, strict=True)
    ):
        raise ValueError(f"an array of shape {list(given.shape)} has not the shape {list(wanted)}")
    return given


__all__ = ["clip_by_global_norm"]
