"""Grids over other dimensions of the same index space, and what lies below a flat index on their axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd, prod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.engine.mapping.grid import Cuts, Grid, cuts, grid_of_cuts, spread, whole
from workbench.engine.mapping.types import Shape, all_distinct, check_tiles, row_major_strides, union
from workbench.engine.remembered import remembered


@remembered(8192)
def common_dims(first: Shape, second: Shape) -> Shape | None:
    """The coarsest dims that refine both: (12, 5) and (3, 20) → (3, 4, 5); None if they cannot be nested."""
    marks = {prod(dims[axis:]) for dims in (first, second) for axis in range(len(dims) + 1)}
    chain = sorted(marks, reverse=True)
    if any(outer % inner for outer, inner in pairwise(chain)):
        return None
    return tuple(outer // inner for outer, inner in pairwise(chain))


def _split(axis: Cuts, sizes: Sequence[int]) -> list[Cuts] | None:
    """One axis as several, outermost first; None where its intervals are no product of intervals."""
    if len(sizes) <= 1:
        return [axis] if sizes else []
    if axis.is_whole:
        return [whole(size) for size in sizes]
    inner = prod(sizes[1:])
    if not (axis.lo % inner).any() and not (axis.hi % inner).any():
        outer = cuts(sizes[0], axis.lo // inner, axis.hi // inner, axis.offset)[0]
        return [outer, *(whole(size) for size in sizes[1:])]
    if len(axis) != 1 or axis.lo[0] // inner != (axis.hi[0] - 1) // inner:
        return None
    digit = int(axis.lo[0] // inner)
    outer = cuts(sizes[0], [digit], [digit + 1], [0])[0]
    rest = _split(cuts(inner, axis.lo - digit * inner, axis.hi - digit * inner, [0])[0], sizes[1:])
    return None if rest is None else [outer, *rest]


def group(dims: Sequence[int], coarse: Sequence[int]) -> list[Shape]:
    """The consecutive dims that make up each coarse dim, which they must refine; sizes of 1 are dropped."""
    groups, at = [], 0
    kept = [size for size in dims if size != 1]
    for size in coarse:
        first = at
        while prod(kept[first:at]) < size:
            at += 1
        groups.append(tuple(kept[first:at]))
    return groups


@remembered(8192)
def refine(grid: Grid, dims: Shape) -> Grid | None:
    """The same grid over `dims`, which refine its own; None where a cut falls across them."""
    if grid.dims == dims:
        return grid
    axes: list[Cuts] = []
    for axis, sizes in zip(grid.axes, group(dims, grid.dims), strict=True):
        parts = _split(axis, sizes) if axis.size != 1 or len(axis) else None
        if parts is None:
            return None
        axes += parts
    return grid_of_cuts(grid.shape, axes, dims=dims, first_tile=grid.first_tile, replicas=grid.replicas)


@remembered(8192)
def axes_of_shape(grid: Grid) -> tuple[tuple[Cuts, ...], ...] | None:
    """The cuts that make up each axis of the grid's shape (none for an axis of size 1), or None."""
    if not grid.size:
        return None
    dims = common_dims(grid.shape, grid.dims)
    refined = None if dims is None else refine(grid, dims)
    if dims is None or refined is None:
        return None
    left = iter(refined.axes)
    return tuple(tuple(next(left) for _ in sizes) for sizes in group(dims, grid.shape))


@remembered(8192)
def folded_axes(grid: Grid) -> tuple[tuple[int, ...], ...] | None:
    """The axes of the grid's shape that are folded into each of its dims (size 1 axes left out); None if none nest."""
    axes = [axis for axis, size in enumerate(grid.shape) if size != 1]
    sizes = [grid.shape[axis] for axis in axes]
    folded: list[tuple[int, ...]] = []
    at = 0
    for size in grid.dims:
        first, product = at, 1
        while product < size and at < len(sizes):
            product *= sizes[at]
            at += 1
        if product != size:
            return None
        folded.append(tuple(axes[first:at]))
    return tuple(folded) if at == len(sizes) else None


CHANNEL_GROUP = 16  # elements; the widest channel group PopLibs' plans use (conv units of half inputs)


def in_memory_order(first: Grid, second: Grid) -> tuple[Grid, Grid] | None:
    """Both grids over dims in the order of a tile's memory: `[channels / group][batch, field][group]`.

    PopLibs keeps activations and weights in groups of channels (poplibs@7eac0f26 lib/poplin/ConvUtil.cpp,
    lib/poputil/VarStructure.cpp), so that a block of channels of neighbouring positions is one piece. The group is the
    largest up to 16 that no cut of the last axis falls into; all channels where neither grid cuts them. None where the
    grids cannot be written over common dims.
    """
    dims = common_dims(first.dims, second.dims)
    have, need = (refine(first, dims), refine(second, dims)) if dims is not None else (None, None)
    if dims is None or have is None or need is None or len(dims) < 2:
        return None if have is None or need is None else (have, need)
    if all(len(grid.axes[-1]) == 1 and grid.axes[-1].is_whole for grid in (have, need)):
        return have, need
    bounds = [bound for grid in (have, need) for bound in (grid.axes[-1].lo, grid.axes[-1].hi)]
    group = int(np.gcd.reduce(np.concatenate(bounds), initial=gcd(CHANNEL_GROUP, dims[-1])))
    return _grouped(have, dims, group), _grouped(need, dims, group)


def _grouped(grid: Grid, dims: Shape, group: int) -> Grid:
    """The grid in groups of its last axis, whose cuts stay as canonical as they are: not kept, as few ask again."""
    last = grid.axes[-1]
    groups = Cuts(size=last.size // group, lo=last.lo // group, hi=last.hi // group, offset=last.offset)
    axes = (groups, *grid.axes[:-1], *((whole(group),) if group > 1 else ()))
    shape = (last.size // group, *dims[:-1], *((group,) if group > 1 else ()))
    return Grid(shape=shape, axes=axes, first_tile=grid.first_tile, replicas=grid.replicas)


class AxisSet(Protocol):
    """Positions along one axis: one set for all flat indices asked about, or one per index."""

    @property
    def total(self) -> IntArray:
        """How many positions; int64, one or one per flat index."""

    def below(self, at: IntArray) -> IntArray:
        """How many positions are less than each of `at`."""


@dataclass(frozen=True, slots=True)
class Span:
    """Positions lo to hi - 1, one span or one per flat index."""

    lo: IntArray
    hi: IntArray

    @property
    def total(self) -> IntArray:
        """See `AxisSet.total`."""
        length: IntArray = np.maximum(self.hi - self.lo, 0)
        return length

    def below(self, at: IntArray) -> IntArray:
        """See `AxisSet.below`."""
        count: IntArray = np.minimum(np.maximum(at - self.lo, 0), self.total)
        return count


class Cover:
    """How often the intervals of a demand cover each position of an axis, as segments of one covering set.

    `edges` (int64[segments + 1], from 0 to the size) bound the segments, `cover` counts the intervals over each.
    Two neighbouring segments never have the same set of intervals.
    """

    __slots__ = ("_covered", "_single", "cover", "edges")

    def __init__(self, axis: Cuts) -> None:
        self.edges: IntArray = union(axis.lo, axis.hi, (0, axis.size))
        opens = np.bincount(np.searchsorted(self.edges, axis.lo), minlength=len(self.edges))
        closes = np.bincount(np.searchsorted(self.edges, axis.hi), minlength=len(self.edges))
        self.cover: IntArray = np.cumsum(opens - closes)[:-1]
        self._covered: Marks | None = None
        self._single: Marks | None = None

    def __len__(self) -> int:
        return len(self.cover)

    def covered(self) -> Marks:
        """Positions at least one interval covers."""
        if self._covered is None:
            self._covered = Marks(self.edges, self.cover > 0)
        return self._covered

    def single(self) -> Marks:
        """Positions exactly one interval covers."""
        if self._single is None:
            self._single = Marks(self.edges, self.cover == 1)
        return self._single

    def starts(self) -> Marks:
        """First positions of the covered segments."""
        first = self.edges[:-1][self.cover > 0]
        edges = union(first, first + 1, (0, self.edges[-1]))
        marked = np.zeros(len(edges) - 1, dtype=bool)
        marked[np.searchsorted(edges, first)] = True
        return Marks(edges, marked)

    def segments(self, lo: IntArray, hi: IntArray) -> tuple[IntArray, IntArray]:
        """Segments, and covered segments, that each non-empty [lo, hi) meets."""
        first = np.searchsorted(self.edges, lo, side="right") - 1
        last = np.searchsorted(self.edges, hi, side="left")
        filled = np.zeros(len(self.edges), dtype=np.int64)
        (self.cover > 0).cumsum(out=filled[1:])
        return last - first, filled[last] - filled[first]


@remembered(4096)
def cover_of(axis: Cuts) -> Cover:
    """The cover of an axis; grids share their axes, so most are met again."""
    return Cover(axis)


class Marks:
    """The positions of an axis in the marked segments between `edges`; one set for all flat indices."""

    __slots__ = ("_before", "_edges", "_marked")

    def __init__(self, edges: IntArray, marked: npt.NDArray[np.bool_]) -> None:
        self._edges = edges
        self._marked = np.zeros(len(edges), dtype=bool)
        self._marked[:-1] = marked
        self._before = np.zeros(len(edges), dtype=np.int64)
        ((edges[1:] - edges[:-1]) * marked).cumsum(out=self._before[1:])

    @property
    def total(self) -> IntArray:
        """See `AxisSet.total`."""
        return self._before[-1:]

    def below(self, at: IntArray) -> IntArray:
        """See `AxisSet.below`."""
        index = self._edges.searchsorted(at, side="right") - 1
        count: IntArray = self._before[index] + (at - self._edges[index]) * self._marked[index]
        return count


def product_below(at: IntArray, dims: Sequence[int], sets: Sequence[AxisSet]) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Elements of the product of the sets at flat indices less than each of `at`, and whether `at` itself is one."""
    count = np.zeros(len(at), dtype=np.int64)
    inside = np.ones(len(at), dtype=bool)
    left = at
    inner: list[IntArray] = [np.ones(1, dtype=np.int64)]
    for one in reversed(sets):
        inner.append(inner[-1] * one.total)
    for axis, (stride, one) in enumerate(zip(row_major_strides(dims), sets, strict=True)):
        digit = left // stride
        left = left - digit * stride
        below = one.below(digit)
        count += inside * below * inner[len(sets) - 1 - axis]
        inside = inside & (one.below(digit + 1) > below)
    return count, inside


def product_within(lo: IntArray, hi: IntArray, dims: Sequence[int], sets: Sequence[AxisSet]) -> IntArray:
    """Elements of the product of the sets in each flat interval [lo, hi); sets are one for all or one per interval."""
    return product_below(hi, dims, sets)[0] - product_below(lo, dims, sets)[0]


def tiles_of_copies(grid: Grid) -> IntArray:
    """Tile of each copy of each part: int64[parts × replicas], the replicas of a part together."""
    return spread([*(axis.offset for axis in grid.axes), grid.replicas], grid.first_tile)


@remembered(4096)
def copy_tiles(grid: Grid) -> IntArray:
    """`tiles_of_copies` of a grid that is asked about again."""
    return tiles_of_copies(grid)


@remembered(4096)
def is_simple(grid: Grid) -> bool:
    """Whether no tile has two parts, and intervals rise along each axis: what the closed forms rest on."""
    if prod(grid.splits) == 0 or not grid.size:
        return False
    for axis in grid.axes:
        if len(axis) > 1 and ((axis.lo[1:] < axis.lo[:-1]).any() or (axis.hi[1:] < axis.hi[:-1]).any()):
            return False
    return all_distinct(copy_tiles(grid))


@remembered(4096)
def grid_rows(grid: Grid) -> int:
    """Contiguous pieces of the flat index space that the parts of a grid and their copies are made of."""
    cut = max((axis for axis, part in enumerate(grid.axes) if not part.is_whole), default=0)
    rows = prod(int(axis.lengths.sum()) for axis in grid.axes[:cut])
    return rows * (len(grid.axes[cut]) if grid.axes else 1) * len(grid.replicas)


def part_index(grid: Grid, parts: IntArray) -> list[IntArray]:
    """Interval number along each axis of the given parts."""
    found: list[IntArray] = []
    left, first = parts, np.zeros(len(parts), dtype=np.int64)
    for stride, count in zip(row_major_strides(grid.splits), grid.splits, strict=True):
        if count == 1:
            found.append(first)
        elif stride == 1:
            found.append(left)
        else:
            found.append(left // stride)
            left = left - found[-1] * stride
    return found


def position_of(tiles_of: IntArray, tiles: int) -> IntArray:
    """Where each tile stands in `tiles_of` (distinct), -1 if nowhere: int64[tiles]."""
    check_tiles(tiles_of, tiles)
    where = np.full(tiles, -1, dtype=np.int64)
    where[tiles_of] = np.arange(len(tiles_of))
    return where
