"""Intervals in two arrays against the tuples they stand for."""

from __future__ import annotations

import numpy as np

from workbench.engine.memory.intervals import Intervals

ROWS = (((0, 2), (5, 5)), (), ((1, 3),), ((0, 2), (5, 5)))


def test_intervals_are_the_tuples_they_were_made_of() -> None:
    found = Intervals.of(ROWS)
    assert found == ROWS
    assert [found[variable] for variable in range(4)] == list(ROWS)
    assert len(found) == 4
    assert found != Intervals.of(ROWS[:3])
    assert Intervals.of(()) == ()


def test_rows_in_any_order_are_sorted_by_variable_and_keep_their_order() -> None:
    variable, first, last = np.array([2, 0, 3, 0, 3]), np.array([1, 0, 0, 5, 5]), np.array([3, 2, 2, 5, 5])
    assert Intervals.by_variable(4, variable, first, last) == ROWS


def test_lengths_are_the_positions_at_which_a_variable_is_live() -> None:
    assert Intervals.of(ROWS).lengths.tolist() == [4, 0, 3, 4]


def test_some_variables_and_those_that_live_alike() -> None:
    found = Intervals.of(ROWS)
    assert found.take(np.array([3, 1, 2])) == (((0, 2), (5, 5)), (), ((1, 3),))
    kinds, first = found.distinct()
    assert kinds.tolist() == [0, 1, 2, 0]
    assert first.tolist() == [0, 1, 2]
