"""Addresses on one tile from plain data: sizes, lifetimes and regions, without a program.

The same placement as `allocation`, for a profile whose program is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from workbench.engine.footprint import CATEGORIES, CODE_CATEGORIES
from workbench.engine.lifetimes import Interval
from workbench.engine.placement import REGIONS, Item, conflicts, place
from workbench.engine.target import MemoryMap
from workbench.engine.tileset import IntArray

ALWAYS = -1


def plain_placer(
    memory: MemoryMap,
    numbers: Sequence[int],
    lives: Sequence[tuple[Interval, ...]],
    interleaved: Sequence[bool],
) -> Callable[[Mapping[str, int], IntArray, int], tuple[Sequence[str | int], IntArray, IntArray, int]]:
    """A function that places one tile of an IPU, whose variables have these numbers and lives (empty: always live).

    It takes bytes by footprint category, int64[variables] of bytes, and the most bytes that are live together without
    the always-live ones. It returns the owners of the blocks (a category or the number of a variable), int64[owners]
    of addresses and of bytes, and the bytes the out-of-memory message calls used.
    """
    rows: dict[tuple[Interval, ...], int] = {}
    life = [rows.setdefault(spans, len(rows)) if spans else ALWAYS for spans in lives]
    duration = [sum(last - first + 1 for first, last in spans) for spans in lives]
    meets = conflicts(list(rows))

    def place_tile(
        footprint: Mapping[str, int], sizes: IntArray, peak_bytes: int
    ) -> tuple[Sequence[str | int], IntArray, IntArray, int]:
        fixed = [(name, footprint[name]) for name in CATEGORIES if footprint.get(name)]
        held = np.flatnonzero(sizes)
        items = [Item(size_bytes=size, code=name in CODE_CATEGORIES) for name, size in fixed]
        items += [
            Item(size_bytes=size, life=life[row], interleaved=interleaved[row], duration=duration[row])
            for row, size in zip(held.tolist(), sizes[held].tolist(), strict=True)
        ]
        placed = place(memory, items, meets, peak_bytes)
        taken = np.array([item.size_bytes for item in items], dtype=np.int64)
        stops = placed.addresses + taken
        tops = [int(stops[placed.regions == region].max(initial=0)) for region in range(len(REGIONS))]
        with_gaps = tops[2] or tops[0] + max(0, tops[1] - memory.non_interleaved_bytes)
        owners: list[str | int] = [name for name, _ in fixed]
        owners += [numbers[row] for row in held.tolist()]
        return owners, placed.addresses, taken, with_gaps

    return place_tile
