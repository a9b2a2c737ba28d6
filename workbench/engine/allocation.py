"""Addresses on a tile: code, always-live and not-always-live variables placed in the regions of its memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workbench.engine.footprint import Footprint
from workbench.engine.liveness import Interval, Liveness
from workbench.engine.program import TileProgram
from workbench.engine.tileset import IntArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Block:
    """One variable (or code block: `variable` is -1) on one tile, at bytes `address` … `address + size_bytes - 1`.

    `category` is a variable kind or a footprint category. `region` is "non_interleaved", "interleaved" or "overflow"
    (addresses from the end of the tile's memory on: it found no place). `intervals` is empty when always live.
    """

    variable: int
    label: str
    category: str
    address: int
    size_bytes: int
    region: str
    always_live: bool
    intervals: tuple[Interval, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TileAllocation:
    """One tile. `total_bytes` counts each allocated address once; `total_with_gaps_bytes` is what the out-of-memory
    message calls used: the spans used in each region, or the end of the last overflowing block.

    `category_bytes` sums to `total_bytes` (an address of several categories counts for the first of `CATEGORIES`).
    `not_always_live_bytes` counts the addresses that shared variables use. `overflow_bytes` are those without a place.
    """

    ipu: int
    tile: int
    blocks: tuple[Block, ...]
    total_bytes: int
    total_with_gaps_bytes: int
    not_always_live_bytes: int
    overflow_bytes: int
    category_bytes: Mapping[str, int]

    @property
    def fits(self) -> bool:
        """Everything was placed inside its region."""
        return self.overflow_bytes == 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Allocation:
    """Allocated tiles of a program: those that can decide the verdict at once, others by `tile` on demand (kept).

    `bounds` is int64[ipus, tiles]: always-live plus live peak, no tile can do with less.
    `classes[ipu]` is int64[tiles]: the lowest tile whose memory is equal, so one allocation serves both.
    """

    program: TileProgram
    liveness: Liveness
    footprint: Footprint
    bounds: IntArray
    classes: tuple[IntArray, ...]

    def tile(self, ipu: int, tile: int) -> TileAllocation:
        """The allocation of one tile, computed at the first call."""
        raise NotImplementedError

    @property
    def allocated(self) -> tuple[TileAllocation, ...]:
        """The tiles allocated so far, one per class."""
        raise NotImplementedError

    @property
    def worst(self) -> TileAllocation:
        """Of the tiles that could decide the verdict: the one with most bytes, gaps included."""
        raise NotImplementedError

    @property
    def fits(self) -> bool:
        """All tiles that could decide the verdict fit."""
        raise NotImplementedError


def allocate(
    program: TileProgram, liveness: Liveness, footprint: Footprint, tiles: Iterable[tuple[int, int]] = ()
) -> Allocation:
    """Allocate the tiles that can decide the verdict, and the (ipu, tile) pairs asked for."""
    raise NotImplementedError
