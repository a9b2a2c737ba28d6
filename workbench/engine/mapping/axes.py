"""Sets of positions along the axes of a tensor, and how many elements of their product lie below a flat index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.engine.mapping.grid import Cuts, Grid, spread
from workbench.engine.mapping.types import all_distinct, check_tiles, row_major_strides, union


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
        count: IntArray = np.clip(at - self.lo, 0, self.total)
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
        filled = np.append(0, np.cumsum(self.cover > 0))
        return last - first, filled[last] - filled[first]


@lru_cache(maxsize=4096)
def cover_of(axis: Cuts) -> Cover:
    """The cover of an axis; grids share their axes, so most are met again."""
    return Cover(axis)


class Marks:
    """The positions of an axis in the marked segments between `edges`; one set for all flat indices."""

    __slots__ = ("_before", "_edges", "_marked")

    def __init__(self, edges: IntArray, marked: npt.NDArray[np.bool_]) -> None:
        self._edges, self._marked = edges, np.append(marked, False)
        self._before = np.append(0, np.cumsum(np.diff(edges) * marked))

    @property
    def total(self) -> IntArray:
        """See `AxisSet.total`."""
        return self._before[-1:]

    def below(self, at: IntArray) -> IntArray:
        """See `AxisSet.below`."""
        index = np.searchsorted(self._edges, at, side="right") - 1
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


@lru_cache(maxsize=4096)
def copy_tiles(grid: Grid) -> IntArray:
    """Tile of each copy of each part: int64[parts × replicas], the replicas of a part together."""
    return spread([grid.part_tiles(), grid.replicas])


@lru_cache(maxsize=4096)
def is_simple(grid: Grid) -> bool:
    """Whether no tile has two parts, and intervals rise along each axis: what the closed forms rest on."""
    if prod(grid.splits) == 0 or not grid.size:
        return False
    for axis in grid.axes:
        if (axis.lo[1:] < axis.lo[:-1]).any() or (axis.hi[1:] < axis.hi[:-1]).any():
            return False
    return all_distinct(copy_tiles(grid))


@lru_cache(maxsize=4096)
def grid_rows(grid: Grid) -> int:
    """Contiguous pieces of the flat index space that the parts of a grid and their copies are made of."""
    cut = max((axis for axis, part in enumerate(grid.axes) if not part.is_whole), default=0)
    rows = prod(int(axis.lengths.sum()) for axis in grid.axes[:cut])
    return rows * (len(grid.axes[cut]) if grid.axes else 1) * len(grid.replicas)


def part_index(grid: Grid, parts: IntArray) -> list[IntArray]:
    """Interval number along each axis of the given parts."""
    return [np.asarray(index, dtype=np.int64) for index in np.unravel_index(parts, grid.splits)] if grid.axes else []


def position_of(tiles_of: IntArray, tiles: int) -> IntArray:
    """Where each tile stands in `tiles_of` (distinct), -1 if nowhere: int64[tiles]."""
    check_tiles(tiles_of, tiles)
    where = np.full(tiles, -1, dtype=np.int64)
    where[tiles_of] = np.arange(len(tiles_of))
    return where
