"""The mapping types: which tile of one IPU holds, or needs, each element of a tensor's row-major flat index space."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, ceil_div, frozen, shared
from workbench.engine.remembered import remembered
from workbench.errors import InputError

Shape: TypeAlias = tuple[int, ...]
TileArray: TypeAlias = npt.NDArray[np.int32]
M = TypeVar("M", bound="Placement")

LARGE_RUNS = 10_000  # longer run lists are kept for a short while only: they take megabytes


def digest(array: npt.NDArray[np.generic]) -> bytes:
    """Content of an array as 16 bytes, so that comparing two large run lists costs nothing."""
    if array.dtype == np.int64 and array.size and array.min() >= -(1 << 31) and array.max() < 1 << 31:
        array = array.astype(np.int32)  # half the bytes to go through; told apart from others by `person`
    return hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16, person=array.dtype.char.encode()).digest()


def row_major_strides(dims: Sequence[int]) -> Shape:
    """Elements between neighbours along each axis of a row-major tensor: (4, 5, 6) → (30, 6, 1)."""
    return tuple(prod(dims[axis + 1 :]) for axis in range(len(dims)))


def shape_text(shape: Sequence[int]) -> str:
    """`(4, 56)` → `"4x56"`; a scalar is `"scalar"`."""
    return "x".join(map(str, shape)) or "scalar"


class Placement:
    """What mappings and demands share: a shape, equality and hash by content, and a count of elements per tile."""

    __slots__ = ("_hash", "_key", "shape")
    shape: Shape
    _key: tuple[object, ...]
    _hash: int

    def _content(self) -> tuple[object, ...]:
        raise NotImplementedError

    def intervals(self) -> tuple[IntArray, IntArray, IntArray]:
        """Tile, first and last + 1 flat index of each contiguous piece, sorted by tile, disjoint within a tile."""
        raise NotImplementedError

    def count(self, tiles: int) -> IntArray:
        """Elements on each of `tiles` tiles, computed anew: use `elements_per_tile`."""
        raise NotImplementedError

    @property
    def key(self) -> tuple[object, ...]:
        """The content as a hashable tuple, computed once."""
        try:
            return self._key
        except AttributeError:
            object.__setattr__(self, "_key", (type(self).__name__, self.shape, *self._content()))
            return self._key

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash(self.key))
            return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Placement) and hash(self) == hash(other) and self.key == other.key

    def __repr__(self) -> str:
        return str(self)

    @property
    def size(self) -> int:
        """Elements of the tensor."""
        return prod(self.shape)

    @property
    def is_owner(self) -> bool:
        """Whether every element is on exactly one tile."""
        return True

    def elements_per_tile(self, tiles: int) -> IntArray:
        """Elements held (owner) or needed (demand) on each tile: int64[tiles], read-only, cached."""
        return _elements_per_tile(self, tiles)

    def bytes_per_tile(self, itemsize: int, tiles: int) -> IntArray:
        """`elements_per_tile` in bytes of `itemsize` per element."""
        return _bytes_per_tile(self, itemsize, tiles)

    @property
    def last_tile(self) -> int:
        """Highest tile that holds something, -1 if none does."""
        raise NotImplementedError

    @property
    def tiles_used(self) -> int:
        """How many tiles hold at least one element."""
        return int(np.count_nonzero(self.elements_per_tile(self.last_tile + 1)))


class Mapping(Placement):
    """A placement in which every element has one owner."""

    __slots__ = ()

    def runs(self) -> tuple[IntArray, IntArray]:
        """Sorted first flat indices of maximal runs on one tile, and the tile of each run."""
        raise NotImplementedError

    def intervals(self) -> tuple[IntArray, IntArray, IntArray]:
        """See `Placement.intervals`."""
        starts, owners = self.runs()
        order = tile_order(owners)
        ends = np.append(starts[1:], self.size)[: len(starts)]
        return owners[order], starts[order], ends[order]

    def tile_of_elements(self) -> TileArray:
        """The owner of every element, int32[size]: for tests and for views nothing shorter can express."""
        starts, owners = self.runs()
        return np.repeat(owners.astype(np.int32), np.diff(np.append(starts, self.size)))

    def count(self, tiles: int) -> IntArray:
        """See `Placement.count`."""
        starts, owners = self.runs()
        return add_at(owners, np.diff(np.append(starts, self.size)), tiles)


@lru_cache(maxsize=4096)
def _interned(placement: Placement) -> Placement:
    return placement


@lru_cache(maxsize=64)
def _interned_large(placement: Placement) -> Placement:
    return placement


def intern(placement: M) -> M:
    """The one object kept for this content, so that thousands of variables share a few."""
    large = isinstance(placement, Runs) and len(placement.starts) > LARGE_RUNS
    return _interned_large(placement) if large else _interned(placement)  # type: ignore[return-value]


@remembered(2048)
def _elements_per_tile(placement: Placement, tiles: int) -> IntArray:
    return shared(placement.count(tiles))


@remembered(2048)
def _bytes_per_tile(placement: Placement, itemsize: int, tiles: int) -> IntArray:
    return shared(placement.elements_per_tile(tiles) * itemsize)


def tile_order(tiles: IntArray) -> IntArray:
    """Stable order by tile; tile numbers of 16 bits sort by radix."""
    small = len(tiles) == 0 or int(tiles.max()) < 1 << 15
    return np.argsort(tiles.astype(np.int16) if small else tiles, kind="stable")


def all_distinct(tiles: IntArray) -> bool:
    """Whether no tile number occurs twice."""
    return len(tiles) < 2 or int(np.bincount(tiles - tiles.min()).max()) == 1


def union(*parts: npt.ArrayLike) -> IntArray:
    """Sorted distinct numbers of sorted parts (a merge: much faster than hashing)."""
    merged = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
    merged.sort(kind="stable")
    keep = np.ones(len(merged), dtype=bool)
    keep[1:] = merged[1:] != merged[:-1]
    return merged[keep]


def add_at(where: IntArray, amounts: IntArray, tiles: int) -> IntArray:
    """Sum of `amounts` per tile, int64[tiles]; an error names a tile outside the IPU."""
    try:
        # Weights are summed as float64, exact below 2**53 elements.
        found = np.bincount(where, weights=amounts, minlength=tiles)
    except ValueError:
        check_tiles(where, tiles)
        raise
    if len(found) > tiles:
        check_tiles(where, tiles)
    return found.astype(np.int64)


def check_tiles(where: IntArray, tiles: int) -> None:
    """Raise InputError for a tile that is not one of `tiles`."""
    if len(where) and (int(where.max()) >= tiles or int(where.min()) < 0):
        bad = int(where.max()) if int(where.max()) >= tiles else int(where.min())
        raise InputError(
            f"a mapping uses tile {bad}", expected=f"tiles 0 to {tiles - 1}", todo="map onto the tiles this IPU has"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Linear(Mapping):
    """PopLibs' linear mapping: G = ceil(size / grain) grains, tile i of t holds grains floor(iG/t) to floor((i+1)G/t).

    Tile i is `first_tile + i`, modulo `tiles_of_ipu` if that is not 0. Make one with `linear`.
    Source: poplibs@7eac0f26 lib/poputil/TileMapping.cpp, lib/poputil/Util.cpp:130-170.
    """

    shape: Shape
    grain: int
    tiles: int
    first_tile: int = 0
    tiles_of_ipu: int = 0

    def _content(self) -> tuple[object, ...]:
        return (self.grain, self.tiles, self.first_tile, self.tiles_of_ipu)

    def bounds(self) -> IntArray:
        """Flat indices int64[tiles + 1] between which each tile's elements lie."""
        grains = ceil_div(self.size, self.grain)
        cuts = np.arange(self.tiles + 1, dtype=np.int64) * grains // self.tiles
        return np.minimum(cuts * self.grain, self.size)

    def runs(self) -> tuple[IntArray, IntArray]:
        """See `Mapping.runs`."""
        bounds = self.bounds()
        owners = self.first_tile + np.arange(self.tiles, dtype=np.int64)
        if self.tiles_of_ipu:
            owners %= self.tiles_of_ipu
        filled = bounds[1:] > bounds[:-1]
        return bounds[:-1][filled], owners[filled]

    @property
    def last_tile(self) -> int:
        """See `Placement.last_tile`."""
        return int(self.runs()[1].max(initial=-1))

    def __str__(self) -> str:
        around = f" modulo {self.tiles_of_ipu}" if self.tiles_of_ipu else ""
        where = f"by {self.grain} on {self.tiles} tiles from {self.first_tile}{around}"
        return f"Linear({shape_text(self.shape)} {where})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Runs(Mapping):
    """Any mapping, as runs: elements `starts[i]` to `starts[i + 1]` are on `tiles_of_run[i]` (-1: on no tile yet).

    Make one with `runs`, which joins neighbours on one tile.
    """

    shape: Shape
    starts: IntArray
    tiles_of_run: IntArray

    def _content(self) -> tuple[object, ...]:
        return (digest(self.starts), digest(self.tiles_of_run))

    def runs(self) -> tuple[IntArray, IntArray]:
        """See `Mapping.runs`."""
        return self.starts, self.tiles_of_run

    @property
    def is_owner(self) -> bool:
        """Whether every element is on a tile."""
        return bool((self.tiles_of_run >= 0).all())

    @property
    def last_tile(self) -> int:
        """See `Placement.last_tile`."""
        return int(self.tiles_of_run.max(initial=-1))

    def __str__(self) -> str:
        used = self.tiles_of_run
        where = f"tiles {used.min()}-{used.max()}" if len(used) else "no tile"
        return f"Runs({shape_text(self.shape)} in {len(self.starts)} runs on {where})"


def runs(shape: Sequence[int], starts: npt.ArrayLike, tiles_of_run: npt.ArrayLike) -> Runs:
    """Mapping by sorted run starts (the first 0) and the tile of each run; neighbours on one tile are joined."""
    first = np.asarray(starts, dtype=np.int64)
    owners = np.asarray(tiles_of_run, dtype=np.int64)
    keep = np.ones(len(first), dtype=bool)
    keep[1:] = owners[1:] != owners[:-1]
    return intern(Runs(shape=tuple(shape), starts=frozen(first[keep]), tiles_of_run=frozen(owners[keep])))


def runs_of_elements(shape: Sequence[int], owners: npt.NDArray[np.integer]) -> Runs:
    """Mapping from the owner of every element, in the tensor's shape or flat."""
    flat = owners.reshape(-1)
    starts = np.flatnonzero(np.concatenate(([True], flat[1:] != flat[:-1])))[: len(flat)]
    return runs(shape, starts, flat[starts])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Demand(Placement):
    """What each tile needs, as flat intervals [lo, hi): sorted by tile and index, disjoint within a tile.

    Several tiles may need one element. Make one with `demand`.
    """

    shape: Shape
    tile: IntArray
    lo: IntArray
    hi: IntArray

    def _content(self) -> tuple[object, ...]:
        return (digest(self.tile), digest(self.lo), digest(self.hi))

    def intervals(self) -> tuple[IntArray, IntArray, IntArray]:
        """See `Placement.intervals`."""
        return self.tile, self.lo, self.hi

    def count(self, tiles: int) -> IntArray:
        """See `Placement.count`."""
        return add_at(self.tile, self.hi - self.lo, tiles)

    @property
    def is_owner(self) -> bool:
        """False: elements may be needed by none or by many."""
        return False

    @property
    def last_tile(self) -> int:
        """See `Placement.last_tile`."""
        return int(self.tile.max(initial=-1))

    def __str__(self) -> str:
        where = f"tiles {self.tile.min()}-{self.tile.max()}" if len(self.tile) else "no tile"
        return f"Demand({shape_text(self.shape)} in {len(self.tile)} intervals on {where})"


def demand(shape: Sequence[int], tile: npt.ArrayLike, lo: npt.ArrayLike, hi: npt.ArrayLike) -> Demand:
    """Demand from intervals in any order; overlapping or touching intervals of one tile are joined."""
    tiles, first, last = joined_intervals(prod(shape), *(np.asarray(part, dtype=np.int64) for part in (tile, lo, hi)))
    return intern(Demand(shape=tuple(shape), tile=frozen(tiles), lo=frozen(first), hi=frozen(last)))


def owned(needed: Demand) -> Runs | None:
    """A demand as a mapping; None unless every element is needed by just one tile."""
    order = np.argsort(needed.lo, kind="stable")
    lo, hi = needed.lo[order], needed.hi[order]
    whole = len(lo) > 0 and lo[0] == 0 and hi[-1] == needed.size and bool((lo[1:] == hi[:-1]).all())
    return runs(needed.shape, lo, needed.tile[order]) if whole else None


def joined_intervals(size: int, tile: IntArray, lo: IntArray, hi: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Intervals of `size` elements sorted by tile and index, those of one tile that overlap or touch joined."""
    filled = hi > lo
    tile, lo, hi = tile[filled], lo[filled], hi[filled]
    if not len(tile):
        return tile, lo, hi
    # One number line per tile, end to end with a gap, lets one running maximum join intervals of all tiles.
    lane = tile * (size + 1)
    order = np.argsort(lane + lo, kind="stable")
    tile, lo, hi, lane = tile[order], lo[order], hi[order], lane[order]
    reach = np.maximum.accumulate(hi + lane)
    opens = np.append(True, lo[1:] + lane[1:] > reach[:-1])
    closes = np.append(np.flatnonzero(opens)[1:] - 1, len(tile) - 1)
    return tile[opens], lo[opens], (reach - lane)[closes]


def by_hand(shape: Sequence[int], pieces: Iterable[tuple[int, int, int]]) -> Runs:
    """Mapping from (tile, lo, hi) flat pieces written by hand; elements no piece names get tile -1.

    Raises InputError if two pieces overlap or one leaves the tensor.
    """
    total = prod(shape)
    starts, owners, at = [], [], 0
    for tile, lo, hi in sorted(pieces, key=lambda piece: (piece[1], piece[2])):
        if lo < at or hi > total or hi < lo:
            raise InputError(
                f"elements {lo} to {hi} are given to tile {tile}",
                expected=f"pieces of 0 to {total} that do not overlap (next free element: {at})",
                todo="map every element once",
            )
        starts += [at, lo]
        owners += [-1, tile]
        at = hi
    bounds = np.array([*starts, at, total], dtype=np.int64)
    filled = bounds[1:] > bounds[:-1]
    return runs(shape, bounds[:-1][filled], np.array([*owners, -1], dtype=np.int64)[filled])
