"""The search of cuts against every chain of cuts, tried one by one."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.splits.search import along, best_cuts, near


def tables(values: list[int], stages: int, more: list[int] | None = None) -> list[np.ndarray]:
    """A stage's entry is the sum of its layers' values, and of `more` in front of and behind its cuts."""
    count = len(values)
    border = [0, *(more or [0] * (count - 1)), 0]
    found = np.full((count, count + 1), np.inf)
    for first in range(count):
        for end in range(first + 1, count + 1):
            found[first, end] = sum(values[first:end]) + border[first] + border[end]
    return [found] * stages


@given(st.data())
def test_equal_to_trying_every_chain(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 16))
    stages = data.draw(st.integers(2, min(count, 6)))
    number = st.integers(0, 50)
    cycles = tables(
        data.draw(st.lists(number, min_size=count, max_size=count)),
        stages,
        data.draw(st.lists(number, min_size=count - 1, max_size=count - 1)),
    )
    needs = [
        tables(data.draw(st.lists(number, min_size=count, max_size=count)), 1)[0] * (stages - stage)
        for stage in range(stages)
    ]
    capacity = data.draw(st.integers(0, 400))

    def rank(cuts: tuple[int, ...]) -> tuple[float, float, float]:
        spent = along(cycles, cuts)
        return max(capacity, *along(needs, cuts)), max(spent), sum(each**2 for each in spent)

    found = best_cuts(cycles, needs, capacity)
    best = min(rank(cuts) for cuts in combinations(range(1, count), stages - 1))
    assert rank(found) == best


def test_by_hand() -> None:
    # 4 | 1 1 2: the slowest stage has 4; 4 1 | 1 2 would have 5.
    free = tables([0, 0, 0, 0], 2)
    assert best_cuts(tables([4, 1, 1, 2], 2), free, 0) == (1,)
    # A skip connection of 3 over the first cut only: (2,) costs 5 + 0 and 3, (1,) costs 7 and 7.
    assert best_cuts(tables([4, 1, 1, 2], 2, [3, 0, 0]), free, 0) == (2,)
    # Memory forbids the quick one: three layers of 10 bytes do not fit behind one another.
    assert best_cuts(tables([4, 1, 1, 2], 2), tables([10, 10, 10, 10], 2), 20) == (2,)
    # Nothing fits: the least over.
    assert best_cuts(tables([4, 1, 1, 2], 2), tables([10, 10, 10, 30], 2), 20) == (3,)


def test_near() -> None:
    assert near((1, 2), 4) == [(1, 3)]
    assert near((2,), 4) == [(1,), (3,)]


def test_more_stages_than_layers() -> None:
    with pytest.raises(ValueError, match="3 stages of 2 layers"):
        best_cuts(tables([1, 1], 3), tables([1, 1], 3), 5)
