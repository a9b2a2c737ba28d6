"""What the tiles of a result need of an operand that is broadcast to it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.engine.mapping.axes import axes_of_shape, folded_axes
from workbench.engine.mapping.grid import Cuts, Grid, grid_of_cuts, spread
from workbench.engine.mapping.joined import end_to_end, parts_of
from workbench.engine.mapping.turned import Turned, as_turned, by_shape
from workbench.engine.mapping.types import Demand, Mapping, Placement, Shape, demand, row_major_strides, runs
from workbench.engine.mapping.views import reshape
from workbench.errors import InputError

Boxes = tuple[IntArray, IntArray, IntArray]


def boxes(lo: IntArray, hi: IntArray, dims: Sequence[int]) -> list[Boxes]:
    """Flat intervals [lo, hi) as disjoint boxes: at most 2 rank - 1 each, in groups of (first, last + 1, interval).

    First and last + 1 are int64[boxes, rank]; every box has single outer indices, one range, and whole inner axes.
    """
    found = []
    piece = np.arange(len(lo), dtype=np.int64)
    for axis in range(len(dims) - 1, 0, -1):
        row = prod(dims[axis:])
        up = np.minimum(ceil_div(lo, row) * row, hi)
        down = np.maximum(hi // row * row, up)
        found += [_one_range(first, last, piece, axis, dims) for first, last in ((lo, up), (down, hi))]
        lo, hi = up, down
    found.append(_one_range(lo, hi, piece, 0, dims))
    return [group for group in found if len(group[2])]


def _one_range(lo: IntArray, hi: IntArray, piece: IntArray, axis: int, dims: Sequence[int]) -> Boxes:
    """Intervals inside one row of `axis`, which begin and end where its inner axes do."""
    filled = hi > lo
    lo, hi, piece = lo[filled], hi[filled], piece[filled]
    first = np.zeros((len(dims), len(lo)), dtype=np.int64)  # an axis behind the other: each is filled as a whole
    last = np.empty_like(first)
    last.T[:] = dims
    if not len(dims):
        return first.T, last.T, piece
    stride = row_major_strides(dims)[axis]
    outer, length = (lo // stride, (hi - lo) // stride) if stride != 1 else (lo, hi - lo)
    for each in range(axis, -1, -1):
        place = outer
        if each:  # one division an axis: they are what this takes its time for
            outer = outer // dims[each]
            place = place - outer * dims[each]
        first[each] = place
        np.add(place, 1, out=last[each])
    np.add(first[axis], length, out=last[axis])
    return first.T, last.T, piece


def box_rows(lo: IntArray, hi: IntArray, dims: Sequence[int]) -> Boxes:
    """Boxes [lo, hi) (int64[boxes, rank]) as contiguous flat intervals: (box, first, last + 1) of each."""
    box = np.arange(len(lo), dtype=np.int64)
    whole = (lo == 0) & (hi == np.array(dims, dtype=np.int64))
    cut = max((axis for axis in range(len(dims)) if not whole[:, axis].all()), default=0)
    first = np.zeros(len(lo), dtype=np.int64)
    strides = row_major_strides(dims)
    for axis in range(cut):
        count = (hi - lo)[box, axis]
        row = np.repeat(np.arange(len(box)), count)
        within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        first = first[row] + (lo[box[row], axis] + within) * strides[axis]
        box = box[row]
    if not len(dims):
        return box, first, first + 1
    return box, first + lo[box, cut] * strides[cut], first + hi[box, cut] * strides[cut]


def needed_by(result: Mapping, operand_shape: Sequence[int], broadcast_dims: Sequence[int] | None = None) -> Placement:
    """What each tile that owns part of `result` needs of an operand broadcast to it.

    Axis k of the operand is axis broadcast_dims[k] of the result (default: the last axes, as numpy does), and an
    axis of size 1 is repeated. A Grid gives a Grid with replicas, other mappings a Demand.
    """
    shape = tuple(operand_shape)
    if shape == result.shape:
        return result
    rank = len(result.shape)
    along = tuple(broadcast_dims) if broadcast_dims is not None else tuple(range(rank - len(shape), rank))
    for size, axis in zip(shape, along, strict=True):
        if size not in (1, result.shape[axis]):
            raise InputError(
                f"an operand {shape!r} of {result}", expected=f"size 1 or {result.shape[axis]} along {axis}"
            )
    if list(along) != sorted(set(along)):
        raise InputError(f"broadcast dims {along!r}", expected="rising axes", todo="transpose the operand first")
    if prod(shape) == result.size:
        return reshape(result, shape)
    of_parts = _needs_of_parts(result, shape, along)
    if of_parts is not None:
        return of_parts
    groups = axes_of_shape(result) if isinstance(result, Grid) else None
    if isinstance(result, Grid) and groups is not None:
        return _grid_needs(result, groups, shape, along)
    folded = folded_axes(result) if isinstance(result, Grid) else None
    if isinstance(result, Grid) and folded is not None:
        kept = {axis for size, axis in zip(shape, along, strict=True) if size == result.shape[axis] and size != 1}
        if all(kept.issuperset(axes) or kept.isdisjoint(axes) for axes in folded):
            return _folded_needs(result, [bool(axes) and kept.issuperset(axes) for axes in folded], shape)
    return _runs_need(result, shape, along)


def _needs_of_parts(result: Mapping, shape: Shape, along: Sequence[int]) -> Demand | None:
    """Needs of an operand with one axis, that along which the result was joined, part by part."""
    found = parts_of(result)
    sized = [axis for size, axis in zip(shape, along, strict=True) if size > 1]
    if found is None or sized != [found[0]]:
        return None
    axis, parts = found
    at = along.index(axis)
    cut = [(part, (*shape[:at], part.size(axis), *shape[at + 1 :])) for part in parts]
    return end_to_end(shape, [(part.first, needed_by(part.mapping, piece, along)) for part, piece in cut])


def _grid_needs(result: Grid, groups: Sequence[Sequence[Cuts]], shape: Sequence[int], along: Sequence[int]) -> Grid:
    kept = {axis for size, axis in zip(shape, along, strict=True) if size == result.shape[axis]}
    copies = [part.offset for axis, group in enumerate(groups) if axis not in kept for part in group]
    axes = [part for axis in along if axis in kept for part in groups[axis]]
    replicas = np.unique(spread([result.replicas, *copies]))
    return grid_of_cuts(shape, axes, dims=[axis.size for axis in axes], first_tile=result.first_tile, replicas=replicas)


def _folded_needs(result: Grid, kept: Sequence[bool], shape: Sequence[int]) -> Grid:
    """Needs of an operand that has some of the grid's dims whole and lacks the others."""
    axes = [axis for axis, keep in zip(result.axes, kept, strict=True) if keep]
    copies = [axis.offset for axis, keep in zip(result.axes, kept, strict=True) if not keep]
    replicas = np.unique(spread([result.replicas, *copies]))
    return grid_of_cuts(shape, axes, dims=[axis.size for axis in axes], first_tile=result.first_tile, replicas=replicas)


def _runs_need(result: Mapping, shape: Sequence[int], along: Sequence[int]) -> Demand:
    view = as_turned(result)
    split = by_shape(view) if view is not None else None
    if split is None:
        flat = as_turned(runs(result.shape, *result.runs()))
        split = by_shape(flat) if flat is not None else None
    if split is None:
        return demand(shape, [], [], [])
    seen, of_axis = split
    kept = [at for size, axis in zip(shape, along, strict=True) if size == result.shape[axis] for at in of_axis[axis]]
    starts, owners = seen.base.runs()
    ends = np.append(starts[1:], result.size)
    tile, lo, hi = [], [], []
    for first, last, piece in boxes(starts, ends, seen.base.shape):
        low, high = _in_view(seen, kept, first, last)
        box, begin, end = box_rows(low, high, [seen.dims[at] for at in kept])
        tile.append(owners[piece][box])
        lo.append(begin)
        hi.append(end)
    return demand(shape, np.concatenate(tile), np.concatenate(lo), np.concatenate(hi))


def _in_view(seen: Turned, kept: Sequence[int], first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
    """Boxes of the base along the kept axes of the view."""
    axes = [seen.perm[at] for at in kept]
    low, high = first[:, axes], last[:, axes]
    for column, axis in enumerate(axes):
        if axis in seen.flipped:
            size = seen.base.shape[axis]
            low[:, column], high[:, column] = size - last[:, axis], size - first[:, axis]
    return low, high
