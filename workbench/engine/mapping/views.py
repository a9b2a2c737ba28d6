"""Views of an owner mapping: reshape, transpose, reverse and slice say where its elements are under a new index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.engine.mapping.axes import AxisSet, axes_of_shape, product_below
from workbench.engine.mapping.grid import Cuts, Grid, cuts, grid_of_cuts, reversed_cuts, whole
from workbench.engine.mapping.turned import as_turned, by_shape, turned
from workbench.engine.mapping.types import Linear, Mapping, Runs, Shape, TileArray, intern, runs, runs_of_elements
from workbench.errors import InputError


def regrid(base: Grid, shape: Sequence[int], groups: Sequence[Sequence[Cuts]], first_tile: int = 0) -> Grid:
    """The grid with other cuts along each axis of its shape, moved by `first_tile`."""
    axes = [axis for group in groups for axis in group]
    return grid_of_cuts(
        shape, axes, dims=[axis.size for axis in axes], first_tile=base.first_tile + first_tile, replicas=base.replicas
    )


def dense(mapping: Mapping) -> TileArray:
    """The owner of every element, in the tensor's shape."""
    return mapping.tile_of_elements().reshape(mapping.shape)


def reshape(mapping: Mapping, shape: Sequence[int]) -> Mapping:
    """The same flat elements under another shape (also squeeze and expand_dims)."""
    if prod(shape) != mapping.size:
        raise InputError(f"reshape of {mapping} to {tuple(shape)!r}", expected=f"a shape of {mapping.size} elements")
    return mapping if tuple(shape) == mapping.shape else intern(replace(mapping, shape=tuple(shape)))  # type: ignore[type-var]


def transpose(mapping: Mapping, perm: Sequence[int]) -> Mapping:
    """Axis a of the result is axis perm[a] of the mapping."""
    order = tuple(perm)
    return mapping if order == tuple(range(len(mapping.shape))) else _transposed(mapping, order)


# Layers of one kind turn the same few mappings; where nothing shorter is known each time goes over every element.
@lru_cache(maxsize=64)
def _transposed(mapping: Mapping, perm: Shape) -> Mapping:
    shape = [mapping.shape[axis] for axis in perm]
    groups = axes_of_shape(mapping) if isinstance(mapping, Grid) else None
    if isinstance(mapping, Grid) and groups is not None:
        return regrid(mapping, shape, [groups[axis] for axis in perm])
    view = as_turned(mapping)
    split = by_shape(view) if view is not None else None
    if split is None:
        return runs_of_elements(shape, dense(mapping).transpose(perm))
    parts, of_axis = split
    order = [parts.perm[at] for axis in perm for at in of_axis[axis]]
    return turned(shape, parts.base, order, parts.flipped)


def reverse(mapping: Mapping, axes: Sequence[int]) -> Mapping:
    """The order of elements turned round along each of `axes`."""
    groups = axes_of_shape(mapping) if isinstance(mapping, Grid) else None
    if isinstance(mapping, Grid) and groups is not None:
        parts = [tuple(map(reversed_cuts, group)) if axis in axes else group for axis, group in enumerate(groups)]
        return regrid(mapping, mapping.shape, parts)
    view = as_turned(mapping)
    split = by_shape(view) if view is not None else None
    if split is None:
        return runs_of_elements(mapping.shape, np.flip(dense(mapping), tuple(axes)))
    seen, of_axis = split
    turning = {seen.perm[at] for axis in axes for at in of_axis[axis]}
    return turned(mapping.shape, seen.base, seen.perm, turning.symmetric_difference(seen.flipped))


@dataclass(frozen=True, slots=True)
class _Steps:
    """Positions first, first + step, …, `count` of them, along one axis."""

    first: int
    step: int
    count: int

    @property
    def total(self) -> IntArray:
        return np.array([self.count], dtype=np.int64)

    def below(self, at: IntArray) -> IntArray:
        positions: IntArray = np.clip(-((self.first - at) // self.step), 0, self.count)
        return positions

    def seen_backwards(self, size: int) -> _Steps:
        return _Steps(size - 1 - (self.first + self.step * (self.count - 1)), self.step, self.count)


def slice_(
    mapping: Mapping, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
) -> Mapping:
    """Elements starts[a], starts[a] + strides[a], … below limits[a] of each axis."""
    steps = tuple(strides) if strides is not None else (1,) * len(mapping.shape)
    taken = [
        _Steps(first, step, max(0, ceil_div(limit - first, step)))
        for first, limit, step in zip(starts, limits, steps, strict=True)
    ]
    shape: Shape = tuple(one.count for one in taken)
    if shape == mapping.shape:
        return mapping
    if 0 in shape:
        return runs(shape, [], [])
    found = _sliced_grid(mapping, taken) if isinstance(mapping, Grid) else _sliced_view(mapping, taken)
    if found is not None:
        return found
    cut = tuple(slice(first, limit, step) for first, limit, step in zip(starts, limits, steps, strict=True))
    return runs_of_elements(shape, dense(mapping)[cut])


def rows_of(mapping: Mapping, rows: IntArray) -> Mapping:
    """The entries of the first axis with these numbers, in their order; an entry may come several times."""
    shape = (len(rows), *mapping.shape[1:])
    groups = axes_of_shape(mapping) if isinstance(mapping, Grid) else None
    if (
        isinstance(mapping, Grid)
        and groups is not None
        and all(cut.is_whole and not cut.offset[0] for cut in groups[0])
    ):
        return regrid(mapping, shape, [(whole(len(rows)),), *groups[1:]])
    return runs_of_elements(shape, dense(mapping)[rows])


def _sliced_grid(mapping: Grid, taken: Sequence[_Steps]) -> Grid | None:
    groups = axes_of_shape(mapping)
    if groups is None:
        return None
    parts: list[tuple[Cuts, ...]] = []
    moved = 0
    for group, one, before in zip(groups, taken, mapping.shape, strict=True):
        if one.count == before:
            parts.append(group)
            continue
        if len(group) != 1:
            return None
        part, least = cuts(one.count, one.below(group[0].lo), one.below(group[0].hi), group[0].offset)
        parts.append((part,))
        moved += least
    return regrid(mapping, [one.count for one in taken], parts, moved)


def _sliced_view(mapping: Mapping, taken: Sequence[_Steps]) -> Mapping | None:
    """A slice of a flat mapping never has more runs than it: what is left of a run stays together."""
    view = as_turned(mapping)
    split = by_shape(view) if view is not None else None
    if split is None:
        return None
    seen, of_axis = split
    of_base = {axis: _Steps(0, 1, size) for axis, size in enumerate(seen.base.shape)}
    for group, one, before in zip(of_axis, taken, mapping.shape, strict=True):
        if one.count == before:
            continue
        if len(group) != 1:
            return None
        axis = seen.perm[group[0]]
        of_base[axis] = one.seen_backwards(before) if axis in seen.flipped else one
    base = _sliced_runs(seen.base, [of_base[axis] for axis in range(len(seen.base.shape))])
    return turned([one.count for one in taken], base, seen.perm, seen.flipped)


def _sliced_runs(base: Linear | Runs, taken: Sequence[_Steps]) -> Runs:
    starts, owners = base.runs()
    sets: list[AxisSet] = list(taken)
    first = product_below(starts, base.shape, sets)[0]
    size = prod(one.count for one in taken)
    filled = np.append(first[1:], size) > first
    return runs([one.count for one in taken], first[filled], owners[filled])
