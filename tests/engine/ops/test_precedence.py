"""Which of several families that look at one operation has it: the one that says it comes before the other."""

from __future__ import annotations

import pytest

from workbench.engine import ops
from workbench.engine.graph import Node, Value
from workbench.engine.ops import Family, ranked
from workbench.errors import WorkbenchError


class First(Family):
    name, ops, before = "first", frozenset({"both"}), ("second",)


class Second(Family):
    name, ops = "second", frozenset({"both"})


class Third(Family):
    name, ops, before = "third", frozenset({"both"}), ("second", "first")


@pytest.mark.parametrize("order", [(First, Second, Third), (Second, Third, First), (Third, First, Second)])
def test_families_stand_in_the_order_they_say_whenever_they_come(order: tuple[type[Family], ...]) -> None:
    found: list[Family] = []
    for each in order:
        found = ranked(each(), found, "both")
    assert [family.name for family in found] == ["third", "first", "second"]


def test_two_that_do_not_say_which_comes_first_are_an_error() -> None:
    class Other(Family):
        name, ops = "other", frozenset({"both"})

    with pytest.raises(WorkbenchError) as told:
        ranked(Other(), [Second()], "both")
    assert str(told.value) == (
        "the operator families 'second' and 'other' both look at 'both'. Expected: one of them to come first. "
        "To mend it: name the other in its `before`."
    )


def test_elements_in_parts_of_another_size_are_words_of_keys_and_the_rest_is_a_view() -> None:
    def bitcast(shape: tuple[int, ...]) -> Node:
        return Node("bitcast_convert_type", (Value(0, (4, 2), "uint16"),), (Value(1, shape, "uint32"),))

    assert ops.family_of(bitcast((4,))).name == "random_keys"
    assert ops.family_of(bitcast((4, 2))).name == "views"
