"""Turned: a flat mapping seen with its axes in another order or reversed, which as runs would be one per element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from string import ascii_letters

import numpy as np

from workbench.base.arrays import IntArray
from workbench.engine.mapping.axes import common_dims, group, refine
from workbench.engine.mapping.grid import Grid, grid_of_cuts, reversed_cuts
from workbench.engine.mapping.types import (
    Linear,
    Mapping,
    Runs,
    Shape,
    TileArray,
    intern,
    runs,
    runs_of_elements,
    shape_text,
)
from workbench.engine.remembered import remembered

# Up to so many elements a list of runs is as quick.
FEW_ELEMENTS = 16_384


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Turned(Mapping):
    """A flat mapping (`base`, over the row-major dims that are its shape) with its axes turned.

    Axis k of the view is axis `perm[k]` of the base, read backwards if that is in `flipped`; `shape` is a reshape of
    the view. What lies together on a tile is in the order of the base. Made by `transpose` and `reverse`.
    """

    shape: Shape
    base: Linear | Runs
    perm: tuple[int, ...]
    flipped: tuple[int, ...]

    def _content(self) -> tuple[object, ...]:
        return (self.base, self.perm, self.flipped)

    @property
    def dims(self) -> Shape:
        """Sizes of the axes of the view, in its order."""
        return tuple(self.base.shape[axis] for axis in self.perm)

    @property
    def is_owner(self) -> bool:
        """Whether every element is on a tile."""
        return self.base.is_owner

    @property
    def last_tile(self) -> int:
        """See `Placement.last_tile`."""
        return self.base.last_tile

    def count(self, tiles: int) -> IntArray:
        """See `Placement.count`."""
        return self.base.elements_per_tile(tiles)

    def tile_of_elements(self) -> TileArray:
        """See `Mapping.tile_of_elements`."""
        dense = np.flip(self.base.tile_of_elements().reshape(self.base.shape), self.flipped)
        return dense.transpose(self.perm).reshape(-1)

    def runs(self) -> tuple[IntArray, IntArray]:
        """See `Mapping.runs`; up to one run per element."""
        return _runs_of(self)

    def __str__(self) -> str:
        seen = "".join(("-" if axis in self.flipped else "") + ascii_letters[axis] for axis in self.perm)
        return f"Turned({shape_text(self.shape)} as {seen} of {self.base})"


@lru_cache(maxsize=4)
def _runs_of(view: Turned) -> tuple[IntArray, IntArray]:
    made = runs_of_elements(view.shape, view.tile_of_elements())
    return made.starts, made.tiles_of_run


def turned(shape: Sequence[int], base: Linear | Runs, perm: Sequence[int], flipped: Iterable[int]) -> Mapping:
    """The view in its shortest form: axes that stay together are joined, and what is in order is flat."""
    sizes, order, backwards = _joined(base.shape, perm, set(flipped))
    flat = intern(replace(base, shape=sizes))
    if len(sizes) <= 1 and not backwards:
        return intern(replace(base, shape=tuple(shape)))
    if len(sizes) == 1:
        starts, owners = base.runs()
        ends = np.append(starts[1:], base.size)
        return runs(shape, base.size - ends[::-1], owners[::-1])
    view = Turned(shape=tuple(shape), base=flat, perm=order, flipped=backwards)
    if view.size <= FEW_ELEMENTS:
        return runs_of_elements(shape, view.tile_of_elements())
    return intern(view)


def _joined(dims: Shape, perm: Sequence[int], flipped: set[int]) -> tuple[Shape, tuple[int, ...], tuple[int, ...]]:
    """Dims, perm and flipped without axes of size 1, and with axes that are neighbours on both sides as one."""
    blocks: list[list[int]] = []
    for axis in perm:
        if dims[axis] == 1:
            continue
        last = next((other for other in range(axis - 1, -1, -1) if dims[other] != 1), None)
        if blocks and blocks[-1][-1] == last and (axis in flipped) == (last in flipped):
            blocks[-1].append(axis)
        else:
            blocks.append([axis])
    ranked = sorted(blocks)
    sizes = tuple(prod(dims[axis] for axis in block) for block in ranked)
    backwards = tuple(number for number, block in enumerate(ranked) if block[0] in flipped)
    return sizes, tuple(ranked.index(block) for block in blocks), backwards


def as_turned(mapping: Mapping, *, flat: bool = False) -> Turned | None:
    """A flat mapping (over its shape, or with `flat` over one axis) or a view of one as a view; None for a grid."""
    if isinstance(mapping, (Linear, Runs)):
        if flat:
            mapping = intern(replace(mapping, shape=(mapping.size,)))
        return Turned(shape=mapping.shape, base=mapping, perm=tuple(range(len(mapping.shape))), flipped=())
    return mapping if isinstance(mapping, Turned) else None


def over(view: Turned, dims: Shape) -> Turned:
    """The same view with its axes split so that they are `dims` (without sizes of 1), which must refine them."""
    groups = dict(zip(view.perm, group(dims, view.dims), strict=True))
    sizes = [groups[axis] for axis in range(len(view.perm))]
    first = [sum(map(len, sizes[:axis])) for axis in range(len(sizes) + 1)]
    perm = tuple(at for axis in view.perm for at in range(first[axis], first[axis + 1]))
    flipped = tuple(at for axis in view.flipped for at in range(first[axis], first[axis + 1]))
    base = intern(replace(view.base, shape=tuple(size for parts in sizes for size in parts)))
    return Turned(shape=view.shape, base=base, perm=perm, flipped=flipped)


def by_shape(view: Turned) -> tuple[Turned, list[tuple[int, ...]]] | None:
    """The view split along its shape, and the axes of the split view that make up each axis of the shape."""
    dims = common_dims(view.shape, view.dims) if view.size else None
    if dims is None:
        return None
    groups, at = [], 0
    for sizes in group(dims, view.shape):
        groups.append(tuple(range(at, at + len(sizes))))
        at += len(sizes)
    return over(view, dims), groups


@remembered(2048)
def pulled(grid: Grid, view: Turned) -> tuple[Grid, Linear | Runs] | None:
    """A grid over the view as a grid over its base (and the base); None where cuts fall across the axes."""
    dims = common_dims(grid.dims, view.dims)
    refined = None if dims is None else refine(grid, dims)
    if dims is None or refined is None:
        return None
    split = over(view, dims)
    axes = [refined.axes[split.perm.index(axis)] for axis in range(len(dims))]
    axes = [reversed_cuts(axis) if number in split.flipped else axis for number, axis in enumerate(axes)]
    seen = grid_of_cuts(split.base.shape, axes, first_tile=grid.first_tile, replicas=grid.replicas)
    return seen, split.base
