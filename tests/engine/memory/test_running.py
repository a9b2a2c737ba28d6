"""Sums from state to state against sums worked out state by state, with runs that repeat and others that nearly do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.base.arrays import IntArray
from workbench.engine.memory import running
from workbench.engine.memory.running import LEAST, Repetition, highest_sums, running_sums, runs_of

ROWS, WIDTH = 5, 3
Delta = tuple[tuple[int, int], ...]
DELTAS = st.dictionaries(st.integers(0, ROWS - 1), st.sampled_from([-2, -1, 1, 2, 3]), max_size=3).map(
    lambda found: tuple(sorted(found.items()))
)


@st.composite
def programs(draw: st.DrawFn) -> list[Delta]:
    """Parts in some order, each of several states, some of them several times."""
    parts = draw(st.lists(st.lists(DELTAS, min_size=1, max_size=2 * LEAST), min_size=1, max_size=3))
    order = draw(st.lists(st.integers(0, len(parts) - 1), min_size=1, max_size=8))
    return [delta for place in order for delta in parts[place]]


def changes_of(deltas: list[Delta]) -> IntArray:
    rows = [(state, row, times) for state, delta in enumerate(deltas) for row, times in delta]
    return np.array(rows, np.int64).reshape(-1, 3)


def sums_by_state(deltas: list[Delta], rows: IntArray) -> IntArray:
    now, found = np.zeros(WIDTH, np.int64), []
    for delta in deltas:
        for row, times in delta:
            now = now + times * rows[row]
        found.append(now)
    return np.array(found)


@pytest.mark.parametrize("told", ["apart", "alike"])
@given(deltas=programs(), lines=st.integers(1, 20), seed=st.integers(0, 9))
def test_sums_are_those_of_each_state_however_it_is_reached(
    told: str, deltas: list[Delta], lines: int, seed: int
) -> None:
    """Where all changes are told alike too, so that runs are proposed that are none; in chunks of so many states."""
    rows = np.random.default_rng(seed).integers(0, 100, (ROWS, WIDTH), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "CHUNK_BYTES", lines * WIDTH * rows.itemsize)
        if told == "alike":
            patch.setattr(running, "distinct_numbers", lambda count: np.ones(count, np.uint64))
        chunks = list(running_sums(rows, changes_of(deltas), len(deltas)))
    assert [start for start, _ in chunks] == list(range(0, len(deltas), lines))
    found = np.concatenate([chunk for _, chunk in chunks])
    assert found.tolist() == sums_by_state(deltas, rows).tolist()


@given(deltas=programs(), lines=st.integers(1, 20), seed=st.integers(0, 9), width=st.integers(0, WIDTH))
def test_the_highest_sums_are_those_of_all_states(deltas: list[Delta], lines: int, seed: int, width: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 100, (ROWS, WIDTH), np.int64)
    every = np.maximum(sums_by_state(deltas, rows), 0)[:, :width]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "CHUNK_BYTES", lines * WIDTH * rows.itemsize)
        highest, where = highest_sums(rows[:, :width], changes_of(deltas), len(deltas))
    assert highest.tolist() == every.max(axis=0).tolist()
    for column in np.flatnonzero(highest).tolist():
        assert where[column] == every[:, column].argmax()


def test_a_run_that_holds_less_than_what_it_repeats_is_passed_over() -> None:
    """A layer with something beside it, and without; the third is the second again, with more beside it than ever."""
    layer: list[Delta] = [((0, 1),), ((1, 1),), ((0, -1),), ((2, 1),), ((1, -1), (2, -1))] * 2
    deltas: list[Delta] = [((3, 1),), *layer, ((3, -1),), *layer, ((4, 5),), *layer]
    assert runs_of(changes_of(deltas), len(deltas)) == [Repetition(12, 1, 10), Repetition(23, 1, 10)]
    rows = np.array([[3, 0, 1], [2, 0, 0], [0, 4, 0], [5, 7, 0], [0, 1, 1]], np.int64)
    highest, where = highest_sums(rows, changes_of(deltas), len(deltas))
    assert highest.tolist() == [10, 11, 6]
    assert where.tolist() == [2, 4, 23]


@given(programs())
def test_runs_change_as_their_sources_and_end_before_they_begin_again(deltas: list[Delta]) -> None:
    end = 0
    for run in runs_of(changes_of(deltas), len(deltas)):
        assert end <= run.start
        assert run.length >= LEAST
        assert run.source + run.length <= run.start
        assert deltas[run.start :][: run.length] == deltas[run.source :][: run.length]
        end = run.start + run.length
    assert end <= len(deltas)


def test_a_layer_that_comes_three_times() -> None:
    """Ten states of a layer, one between; then the layer twice, of which the last is the first one again."""
    layer: list[Delta] = [((0, 1),), ((1, 1),), ((0, -1),), ((2, 1),), ((1, -1),)] * 2
    deltas = [((3, 1),), *layer, ((4, 1),), *layer, *layer]
    assert runs_of(changes_of(deltas), len(deltas)) == [Repetition(12, 1, 10), Repetition(22, 1, 10)]


def test_too_few_states_for_a_run() -> None:
    assert runs_of(changes_of([((0, 1),)] * LEAST), LEAST) == []
    assert list(running_sums(np.zeros((1, 2), np.int64), np.zeros((0, 3), np.int64), 0)) == []


def test_what_is_given_out_may_be_changed() -> None:
    deltas: list[Delta] = [((0, 1),), ((0, -1),)] * 20
    rows = np.ones((1, 2), np.int64)
    found = []
    for _, chunk in running_sums(rows, changes_of(deltas), len(deltas)):
        found += chunk[:, 0].tolist()
        chunk += 1_000
    assert found == [1, 0] * 20
    assert rows.tolist() == [[1, 1]]
