"""Tiles so alike that one set of addresses, with room for the largest of each variable, serves them all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.base.arrays import IntArray

TOLERANCE = 1.01
"""Most that the largest of each variable may need together, over what the least needy tile of a group needs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Amounts:
    """Bytes on the tiles of one IPU. `vectors` is int64[vectors, tiles]; `always` counts for each vector what holds it
    throughout, int64[vectors]; `rows`, `first` and `last` are the vector and the positions of each other lifetime.
    """

    vectors: IntArray
    always: IntArray
    rows: IntArray
    first: IntArray
    last: IntArray

    def fullest(self, sizes: IntArray) -> tuple[IntArray, int]:
        """When vectors hold these bytes: how many of each are live at the fullest position, and all bytes there."""
        changes = sizes[self.rows].astype(np.float64)
        places = np.concatenate((self.first, self.last + 1))
        live = np.cumsum(np.bincount(places, np.concatenate((changes, -changes)), minlength=1))
        at = int(live.argmax())
        here = (self.first <= at) & (at <= self.last)
        counts = self.always + np.bincount(self.rows[here], minlength=len(self.always))
        return counts, int(counts @ sizes)


def groups(amounts: Amounts, tiles: IntArray, bounds: IntArray) -> list[IntArray]:
    """Split tiles into groups within `TOLERANCE`; `bounds` are the bytes each tile needs at least, int64[all tiles].

    A group that needs too much together is split at the middle of the vector that costs it most.
    """
    by_tile = np.ascontiguousarray(amounts.vectors.T)
    found: list[IntArray] = []
    left = [tiles] if len(tiles) else []
    while left:
        group = left.pop()
        held = by_tile[group]
        largest = held.max(axis=0)
        counts, needed = amounts.fullest(largest)
        if len(group) == 1 or needed <= TOLERANCE * bounds[group].min():
            found.append(group)
            continue
        values = held[:, int((counts * (largest - held.mean(axis=0))).argmax())]
        high = 2 * values > values.max() + values.min()
        if not high.any():  # bytes are equal at the fullest position: the bounds differ by lifetimes alone
            high = np.arange(len(group)) < len(group) // 2
        left += [group[high], group[~high]]
    return found
