"""How many blocks a window of the executed program has and what is their mean, without unrolling it.

Repeats and calls are counted once.
"""

from __future__ import annotations

import sys
import warnings
from bisect import bisect_right
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

import pandas as pd

from workbench.base.arrays import ceil_div
from workbench.profiler.timeline.timeline import BLOCK_COLUMNS, Timed, TimedNode, Timeline, block_rows

MOST_ROWS = 10_000  # of `Profile.blocks` where nobody says how many


def blocks(
    profile: Timed, ipu: int | None, first: int | None, last: int | None, max_rows: int
) -> tuple[pd.DataFrame, int]:
    """The table of `Profile.blocks`, and how many rows of the window it has not."""
    begin, max_rows = max(0, first or 0), min(max_rows, sys.maxsize - 1)  # as far as a list can be cut
    rows = list(islice(block_rows(profile, ipu, begin, last), max_rows + 1))
    left = 0
    if len(rows) > max_rows:
        end = profile.timeline.root.cycles + 1 if last is None else last
        left = BlockCounts(profile, ipu).within(begin, end) - max_rows
    return pd.DataFrame(rows[:max_rows], columns=list(BLOCK_COLUMNS)), left


def told_cut(frame: pd.DataFrame, left: int, *, asked: bool, limit: str = "max_rows") -> pd.DataFrame:
    """A table with how many rows were left out in `attrs["left_out"]`; with a warning unless the cut was asked for by
    its `limit`.

    To be called by public methods, so that the warning names the line that called one.
    """
    frame.attrs["left_out"] = left
    if left and not asked:
        warnings.warn(
            f"the first {len(frame):,} of {len(frame) + left:,} rows: give {limit} for more of them, or cycles_from "
            "and cycles_to for those of a window",
            UserWarning,
            stacklevel=3,
        )
    return frame


class BlockCounts:
    """Rows that `block_rows` gives: one for each IPU that a step occupies, or one in a profile of the device alone.

    `ipu`: only those of one IPU.
    """

    def __init__(self, profile: Timed, ipu: int | None = None) -> None:
        self._root, self._ipu = profile.timeline.root, ipu
        self._alone = profile.meta.get("execution_profile") == "DEVICE_PROFILE"
        self._whole: dict[TimedNode, int] = {}

    def within(self, first: int, last: int) -> int:
        """Blocks that touch cycles [first, last)."""
        return self._touching(self._root, 0, first, last)

    def longest(self, first: int, most: int) -> int:
        """The largest end of a window from `first` that has at most `most` blocks."""
        low, high = first, self._root.cycles + 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.within(first, middle) <= most else (low, middle - 1)
        return low

    def _touching(self, node: TimedNode, start: int, first: int, last: int) -> int:
        if not node.cycles or start >= last or start + node.cycles <= first or self._elsewhere(node):
            return 0
        if node.kind == "step" or (first <= start and start + node.cycles <= last):
            return self._of(node)
        if node.kind == "repeat":
            return self._turns(node, start, first, last)
        if node.kind == "sequence":
            return self._in_turn(node, start, first, last)
        children = node.children if node.kind == "overlap" else (node.children[node.arm],)
        return sum(self._touching(child, start, first, last) for child in children)

    def _in_turn(self, node: TimedNode, start: int, first: int, last: int) -> int:
        begin = max(0, bisect_right(node.offsets, first - start) - 1)
        end = bisect_right(node.offsets, last - start)
        pairs = zip(node.children[begin:end], node.offsets[begin:end], strict=True)
        return sum(self._touching(child, start + offset, first, last) for child, offset in pairs)

    def _turns(self, node: TimedNode, start: int, first: int, last: int) -> int:
        """Of the turns that a window touches, the first and the last may be cut by it."""
        body = node.children[0]
        begin = max(0, (first - start) // body.cycles)
        end = min(node.times, ceil_div(last - start, body.cycles))
        cut = {begin, end - 1}
        parts = sum(self._touching(body, start + turn * body.cycles, first, last) for turn in cut)
        return parts + max(0, end - begin - len(cut)) * self._of(body)

    def _of(self, node: TimedNode) -> int:
        """Blocks of a whole node; of a node without duration none."""
        if not node.cycles or self._elsewhere(node):
            return 0
        if node.kind == "step":
            return 1 if self._alone or self._ipu is not None else len(node.ipus)
        if node not in self._whole:
            one = node.kind not in ("sequence", "overlap")
            children = (node.children[node.arm],) if one else node.children
            self._whole[node] = node.times * sum(self._of(child) for child in children)
        return self._whole[node]

    def _elsewhere(self, node: TimedNode) -> bool:
        return self._ipu is not None and self._ipu not in node.ipus


class _Sum(NamedTuple):
    """Cycles, and cycles times a value of the steps that spend them."""

    weight: float = 0.0
    value: float = 0.0

    def plus(self, other: _Sum, times: int = 1) -> _Sum:
        return _Sum(self.weight + other.weight * times, self.value + other.value * times)


def mean_within(timeline: Timeline, window: tuple[int, int], ipu: int, values: Mapping[int, float]) -> float | None:
    """The mean over the steps of an IPU that have a value, weighted by their cycles inside [first, last); None for
    none."""
    found = _Means(ipu, values).within(timeline.root, 0, *window)
    return found.value / found.weight if found.weight else None


class _Means:
    def __init__(self, ipu: int, values: Mapping[int, float]) -> None:
        self._ipu, self._values = ipu, values
        self._whole: dict[TimedNode, _Sum] = {}

    def within(self, node: TimedNode, start: int, first: int, last: int) -> _Sum:
        """Of a node that begins at a cycle, what is inside a window."""
        inside = min(last, start + node.cycles) - max(first, start)
        if inside <= 0 or self._ipu not in node.ipus:
            return _Sum()
        if inside == node.cycles:
            return self._of(node)
        if node.kind == "step":
            return self._step(node, inside)
        if node.kind == "repeat":
            body = node.children[0]
            low = max(0, (first - start) // body.cycles)
            high = min(node.times, ceil_div(last - start, body.cycles))
            cut = {low, high - 1}
            edges = [self.within(body, start + turn * body.cycles, first, last) for turn in cut]
            return _total(edges).plus(self._of(body), high - low - len(cut))
        if node.kind == "sequence":
            pairs = zip(node.children, node.offsets, strict=True)
            return _total([self.within(child, start + offset, first, last) for child, offset in pairs])
        children = node.children if node.kind == "overlap" else (node.children[node.arm],)
        return _total([self.within(child, start, first, last) for child in children])

    def _step(self, node: TimedNode, cycles: int) -> _Sum:
        value = self._values.get(node.step)
        return _Sum() if value is None else _Sum(cycles, cycles * value)

    def _of(self, node: TimedNode) -> _Sum:
        """All of a node, worked out once."""
        if self._ipu not in node.ipus:
            return _Sum()
        if node.kind == "step":
            return self._step(node, node.cycles)
        if node not in self._whole:
            one = node.kind not in ("sequence", "overlap")
            children = (node.children[node.arm],) if one else node.children
            self._whole[node] = _Sum().plus(_total([self._of(child) for child in children]), node.times)
        return self._whole[node]


def _total(parts: list[_Sum]) -> _Sum:
    found = _Sum()
    for part in parts:
        found = found.plus(part)
    return found
