"""Intervals of variables in the timelines of their IPUs, all in two arrays: programs have tens of thousands of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TypeAlias

import numpy as np

from workbench.base.arrays import IntArray, frozen

Interval: TypeAlias = tuple[int, int]
"""First and last timeline position at which something is live, both included."""


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Of each variable its disjoint ascending intervals; `intervals[variable]` is a tuple of (first, last).

    `starts` is int64[variables + 1]; those of a variable are rows `starts[variable]` … `starts[variable + 1] - 1` of
    `ends`, int64[intervals, 2].
    """

    starts: IntArray
    ends: IntArray

    @classmethod
    def of(cls, rows: Intervals | Iterable[Sequence[Interval]]) -> Intervals:
        """From a sequence of intervals for each variable."""
        if isinstance(rows, Intervals):
            return rows
        held = [tuple(row) for row in rows]
        ends = np.fromiter(chain.from_iterable(chain.from_iterable(held)), np.int64).reshape(-1, 2)
        return cls(_starts(np.array([len(row) for row in held], np.int64)), frozen(ends))

    @classmethod
    def by_variable(cls, count: int, variable: IntArray, first: IntArray, last: IntArray) -> Intervals:
        """Of `count` variables, from an interval of a variable a row, those of each variable in order."""
        order = np.argsort(variable, kind="stable")
        starts = _starts(np.bincount(variable, minlength=count))
        return cls(starts, frozen(np.column_stack((first[order], last[order]))))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, variable: int) -> tuple[Interval, ...]:
        rows = self.ends[self.starts[variable] : self.starts[variable + 1]]
        return tuple((first, last) for first, last in rows.tolist())

    def __iter__(self) -> Iterator[tuple[Interval, ...]]:
        pairs = [(first, last) for first, last in self.ends.tolist()]
        bounds = self.starts.tolist()
        return (tuple(pairs[low:high]) for low, high in pairwise(bounds))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Intervals | tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self.ends.tobytes())

    @property
    def counts(self) -> IntArray:
        """How many each variable has, int64[variables]."""
        return np.diff(self.starts)

    @property
    def variable(self) -> IntArray:
        """The variable of each interval, int64[intervals]."""
        return np.repeat(np.arange(len(self)), self.counts)

    @property
    def lengths(self) -> IntArray:
        """Positions at which each variable is live, int64[variables]."""
        until = np.concatenate(([0], np.cumsum(self.ends[:, 1] - self.ends[:, 0] + 1)))
        return np.asarray(until[self.starts[1:]] - until[self.starts[:-1]])

    def take(self, variables: IntArray) -> Intervals:
        """Those of some variables."""
        counts = self.counts[variables]
        rows = np.arange(counts.sum()) + np.repeat(self.starts[variables] - (np.cumsum(counts) - counts), counts)
        return Intervals(_starts(counts), frozen(self.ends[rows]))

    def distinct(self) -> tuple[IntArray, IntArray]:
        """Which variables are live alike: the number of each one's kind, in order of the first, int64[variables]; and
        the first variable of each kind."""
        content, bounds = self.ends.tobytes(), (self.starts * self.ends.itemsize * 2).tolist()
        known: dict[bytes, int] = {}
        kinds = [known.setdefault(content[low:high], len(known)) for low, high in pairwise(bounds)]
        return np.array(kinds, np.int64), np.unique(kinds, return_index=True)[1]


def _starts(counts: IntArray) -> IntArray:
    return frozen(np.concatenate(([0], np.cumsum(counts))))
