"""Declarations of options: each is documented, honest about who reads it, checked, and frozen."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import asdict
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench
from workbench.engine.options import CATEGORIES, OPTIONS, Option, attributes, form_options, options
from workbench.engine.options.enums import SelectionOrder, StochasticRoundingBehaviour
from workbench.errors import OptionError

PACKAGE = Path(workbench.__file__).parent
AMP = "matmuls.poplar_options.availableMemoryProportion"
EVERY = [pytest.param(each, id=each.name) for each in OPTIONS.values()]


def source_of(module: str) -> str:
    """The source of a module of the package, or of all in a folder."""
    path = PACKAGE / module
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def row(each: Option) -> str:
    why = each.reason or ", ".join(each.read_by) or each.planned
    name = each.type.__name__
    return f"{each.name} | {each.default!r} | {name}{' or many' * each.many} | {each.status} | {why}"


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden(
        "options.txt",
        "\n".join(
            ["name | default | type | effect | read by, planned or why not", *sorted(map(row, OPTIONS.values()))]
        ),
    )


@pytest.mark.parametrize("each", EVERY)
def test_a_declaration_is_whole(each: Option) -> None:
    assert each.doc.endswith(".")
    assert (each.effect == "recorded") == bool(each.reason)
    reading = bool(each.read_by) + bool(each.planned)
    assert reading == (0 if each.effect == "recorded" or each.kind == "dictionary" else 1), "read, or planned to be"
    assert each.check(each.initial()) == each.default
    category = each.name.rpartition(".")[0]
    assert each.kind != "attribute" or not category or category in CATEGORIES
    assert all(type(choice) is each.type for choice in each.choices) or issubclass(each.type, Enum)


@pytest.mark.parametrize("each", [item for item in EVERY if item.values[0].read_by])
def test_a_named_reader_reads_it(each: Option) -> None:
    key = each.name.rpartition(".")[2] if each.kind == "key" else each.name
    for module in each.read_by:
        assert key in source_of(module), f"{module} does not read {each.name}"


def test_a_reader_that_does_not_read_would_be_seen() -> None:
    assert AMP.rpartition(".")[2] not in source_of("engine/compile/compile.py")


def test_text_of_a_key_is_read_as_poplibs_reads_it() -> None:
    made = options({"matmuls.poplar_options": {"availableMemoryProportion": "0.3", "use128BitConvUnitLoad": "true"}})
    assert made.get(AMP) == 0.3
    assert made.get("matmuls.poplar_options.use128BitConvUnitLoad") is True
    assert made.get("convolutions.poplar_options.availableMemoryProportion") == 0.6
    assert dict(made.changed).keys() == {AMP, "matmuls.poplar_options.use128BitConvUnitLoad"}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({AMP: "much"}, "'much'.*Expected: a number"),
        ({AMP: -0.1}, "-0.1.*Expected: at least 0"),
        ({AMP: float("nan")}, "nan.*Expected: at least 0"),
        ({"matmuls.poplar_options": {"use128BitConvUnitLoad": "yes"}}, "'yes'.*True or False"),
        ({"matmuls.poplar_options": {"partialsType": "int"}}, "Expected: one of: 'float', 'half'"),
        ({"matmuls.poplar_options": {"partialType": "half"}}, r"no option 'matmuls\..*mean 'matmuls\..*partialsType'"),
        ({"optimizations.outline": False}, "no option 'optimizations.outline'"),
        ({"auto_select_ipus": 65}, "65.*at most 64"),
        ({"auto_select_ipus": [1, -1]}, "-1.*at least 0"),
        ({"auto_select_ipus": True}, "True.*an integer"),
        ({"allow_recompute": 1}, "True or False"),
        ({"io_tiles.num_io_tiles": 1.5}, "an integer"),
        ({"floating_point_behaviour.esr": "SOMETIMES"}, "'OFF', 'ON', 'REPLICA_IDENTICAL_ONLY'"),
        ({"gcl_poplar_options": {1: "a"}}, "a dictionary of texts"),
        ({"gcl_poplar_options": 3}, "a dictionary of texts"),
    ],
)
def test_a_wrong_value_is_an_error_that_says_what_is_right(values: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionError, match=f"(?s){says}"):
        options(values)


def test_a_close_name_is_suggested() -> None:
    with pytest.raises(OptionError, match="did you mean 'allow_recompute'"):
        options().get("allow_recomputation")


def test_a_value_back_at_its_default_is_no_change() -> None:
    assert options({AMP: 0.2}).with_values({AMP: 0.6}) == options()
    assert str(options()) == "defaults"
    assert str(options({AMP: 0.2})) == f"{AMP}=0.2"


@pytest.mark.parametrize(
    ("selected", "ipus"), [(0, 0), (4, 4), ([], 0), ([4], 4), ([2, 1], 2), ((1, 2), 1), (np.int64(2), 2)]
)
def test_ipus_of_the_first_device(selected: Any, ipus: int) -> None:
    assert options({"auto_select_ipus": selected}).ipus() == ipus


def test_a_member_is_known_by_its_name() -> None:
    made = options({"floating_point_behaviour.esr": StochasticRoundingBehaviour.ON})
    assert made.get("floating_point_behaviour.esr") == "ON"
    assert made == options({"floating_point_behaviour.esr": "ON"})


@given(st.dictionaries(st.sampled_from([AMP, "auto_select_ipus", "allow_recompute"]), st.integers(0, 1)))
def test_equal_values_are_one_key_whatever_their_order(values: dict[str, int]) -> None:
    typed = {name: bool(value) if name == "allow_recompute" else value for name, value in values.items()}
    made, turned = options(typed), options(dict(reversed(typed.items())))
    assert (made, hash(made)) == (turned, hash(turned))
    assert all(made.get(name) == value for name, value in typed.items())
    assert dict(iter(made)).keys() == {each.name for each in OPTIONS.values() if each.kind != "dictionary"}


def test_options_cross_a_process_and_are_plain_data() -> None:
    made = options({AMP: 0.2, "compilation_poplar_options": {"b": "2", "a": "1"}})
    assert pickle.loads(pickle.dumps(made)) == made == copy.deepcopy(made)
    assert made.get("compilation_poplar_options") == (("a", "1"), ("b", "2"))
    assert asdict(made)["changed"] == made.changed


def test_what_was_set_without_effect_is_listed_with_the_reason() -> None:
    made = options({AMP: 0.2, "gcl_poplar_options": {"a": "1"}, "optimizations.math.fast": True})
    found = dict(made.without_effect())
    assert found["gcl_poplar_options"] == OPTIONS.get("gcl_poplar_options").reason
    assert AMP not in found
    unread = {"optimizations.math.fast"} if not OPTIONS.get("optimizations.math.fast").read_by else set()
    assert set(found) == {"gcl_poplar_options", *unread}


def test_the_form_has_twelve_options_ready_to_draw() -> None:
    form = form_options()
    assert len({each.form_label for each in form}) == len(form) == 12
    for each in form:
        bounded = each.minimum is not None
        assert each.type is bool or each.choices or bounded, f"{each.name} has neither choices nor bounds"
    assert {each.name for each in OPTIONS.values() if each.form_label} == {each.name for each in form}


def test_keys_belong_to_a_dictionary_that_an_attribute_holds() -> None:
    held = {each.name for each in attributes() if each.kind == "dictionary"}
    assert {
        each.name.partition(".poplar_options.")[0] + ".poplar_options"
        for each in OPTIONS.values()
        if each.kind == "key"
    } == held


@pytest.mark.parametrize(
    ("order", "ipus", "expected"),
    [
        # The API reference's figures for a ladder of 16.
        ("ZIGZAG", 16, list(range(16))),
        ("SNAKE", 16, [0, 1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12, 13, 15, 14]),
        ("HOOF", 16, [0, 2, 4, 6, 8, 10, 12, 14, 15, 13, 11, 9, 7, 5, 3, 1]),
        ("HOOF", 5, [0, 2, 4, 3, 1]),
        ("SNAKE", 3, [0, 1, 2]),
        ("HOOF", 1, [0]),
    ],
)
def test_orders_over_the_ladder(order: str, ipus: int, expected: list[int]) -> None:
    assert list(SelectionOrder[order].order(ipus)) == expected


def linked(one: int, other: int) -> bool:
    """A rung joins 2k and 2k + 1; the sides join n and n + 2."""
    return abs(one - other) == 2 or (one // 2 == other // 2)


@given(st.sampled_from(list(SelectionOrder)), st.integers(1, 64))
def test_every_order_takes_each_ipu_once_and_snakes_follow_links(order: SelectionOrder, ipus: int) -> None:
    found = order.order(ipus)
    assert sorted(found) == list(range(ipus))
    steps = list(pairwise(found))
    if order in (SelectionOrder.SNAKE, SelectionOrder.AUTO) and ipus % 2 == 0:
        assert all(linked(one, other) for one, other in steps)
    if order is SelectionOrder.HOOF and ipus % 2 == 0:
        assert all(linked(one, other) for one, other in [*steps, (found[-1], found[0])])


def test_nothing_waits_for_a_reader() -> None:
    assert [each.name for each in OPTIONS.values() if each.status.endswith("not yet read")] == []
