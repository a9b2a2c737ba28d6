"""Copies written by hand: which of them run at the same time, and what crosses between tiles and inside them.

Derived from thorbenlouw/lbm-graphcore@df670f6b experiments/halo-exchange-approaches/results.txt, whose summaries show
the vertices and exchanges of copies: what a tile receives for places that do not lie together arrives together and a
vertex lays it out; consecutive copies that touch nothing of each other are one exchange. Copies inside one variable
are told apart by their elements, copies between variables by the variables they read and write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np

from workbench.base.arrays import IntArray, frozen
from workbench.base.dtypes import ITEMSIZE_BYTES
from workbench.engine.by_hand.by_hand import Copy
from workbench.engine.by_hand.tensor import HandVariable, Tensor
from workbench.engine.emit import vertex_groups
from workbench.engine.mapping.types import runs_of_elements
from workbench.engine.program import Exchange, Move, VertexGroup


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Moved:
    """What a copy takes: the exchange, bytes that land beside their place (int64[tiles]), copies inside tiles."""

    exchange: Exchange
    staged_bytes: IntArray
    groups: tuple[VertexGroup, ...]
    local: bool


def waves(copies: Iterable[Copy]) -> list[list[Copy]]:
    """Consecutive copies by when they run: each in the first wave after all those it depends on."""
    found: list[list[Copy]] = []
    for copy in copies:
        after = [place for place, wave in enumerate(found) if any(_depends(copy, earlier) for earlier in wave)]
        place = after[-1] + 1 if after else 0
        if place == len(found):
            found.append([])
        found[place].append(copy)
    return found


def _depends(copy: Copy, earlier: Copy) -> bool:
    """Whether a copy must wait for an earlier one: it reads or writes what that wrote, or writes what that read."""
    if _overlap(copy.destination, earlier.destination):
        return True
    crossing = ((copy.source, earlier.destination), (copy.destination, earlier.source))
    inside = _inside(copy) and _inside(earlier)
    return any(_overlap(one, other) if inside else one.variable is other.variable for one, other in crossing)


def _inside(copy: Copy) -> bool:
    return copy.source.variable is copy.destination.variable


def _overlap(one: Tensor, other: Tensor) -> bool:
    if one.variable is not other.variable:
        return False
    return bool(np.isin(one.flat(), other.flat(), assume_unique=True).any())


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Of every element of a tensor, in its order: the tile, and the place among its variable's elements there."""

    tile: IntArray
    place: IntArray

    def pieces(self, tiles: int, chosen: IntArray) -> IntArray:
        """How many runs of memory the chosen elements are on each tile, int64[tiles]."""
        tile, place = self.tile[chosen], self.place[chosen]
        order = np.argsort(tile, kind="stable")
        return _starts(tiles, (tile[order],), place[order], tile[order])


def _places(tensor: Tensor) -> _Places:
    starts, owners = tensor.variable.placed().runs()
    sizes = np.diff(np.append(starts, prod(tensor.variable.shape)))
    order = np.argsort(owners, kind="stable")
    ends = np.cumsum(sizes[order])
    first = np.searchsorted(owners[order], owners[order], "left")
    before = np.empty(len(starts), np.int64)
    before[order] = ends - sizes[order] - (ends - sizes[order])[first]
    chosen = tensor.flat()
    run = np.searchsorted(starts, chosen, "right") - 1
    return _Places(owners[run], before[run] + chosen - starts[run])


def _starts(tiles: int, keys: tuple[IntArray, ...], place: IntArray, counted: IntArray) -> IntArray:
    """Runs of consecutive places with equal keys, counted at the tile `counted` names; all sorted by the keys."""
    if not len(place):
        return np.zeros(tiles, np.int64)
    opens = np.append(True, np.diff(place) != 1)
    for key in keys:
        opens[1:] |= key[1:] != key[:-1]
    return np.bincount(counted[opens], minlength=tiles)


def is_plain(copy: Copy) -> bool:
    """Whether both ends lie together on every tile."""
    for tensor in (copy.source, copy.destination):
        if not tensor.contiguous:
            places = _places(tensor)
            tiles = int(places.tile.max()) + 1
            if int(places.pieces(tiles, np.arange(tensor.elements)).max()) > 1:
                return False
    return True


def moved(copy: Copy, tiles: int) -> Moved:
    """What it takes to copy between places that do not lie together."""
    source, target = _places(copy.source), _places(copy.destination)
    itemsize = ITEMSIZE_BYTES[copy.source.dtype]
    everything = np.arange(copy.source.elements)
    local = np.flatnonzero(source.tile == target.tile)
    scattered = target.pieces(tiles, everything)
    gathered = source.pieces(tiles, local)
    size = np.bincount(target.tile, minlength=tiles) * itemsize
    here = np.bincount(target.tile[local], minlength=tiles) * itemsize
    strided = scattered > 1
    pieces = np.where(strided, scattered, np.where(gathered > 1, gathered, 0))
    laid = np.where(strided, size, np.where(gathered > 1, here, 0))
    exchange = _exchange(copy.source.variable, source, target, itemsize, tiles)
    groups = [
        *vertex_groups("poplar::DstStridedMemcpy", {"bytes": frozen(laid), "pieces": frozen(pieces)}),
        *vertex_groups("poplar::Memcpy", {"bytes": frozen(np.where(laid > 0, 0, here))}),
    ]
    staged = frozen(np.where(strided, exchange.received_bytes, 0))
    return Moved(exchange=exchange, staged_bytes=staged, groups=tuple(groups), local=bool(here.any()))


def _exchange(variable: HandVariable, source: _Places, target: _Places, itemsize: int, tiles: int) -> Exchange:
    """Each run of memory at the sender is a piece, counted at both ends."""
    away = np.flatnonzero(source.tile != target.tile)
    order = away[np.lexsort((away, target.tile[away], source.tile[away]))]
    giver, taker, place = source.tile[order], target.tile[order], source.place[order]
    counted = [_starts(tiles, (giver, taker), place, end) for end in (giver, taker)]
    held, needed = (runs_of_elements((len(end.tile),), end.tile) for end in (source, target))
    return Exchange(
        name=variable.name,
        sent_bytes=frozen(np.bincount(giver, minlength=tiles) * itemsize),
        received_bytes=frozen(np.bincount(taker, minlength=tiles) * itemsize),
        fragments=frozen(counted[0] + counted[1]),
        moves=(Move(held, needed, itemsize),),
    )
