"""Arithmetic that a function did, written down: it comes to the function's number, whatever the function does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.base.arithmetic import LONGEST, Remembered, worked_out
from workbench.base.arrays import ceil_div

GIVEN = {"a": 17, "b": 5, "rate": 2.5, "sizes": (3, 3, 4)}


def evaluated(text: str, inputs: dict[str, Any]) -> Any:
    return eval(text, {"__builtins__": {}, "ceil": math.ceil, "floor": math.floor}, inputs)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda a, **_: 6 * (20 + a), "6 * (20 + a)"),
        (lambda a, b, **_: ceil_div(a, b), "ceil(a / b)"),
        (lambda a, b, **_: ceil_div(a - 16, b), "ceil((a - 16) / b)"),
        (lambda a, **_: a + a + 3 * a + 1 + 1, "2 + 5 * a"),
        (lambda a, b, **_: max(a, b) + min(a, b), "a + b"),
        (lambda a, **_: a * 2 if a > 3 else 0, "2 * a"),
        (lambda a, rate, **_: math.ceil(a / rate), "ceil(a / rate)"),
        (lambda sizes, **_: sum(5 + 2 * size for size in sizes), "15 + 4 * 3 + 2 * 4"),
        (lambda a, b, **_: -(a // b) % 7, "(-(a // b)) % 7"),
        (lambda **_: 10, "10"),
    ],
)
def test_what_was_done_is_written(function: Callable[..., Any], text: str) -> None:
    assert worked_out(function, GIVEN) == text
    assert evaluated(text, GIVEN) == function(**GIVEN)


def test_it_is_the_number_in_all_other_ways() -> None:
    seven = Remembered(7)
    assert seven == 7
    assert seven in {7}
    assert list(range(seven)) == list(range(7))
    assert [0] * seven == [0] * 7
    assert divmod(seven, 2) == (3, 1)
    assert sorted([seven, 3, Remembered(5)]) == [3, 5, 7]
    assert seven.bit_length() == 3


OPERATIONS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a // (abs(b) + 1),
    lambda a, b: a % (abs(b) + 1),
    lambda a, b: ceil_div(a, abs(b) + 1),
    lambda a, b: max(a, b),
    lambda a, b: -a if a > b else b,
    lambda a, b: math.ceil(a / (abs(b) + 1)),
)


@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=5),
    st.lists(st.tuples(st.integers(0, len(OPERATIONS) - 1), st.integers(0, 9), st.integers(0, 9)), max_size=25),
)
def test_any_calculation_comes_to_its_number(values: list[int], steps: list[tuple[int, int, int]]) -> None:
    """Small values: quotients of whole numbers below 2^53 are rounded as they are."""

    def function(**named: Any) -> Any:
        found = list(named.values())
        for operation, first, second in steps:
            made = OPERATIONS[operation](found[first % len(found)], found[second % len(found)])
            found.append(made if abs(made) < 10**6 else made % 97)
        return found[-1] + sum(found[-3:])

    inputs = {f"x{place}": value for place, value in enumerate(values)}
    text = worked_out(function, inputs)
    assert evaluated(text, inputs) == function(**inputs)
    assert len(text) <= LONGEST
