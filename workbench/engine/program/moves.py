"""What an exchange is made of: where elements lie and where they are needed, and all of a program's as plain data.

From both follows which tile sends how much to which. A profile keeps them in this form, which is small because
programs have few mappings and mappings few cuts; `profiler/exchanges` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from workbench.base.arrays import IntArray
from workbench.engine.mapping import Demand, Grid, Linear, Mapping, Placement
from workbench.engine.mapping.turned import Turned
from workbench.engine.mapping.types import runs

# A mapping of more numbers is left out, and with it what moves from or to it: none of the ready models has half of it.
MOST_NUMBERS = 8_000_000


@dataclass(frozen=True, slots=True)
class Move:
    """Elements of `itemsize_bytes` each, from the tiles that hold them to those that need them and do not."""

    held: Mapping
    needed: Placement
    itemsize_bytes: int


def in_order(sent_bytes: IntArray, received_bytes: IntArray) -> Move:
    """Bytes that lie in one order over senders and over receivers, int64[tiles] each with the same sum."""
    total = int(sent_bytes.sum())
    return Move(_end_to_end(total, sent_bytes), _end_to_end(total, received_bytes), 1)


def _end_to_end(total: int, per_tile: IntArray) -> Mapping:
    tiles = np.flatnonzero(per_tile)
    return runs((total,), np.cumsum(per_tile[tiles]) - per_tile[tiles], tiles)


class KeptNumbers(NamedTuple):
    """Numbers of a mapping, int64[n]; rising ones are kept as differences, which pack well."""

    values: IntArray
    rising: bool = False


@dataclass(slots=True)
class KeptMoves:
    """Moves and mappings as columns, each kept once; `number` gives the set of an exchange, from 1, and 0 for none.

    `parts` are the numbers of all mappings end to end.
    """

    sets: dict[tuple[Move, ...], int] = field(default_factory=dict)
    moves: list[tuple[int, int, int, int]] = field(default_factory=list)
    forms: list[tuple[str, str, int]] = field(default_factory=list)
    _last: int = 0
    _places: dict[Placement, int] = field(default_factory=dict)
    parts: list[KeptNumbers] = field(default_factory=list)

    def number(self, moves: tuple[Move, ...]) -> int:
        """The set of these moves, kept when it is new; 0 where one of them cannot be kept."""
        if not moves:
            return 0
        known = self.sets.get(moves)
        if known is None:
            rows = [(self._place(each.held), self._place(each.needed), each.itemsize_bytes) for each in moves]
            is_whole = all(min(row) >= 0 for row in rows)
            self._last += is_whole
            known = self.sets[moves] = self._last if is_whole else 0
            self.moves += [(known, *row) for row in rows if known]
        return known

    def _place(self, placement: Placement) -> int:
        known = self._places.get(placement)
        if known is None:
            kind, head, parts = described(placement)
            count = sum(len(part.values) for part in parts)
            known = len(self.forms) if count <= MOST_NUMBERS else -1
            self._places[placement] = known
            if known >= 0:
                self.forms.append((kind, json.dumps(head), count))
                self.parts += parts
        return known


def numbers_of(parts: Sequence[KeptNumbers]) -> IntArray:
    """Numbers of mappings as a profile keeps them, end to end: int64[n], read-only."""
    found = np.empty(sum(len(part.values) for part in parts), np.int64)
    end = 0
    for values, rising in parts:
        begin, end = end, end + len(values)
        found[begin:end] = values
        if rising:
            found[begin + 1 : end] -= values[:-1]
    found.setflags(write=False)
    return found


def described(placement: Placement) -> tuple[str, dict[str, Any], list[KeptNumbers]]:
    """A placement as its kind, what is said of it, and its numbers."""
    if isinstance(placement, Linear):
        where = {"tiles": placement.tiles, "first_tile": placement.first_tile, "tiles_of_ipu": placement.tiles_of_ipu}
        return "linear", {"size": placement.size, "grain": placement.grain, **where}, []
    if isinstance(placement, Turned):
        kind, head, parts = described(placement.base)
        view = {"dims": list(placement.base.shape), "perm": list(placement.perm), "flipped": list(placement.flipped)}
        return "turned", {"size": placement.size, **view, "of": kind, "base": head}, parts
    if isinstance(placement, Grid):
        axes = [[axis.size, len(axis)] for axis in placement.axes]
        cuts = [
            (KeptNumbers(axis.lo, True), KeptNumbers(axis.lengths), KeptNumbers(axis.offset, True))
            for axis in placement.axes
        ]
        where = {"first_tile": placement.first_tile, "replicas": len(placement.replicas)}
        parts = [*chain.from_iterable(cuts), KeptNumbers(placement.replicas, True)]
        return "grid", {"size": placement.size, "axes": axes, **where}, parts
    if isinstance(placement, Demand):
        lengths = placement.hi - placement.lo
        parts = [KeptNumbers(placement.tile, True), KeptNumbers(placement.lo, True), KeptNumbers(lengths)]
        return "demand", {"size": placement.size, "intervals": len(lengths)}, parts
    assert isinstance(placement, Mapping)
    starts, owners = placement.runs()
    return "runs", {"size": placement.size, "runs": len(starts)}, [KeptNumbers(starts, True), KeptNumbers(owners, True)]
