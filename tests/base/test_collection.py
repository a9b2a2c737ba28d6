"""What a pause of the garbage collection made is looked through by no further collection but a whole one."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from workbench.base import collection
from workbench.base.collection import MANY, paused_collection


class Ring:
    """Unreachable only together with itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def collected() -> Iterator[list[int]]:
    """The generations of the collections that run in a test, which begins with nothing to collect."""
    generations: list[int] = []

    def listen(phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            generations.append(about["generation"])

    gc.collect()
    gc.callbacks.append(listen)
    yield generations
    gc.callbacks.remove(listen)


def rings(count: int) -> None:
    for _ in range(count):
        Ring()


def living() -> int:
    return sum(isinstance(each, Ring) for each in gc.get_objects())


def test_nothing_is_collected_inside_and_what_was_made_is_not_looked_through_after(collected: list[int]) -> None:
    with paused_collection():
        kept = [[number] for number in range(3 * MANY)]
    some = [[number] for number in range(100)]
    assert collected == []
    assert gc.isenabled()
    assert any(each is kept[0] for each in gc.get_objects(generation=2))
    assert not any(each is some[0] for each in gc.get_objects(generation=2))


def test_few_objects_are_left_to_the_collector() -> None:
    gc.collect()
    with paused_collection():
        kept = [[number] for number in range(MANY // 4)]
    assert not any(each is kept[0] for each in gc.get_objects(generation=2))


def test_what_pauses_set_aside_has_a_bound(monkeypatch: pytest.MonkeyPatch, collected: list[int]) -> None:
    monkeypatch.setattr(collection, "MOST_ASIDE", 5 * MANY)
    most = 0
    for _ in range(12):
        with paused_collection():
            rings(2 * MANY)
        most = max(most, living())
    assert 2 * MANY <= most <= 5 * MANY
    assert 2 in collected


def test_a_whole_collection_begins_the_count_anew(monkeypatch: pytest.MonkeyPatch, collected: list[int]) -> None:
    monkeypatch.setattr(collection, "MOST_ASIDE", 5 * MANY)
    for _ in range(4):
        with paused_collection():
            rings(2 * MANY)
        gc.collect()
    assert collected.count(2) == 4  # no more than were asked for


def test_who_freezes_objects_keeps_them_frozen() -> None:
    gc.collect()
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with paused_collection():
            kept = [[number] for number in range(2 * MANY)]
        assert gc.get_freeze_count() >= frozen - 100
        assert kept
    finally:
        gc.unfreeze()


def test_where_nothing_is_collected_nothing_changes() -> None:
    gc.disable()
    try:
        with paused_collection():
            kept = [[number] for number in range(2 * MANY)]
        assert not gc.isenabled()
        assert not any(each is kept[0] for each in gc.get_objects(generation=2))
    finally:
        gc.enable()
