"""Lengths that spans cover together, against a line painted byte by byte."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.base.spans import covered, covered_by_rank, spans_by_rank

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(0, 3)), max_size=8)


@given(SPANS)
def test_each_place_counts_once_for_the_lowest_rank(spans: list[tuple[int, int, int]]) -> None:
    line = np.full(42, 4)
    for start, size, rank in spans:
        line[start : start + size] = np.minimum(line[start : start + size], rank)
    start, size, ranks = np.array(spans, dtype=np.int64).reshape(-1, 3).T
    found = covered_by_rank(start, size, ranks, 4)
    assert found.tolist() == [int((line == rank).sum()) for rank in range(4)]
    lying = spans_by_rank(start, size, ranks, 4)
    for rank, own in enumerate(lying):
        assert [place for begin, end in own for place in range(begin, end)] == np.flatnonzero(line == rank).tolist()
        assert all(begin < end for begin, end in own)
    order = start.argsort()
    assert covered(start[order], (start + size)[order]) == int((line < 4).sum())


def test_by_hand() -> None:
    """[0, 4) and [2, 7) cover 7, of which 4 are the first's; [9, 10) lies apart."""
    start, size = np.array([2, 0, 9]), np.array([5, 4, 1])
    assert covered_by_rank(start, size, np.array([1, 0, 1]), 2).tolist() == [4, 4]
    assert covered(np.array([0, 2, 9]), np.array([4, 7, 10])) == 8
