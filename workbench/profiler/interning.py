"""Keeps each distinct per-tile vector once: most are met again as the same object, some as equal ones."""

from __future__ import annotations

import numpy as np

from workbench.base.arrays import IntArray


class Vectors:
    """Rows of `per_tile`; row 0 is zero. Arrays given are kept, so that an identity stays one array's."""

    def __init__(self, tiles: int) -> None:
        zeros = np.zeros(tiles, dtype=np.int64)
        self._rows: list[IntArray] = [zeros]
        self._by_content: dict[bytes, int] = {zeros.tobytes(): 0}
        self._by_identity: dict[int, int] = {}
        self._sums: dict[int, int] = {}
        self._kept: list[IntArray] = []

    def row(self, vector: IntArray) -> int:
        """The row of a vector, added when new."""
        known = self._by_identity.get(id(vector))
        if known is None:
            known = self._by_content.setdefault(np.asarray(vector, dtype=np.int64).tobytes(), len(self._rows))
            if known == len(self._rows):
                self._rows.append(vector)
            self._by_identity[id(vector)] = known
            self._kept.append(vector)
        return known

    def total(self, vector: IntArray) -> int:
        """The sum over the tiles."""
        place = self.row(vector)
        if place not in self._sums:
            self._sums[place] = int(self._rows[place].sum())
        return self._sums[place]

    def used(self, vector: IntArray) -> int:
        """The number of tiles with any."""
        return int(np.count_nonzero(self._rows[self.row(vector)]))

    def stacked(self) -> IntArray:
        """int64[rows, tiles], read-only."""
        found = np.stack(self._rows)
        found.setflags(write=False)
        return found
