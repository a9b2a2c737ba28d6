"""What `wb.diagnose` is asked acts, is refused, or is said not to have been done."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import workbench as wb
from tests.profiler.handmade import handmade_profile
from workbench.errors import InputError


@pytest.fixture(scope="module")
def small() -> wb.Executable:
    return wb.compile(wb.ready("mlp", layers=2, hidden=16), batch_size=2)


@pytest.mark.parametrize(
    "asked",
    [
        {"ipus": 2},
        {"compiles": 3},
        {"seconds": 1.0},
        {"executor": ThreadPoolExecutor(1)},
        {"progress": print},
        {"heard": print},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_of_a_profile_nothing_is_compiled_so_nothing_is_asked_of_compiles(asked: dict[str, Any]) -> None:
    name = next(iter(asked))
    with pytest.raises(InputError) as caught:
        wb.diagnose(handmade_profile(), **asked)
    assert str(caught.value) == (
        f"{name} is given, and what is diagnosed is a profile, of which nothing is compiled. "
        f"Expected: besides keep_numbers and levers: nothing. "
        f"To mend it: leave {name} out, or give what wb.compile returned."
    )


def test_stages_that_are_named_and_not_tried_are_said_to_be(small: wb.Executable) -> None:
    """The program fits on its one IPU, and a bound of one leaves no other."""
    for ipus, why in ((2, "something fits well on the program's own IPUs"), (1, "ipus is 1, as many as the program")):
        found = wb.diagnose(small, levers="stages", ipus=ipus)
        assert not found.tried
        assert [title for title, _ in found.skipped] == ["pipeline stages"]
        assert found.skipped[0][1].startswith(why)
    assert wb.diagnose(handmade_profile(), levers=["stages"]).skipped == (
        ("pipeline stages", "only what was compiled can be cut"),
    )


def test_a_near_lever_is_asked_for(small: wb.Executable) -> None:
    with pytest.raises(InputError, match=r"unknown lever 'recompute' in levers\. .* did you mean 'recomputation'\?"):
        wb.diagnose(small, levers=["recompute"])


def test_a_class_is_no_executor(small: wb.Executable) -> None:
    with pytest.raises(InputError, match=r"executor is <class .*ThreadPoolExecutor.* Expected: an executor"):
        wb.diagnose(small, executor=ThreadPoolExecutor)


def test_what_is_found_is_not_given() -> None:
    model = wb.ready("mlp", layers=2, hidden=16)
    with pytest.raises(InputError, match=r"pipeline_schedule is given, and wb\.compare_schedules varies it\."):
        wb.compare_schedules(model, 2, batch_size=2, pipeline_schedule="Grouped")
    with pytest.raises(InputError, match=r"stages is given, and wb\.plan finds it\. To mend it: leave stages out"):
        wb.plan(model, global_batch=64, stages=[0, 1, 1])
