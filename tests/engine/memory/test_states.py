"""States against what is live at each position, found by counting."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.memory import states as states_module
from workbench.engine.memory.states import States

ROWS, POSITIONS = 3, 8
SPANS = st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, POSITIONS - 1), st.integers(0, 4)), max_size=6)


def states_of(spans: list[tuple[int, int, int]]) -> tuple[np.ndarray, States]:
    """How often each row is live, int64[positions, rows], by counting; and the states."""
    live = np.zeros((POSITIONS, ROWS), np.int64)
    for row, first, length in spans:
        live[first : first + length + 1, row] += 1
    row, first, length = np.array(spans, np.int64).reshape(-1, 3).T
    stop = np.minimum(first + length + 1, POSITIONS)
    position, sign = np.concatenate((first, stop)), np.repeat([1, -1], len(row))
    return live, States.of(position, np.tile(row, 2), sign, rows=ROWS, positions=POSITIONS)


@given(SPANS, st.lists(st.integers(0, 2), min_size=ROWS, max_size=ROWS))
def test_crests_tell_the_peak_and_the_first_state_that_reaches_it(
    spans: list[tuple[int, int, int]], sizes: list[int]
) -> None:
    live, found = states_of(spans)
    rows = np.array(sizes, np.int64)[:, None] * np.array([1, 0, 2])
    rows[0, 1] = 1  # the tiles hold other rows
    crests = found.crests()
    every = live[found.first] @ rows  # bytes of each state
    now = np.zeros((len(crests.first), ROWS), np.int64)
    for crest, row, times in crests.changes.tolist():
        now[crest:, row] += times
    assert (now @ rows == every[crests.first]).all()
    assert (every[crests.first].max(axis=0) == every.max(axis=0)).all()
    first = crests.first[every[crests.first].argmax(axis=0)]
    assert found.first_to_reach(first, rows).tolist() == every.argmax(axis=0).tolist()


@pytest.mark.parametrize("cells", [0, 1_000])  # sorted, and counted
@given(SPANS)
def test_states_are_what_is_live_at_their_positions(cells: int, spans: list[tuple[int, int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(states_module, "CELLS_PER_EVENT", cells)
        live, found = states_of(spans)
    each = list(dict.fromkeys(map(tuple, live.tolist())))
    assert [each[state] for state in found.of_position.tolist()] == list(map(tuple, live.tolist()))
    assert found.first.tolist() == [live.tolist().index(list(state)) for state in each]
    now = np.zeros((len(each), ROWS), np.int64)
    for state, row_, times in found.changes.tolist():
        assert times
        now[state:, row_] += times
    assert list(map(tuple, now.tolist())) == each


def test_what_is_sorted_takes_no_table_of_all_states_and_rows() -> None:
    """It took 90 MB for a moment of ResNet-50's compile."""
    rows = 3_000
    first = np.arange(rows)
    position, sign = np.concatenate((first, first + 1)), np.repeat([1, -1], rows)
    tracemalloc.start()
    States.of(position, np.tile(first, 2), sign, rows=rows, positions=rows + 1)
    most_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most_bytes < 8 * rows * rows / 20
