"""Grid: a tensor cut into intervals along each axis, and the constructors of the two regular mappings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from math import prod

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, ceil_div, frozen
from workbench.base.dtypes import ITEMSIZE_BYTES
from workbench.engine.mapping.types import (
    Linear,
    Mapping,
    Shape,
    add_at,
    all_distinct,
    intern,
    joined_intervals,
    shape_text,
)
from workbench.engine.mapping.types import row_major_strides as row_major
from workbench.engine.remembered import remembered
from workbench.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cuts:
    """Intervals [lo, hi) of one axis of `size` elements; each adds its `offset` to the tile number.

    Intervals of an owner partition the axis; those of a demand may overlap (halos) or leave elements out.
    `content`, the bytes of the arrays, is of canonical ones alone, as `cuts` makes them.
    """

    size: int
    lo: IntArray
    hi: IntArray
    offset: IntArray
    content: tuple[bytes, bytes, bytes] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.lo)

    @property
    def lengths(self) -> IntArray:
        """Elements of each interval."""
        return self.hi - self.lo

    @property
    def is_whole(self) -> bool:
        """Whether one interval holds the whole axis."""
        return len(self.lo) == 1 and self.lo[0] == 0 and self.hi[0] == self.size

    @property
    def is_partition(self) -> bool:
        """Whether each element is in exactly one interval."""
        return _is_partition(self)


@remembered(8192)
def _is_partition(axis: Cuts) -> bool:
    if not len(axis.lo):
        return axis.size == 0
    return bool(axis.lo[0] == 0 and axis.hi[-1] == axis.size and (axis.lo[1:] == axis.hi[:-1]).all())


def cuts(size: int, lo: npt.ArrayLike, hi: npt.ArrayLike, offset: npt.ArrayLike) -> tuple[Cuts, int]:
    """Cuts in canonical form, and the least offset taken out of them; equal ones are the same object.

    Empty intervals are dropped, the rest sorted, touching ones on one tile joined.
    """
    return _canonical(size, *(np.asarray(part, dtype=np.int64).tobytes() for part in (lo, hi, offset)))


@remembered(8192)
def _canonical(size: int, lo: bytes, hi: bytes, offset: bytes) -> tuple[Cuts, int]:
    first, last, shift = (np.frombuffer(part, dtype=np.int64) for part in (lo, hi, offset))
    filled = last > first
    if not filled.all():
        first, last, shift = first[filled], last[filled], shift[filled]
    if len(first) > 1 and (first[1:] <= first[:-1]).any():
        order = np.lexsort((last, first))
        first, last, shift = first[order], last[order], shift[order]
    joins = (shift[1:] == shift[:-1]) & (first[1:] == last[:-1])
    if joins.any():
        first, last, shift = (
            first[np.append(True, ~joins)],
            last[np.append(~joins, True)],
            shift[np.append(True, ~joins)],
        )
    least = int(shift.min()) if len(shift) else 0
    found = (first.tobytes(), last.tobytes(), (shift - least).tobytes())
    if found != (lo, hi, offset):
        return _canonical(size, *found)[0], least
    return Cuts(size=size, lo=first, hi=last, offset=shift, content=(lo, hi, offset)), 0


@remembered(8192)
def _is_repeated(axis: Cuts) -> bool:
    """Whether several intervals are all the same."""
    return len(axis) > 1 and bool((axis.lo == axis.lo[0]).all() and (axis.hi == axis.hi[0]).all())


def _bytes_of(axis: Cuts) -> tuple[bytes, bytes, bytes]:
    return axis.content or (axis.lo.tobytes(), axis.hi.tobytes(), axis.offset.tobytes())


@remembered(4096)
def _is_owner(grid: Grid) -> bool:
    return len(grid.replicas) == 1 and all(axis.is_partition for axis in grid.axes)


def reversed_cuts(axis: Cuts) -> Cuts:
    """The cuts of an axis read backwards."""
    return cuts(axis.size, axis.size - axis.hi, axis.size - axis.lo, axis.offset)[0]


@lru_cache(maxsize=1024)
def whole(size: int) -> Cuts:
    """An axis that is not cut."""
    return cuts(size, [0], [size], [0])[0]


def spread(parts: Sequence[IntArray], start: int = 0) -> IntArray:
    """Sums of one item of each part, flat in row-major order, plus `start`."""
    several = [part for part in parts if len(part) != 1]
    flat = np.full(1, start + sum([int(part[0]) for part in parts if len(part) == 1]), dtype=np.int64)
    for part in several:
        flat = (flat[:, None] + part).reshape(-1)
    return flat


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Grid(Mapping):
    """A tensor cut along each axis of `dims`, a factoring of its flat index space (its shape, unless reshaped).

    The box of intervals (i_0, i_1, …) is on tile `first_tile` + Σ axes[a].offset[i_a], and again at each of the
    `replicas` offsets. As an owner the intervals partition each axis and replicas is [0]; as a demand they may
    overlap, leave elements out, and replicas broadcast. Make one with `grid` or `grid_of_cuts`.
    """

    shape: Shape
    axes: tuple[Cuts, ...]
    first_tile: int
    replicas: IntArray

    def _content(self) -> tuple[object, ...]:
        axes = tuple((axis.size, _bytes_of(axis)) for axis in self.axes)
        return (axes, self.first_tile, self.replicas.tobytes())

    @property
    def dims(self) -> Shape:
        """Sizes of the axes that are cut; their product is the size of the tensor."""
        return tuple(axis.size for axis in self.axes)

    @property
    def splits(self) -> Shape:
        """Intervals of each axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def is_owner(self) -> bool:
        """Whether every element is on exactly one tile."""
        return _is_owner(self)

    def part_tiles(self) -> IntArray:
        """Tile of each part (row-major over `splits`), without replicas."""
        return spread([axis.offset for axis in self.axes], self.first_tile)

    def part_sizes(self) -> IntArray:
        """Elements of each part, in the order of `part_tiles`."""
        return reduce(lambda flat, axis: np.multiply.outer(flat, axis.lengths).reshape(-1), self.axes, np.ones(1, int))

    def count(self, tiles: int) -> IntArray:
        """See `Placement.count`."""
        if self.size == 0:
            return np.zeros(tiles, dtype=np.int64)
        if not self.is_owner and not all_distinct(self.part_tiles()):
            # Parts that share a tile may overlap: count each element once.
            tile, lo, hi = self.intervals()
            return add_at(tile, hi - lo, tiles)
        where = spread([self.part_tiles(), self.replicas])
        return add_at(where, np.repeat(self.part_sizes(), len(self.replicas)), tiles)

    @property
    def last_tile(self) -> int:
        """See `Placement.last_tile`."""
        if not self.size or not all(self.splits):
            return -1
        return int(self.first_tile + sum(axis.offset.max() for axis in self.axes) + self.replicas.max())

    def runs(self) -> tuple[IntArray, IntArray]:
        """See `Mapping.runs`; an error for a demand."""
        if not self.is_owner:
            raise InputError(f"{self} is a demand", expected="a mapping in which every element has one owner")
        if not self.size:
            return frozen([]), frozen([])
        inner = max((axis for axis, part in enumerate(self.axes) if len(part) > 1), default=-1)
        if inner < 0:
            return frozen([0]), frozen([self.first_tile])
        rows = spread([np.repeat(axis.offset, axis.lengths) for axis in self.axes[:inner]], self.first_tile)
        stride = prod(self.dims[inner + 1 :])
        starts = (
            np.arange(len(rows), dtype=np.int64)[:, None] * (stride * self.dims[inner]) + self.axes[inner].lo * stride
        )
        owners = (rows[:, None] + self.axes[inner].offset).reshape(-1)
        keep = np.append(True, owners[1:] != owners[:-1])
        return starts.reshape(-1)[keep], owners[keep]

    def intervals(self) -> tuple[IntArray, IntArray, IntArray]:
        """See `Placement.intervals`."""
        inner = max((axis for axis, part in enumerate(self.axes) if not part.is_whole), default=-1)
        strides = row_major(self.dims)
        tile = np.array([self.first_tile], dtype=np.int64)
        start = np.zeros(1, dtype=np.int64)
        for axis, stride in zip(self.axes[:inner] if inner > 0 else (), strides, strict=False):
            digits = np.concatenate([np.arange(lo, hi) for lo, hi in zip(axis.lo, axis.hi, strict=True)] or [axis.lo])
            tile = (tile[:, None] + np.repeat(axis.offset, axis.lengths)).reshape(-1)
            start = (start[:, None] + digits * stride).reshape(-1)
        last, step = (self.axes[inner], strides[inner]) if inner >= 0 else (whole(self.size), 1)
        tile = (tile[:, None] + last.offset).reshape(-1)
        end = (start[:, None] + last.hi * step).reshape(-1)
        start = (start[:, None] + last.lo * step).reshape(-1)
        copies = len(self.replicas)
        tile = spread([tile, self.replicas])
        return joined_intervals(self.size, tile, np.repeat(start, copies), np.repeat(end, copies))

    def __str__(self) -> str:
        reshaped = f" as {shape_text(self.dims)}" if self.dims != self.shape else ""
        copies = f" in {len(self.replicas)} copies" if len(self.replicas) > 1 else ""
        cut = "x".join(map(str, self.splits)) or "1"
        halo = "" if all(axis.is_partition for axis in self.axes) else " needing"
        where = f"tiles {self.first_tile}-{self.last_tile}" if self.last_tile >= 0 else "no tile"
        return f"Grid({shape_text(self.shape)}{reshaped}{halo} cut {cut}{copies} on {where})"


def grid_of_cuts(
    shape: Sequence[int],
    axes: Sequence[tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike] | Cuts],
    *,
    dims: Sequence[int] | None = None,
    first_tile: int = 0,
    replicas: npt.ArrayLike = (0,),
) -> Grid:
    """Grid from (lo, hi, tile offset) intervals per axis of `dims` (default: the shape), in any order.

    An axis whose intervals are all the same becomes replicas: every tile along it needs the same elements.
    """
    sizes = tuple(shape) if dims is None else tuple(dims)
    copies = np.asarray(replicas, dtype=np.int64)
    kept = []
    for size, axis in zip(sizes, axes, strict=True):
        if not isinstance(axis, Cuts):
            part, least = cuts(size, *axis)
        elif axis.content is None or axis.size != size:
            part, least = cuts(size, axis.lo, axis.hi, axis.offset)
        else:
            part, least = axis, 0
        first_tile += least
        if _is_repeated(part):
            copies = np.unique(spread([copies, part.offset]))
            part = cuts(size, part.lo[:1], part.hi[:1], [0])[0]
        kept.append(part)
    least = int(copies.min())
    made = Grid(shape=tuple(shape), axes=tuple(kept), first_tile=first_tile + least, replicas=frozen(copies - least))
    return intern(made)


def even_cuts(size: int, parts: int, grain: int = 1, *, ceil: bool = False) -> IntArray:
    """Bounds int64[parts + 1] of `parts` intervals of `size` elements, cut in whole grains.

    Balanced: part i gets grains floor(iG/s) to floor((i+1)G/s). With `ceil`, every part but the last ones gets
    ceil(G/s) grains, as PopLibs plans cut (poplibs@7eac0f26 lib/poplin/ConvUtilInternal.cpp).
    """
    grains = ceil_div(size, grain)
    index = np.arange(parts + 1, dtype=np.int64)
    at = np.minimum(index * ceil_div(grains, parts), grains) if ceil else index * grains // parts
    return np.minimum(at * grain, size)


def grid(
    shape: Sequence[int],
    splits: Sequence[int],
    strides: Sequence[int] | None = None,
    grains: Sequence[int] | None = None,
    first_tile: int = 0,
    *,
    ceil: bool = False,
) -> Grid:
    """Owner grid: axis a cut in `splits[a]` parts of whole `grains[a]`, part i at tile offset i · `strides[a]`.

    Strides default to row-major over the splits (the last axis varies fastest); cuts are those of `even_cuts`.
    """
    if len(splits) != len(shape) or min(splits, default=1) < 1:
        raise InputError(
            f"splits {tuple(splits)!r} of shape {tuple(shape)!r}", expected="one split of at least 1 per axis"
        )
    steps = row_major(splits) if strides is None else strides
    axes = []
    for size, parts, step, grain in zip(shape, splits, steps, grains or (1,) * len(shape), strict=True):
        bounds = even_cuts(size, parts, grain, ceil=ceil)
        axes.append((bounds[:-1], bounds[1:], np.arange(parts, dtype=np.int64) * step))
    return grid_of_cuts(shape, axes, first_tile=first_tile)


def replicate(base: Grid, *copies: tuple[int, int]) -> Grid:
    """A demand for every part of `base` on `count` tiles, `stride` tiles apart, for each (count, stride)."""
    offsets = spread([base.replicas, *(np.arange(count, dtype=np.int64) * stride for count, stride in copies)])
    return grid_of_cuts(base.shape, base.axes, dims=base.dims, first_tile=base.first_tile, replicas=np.unique(offsets))


def on_tile(shape: Sequence[int], tile: int) -> Grid:
    """The whole tensor on one tile."""
    return grid(shape, (1,) * len(shape), first_tile=tile)


def linear(
    shape: Sequence[int],
    dtype: str,
    tiles_per_ipu: int,
    min_bytes: int = 128,
    first_tile: int = 0,
    grain: int = 0,
    *,
    vector_bytes: int,
) -> Linear:
    """PopLibs' `mapTensorLinearly`: as many tiles as get `min_bytes` each, in whole grains.

    A grain is a vector of `vector_bytes` unless it is given.

    G = ceil(size/grain); at most max(1, floor(G / ceil(min elements/grain))) tiles; grains per tile
    max(ceil(G/tiles), ceil(G/that)); tiles used ceil(G / grains per tile).
    Source: poplibs@7eac0f26 lib/poputil/TileMapping.cpp, lib/poputil/Util.cpp:130-170.
    """
    itemsize = ITEMSIZE_BYTES[dtype]
    grain = grain or max(1, vector_bytes // itemsize)
    grains = ceil_div(prod(shape), grain)
    least = ceil_div(max(1, ceil_div(min_bytes, itemsize)), grain)
    most_tiles = max(1, grains // least)
    per_tile = max(ceil_div(grains, tiles_per_ipu), ceil_div(grains, most_tiles), 1)
    used = max(1, ceil_div(grains, per_tile))
    first = first_tile % tiles_per_ipu
    around = tiles_per_ipu if first + used > tiles_per_ipu else 0
    return intern(Linear(shape=tuple(shape), grain=grain, tiles=used, first_tile=first, tiles_of_ipu=around))
