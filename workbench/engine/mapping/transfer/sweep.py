"""The transfer between any owner mapping and any demand, by one sweep over the union of their boundaries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, distinct_numbers
from workbench.engine.mapping.types import add_at, tile_order, union

Intervals = tuple[IntArray, IntArray, IntArray]
DENSE = 32  # elements per point below which marks win: a lookup takes 17 comparisons, a mark one write


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """A transfer in elements and pieces, each int64[tiles]; see `Transfer` for the meaning."""

    sent: IntArray
    received: IntArray
    local: IntArray
    pieces: IntArray


@lru_cache(maxsize=8)
def tile_hashes(tiles: int) -> npt.NDArray[np.uint64]:
    """A fixed odd 64-bit number per tile (splitmix64), so that a set of tiles is told by the sum of its numbers."""
    return distinct_numbers(tiles) | np.uint64(1)


def sweep(owner: tuple[IntArray, IntArray], need: Intervals, size: int, tiles: int) -> Counts:
    """Count a transfer from runs (starts, tiles) to needed intervals (tile, lo, hi) over `size` elements."""
    local, received_pieces = _received(owner, need, size, tiles)
    sent, sent_pieces = _sent(owner, need, size, tiles)
    needed = add_at(need[0], need[2] - need[1], tiles)
    return Counts(sent=sent, received=needed - local, local=local, pieces=received_pieces + sent_pieces)


def _sent(owner: tuple[IntArray, IntArray], need: Intervals, size: int, tiles: int) -> tuple[IntArray, IntArray]:
    """Elements each tile sends, each once however many receive it; pieces of its own with one set of receivers."""
    starts, owners = owner
    tile, lo, hi = need
    hashes = tile_hashes(tiles)
    bounds, (first, last, opened) = _ranked(size, lo, hi, starts)
    cover = np.bincount(first, minlength=len(bounds)) - np.bincount(last, minlength=len(bounds))
    change = np.zeros(len(bounds), dtype=np.uint64)
    np.add.at(change, first, hashes[tile])
    np.subtract.at(change, last, hashes[tile])
    cover, receivers = np.cumsum(cover)[:-1], np.cumsum(change)[:-1]
    holder = np.repeat(owners, np.diff(np.append(opened, len(bounds) - 1)))
    sends = (cover > 1) | ((cover == 1) & (receivers != hashes[holder]))
    order = tile_order(holder)
    opens = np.ones(len(order), dtype=bool)
    opens[1:] = (holder[order][1:] != holder[order][:-1]) | (receivers[order][1:] != receivers[order][:-1])
    piece_of = holder[order][opens & sends[order]]
    return add_at(holder[sends], np.diff(bounds)[sends], tiles), np.bincount(piece_of, minlength=tiles)


def _received(owner: tuple[IntArray, IntArray], need: Intervals, size: int, tiles: int) -> tuple[IntArray, IntArray]:
    """Elements each tile needs and holds; pieces it gets from others, in the order of its own memory."""
    starts, owners = owner
    tile, lo, hi = need
    lane = tile * (size + 1)
    order = tile_order(owners)
    held = starts[order] + owners[order] * (size + 1)
    lengths = np.diff(np.append(starts, size))[order]
    ends, before = held + lengths, np.append(0, np.cumsum(lengths))
    # Intervals of the tile that start below `hi`, and that start at most at `lo`: the last of them may reach beyond.
    below_hi, upto_lo = np.searchsorted(held, hi + lane), np.searchsorted(held, lo + lane, side="right")
    beyond_hi = _beyond(ends, below_hi, hi + lane)
    beyond_lo = _beyond(ends, upto_lo, lo + lane)
    local = add_at(tile, before[below_hi] - beyond_hi - before[upto_lo] + beyond_lo, tiles)
    first, last = _runs_at(starts, lo, hi, size)
    follows = tile[1:] == tile[:-1]
    left, right = owners[last[:-1]], owners[first[1:]]
    pieces = last - first + 1
    pieces[1:] -= follows & (left == right)
    own = below_hi - (upto_lo - (beyond_lo > 0))
    own[1:] -= follows & (left == right) & (left == tile[1:])
    return local, add_at(tile, pieces - own, tiles)


def _beyond(ends: IntArray, count: IntArray, at: IntArray) -> IntArray:
    """How far the last of the first `count` intervals reaches beyond `at`; 0 where there is none."""
    if not len(ends):
        return np.zeros(len(at), dtype=np.int64)
    return np.where(count > 0, np.maximum(ends[count - 1] - at, 0), 0)


def _runs_at(starts: IntArray, lo: IntArray, hi: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Numbers of the runs that hold the first and the last element of each interval."""
    if _is_sparse(size, len(starts) + 2 * len(lo)):
        return np.searchsorted(starts, lo, side="right") - 1, np.searchsorted(starts, hi) - 1
    marks = np.zeros(size, dtype=bool)
    marks[starts] = True
    run_of = np.cumsum(marks, dtype=np.int32)
    return run_of[lo] - np.int64(1), run_of[hi - 1] - np.int64(1)


def _ranked(size: int, *parts: IntArray) -> tuple[IntArray, list[IntArray]]:
    """The distinct numbers of sorted parts with 0 and `size`, and where those of each part stand among them."""
    if _is_sparse(size, sum(map(len, parts))):
        bounds = union(*parts, (0, size))
        return bounds, [np.searchsorted(bounds, part) for part in parts]
    marks = np.zeros(size + 1, dtype=bool)
    marks[[0, size]] = True
    for part in parts:
        marks[part] = True
    rank = np.cumsum(marks, dtype=np.int32)
    return np.flatnonzero(marks), [rank[part] - np.int64(1) for part in parts]


def _is_sparse(size: int, points: int) -> bool:
    """Whether looking points up in a sorted list is faster than marking them among all elements."""
    return size > DENSE * points or size >= 1 << 31
