"""Keeps each distinct per-tile vector once: most are met again as the same object, some as equal ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, shared
from workbench.base.identity import ByIdentity


class Vectors:
    """`rows` of `per_tile`; row 0 is zero. Arrays given are kept, so that an identity stays one array's."""

    def __init__(self, tiles: int) -> None:
        zeros = shared(np.zeros(tiles, dtype=np.int64))
        self.rows: list[IntArray] = [zeros]
        self._by_identity: ByIdentity[npt.NDArray[np.integer], int] = ByIdentity([(zeros, 0)])
        self._sums: dict[int, int] = {}
        self._used: dict[int, int] = {}

    def row(self, vector: npt.NDArray[np.integer]) -> int:
        """The row of a vector, added when new."""
        known: int | None = self._by_identity.get(vector)
        if known is None:
            one = shared(vector)
            known = self._by_identity.setdefault(one, len(self.rows))
            if known == len(self.rows):
                self.rows.append(one)
            self._by_identity[vector] = known
        return known

    def total(self, vector: IntArray) -> int:
        """The sum over the tiles."""
        place = self.row(vector)
        if place not in self._sums:
            self._sums[place] = int(self.rows[place].sum())
        return self._sums[place]

    def used(self, vector: IntArray) -> int:
        """The number of tiles with any."""
        place = self.row(vector)
        if place not in self._used:
            self._used[place] = int(np.count_nonzero(self.rows[place]))
        return self._used[place]


def stacked(rows: Sequence[IntArray]) -> IntArray:
    """Vectors as one array, int64[rows, tiles], read-only."""
    found = np.stack(rows)
    found.setflags(write=False)
    return found
