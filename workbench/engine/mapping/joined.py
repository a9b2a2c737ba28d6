"""Tensors end to end: a mapping that remembers what it was joined from, and concatenation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.engine.mapping.axes import axes_of_shape
from workbench.engine.mapping.grid import Cuts, Grid, grid_of_cuts, whole
from workbench.engine.mapping.types import (
    Demand,
    Mapping,
    Placement,
    Runs,
    Shape,
    demand,
    intern,
)
from workbench.engine.mapping.views import reshape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Joined(Runs):
    """Runs of tensors end to end along an axis, which stay variables of their own: `parts` are their mappings.

    Read parts through `parts_of`: under another shape the same elements are no longer parts along an axis.
    """

    axis: int
    parts: tuple[Mapping, ...]

    def _content(self) -> tuple[object, ...]:
        return (self.axis, *(part.key for part in self.parts))


@dataclass(frozen=True, slots=True)
class Part:
    """One part and where it begins along the axis."""

    mapping: Mapping
    first: int

    def size(self, axis: int) -> int:
        """Its length along the axis."""
        return self.mapping.shape[axis]


def parts_of(mapping: Placement) -> tuple[int, tuple[Part, ...]] | None:
    """The axis and parts of a joined mapping in the shape it was joined to; None of any other."""
    if not isinstance(mapping, Joined):
        return None
    axis, total, found = mapping.axis, 0, []
    for part in mapping.parts:
        found.append(Part(part, total))
        total += part.shape[axis]
    first = mapping.parts[0].shape
    return (axis, tuple(found)) if mapping.shape == (*first[:axis], total, *first[axis + 1 :]) else None


def join(mappings: Sequence[Mapping], axis: int, shape: Sequence[int]) -> Joined:
    """Mappings end to end along `axis`; those that were joined along it themselves give their parts."""
    outer, row, at = prod(shape[:axis]), prod(shape[axis:]), 0
    rows = np.arange(outer)
    found, counts = [], np.empty((outer, len(mappings)), np.int64)
    for place, mapping in enumerate(mappings):
        width = mapping.size // outer
        first, tile = _cut_at(rows[1:] * width, *mapping.runs())
        counts[:, place] = np.diff(np.searchsorted(first, rows * width), append=len(first))
        found.append((first + np.repeat(rows * (row - width) + at, counts[:, place]), tile))
        at += width
    # Row by row the pieces of every mapping follow each other: where they go is known without sorting.
    which = np.repeat(np.tile(np.arange(len(mappings)), outer), counts.reshape(-1))
    flat, tiles = np.empty((2, len(which)), np.int64)
    for place, (first, tile) in enumerate(found):
        here = which == place
        flat[here], tiles[here] = first, tile
    keep = np.append(True, tiles[1:] != tiles[:-1])
    runs = flat[keep], tiles[keep]
    for each in runs:
        each.setflags(write=False)
    parts = tuple(part for mapping in mappings for part in _flattened(mapping, axis))
    return intern(Joined(shape=tuple(shape), starts=runs[0], tiles_of_run=runs[1], axis=axis, parts=parts))


def _cut_at(bounds: IntArray, starts: IntArray, tiles: IntArray) -> tuple[IntArray, IntArray]:
    """Runs that begin anew at each of some ascending bounds, of which there are few."""
    place = np.searchsorted(starts, bounds)
    new = np.append(starts, -1)[place] != bounds
    if not new.any():
        return starts, tiles
    place, bounds = place[new], bounds[new]
    return np.insert(starts, place, bounds), np.insert(tiles, place, tiles[place - 1])


def _flattened(mapping: Mapping, axis: int) -> Iterator[Mapping]:
    found = parts_of(mapping)
    if found is None or found[0] != axis:
        yield mapping
    else:
        yield from (part.mapping for part in found[1])


def clipped(need: Grid, axis: int, first: int, size: int) -> Grid | None:
    """What a grid needs of positions first to first + size - 1 along an axis, over these alone; None: not a grid."""
    groups = axes_of_shape(need)
    if groups is None or len(groups[axis]) > 1:
        return None
    (cut,) = groups[axis] or (whole(need.shape[axis]),)
    lo, hi = (np.clip(bound - first, 0, size) for bound in (cut.lo, cut.hi))
    shape = (*need.shape[:axis], size, *need.shape[axis + 1 :])
    axes: list[Cuts | tuple[object, object, object]] = []
    for index, group in enumerate(groups):
        axes += [(lo, hi, cut.offset)] if index == axis else group
    dims = [
        length
        for index, group in enumerate(groups)
        for length in ([size] if index == axis else [one.size for one in group])
    ]
    return grid_of_cuts(shape, axes, dims=dims, first_tile=need.first_tile, replicas=need.replicas)  # type: ignore[arg-type]


def end_to_end(shape: Shape, needs: Sequence[tuple[int, Placement]]) -> Demand:
    """Demands of pieces of a flat tensor of `shape`, each with the element it begins at, as one."""
    found = [(placement.intervals(), first) for first, placement in needs]
    tile = np.concatenate([tiles for (tiles, _, _), _ in found])
    lo = np.concatenate([low + first for (_, low, _), first in found])
    hi = np.concatenate([high + first for (_, _, high), first in found])
    return demand(shape, tile, lo, hi)


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
    return join(filled, axis, shape)


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
