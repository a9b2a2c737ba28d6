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

Flags: TypeAlias = npt.NDArray[np.bool_]
Conflicts: TypeAlias = Flags
"""bool[lifetimes, lifetimes]: which are live at the same time."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Items:
    """What is to be placed, each array by item. `life` is the row of a lifetime in the conflicts, -1 when always live;
    `size_bytes`, `life` and `duration` are int64[items], `interleaved` and `code` bool[items].
    """

    size_bytes: IntArray
    life: IntArray
    interleaved: Flags
    code: Flags
    duration: IntArray

    def __len__(self) -> int:
        return len(self.size_bytes)

    def sized(self, size_bytes: IntArray) -> tuple[IntArray, Items]:
        """The same with other sizes, as far as they have bytes: their places among these, and they."""
        here = np.flatnonzero(size_bytes)
        names = ("life", "interleaved", "code", "duration")
        return here, Items(size_bytes=size_bytes[here], **{name: getattr(self, name)[here] for name in names})


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
    bits = [1 << number for number in range(count)]
    live, met = 0, bits.copy()
    for each, begins in zip(life[order].tolist(), (times[order] > 0).tolist(), strict=True):
        live ^= bits[each]
        if begins:
            met[each] |= live
    width = ceil_div(count, 8)
    content = b"".join(each.to_bytes(width, "little") for each in met)
    rows = np.unpackbits(np.frombuffer(content, np.uint8).reshape(count, width), axis=1, bitorder="little")
    result = rows[:, :count].astype(bool)
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
        self.asked = (0, 0, 0, 0)  # blocks that were there, and what was asked for
        self.lowest = 0

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

    def share(self, size_bytes: int, alignment: int, life: int, meets: Flags, *, inside: bool = False) -> int | None:
        """The lowest address free during a lifetime; None when there is none (`inside`: none below the top)."""
        count = self.count
        asked = (count, size_bytes, alignment, life)
        if asked != self.asked:  # what was refused inside is asked for again where no other region takes it
            self.asked, self.lowest = asked, self._lowest(size_bytes, alignment, life, meets)
        address = self.lowest
        if address + size_bytes > (self.top if inside else self.end):
            return None
        self.starts[count], self.stops[count] = address, _up(address + size_bytes, ALIGNMENT_BYTES)
        self.lives[count] = life
        self.top = max(self.top, address + size_bytes)
        self.count += 1
        return address

    def _lowest(self, size_bytes: int, alignment: int, life: int, meets: Flags) -> int:
        """The lowest address free during a lifetime, wherever the region ends."""
        self.lives[0] = life  # a lifetime meets itself, so what is always live is always met
        met = meets[self.lives[: self.count]].nonzero()[0]
        starts = self.starts[met]
        order = starts.argsort()
        free = np.maximum.accumulate(self.stops[met[order]])
        if alignment > ALIGNMENT_BYTES:
            free = ceil_div(free, alignment) * alignment
        room = (starts[order[1:]] - free[:-1] >= size_bytes).nonzero()[0]
        return int(free[room[0] if len(room) else -1])


_Turns: TypeAlias = tuple[tuple[int, bool], ...]
"""Regions to try in turn, and whether only below what the region takes already."""
_KEPT: _Turns = ((0, False), (1, False), (2, False))
_SMALL_SPANS: _Turns = ((1, True), *_KEPT)
_LARGE_FIRST: _Turns = ((1, False), (0, False), (2, False))


class _Tile:
    """One attempt at one tile."""

    def __init__(self, memory: MemoryMap, items: Items, *, apart: bool = False, order: _Turns | None = None) -> None:
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

    def keep(self, index: int, size_bytes: int) -> None:
        """Place something always live: code in the executable bytes, the rest from the start of memory on."""
        interleaved, code = bool(self.items.interleaved[index]), bool(self.items.code[index])
        alignment = INTERLEAVED_ALIGNMENT_BYTES if interleaved else ALIGNMENT_BYTES
        limit = self.memory.executable_bytes if code else None
        for region, _ in _regions(_KEPT, interleaved=interleaved, code=code):
            address = self.regions[region].keep(size_bytes, alignment, limit if region == 0 else None)
            if address is not None:
                self.addresses[index], self.chosen[index] = address, region
                return

    def begin_data(self) -> None:
        """All code is placed: go on at the next memory element where data lie apart from it."""
        if self.apart:
            self.regions[0].skip(self.memory.element_bytes)

    def share(self, index: int, size_bytes: int, life: int, meets: Flags, *, interleaved: bool) -> None:
        """Place something shared in the first region of the order that has room."""
        alignment = INTERLEAVED_ALIGNMENT_BYTES if interleaved else ALIGNMENT_BYTES
        for region, inside in _regions(self.order, interleaved=interleaved):
            address = self.regions[region].share(size_bytes, alignment, life, meets, inside=inside)
            if address is not None:
                self.addresses[index], self.chosen[index] = address, region
                return

    def used_bytes(self) -> tuple[int, int]:
        """(bytes beyond the end of memory, bytes of the shared ranges)."""
        spans = [region.top - region.base for region in self.regions]
        return self.regions[2].top - self.memory.total_bytes, sum(spans)

    def with_gaps_bytes(self) -> int:
        """`with_gaps_bytes` of this attempt."""
        return with_gaps_bytes(self.memory, self.addresses, self.items.size_bytes)

    def are_at_the_top(self, shared: IntArray) -> Flags:
        """Which of the shared items end where their region does."""
        stops, chosen = (self.addresses + self.items.size_bytes)[shared], self.chosen[shared]
        tops = np.zeros(len(REGIONS), np.int64)
        np.maximum.at(tops, chosen, stops)
        return np.asarray(stops == tops[chosen])


class _Whole(_Tile):
    """An attempt that takes all memory as one range: code first, the rest behind it wherever it fits."""

    def __init__(self, memory: MemoryMap, items: Items) -> None:
        super().__init__(memory, items)
        self.range = _Region(0, 1 << 60, len(items))

    def keep(self, index: int, size_bytes: int) -> None:
        """Place something always live behind what is there."""
        self._note(index, size_bytes, self.range.keep(size_bytes, ALIGNMENT_BYTES))

    def share(self, index: int, size_bytes: int, life: int, meets: Flags, *, interleaved: bool) -> None:
        """Place something shared at the lowest address that is free while it lives."""
        self._note(index, size_bytes, self.range.share(size_bytes, ALIGNMENT_BYTES, life, meets))

    def _note(self, index: int, size_bytes: int, address: int | None) -> None:
        assert address is not None  # the range has no end
        border, end = self.memory.non_interleaved_bytes, self.memory.total_bytes
        self.addresses[index], self.chosen[index] = address, 2 if address + size_bytes > end else int(address >= border)

    def used_bytes(self) -> tuple[int, int]:
        """(bytes beyond the end of memory, bytes of the shared range)."""
        return max(0, self.range.top - self.memory.total_bytes), self.range.top - self.range.base

    @staticmethod
    def allows(memory: MemoryMap, items: Items) -> bool:
        """Whether nothing must be interleaved and all code is executable where it comes first."""
        code = ceil_div(items.size_bytes[items.code], ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return int(code.sum()) <= memory.executable_bytes and not items.interleaved.any()


def _regions(order: _Turns, *, interleaved: bool, code: bool = False) -> _Turns:
    if code:
        return ((0, False), (2, False))
    return ((1, False), (2, False)) if interleaved else order


_Order: TypeAlias = Callable[[IntArray, IntArray], tuple[IntArray, ...]]
"""From sizes and durations to the keys of an order, the last one first; what is equal in all keeps its place."""
_WAYS: tuple[tuple[bool, _Turns], ...] = ((True, _SMALL_SPANS), (False, _SMALL_SPANS), (False, _LARGE_FIRST))
"""Ways to fill a tile, taken in turn until one leaves an element of memory free.

Each says whether data lie apart from code, and the order of regions.
"""
_ORDERS: tuple[_Order, ...] = (
    lambda size, duration: (-duration, -size),
    lambda size, duration: (-size, -size * duration),
    lambda size, duration: (-size, -duration),
)


def _ordered(items: Items, shared: IntArray, order: _Order) -> IntArray:
    return shared[np.lexsort(order(items.size_bytes[shared], items.duration[shared]))]


def place(
    memory: MemoryMap, items: Items, meets: Conflicts, peak_bytes: int, budget_bytes: int | None = None
) -> Placed:
    """Addresses for everything on a tile; `peak_bytes` is the most that is live together, the least shared space.

    With a budget the search goes on for a while until `with_gaps_bytes` is within it.
    """
    best: _Tile | None = None
    kept, shared = _kept(items), np.flatnonzero(items.life >= 0)
    may_fit = int(items.size_bytes[kept].sum()) + peak_bytes <= memory.total_bytes
    for apart, regions in _WAYS if memory.data_apart else _WAYS[1:]:
        for order in _ORDERS:
            tile = _Tile(memory, items, apart=apart, order=regions)
            attempt = _attempt(tile, meets, kept, _ordered(items, shared, order))
            if best is None or attempt.used_bytes() < best.used_bytes():
                best = attempt
            overflow, used = best.used_bytes()
            if not len(shared) or (not (overflow and may_fit) and used <= _GOOD_ENOUGH * peak_bytes):
                break
        assert best is not None
        if not best.used_bytes()[0] and best.with_gaps_bytes() <= memory.total_bytes - memory.element_bytes:
            break
    assert best is not None
    if best.used_bytes()[0] and _Whole.allows(memory, items):
        attempt = _attempt(_Whole(memory, items), meets, kept, _ordered(items, shared, _ORDERS[0]))
        best = min((best, attempt), key=_Tile.used_bytes)
    if budget_bytes is not None and len(shared):
        best = _within(budget_bytes, best, meets, kept, shared)
    return Placed(addresses=best.addresses, regions=best.chosen)


def _within(budget_bytes: int, best: _Tile, meets: Conflicts, kept: IntArray, shared: IntArray) -> _Tile:
    """The first attempt within the budget, or the one that comes nearest to it."""
    items, memory = best.items, best.memory
    order, least = _ordered(items, shared, _ORDERS[0]), best.with_gaps_bytes()
    for _ in range(_BUDGET_PLACES // len(items)):
        if least <= budget_bytes:
            break
        last = _attempt(_Tile(memory, items), meets, kept, order, interleaved_first=False)
        if last.with_gaps_bytes() < least:
            best, least = last, last.with_gaps_bytes()
        order = _first(order, last.are_at_the_top(order))
    return best


def _first(order: IntArray, chosen: Flags) -> IntArray:
    return np.concatenate((order[chosen], order[~chosen]))


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


def _kept(items: Items) -> IntArray:
    """What is always live, in the order in which it is placed: code first."""
    found = np.flatnonzero(items.life < 0)
    return found[np.lexsort((-items.size_bytes[found], ~items.interleaved[found], ~items.code[found]))]


def _attempt(
    tile: _Tile, meets: Conflicts, kept: IntArray, shared: IntArray, *, interleaved_first: bool = True
) -> _Tile:
    items = tile.items
    code = int(items.code[kept].sum())
    for place, (index, size_bytes) in enumerate(zip(kept.tolist(), items.size_bytes[kept].tolist(), strict=True)):
        if place == code:
            tile.begin_data()
        tile.keep(index, size_bytes)
    if code == len(kept):
        tile.begin_data()
    # What must be interleaved chooses first, as a rule: it has one region, the rest has two.
    order = _first(shared, items.interleaved[shared]) if interleaved_first else shared
    columns = (order, items.size_bytes[order], items.life[order], items.interleaved[order])
    for index, size_bytes, life, interleaved in zip(*(column.tolist() for column in columns), strict=True):
        tile.share(index, size_bytes, life, meets[life], interleaved=interleaved)
    return tile
