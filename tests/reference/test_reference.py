"""The reference is what the declarations say, its page the same in words, and its examples hold when measured again."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from tests.reference.declared import PAGE, page_text, phases, reference, stored
from tests.reference.measure import PROGRAMS, compiled
from tests.reference.write import kept
from workbench.engine.options import OPTIONS
from workbench.executable.configured import acting, found, value_of
from workbench.widgets.app.reference.panel import entries

REWRITE = "run python -m tests.reference.write --keep"
MEASURED = [each for each in stored()["options"] if each["example"]]
SOME = MEASURED[:: max(1, len(MEASURED) // 6)]


def test_the_data_is_what_the_declarations_say() -> None:
    assert reference(kept()) == stored(), REWRITE


def test_the_page_is_the_data_in_words() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_text(stored()), REWRITE


def test_every_option_and_every_name_has_an_entry() -> None:
    names = {each["name"] for each in stored()["options"]}
    assert names == {each.name for each in OPTIONS.values() if each.kind != "dictionary"}
    assert {f"wb.{name}" for name in wb.__all__} <= {each["name"] for each in stored()["api"]}
    assert len(entries()) == len(stored()["options"]) + len(stored()["api"])


def test_completion_offers_the_public_names_once_and_none_of_what_the_package_imports() -> None:
    offered = [name for name in dir(wb) if not name.startswith("_")]
    assert set(offered) == set(wb.__all__)
    assert len(offered) == len(set(offered))


def test_every_name_says_what_it_is() -> None:
    assert [each["name"] for each in stored()["api"] if not each["doc"]] == []


def test_every_option_that_acts_is_read_in_a_phase() -> None:
    assert [each.name for each in acting() if not phases(each)] == []


def test_most_options_have_a_measured_example() -> None:
    """Those without say so; an example changes something, on a program that is named."""
    assert len(MEASURED) > len(acting()) / 3
    for each in MEASURED:
        example = each["example"]
        assert example["program"] in PROGRAMS
        assert any(first != second for first, second in (example["bytes"], example["cycles"]))


@pytest.mark.slow
@pytest.mark.parametrize("each", SOME, ids=[each["name"] for each in SOME])
def test_an_example_measured_again_changes_the_same_way(each: dict[str, Any]) -> None:
    """The engine moves on, so its figures may; which way an option moves them may not."""
    example, declared = each["example"], found(each["name"])
    before = compiled(example["program"], {})
    after = compiled(example["program"], {each["name"]: value_of(declared, example["value"])}, before).profile
    for stored_pair, now in (
        (example["bytes"], (before.profile.max_tile_bytes, after.max_tile_bytes)),
        (example["cycles"], (before.profile.total_cycles, after.total_cycles)),
    ):
        assert _sign(now) == _sign(stored_pair)


def _sign(pair: Any) -> int:
    first, second = pair
    return (second > first) - (second < first)
