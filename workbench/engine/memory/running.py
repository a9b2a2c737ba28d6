"""Sums of rows from state to state. A program repeats itself: layers, and bodies that are called again with more or
less waiting beside them, so that long runs of states change as earlier ones did. Such a run is those states with one
row added to all of them, which takes a tenth of going on change by change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, distinct_numbers

LEAST = 8  # states of a run that is looked for
CHUNK_BYTES = 1 << 20  # of one array at a time, so that it stays in cache

Whole: TypeAlias = npt.NDArray[Any]
"""Integers of 32 or of 64 bits."""


class Repetition(NamedTuple):
    """States from `start` on that change as those from `source` on, so many of them; the source ends before."""

    start: int
    source: int
    length: int


def runs_of(changes: IntArray, states: int) -> list[Repetition]:
    """The runs in order, each of the earliest states that begin alike. `changes` are state, row and times, rising."""
    if states <= LEAST:
        return []
    state, row, times = changes.T
    told = np.zeros(states, np.uint64)  # one number for all that changes from the state before
    numbers = distinct_numbers(int(row.max(initial=-1)) + 1 + LEAST)
    np.add.at(told, state, times.astype(np.uint64) * numbers[row + LEAST])
    ahead = np.zeros(states - LEAST + 1, np.uint64)  # and one for it and those that follow
    for place, number in enumerate(numbers[:LEAST].tolist()):
        ahead += told[place : place + len(ahead)] * np.uint64(number)
    _, first, which = np.unique(ahead, return_index=True, return_inverse=True)
    earliest = first[which.reshape(-1)]
    again = np.flatnonzero(np.arange(len(ahead)) - earliest >= LEAST)
    bounds = np.searchsorted(state, np.arange(states + 1))
    found: list[Repetition] = []
    end = 0
    while (place := int(np.searchsorted(again, end))) < len(again):
        start = int(again[place])
        source = int(earliest[start])
        most = min(start - source, states - start)
        differs = told[start : start + most] != told[source : source + most]
        length = int(differs.argmax()) if differs.any() else most
        run = Repetition(start, source, length)
        if length >= LEAST and _are_alike(changes, bounds, run):
            found.append(run)
            end = start + length
        else:
            end = start + 1
    return found


def _are_alike(changes: IntArray, bounds: IntArray, run: Repetition) -> bool:
    """Whether the changes are the same, and not only told alike."""
    one = changes[bounds[run.start] : bounds[run.start + run.length]]
    other = changes[bounds[run.source] : bounds[run.source + run.length]]
    return len(one) == len(other) and bool((one - other == (run.start - run.source, 0, 0)).all())


def running_sums(rows: Whole, changes: IntArray, states: int) -> Iterator[tuple[int, Whole]]:
    """(first state, integers[some states, columns]) in turn: in each state the sum of the rows that have come and not
    gone. `rows` is integers[rows, columns], of a type that holds every sum; what comes is the caller's to change.
    """
    width = rows.shape[1]
    sums = _Sums(rows, changes, states)
    length = max(1, CHUNK_BYTES // (rows.itemsize * max(1, width)))
    for start in range(0, states, length):
        yield start, sums.chunk(start, min(states, start + length))


def highest_sums(rows: Whole, changes: IntArray, states: int) -> tuple[IntArray, IntArray]:
    """Of each column the highest of these sums, at least 0, and the first state that has it (0 where it is 0), int64
    [columns] both. A run that has no more in any column than the states it repeats is not looked at.
    """
    highest, where = np.zeros((2, rows.shape[1]), np.int64)
    sums, state = _Sums(rows, changes, states), 0
    length = max(1, CHUNK_BYTES // (rows.itemsize * max(1, rows.shape[1])))
    while state < states:
        if sums.skips(state):
            state = sums.skip()
            continue
        stop = min(sums.border(state), state + length)
        found = sums.chunk(state, stop)
        value = found.max(axis=0)
        higher = np.flatnonzero(value > highest)
        highest[higher] = value[higher]
        where[higher] = state + found[:, higher].argmax(axis=0)
        state = stop
    return highest, where


class _Sums:
    """Goes on from state to state; what runs are made of is kept."""

    def __init__(self, rows: Whole, changes: IntArray, states: int) -> None:
        self.rows = list(rows)
        self.runs = [*runs_of(changes, states), Repetition(states, 0, 0)]  # the last one is never reached
        self.bounds = np.searchsorted(changes[:, 0], np.arange(states + 1))
        self.changes = changes
        is_kept = np.zeros(states + 1, bool)
        for run in self.runs[:-1]:
            is_kept[max(0, run.source - 1) : run.source + run.length] = True
        self.place = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
        self.kept = np.empty((int(is_kept.sum()), rows.shape[1]), rows.dtype)
        self.nothing = self.now = np.zeros(rows.shape[1], rows.dtype)
        self.next_run = 0

    def border(self, state: int) -> int:
        """Where the next run begins, or the one that the state is in ends."""
        run = self.runs[self.next_run]
        return run.start if state < run.start else run.start + run.length

    def skips(self, state: int) -> bool:
        """Whether a run begins with the state that adds nothing to any column of the states it repeats."""
        run = self.runs[self.next_run]
        return state == run.start and bool((self.now <= self._before(run.source)).all())

    def skip(self) -> int:
        """Go on behind the run; returns the state there."""
        run = self.runs[self.next_run]
        end, first = run.start + run.length, int(self.place[run.source])
        added = self.now - self._before(run.source)
        place = self.place[run.start : end]
        kept = np.flatnonzero(place >= 0)
        self.kept[place[kept]] = self.kept[first + kept] + added
        self.now = self.kept[first + run.length - 1] + added
        self.next_run += 1
        return end

    def chunk(self, start: int, stop: int) -> Whole:
        """The sums of states [start, stop), which come after those asked for before."""
        found = np.empty((stop - start, len(self.now)), self.now.dtype)
        state = start
        while state < stop:
            run = self.runs[self.next_run]
            if state < run.start:
                end = min(stop, run.start)
                self._step_by_step(found[state - start : end - start], state)
            else:
                end = min(stop, run.start + run.length)
                self._at_once(found[state - start : end - start], run.source + state - run.start)
                self.next_run += end == run.start + run.length
            self._keep(found[state - start : end - start], state, end)
            self.now = found[end - start - 1]
            state = end
        self.now = self.now.copy()
        return found

    def _at_once(self, found: Whole, source: int) -> None:
        """As many states as there is room for, which change as those from `source` on."""
        first = int(self.place[source])
        np.add(self.kept[first : first + len(found)], self.now - self._before(source), out=found)

    def _before(self, source: int) -> Whole:
        """The sums before a state that was kept."""
        return self.kept[self.place[source - 1]] if source else self.nothing

    def _step_by_step(self, found: Whole, first: int) -> None:
        rows, now, lines, made = self.rows, self.now, list(found), 0
        here = slice(self.bounds[first], self.bounds[first + len(found)])
        for state, row, times in self.changes[here].tolist():
            line = lines[state - first]
            for same in lines[made : state - first]:
                same[:] = now
            if times == 1:
                np.add(now, rows[row], out=line)
            elif times == -1:
                np.subtract(now, rows[row], out=line)
            else:
                np.add(now, times * rows[row], out=line)
            now, made = line, state - first + 1
        found[made:] = now

    def _keep(self, found: Whole, first: int, end: int) -> None:
        place = self.place[first:end]
        is_kept = place >= 0
        count = int(np.count_nonzero(is_kept))
        if count:  # places are numbered in order of the states, so these lie side by side
            begin = int(place[is_kept.argmax()])
            self.kept[begin : begin + count] = found if count == len(found) else found[is_kept]
