"""Positions at which the same is live are one state: a program has many positions, and few different ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, distinct_numbers

CELLS_PER_EVENT = 8  # up to so many states and rows for each event they are counted without sorting


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class States:
    """What is live together at some position, in order of the first one.

    `first` is int64[states], `of_position` int64[positions]; `changes` int64[changes, 3] are the state, the row, and
    how many more of it there are than in the state before.
    """

    first: IntArray
    of_position: IntArray
    changes: IntArray

    @classmethod
    def of(cls, position: IntArray, row: IntArray, sign: IntArray, *, rows: int, positions: int) -> States:
        """From the events, each int64[events]: where, which of the `rows`, and whether it becomes live (1) or stops to
        be (-1).

        What is live is told by a sum of numbers, one for each row, which come from 128 bits: that two sets have one
        sum does not happen.
        """
        change = np.zeros((2, positions + 1), np.uint64)
        for told, numbers in zip(change, pairs_of_numbers(rows), strict=True):
            np.add.at(told, position, np.where(sign > 0, numbers[row], -numbers[row]))
        told, further = np.cumsum(change, axis=1, dtype=np.uint64)[:, :-1]
        first, state_of = _distinct(told)
        if (further != further[first][state_of]).any():
            first = state_of = np.arange(len(told))
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        place = np.searchsorted(first[order], position)
        here = place < len(first)
        keys, times = _sums(place[here] * rows + row[here], sign[here], len(first) * rows)
        changes = np.stack((keys // max(1, rows), keys % max(1, rows), times), axis=1)
        return cls(first=first[order], of_position=rank[state_of], changes=changes)

    def of_members(self, row_of: IntArray, other_of: IntArray, others: int) -> States:
        """The same states, with changes of other rows. `row_of` is each member's row here, `other_of` the one there,
        int64[members] both.
        """
        state, row, times = self.changes.T
        order, counts = np.argsort(row_of, kind="stable"), np.bincount(row_of, minlength=int(row.max(initial=-1)) + 1)
        each = counts[row]
        within = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
        member = order[np.repeat((np.cumsum(counts) - counts)[row], each) + within]
        keys = np.repeat(state, each) * others + other_of[member]
        found, amounts = _sums(keys, np.repeat(times, each), len(self.first) * others)
        changes = np.stack((found // max(1, others), found % max(1, others), amounts), axis=1)
        return replace(self, changes=changes)

    def crests(self) -> States:
        """The states after which something goes, and the last one: no other has more of any row, as what follows it
        only adds to it. Here `first` is the number of each among these states, and there are no positions."""
        state, row, times = self.changes.T
        goes = np.zeros(len(self.first) + 1, bool)
        goes[state[times < 0]] = True
        goes[-1] = True
        found = np.flatnonzero(goes[1:])  # the state before
        crest = np.searchsorted(found, state)
        rows = int(row.max(initial=-1)) + 1
        keys, amounts = _sums(crest * rows + row, times, len(found) * rows)
        changes = np.stack((keys // max(1, rows), keys % max(1, rows), amounts), axis=1)
        return States(first=found, of_position=np.zeros(0, np.int64), changes=changes)

    def first_to_reach(self, crest: IntArray, rows: IntArray) -> IntArray:
        """Of each column of `rows` the first state with as much of it as its crest has, int64[columns], where that is
        the first crest with so much: from there to the crest only rows come that have nothing of the column.
        """
        state, row, times = self.changes.T
        starts = np.searchsorted(state, np.arange(len(self.first) + 1))
        goes = np.unique(state[times < 0])
        begin = np.concatenate((np.zeros(1, np.int64), goes))[np.searchsorted(goes, crest, side="right")]
        found = begin.copy()
        for last, first in np.unique(np.stack((crest, begin)), axis=1).T.tolist():
            columns = np.flatnonzero(crest == last)
            for change in range(starts[first + 1], starts[last + 1]):  # rising, so that the last one counts
                comes = rows[row[change], columns] > 0
                found[columns[comes]] = state[change]
        return found


def _distinct(values: npt.NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
    """The first place of each value, by value, and for each place the number of its value: NumPy's `unique` in half its
    time, which sorts so that equal values keep their order."""
    order = np.argsort(values)
    ordered = values[order]
    is_new = np.concatenate((np.ones(min(1, len(values)), bool), ordered[1:] != ordered[:-1]))
    number = np.empty_like(order)
    number[order] = np.cumsum(is_new) - 1
    starts = np.flatnonzero(is_new)
    return np.minimum.reduceat(order, starts) if len(starts) else order, number


def _sums(keys: IntArray, amounts: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """Of keys below `most`: those whose amounts do not cancel, rising, and the sums of their amounts."""
    if most <= CELLS_PER_EVENT * len(keys):
        times = np.bincount(keys, weights=amounts, minlength=most).astype(np.int64)
        found = np.flatnonzero(times)
        return found, times[found]
    found, which = np.unique(keys, return_inverse=True)
    times = np.bincount(which.reshape(-1), weights=amounts, minlength=len(found)).astype(np.int64)
    here = np.flatnonzero(times)
    return found[here], times[here]


def pairs_of_numbers(count: int) -> npt.NDArray[np.uint64]:
    """Numbers without relation to each other, uint64[2, count]."""
    return distinct_numbers(2 * count).reshape(2, count)
