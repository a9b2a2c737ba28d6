"""Arrays of equal content are one array while somebody holds it."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.base.arrays import LateArrays, shared

ROWS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6)


@given(ROWS, ROWS)
def test_equal_content_is_one_array(one: list[int], other: list[int]) -> None:
    first, second = shared(np.array(one, np.int64)), shared(np.array(other, np.int64))
    assert first.tolist() == one
    assert second.tolist() == other
    assert (first is second) == (one == other)


def test_shapes_are_part_of_it() -> None:
    flat, square = shared([1, 2, 3, 4]), shared([[1, 2], [3, 4]])
    assert flat.shape == (4,)
    assert square.shape == (2, 2)


def test_what_is_given_stays_its_owners() -> None:
    given_array = np.arange(5)
    kept = shared(given_array)
    given_array[0] = 7
    assert kept.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1


def test_a_view_is_copied() -> None:
    whole = np.arange(100)
    part = whole[:3]
    part.setflags(write=False)
    kept = shared(part)
    whole[0] = 9
    assert kept.tolist() == [0, 1, 2]


def test_other_kinds_of_numbers_become_integers() -> None:
    assert shared(np.array([True, False])) is shared(np.array([1, 0], np.int32))


def test_it_goes_with_its_last_holder() -> None:
    held = shared(np.arange(1_000, 1_050))
    gone = weakref.ref(held)
    del held
    gc.collect()
    assert gone() is None


def test_a_late_array_is_made_once_when_it_is_asked_for_and_lets_go_of_what_made_it() -> None:
    made: list[str] = []
    source = np.arange(3)
    alive = weakref.ref(source)

    def double(of: np.ndarray = source) -> np.ndarray:
        made.append("double")
        return of * 2

    found = LateArrays({"one": np.ones(2, np.int64), "double": double})
    del source, double
    assert list(found) == ["one", "double"]
    assert "double" in found
    assert "other" not in found
    assert len(found) == 2
    assert made == []
    assert found["double"].tolist() == [0, 2, 4]
    assert found["double"] is dict(found)["double"]
    assert made == ["double"]
    gc.collect()
    assert alive() is None
    assert found.get("other") is None
