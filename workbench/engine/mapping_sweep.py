"""The transfer between any owner mapping and any demand, by one sweep over the union of their boundaries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from workbench.engine.mapping_types import add_at, tile_order, union
from workbench.engine.tileset import IntArray

Intervals = tuple[IntArray, IntArray, IntArray]


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
    mixed = (np.arange(1, tiles + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) | np.uint64(1)


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
    bounds = union(starts, lo, hi, (0, size))
    first, last = np.searchsorted(bounds, lo), np.searchsorted(bounds, hi)
    cover = np.bincount(first, minlength=len(bounds)) - np.bincount(last, minlength=len(bounds))
    change = np.zeros(len(bounds), dtype=np.uint64)
    np.add.at(change, first, hashes[tile])
    np.subtract.at(change, last, hashes[tile])
    cover, receivers = np.cumsum(cover)[:-1], np.cumsum(change)[:-1]
    holder = owners[np.searchsorted(starts, bounds[:-1], side="right") - 1]
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
    local = add_at(tile, _covered(held, lengths, hi + lane) - _covered(held, lengths, lo + lane), tiles)
    first, last = np.searchsorted(starts, lo, side="right") - 1, np.searchsorted(starts, hi, side="left") - 1
    follows = tile[1:] == tile[:-1]
    before, after = owners[last[:-1]], owners[first[1:]]
    pieces = last - first + 1
    pieces[1:] -= follows & (before == after)
    own = np.searchsorted(held, hi + lane, side="left") - np.searchsorted(held + lengths, lo + lane, side="right")
    own[1:] -= follows & (before == after) & (before == tile[1:])
    return local, add_at(tile, pieces - own, tiles)


def _covered(starts: IntArray, lengths: IntArray, at: IntArray) -> IntArray:
    """Elements of disjoint sorted intervals that lie below each of `at`."""
    if not len(starts):
        return np.zeros(len(at), dtype=np.int64)
    before = np.append(0, np.cumsum(lengths))
    index = np.searchsorted(starts, at, side="right") - 1
    inside = np.minimum(at - starts[index], lengths[index])
    return np.where(index >= 0, before[index] + inside, 0)
