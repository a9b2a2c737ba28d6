"""What is kept of earlier work: equal questions are answered once, and all of it is held to a budget of bytes."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest

from workbench import engine
from workbench.base.identity import ByIdentity
from workbench.engine import remembered as module
from workbench.engine.remembered import LINK_BYTES, OBJECT_BYTES, remembered, remembered_bytes, trim

ELEMENTS = 1000
KEY_BYTES = LINK_BYTES + 4 * OBJECT_BYTES  # links; arguments without and with names, a number, and all together
ENTRY_BYTES = KEY_BYTES + OBJECT_BYTES + 8 * ELEMENTS


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a test makes is kept, within ten of its arrays."""
    monkeypatch.setattr(module, "EVERY", [])
    monkeypatch.setattr(module, "BUDGET_BYTES", 10 * ENTRY_BYTES)


def arrays() -> tuple[object, list[int]]:
    """A function of a number that makes an array, and the numbers it was asked for."""
    asked: list[int] = []

    @remembered(64)
    def array(number: int) -> np.ndarray:
        asked.append(number)
        return np.full(ELEMENTS, number, dtype=np.int64)

    return array, asked


def test_an_equal_question_is_answered_once() -> None:
    array, asked = arrays()
    assert array(1) is array(1)
    assert asked == [1]
    assert array.__name__ == "array"


def test_arrays_weigh_their_bytes() -> None:
    array, _ = arrays()
    for number in range(3):
        array(number)
        array(number)
    assert remembered_bytes() == 3 * ENTRY_BYTES


def test_nothing_is_forgotten_within_the_budget() -> None:
    array, asked = arrays()
    for number in range(10):
        array(number)
        trim()
    assert [array(number)[0] for number in range(10)] == list(range(10))
    assert asked == list(range(10))


def test_what_outgrew_a_compile_is_forgotten_beyond_the_budget() -> None:
    """Four results a compile: twelve after the third, which are more than ten; then it begins anew."""
    array, asked = arrays()
    for compile_number in range(4):
        for number in range(4):
            array(4 * compile_number + number)
        trim()
        assert remembered_bytes() == (0 if compile_number == 2 else 4 * ENTRY_BYTES * (compile_number % 3 + 1))
    array(0)
    assert asked == [*range(16), 0]


def test_what_one_compile_needs_is_kept_though_it_is_beyond_the_budget() -> None:
    array, asked = arrays()
    for _ in range(3):
        for number in range(12):
            array(number)
        trim()
    assert asked == list(range(12))


def test_the_heaviest_goes_first_and_no_more_than_needed() -> None:
    heavy, _ = arrays()
    light, asked = arrays()
    heavy(0), light(0)
    trim()
    for number in range(9):
        heavy(number)
    for number in range(3):
        light(number)
    trim()
    assert remembered_bytes() == 3 * ENTRY_BYTES
    light(1)
    assert asked == [0, 1, 2]


def test_fields_and_parts_weigh_too() -> None:
    @remembered(4)
    def parts(count: int) -> tuple[np.ndarray, ...]:
        return tuple(np.zeros(count, dtype=np.int32) for _ in range(2))

    parts(5)
    assert remembered_bytes() == KEY_BYTES + OBJECT_BYTES + 2 * (OBJECT_BYTES + 20)


def test_no_module_keeps_arrays_beside_the_budget() -> None:
    """Sums and classes of exchanges were a table of 4,096 each, 140 MB after 200 compiles of a small network."""
    for found in pkgutil.walk_packages(engine.__path__, f"{engine.__name__}."):
        for name, value in vars(importlib.import_module(found.name)).items():
            assert not isinstance(value, ByIdentity), f"{found.name}.{name}"
