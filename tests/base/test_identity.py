"""Tables by identity: equal objects are two, what does not hash may be a key, and a key is never another."""

from __future__ import annotations

import gc

import numpy as np

from workbench.base.identity import ByIdentities, ByIdentity, Selves, each_once


def test_equal_arrays_are_two() -> None:
    first, second = np.arange(3), np.arange(3)
    table: ByIdentity[np.ndarray, str] = ByIdentity([(first, "first")])
    assert first in table
    assert second not in table
    assert table.setdefault(second, "second") == "second"
    assert table.setdefault(first, "other") == table[first] == "first"
    assert [value for _, value in table.items()] == ["first", "second"]
    assert table.pop(first) == "first"
    assert table.get(first) is None
    assert len(table) == 1


def test_a_key_is_kept() -> None:
    """Else a new object could get the place of one that is gone, and be taken for it."""
    table: ByIdentity[object, int] = ByIdentity()
    for number in range(100):
        table[np.array([number])] = number
        gc.collect(0)
    assert [int(array[0]) for array, _ in table.items()] == list(range(100))
    assert np.array([0]) not in table


def test_several_objects_are_one_key_each_for_itself() -> None:
    first, second = np.arange(3), np.arange(3)
    table: ByIdentities[np.ndarray, int] = ByIdentities()
    table[first, second] = 1
    assert (first, second) in table
    assert (second, first) not in table
    assert table.get((first,)) is None


def test_each_once_keeps_the_order() -> None:
    first, second = [1], [1]
    found = each_once([first, second, first])
    assert len(found) == 2
    assert found[0] is first
    assert found[1] is second


def test_arrays_are_a_key_of_their_own() -> None:
    one, other = np.arange(3), np.arange(3)
    assert Selves([one, other]) == Selves([one, other])
    assert hash(Selves([one, other])) == hash(Selves([one, other]))
    assert Selves([one, other]) != Selves([other, one])
    assert Selves([one]) != Selves([other])
    assert Selves([one]) != (one,)
    assert {Selves([one]): 1, Selves([other]): 2}[Selves([other])] == 2
