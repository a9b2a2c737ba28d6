"""Placing what one tile holds in the regions of its memory: always-live blocks in a row, shared ones where free.

Shared variables are placed offline by first fit: in a given order, each at the lowest address at which it meets no
variable that is live at the same time. Several orders are tried and the one that uses least is kept; towards a budget
the search goes on by moving what reached the top to the front of the order (squeaky wheel optimisation, Joslin and
Clements, JAIR 10, 1999). Regions are
neighbours: where the pieces do not fit beside their border and none must be interleaved, memory is taken as one range
and a piece may lie across it. What finds no place reaches beyond the end of the memory.

What need not be interleaved goes where interleaved pieces lie at other times, else to the region that is not, as long
as an element is left: in published reports of Poplar the interleaved region takes nothing for an adder, and for two
products just the bytes of their partials (graphcore/tensorflow r1.15/sdk-release-1.4 plugin/poplar/docs/logging.rst;
graphcore/examples tutorials/poplar/tut4_profiling). Else larger pieces try the interleaved region first, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, ceil_div
from workbench.engine.memory.intervals import Interval, Intervals
from workbench.engine.memory.states import States
from workbench.engine.target import MemoryMap

ALIGNMENT_BYTES = 8  # a 64-bit load or store; region starts are multiples of it
INTERLEAVED_ALIGNMENT_BYTES = 16  # a 128-bit load
_GOOD_ENOUGH = 1.05  # no further order is tried when addresses exceed the live peak by less
_BUDGET_PLACES = 20_000  # items placed on a tile in search of its budget: ten orders for a tile of two thousand items
REGIONS = ("non_interleaved", "interleaved", "overflow")

Conflicts: TypeAlias = npt.NDArray[np.bool_]
"""bool[lifetimes, lifetimes]: which are live at the same time."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something to place. `life` is the row of its lifetime in the conflicts, -1 when always live."""

    size_bytes: int
    life: int = -1
    interleaved: bool = False
    code: bool = False
    duration: int = 0


@dataclass(frozen=True, slots=True)
class Placed:
    """Addresses of the items in their order, int64[items], and their regions, int64[items] as in `REGIONS`."""

    addresses: IntArray
    regions: IntArray


def conflicts(lifetimes: Intervals | Sequence[tuple[Interval, ...]]) -> Conflicts:
    """Which of these distinct lifetimes share a position, by one sweep over what is live together.

    Sets of lifetimes are whole numbers with a bit for each: that takes a hundredth of what rows of the result would.
    """
    found = Intervals.of(lifetimes)
    return conflicts_of(_changes_of(found), len(found))


def conflicts_of(changes: IntArray, count: int) -> Conflicts:
    """The same of so many lifetimes, by those that begin (1) or end (-1) from one state to the next: state, lifetime,
    times; int64[changes, 3].
    """
    state, life, times = changes.T
    order = np.lexsort((times, state))  # ends before starts
    live, met = 0, [1 << life for life in range(count)]
    for each, begins in zip(life[order].tolist(), (times[order] > 0).tolist(), strict=True):
        live ^= 1 << each
        if begins:
            met[each] |= live
    width = ceil_div(count, 8)
    content = b"".join(each.to_bytes(width, "little") for each in met)
    bits = np.unpackbits(np.frombuffer(content, np.uint8).reshape(count, width), axis=1, bitorder="little")
    result = bits[:, :count].astype(bool)
    return np.asarray(result | result.T)


def _changes_of(lifetimes: Intervals) -> IntArray:
    ends, each = lifetimes.ends, lifetimes.variable
    states = States.of(
        np.concatenate((ends[:, 0], ends[:, 1] + 1)),
        np.tile(each, 2),
        np.repeat(np.array([1, -1], np.int64), len(each)),
        rows=len(lifetimes),
        positions=int(ends.max(initial=-1)) + 1,
    )
    return states.changes


def _up(address: int, alignment: int) -> int:
    return ceil_div(address, alignment) * alignment


class _Region:
    """One address range, filled from its start: first with always-live blocks, then with shared ones.

    Entry 0 of the arrays stands for all always-live blocks, the others for shared ones in the order they came.
    `stops` are rounded up to where the next block may start; `top` is the exact end of the highest shared block.
    """

    def __init__(self, start: int, end: int, capacity: int) -> None:
        self.end = end
        self.base = start
        self.top = start
        self.count = 1
        self.starts = np.zeros(capacity + 1, np.int64)
        self.stops = np.zeros(capacity + 1, np.int64)
        self.lives = np.zeros(capacity + 1, np.int64)
        self.stops[0] = start

    def keep(self, size_bytes: int, alignment: int, limit: int | None = None) -> int | None:
        """The next address, for good; None when it would pass the end (or `limit`)."""
        address = _up(self.base, alignment)
        if address + size_bytes > (self.end if limit is None else min(limit, self.end)):
            return None
        self.base = self.top = address + size_bytes
        self.stops[0] = _up(self.base, ALIGNMENT_BYTES)
        return address

    def skip(self, alignment: int) -> None:
        """Leave a gap up to the next multiple, where one is inside the region."""
        address = _up(self.base, alignment)
        if address < self.end:
            self.base = self.top = address
            self.stops[0] = address

    def share(
        self, size_bytes: int, alignment: int, life: int, meets: npt.NDArray[np.bool_], *, inside: bool = False
    ) -> int | None:
        """The lowest address free during a lifetime; None when there is none (`inside`: none below the top)."""
        count = self.count
        self.lives[0] = life  # a lifetime meets itself, so what is always live is always met
        met = meets[self.lives[:count]].nonzero()[0]
        starts = self.starts[met]
        order = starts.argsort()
        free = np.maximum.accumulate(self.stops[met[order]])
        if alignment > ALIGNMENT_BYTES:
            free = ceil_div(free, alignment) * alignment
        room = (starts[order[1:]] - free[:-1] >= size_bytes).nonzero()[0]
        address = int(free[room[0] if len(room) else -1])
        if address + size_bytes > (self.top if inside else self.end):
            return None
        self.starts[count], self.stops[count] = address, _up(address + size_bytes, ALIGNMENT_BYTES)
        self.lives[count] = life
        self.top = max(self.top, address + size_bytes)
        self.count += 1
        return address


_Turns: TypeAlias = tuple[tuple[int, bool], ...]
"""Regions to try in turn, and whether only below what the region takes already."""
_KEPT: _Turns = ((0, False), (1, False), (2, False))
_SMALL_SPANS: _Turns = ((1, True), *_KEPT)
_LARGE_FIRST: _Turns = ((1, False), (0, False), (2, False))


class _Tile:
    """One attempt at one tile."""

    def __init__(
        self, memory: MemoryMap, items: Sequence[Item], *, apart: bool = False, order: _Turns | None = None
    ) -> None:
        border, end = memory.non_interleaved_bytes, memory.total_bytes
        count = len(items)
        self.memory = memory
        self.items = items
        self.apart = apart
        self.order = _LARGE_FIRST if order is None else order
        self.regions = [
            _Region(0, border, count),
            _Region(border, end, count),
            _Region(end, 1 << 60, count),
        ]
        self.addresses = np.zeros(count, np.int64)
        self.chosen = np.zeros(count, np.int64)

    def keep(self, index: int) -> None:
        """Place something always live: code in the executable bytes, the rest from the start of memory on."""
        item = self.items[index]
        alignment = INTERLEAVED_ALIGNMENT_BYTES if item.interleaved else ALIGNMENT_BYTES
        limit = self.memory.executable_bytes if item.code else None
        for region, _ in _regions(item, _KEPT):
            address = self.regions[region].keep(item.size_bytes, alignment, limit if region == 0 else None)
            if address is not None:
                self.addresses[index], self.chosen[index] = address, region
                return

    def begin_data(self) -> None:
        """All code is placed: go on at the next memory element where data lie apart from it."""
        if self.apart:
            self.regions[0].skip(self.memory.element_bytes)

    def share(self, index: int, meets: npt.NDArray[np.bool_]) -> None:
        """Place something shared in the first region of the order that has room."""
        item = self.items[index]
        alignment = INTERLEAVED_ALIGNMENT_BYTES if item.interleaved else ALIGNMENT_BYTES
        for region, inside in _regions(item, self.order):
            address = self.regions[region].share(item.size_bytes, alignment, item.life, meets, inside=inside)
            if address is not None:
                self.addresses[index], self.chosen[index] = address, region
                return

    def used_bytes(self) -> tuple[int, int]:
        """(bytes beyond the end of memory, bytes of the shared ranges)."""
        spans = [region.top - region.base for region in self.regions]
        return self.regions[2].top - self.memory.total_bytes, sum(spans)

    def with_gaps_bytes(self, sizes: IntArray) -> int:
        """`with_gaps_bytes` of this attempt; `sizes` is int64[items]."""
        return with_gaps_bytes(self.memory, self.addresses, sizes)

    def at_the_top(self, shared: Sequence[int], sizes: IntArray) -> set[int]:
        """The shared items that end where their region does."""
        stops = self.addresses + sizes
        tops = [max((int(stops[i]) for i in shared if self.chosen[i] == region), default=0) for region in range(3)]
        return {index for index in shared if stops[index] == tops[int(self.chosen[index])]}


class _Whole(_Tile):
    """An attempt that takes all memory as one range: code first, the rest behind it wherever it fits."""

    def __init__(self, memory: MemoryMap, items: Sequence[Item]) -> None:
        super().__init__(memory, items)
        self.range = _Region(0, 1 << 60, len(items))

    def keep(self, index: int) -> None:
        """Place something always live behind what is there."""
        item = self.items[index]
        self._note(index, self.range.keep(item.size_bytes, ALIGNMENT_BYTES))

    def share(self, index: int, meets: npt.NDArray[np.bool_]) -> None:
        """Place something shared at the lowest address that is free while it lives."""
        item = self.items[index]
        self._note(index, self.range.share(item.size_bytes, ALIGNMENT_BYTES, item.life, meets))

    def _note(self, index: int, address: int | None) -> None:
        assert address is not None  # the range has no end
        border, end = self.memory.non_interleaved_bytes, self.memory.total_bytes
        beyond = address + self.items[index].size_bytes > end
        self.addresses[index], self.chosen[index] = address, 2 if beyond else int(address >= border)

    def used_bytes(self) -> tuple[int, int]:
        """(bytes beyond the end of memory, bytes of the shared range)."""
        return max(0, self.range.top - self.memory.total_bytes), self.range.top - self.range.base

    @staticmethod
    def allows(memory: MemoryMap, items: Sequence[Item]) -> bool:
        """Whether nothing must be interleaved and all code is executable where it comes first."""
        code = sum(_up(item.size_bytes, ALIGNMENT_BYTES) for item in items if item.code)
        return code <= memory.executable_bytes and not any(item.interleaved for item in items)


def _regions(item: Item, order: _Turns) -> _Turns:
    if item.code:
        return ((0, False), (2, False))
    return ((1, False), (2, False)) if item.interleaved else order


_Order: TypeAlias = Callable[[Item], tuple[int, ...]]
_WAYS: tuple[tuple[bool, _Turns], ...] = ((True, _SMALL_SPANS), (False, _SMALL_SPANS), (False, _LARGE_FIRST))
"""Ways to fill a tile, taken in turn until one leaves an element of memory free.

Each says whether data lie apart from code, and the order of regions.
"""
_ORDERS: tuple[_Order, ...] = (
    lambda item: (-item.size_bytes, -item.duration),
    lambda item: (-item.size_bytes * item.duration, -item.size_bytes),
    lambda item: (-item.duration, -item.size_bytes),
)


def place(
    memory: MemoryMap, items: Sequence[Item], meets: Conflicts, peak_bytes: int, budget_bytes: int | None = None
) -> Placed:
    """Addresses for everything on a tile; `peak_bytes` is the most that is live together, the least shared space.

    With a budget the search goes on for a while until `with_gaps_bytes` is within it.
    """
    best: _Tile | None = None
    kept = sorted((index for index, item in enumerate(items) if item.life < 0), key=lambda i: _kept_order(items[i]))
    shared = [index for index, item in enumerate(items) if item.life >= 0]
    sizes = np.array([item.size_bytes for item in items], np.int64)
    may_fit = int(sizes[kept].sum()) + peak_bytes <= memory.total_bytes
    for apart, regions in _WAYS if memory.data_apart else _WAYS[1:]:
        for order in _ORDERS:
            tile = _Tile(memory, items, apart=apart, order=regions)
            attempt = _attempt(tile, meets, kept, sorted(shared, key=lambda i: order(items[i])))
            if best is None or attempt.used_bytes() < best.used_bytes():
                best = attempt
            overflow, used = best.used_bytes()
            if not shared or (not (overflow and may_fit) and used <= _GOOD_ENOUGH * peak_bytes):
                break
        assert best is not None
        if not best.used_bytes()[0] and best.with_gaps_bytes(sizes) <= memory.total_bytes - memory.element_bytes:
            break
    assert best is not None
    if best.used_bytes()[0] and _Whole.allows(memory, items):
        largest_first = sorted(shared, key=lambda i: _ORDERS[0](items[i]))
        attempt = _attempt(_Whole(memory, items), meets, kept, largest_first)
        best = min((best, attempt), key=_Tile.used_bytes)
    if budget_bytes is not None and shared:
        best = _within(budget_bytes, best, meets, kept, shared)
    return Placed(addresses=best.addresses, regions=best.chosen)


def _within(budget_bytes: int, best: _Tile, meets: Conflicts, kept: Sequence[int], shared: Sequence[int]) -> _Tile:
    """The first attempt within the budget, or the one that comes nearest to it."""
    items, memory = best.items, best.memory
    sizes = np.array([item.size_bytes for item in items], np.int64)
    order, least = sorted(shared, key=lambda i: _ORDERS[0](items[i])), best.with_gaps_bytes(sizes)
    for _ in range(_BUDGET_PLACES // len(items)):
        if least <= budget_bytes:
            break
        last = _attempt(_Tile(memory, items), meets, kept, order, interleaved_first=False)
        if last.with_gaps_bytes(sizes) < least:
            best, least = last, last.with_gaps_bytes(sizes)
        first = last.at_the_top(shared, sizes)
        order = [*(index for index in order if index in first), *(index for index in order if index not in first)]
    return best


def with_gaps_bytes(memory: MemoryMap, addresses: IntArray, sizes: IntArray) -> int:
    """What the out-of-memory message calls used: the spans used in each region, or the end of what found no place."""
    border, end = memory.non_interleaved_bytes, memory.total_bytes
    stops = addresses + sizes
    if stops.max(initial=0) > end:
        return int(stops.max())
    low = addresses < border
    if stops[low].max(initial=0) > border:  # a piece lies across the border: the spans are one
        return int(stops.max())
    return int(stops[low].max(initial=0)) + int(stops[~low].max(initial=border)) - border


def _kept_order(item: Item) -> tuple[bool, bool, int]:
    return (not item.code, not item.interleaved, -item.size_bytes)


def _attempt(
    tile: _Tile, meets: Conflicts, kept: Sequence[int], shared: Sequence[int], *, interleaved_first: bool = True
) -> _Tile:
    items = tile.items
    code = [index for index in kept if items[index].code]
    for index in code:
        tile.keep(index)
    tile.begin_data()
    for index in kept[len(code) :]:  # behind the code, which is first
        tile.keep(index)
    # What must be interleaved chooses first, as a rule: it has one region, the rest has two.
    for index in sorted(shared, key=lambda i: not items[i].interleaved) if interleaved_first else shared:
        tile.share(index, meets[items[index].life])
    return tile
