"""Addresses on one tile from plain data: sizes, lifetimes and regions, without a program.

The same placement as `allocation`, for a profile whose program is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from workbench.base.arrays import IntArray
from workbench.engine.memory.footprint import CATEGORIES, CODE_CATEGORIES
from workbench.engine.memory.intervals import Interval
from workbench.engine.memory.packing import Item, conflicts, place
from workbench.engine.target import MemoryMap

ALWAYS = -1


def plain_placer(
    memory: MemoryMap, lives: Sequence[tuple[Interval, ...]], interleaved: Sequence[bool], budget_bytes: int
) -> Callable[[IntArray, int], IntArray]:
    """A function that places one tile of an IPU, whose variables have these lives (empty: always live).

    It tries to stay within `budget_bytes`, gaps included: what the tiles that decide the verdict use.

    It takes int64[categories + variables] of bytes, footprint categories first, and the most bytes that are live
    together without the always-live ones. It returns addresses in the same order, 0 where there are no bytes.
    """
    fixed = len(CATEGORIES)
    rows: dict[tuple[Interval, ...], int] = {}
    life = [ALWAYS] * fixed + [rows.setdefault(spans, len(rows)) if spans else ALWAYS for spans in lives]
    duration = [0] * fixed + [sum(last - first + 1 for first, last in spans) for spans in lives]
    code = [name in CODE_CATEGORIES for name in CATEGORIES] + [False] * len(lives)
    wide = [False] * fixed + list(interleaved)
    meets = conflicts(list(rows))

    def place_tile(sizes: IntArray, peak_bytes: int) -> IntArray:
        held = np.flatnonzero(sizes)
        items = [
            Item(size_bytes=size, life=life[row], interleaved=wide[row], code=code[row], duration=duration[row])
            for row, size in zip(held.tolist(), sizes[held].tolist(), strict=True)
        ]
        addresses = np.zeros(len(sizes), np.int64)
        addresses[held] = place(memory, items, meets, peak_bytes, budget_bytes).addresses
        return addresses

    return place_tile
