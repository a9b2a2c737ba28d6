"""What the temporaries of an operator take on a tile: those its steps write, as far as they are live together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.profiler.schema import Table

Flags = npt.NDArray[np.bool_]


class Temporaries:
    """Temporaries by the step that writes them, with their lives and bytes per tile. `temporary` says of each variable
    whether it is one, `index` which of the `vectors` its bytes are."""

    def __init__(
        self, temporary: Flags, index: IntArray, vectors: Sequence[IntArray], accesses: Table, intervals: Table
    ) -> None:
        self.vectors, self.index = vectors, index
        self.known: dict[frozenset[int], int] = {}
        self.largest: dict[int, int] = {}  # bytes on one tile, by row
        self.alike: dict[tuple[Any, ...], int] = {}  # of operators of stages that are alike: same vectors, same lives
        self.written: dict[int, list[int]] = {}
        chosen = accesses["write"] & temporary[accesses["variable"]]
        for step, variable in zip(
            accesses["step"][chosen].tolist(), accesses["variable"][chosen].tolist(), strict=True
        ):
            self.written.setdefault(step, []).append(variable)
        owner, first, last = (intervals[name] for name in ("variable", "first", "last"))
        if (owner[1:] < owner[:-1]).any():
            order = np.argsort(owner, kind="stable")
            owner, first, last = owner[order], first[order], last[order]
        self.first, self.last = first, last
        self.starts = np.searchsorted(owner, np.arange(len(temporary) + 1))

    def at_most(self, steps: Iterable[int]) -> int:
        """A bound of `most` that is found at once: as if all lay on one tile at one time."""
        return sum([self._largest(row) for row in self.index[list(self._written_by(steps))].tolist()])

    def _written_by(self, steps: Iterable[int]) -> frozenset[int]:
        return frozenset([variable for step in steps for variable in self.written.get(step, ())])

    def _largest(self, row: int) -> int:
        found = self.largest.get(row)
        if found is None:
            found = self.largest[row] = int(self.vectors[row].max(initial=0))
        return found

    def most(self, steps: Iterable[int]) -> int:
        """The most bytes on one tile that the temporaries written by these steps take at one time."""
        own = self._written_by(steps)
        if own not in self.known:  # operators that share a body ask for the same
            self.known[own] = self._most(np.array(sorted(own), np.int64)) if own else 0
        return self.known[own]

    def _most(self, variables: IntArray) -> int:
        rows = self.index[variables].tolist()
        if len(rows) == 1:  # live or not, once at a time
            lives = self.starts[variables[0] + 1] > self.starts[variables[0]]
            return self._largest(rows[0]) if lives else 0
        place, first, last = self._lives(variables)
        begun = first.min() if len(first) else 0
        lives = tuple(place.tolist()), tuple((first - begun).tolist()), tuple((last - begun).tolist())
        key = (tuple(rows), *lives)
        if key not in self.alike:
            self.alike[key] = self._most_at_once(rows, zip(*lives, strict=True))
        return self.alike[key]

    def _most_at_once(self, rows: Sequence[int], lives: Iterable[tuple[int, int, int]]) -> int:
        begins: dict[int, int] = {}  # sets of variables as whole numbers, a bit for each
        ends: dict[int, int] = {}
        for place, first, last in lives:  # disjoint, so a variable is live once at most
            begins[first] = begins.get(first, 0) | 1 << place
            ends[last + 1] = ends.get(last + 1, 0) | 1 << place
        live, grown = 0, False
        seen: dict[int, None] = {}  # what is live before something ends; what is live at other times is part of it
        for moment in sorted({*begins, *ends}):
            if grown and moment in ends:
                seen[live], grown = None, False
            live = live & ~ends.get(moment, 0) | begins.get(moment, 0)
            grown = grown or moment in begins
        sums = (
            np.sum([self.vectors[row] for place, row in enumerate(rows) if each >> place & 1], axis=0) for each in seen
        )
        return max((int(total.max()) for total in sums), default=0)

    def _lives(self, variables: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Lives of variables by their places: place, first and last position. Of a body that is called often, whose
        calls have them at equal distances, those of one call.
        """
        starts = self.starts[variables]
        counts = self.starts[variables + 1] - starts
        calls = int(counts[0])
        if (counts == calls).all() and calls > 1:
            rows = starts[:, None] + np.arange(calls)
            first, last = self.first[rows], self.last[rows]
            begun = first[0]
            apart = (last.max(axis=0)[:-1] < first.min(axis=0)[1:]).all()
            if apart and all((each - begun == each[:, :1] - begun[0]).all() for each in (first, last)):
                counts = np.ones_like(counts)
        place = np.repeat(np.arange(len(variables)), counts)
        row = np.arange(len(place)) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
        return place, self.first[row], self.last[row]
