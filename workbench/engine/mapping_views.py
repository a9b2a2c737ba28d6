"""Views of an owner mapping (transpose, slice, …) and what the tiles of a result need of an operand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from workbench.engine.mapping_align import axes_of_shape
from workbench.engine.mapping_boxes import boxes
from workbench.engine.mapping_grid import Cuts, Grid, cuts, grid_of_cuts, spread, whole
from workbench.engine.mapping_types import (
    Demand,
    Mapping,
    Placement,
    Runs,
    Shape,
    TileArray,
    demand,
    intern,
    runs,
    runs_of_elements,
)
from workbench.engine.mapping_types import row_major_strides as row_major
from workbench.errors import InputError


def _regrid(base: Grid, shape: Sequence[int], groups: Sequence[Sequence[Cuts]], first_tile: int = 0) -> Grid:
    axes = [axis for group in groups for axis in group]
    return grid_of_cuts(
        shape, axes, dims=[axis.size for axis in axes], first_tile=base.first_tile + first_tile, replicas=base.replicas
    )


def _dense(mapping: Mapping) -> TileArray:
    return mapping.tile_of_elements().reshape(mapping.shape)


def reshape(mapping: Mapping, shape: Sequence[int]) -> Mapping:
    """The same flat elements under another shape (also squeeze and expand_dims)."""
    if prod(shape) != mapping.size:
        raise InputError(f"reshape of {mapping} to {tuple(shape)!r}", expected=f"a shape of {mapping.size} elements")
    return mapping if tuple(shape) == mapping.shape else intern(replace(mapping, shape=tuple(shape)))  # type: ignore[type-var]


def transpose(mapping: Mapping, perm: Sequence[int]) -> Mapping:
    """Axis a of the result is axis perm[a] of the mapping."""
    if tuple(perm) == tuple(range(len(mapping.shape))):
        return mapping
    shape = [mapping.shape[axis] for axis in perm]
    groups = axes_of_shape(mapping) if isinstance(mapping, Grid) else None
    if isinstance(mapping, Grid) and groups is not None:
        return _regrid(mapping, shape, [groups[axis] for axis in perm])
    return runs_of_elements(shape, _dense(mapping).transpose(perm))


def _sliced(axis: Cuts, start: int, size: int, stride: int) -> tuple[Cuts, int]:
    lo = np.clip(-(-(axis.lo - start) // stride), 0, size)
    hi = np.clip(-(-(axis.hi - start) // stride), 0, size)
    return cuts(size, lo, hi, axis.offset)


def slice_(
    mapping: Mapping, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
) -> Mapping:
    """Elements starts[a], starts[a] + strides[a], … below limits[a] of each axis."""
    steps = tuple(strides) if strides is not None else (1,) * len(mapping.shape)
    shape: Shape = tuple(max(0, -(-(b - a) // step)) for a, b, step in zip(starts, limits, steps, strict=True))
    if shape == mapping.shape:
        return mapping
    groups = axes_of_shape(mapping) if isinstance(mapping, Grid) else None
    if isinstance(mapping, Grid) and groups is not None and 0 not in shape:
        parts: list[tuple[Cuts, ...]] = []
        moved = 0
        for group, size, start, step, before in zip(groups, shape, starts, steps, mapping.shape, strict=True):
            if size == before:
                parts.append(group)
            elif len(group) == 1:
                part, least = _sliced(group[0], start, size, step)
                parts.append((part,))
                moved += least
            else:
                break
        if len(parts) == len(shape):
            return _regrid(mapping, shape, parts, moved)
    cut = tuple(slice(a, b, step) for a, b, step in zip(starts, limits, steps, strict=True))
    return runs_of_elements(shape, _dense(mapping)[cut])


def reverse(mapping: Mapping, axes: Sequence[int]) -> Mapping:
    """The order of elements turned round along each of `axes`."""
    groups = axes_of_shape(mapping) if isinstance(mapping, Grid) else None
    if isinstance(mapping, Grid) and groups is not None:
        parts = [tuple(map(_reversed, group)) if axis in axes else group for axis, group in enumerate(groups)]
        return _regrid(mapping, mapping.shape, parts)
    return runs_of_elements(mapping.shape, np.flip(_dense(mapping), tuple(axes)))


def _reversed(axis: Cuts) -> Cuts:
    return cuts(axis.size, axis.size - axis.hi, axis.size - axis.lo, axis.offset)[0]


def concatenate(mappings: Sequence[Mapping], axis: int) -> Mapping:
    """Mappings end to end along `axis`; their other axes have equal sizes."""
    sizes = [mapping.shape[axis] for mapping in mappings]
    shape = list(mappings[0].shape)
    shape[axis] = sum(sizes)
    filled = [mapping for mapping in mappings if mapping.size]
    if len(filled) <= 1:
        return reshape(filled[0] if filled else mappings[0], shape)
    joined = _joined_grids(filled, axis, shape)
    if joined is not None:
        return joined
    return _joined_runs(filled, axis, shape)


def _joined_grids(mappings: Sequence[Mapping], axis: int, shape: Sequence[int]) -> Grid | None:
    parts = [(part, axes_of_shape(part)) for part in mappings if isinstance(part, Grid)]
    if len(parts) < len(mappings) or any(groups is None for _, groups in parts):
        return None
    named = [(part, [list(group) or [whole(1)] for group in groups]) for part, groups in parts if groups is not None]
    first = named[0][1]
    if any(len(groups[axis]) > 1 for _, groups in named):
        return None
    for _, groups in named[1:]:
        for index, (one, other) in enumerate(zip(first, groups, strict=True)):
            if index != axis and [_plain(cut) for cut in one] != [_plain(cut) for cut in other]:
                return None
    lo, hi, offset, at = [], [], [], 0
    for part, groups in named:
        cut = groups[axis][0]
        lo.append(cut.lo + at)
        hi.append(cut.hi + at)
        offset.append(cut.offset + part.first_tile)
        at += cut.size
    axes: list[tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike] | Cuts] = []
    for index, group in enumerate(first):
        axes += [(np.concatenate(lo), np.concatenate(hi), np.concatenate(offset))] if index == axis else group
    dims = [
        size for index, group in enumerate(first) for size in ([at] if index == axis else [cut.size for cut in group])
    ]
    return grid_of_cuts(shape, axes, dims=dims)


def _plain(cut: Cuts) -> tuple[int, bytes, bytes, bytes]:
    return cut.size, cut.lo.tobytes(), cut.hi.tobytes(), cut.offset.tobytes()


def _joined_runs(mappings: Sequence[Mapping], axis: int, shape: Sequence[int]) -> Runs:
    inner = prod(shape[axis + 1 :])
    row, at = prod(shape[axis:]), 0
    starts, owners = [], []
    for mapping in mappings:
        width = mapping.shape[axis] * inner
        first, tile = mapping.runs()
        cut = np.union1d(first, np.arange(0, mapping.size, width))
        owners.append(tile[np.searchsorted(first, cut, side="right") - 1])
        starts.append(cut // width * row + cut % width + at)
        at += width
    flat = np.concatenate(starts) if starts else np.zeros(0, dtype=np.int64)
    order = np.argsort(flat, kind="stable")
    return runs(shape, flat[order], np.concatenate(owners)[order] if owners else flat)


def pad(
    mapping: Mapping, low: Sequence[int], high: Sequence[int], interior: Sequence[int] | None = None,
    fill_mapping: Mapping | None = None,
) -> Mapping:  # fmt: skip
    """`low` and `high` elements at the ends of each axis (negative: cut off), `interior` between its elements.

    Padding is on the tile it has in `fill_mapping` (of the result's shape), else beside the nearest element before it.
    """
    between = tuple(interior) if interior is not None else (0,) * len(mapping.shape)
    spans = [max(0, size + (size - 1) * gap) for size, gap in zip(mapping.shape, between, strict=True)]
    shape: Shape = tuple(span + a + b for span, a, b in zip(spans, low, high, strict=True))
    index = [
        np.clip((np.arange(size) - a) // (gap + 1), 0, before - 1)
        for size, a, gap, before in zip(shape, low, between, mapping.shape, strict=True)
    ]
    if fill_mapping is not None:
        return _filled(mapping, fill_mapping, low, between, spans)
    if not mapping.size:
        raise InputError(f"padding of {mapping}", expected="a fill mapping, as it has no element to lie beside")
    groups = axes_of_shape(mapping) if isinstance(mapping, Grid) else None
    if isinstance(mapping, Grid) and groups is not None:
        parts = []
        moved = 0
        for group, where, before in zip(groups, index, mapping.shape, strict=True):
            if len(where) == before and (where == np.arange(before)).all():
                parts.append(group)
            elif len(group) <= 1:
                part, least = _taken(group[0] if group else whole(1), where)
                parts.append((part,))
                moved += least
            else:
                break
        if len(parts) == len(shape) and 0 not in shape:
            return _regrid(mapping, shape, parts, moved)
    return runs_of_elements(shape, _dense(mapping)[np.ix_(*index)])


def _taken(axis: Cuts, index: npt.NDArray[np.int64]) -> tuple[Cuts, int]:
    """Cuts of an axis whose element k is element index[k] (rising) of `axis`."""
    lo, hi = np.searchsorted(index, axis.lo), np.searchsorted(index, axis.hi)
    return cuts(len(index), lo, hi, axis.offset)


def _filled(
    mapping: Mapping, fill: Mapping, low: Sequence[int], between: Sequence[int], spans: Sequence[int]
) -> Mapping:
    dense = _dense(fill).copy()
    inside, source = [], []
    for size, a, gap, span in zip(fill.shape, low, between, spans, strict=True):
        step = gap + 1
        skipped = max(0, -(a // step)) if a < 0 else 0
        first = a + skipped * step
        count = max(0, -(-(min(size, a + span) - first) // step))
        inside.append(slice(first, first + count * step, step))
        source.append(slice(skipped, skipped + count))
    dense[tuple(inside)] = _dense(mapping)[tuple(source)]
    return runs_of_elements(fill.shape, dense)


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
    groups = axes_of_shape(result) if isinstance(result, Grid) else None
    if isinstance(result, Grid) and groups is not None:
        return _grid_needs(result, groups, shape, along)
    return _runs_need(result, shape, along)


def _grid_needs(result: Grid, groups: Sequence[Sequence[Cuts]], shape: Sequence[int], along: Sequence[int]) -> Grid:
    kept = {axis for size, axis in zip(shape, along, strict=True) if size == result.shape[axis]}
    copies = [part.offset for axis, group in enumerate(groups) if axis not in kept for part in group]
    axes = [part for axis in along if axis in kept for part in groups[axis]]
    replicas = np.unique(spread([result.replicas, *copies]))
    return grid_of_cuts(shape, axes, dims=[axis.size for axis in axes], first_tile=result.first_tile, replicas=replicas)


def _runs_need(result: Mapping, shape: Sequence[int], along: Sequence[int]) -> Demand:
    starts, owners = result.runs()
    ends = np.append(starts[1:], result.size)[: len(starts)]
    strides = np.zeros(len(result.shape), dtype=np.int64)
    for stride, size, axis in zip(row_major(shape), shape, along, strict=True):
        strides[axis] = stride if size > 1 else 0
    tile, lo, hi = [], [], []
    for piece_lo, piece_hi, piece in boxes(starts, ends, result.shape):
        low = (piece_lo * strides).sum(axis=1)
        high = ((piece_hi - 1) * strides).sum(axis=1) + 1
        tile.append(owners[piece])
        lo.append(low)
        hi.append(high)
    return demand(shape, np.concatenate(tile), np.concatenate(lo), np.concatenate(hi))
