"""The arrows of a profile's exchanges, worked out when they are asked for and kept for a while."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from workbench.profiler.exchanges.arrows import Arrows, arrows_of
from workbench.profiler.exchanges.placements import Placement, placements_of
from workbench.profiler.schema import Stored

MOST_KEPT = 16  # of up to two million arrows of 24 bytes


class KeptArrows:
    """Arrows by the number of a set of moves."""

    def __init__(self, profile: Stored) -> None:
        # Not the profile itself, which would then live for as long as what is known of it.
        self._tables, self._arrays, self._meta = profile.tables, profile.arrays, profile.meta
        self._found: OrderedDict[int, Arrows | None] = OrderedDict()

    @cached_property
    def _placements(self) -> tuple[Placement, ...]:
        return placements_of(self._tables["placements"], self._arrays["placement_numbers"], self._tiles)

    def of(self, number: int) -> Arrows | None:
        """Which tile sends how much to which; None where that is not kept, or too much to go through."""
        if number not in self._found:
            self._found[number] = self._made(number) if number else None
            while len(self._found) > MOST_KEPT:
                self._found.popitem(last=False)
        self._found.move_to_end(number)
        return self._found[number]

    def _made(self, number: int) -> Arrows | None:
        moves, known = self._tables["moves"], self._placements
        rows = np.flatnonzero(moves["set"] == number).tolist()
        parts = [(known[moves["held"][row]], known[moves["needed"][row]]) for row in rows]
        sizes = moves["itemsize_bytes"][rows].tolist()
        return arrows_of([(*pair, size) for pair, size in zip(parts, sizes, strict=True)], self._tiles)

    @property
    def _tiles(self) -> int:
        return int(self._meta["target"]["tiles_per_ipu"])


_KEPT: WeakKeyDictionary[Any, KeptArrows] = WeakKeyDictionary()


def kept_arrows(profile: Stored) -> KeptArrows:
    """The arrows of a profile, for as long as it lives."""
    known = _KEPT.get(profile)
    if known is None:
        known = _KEPT[profile] = KeptArrows(profile)
    return known
