"""Explanations: parts sum to values, formulas have their inputs, and a loaded profile explains the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.errors import InputError
from workbench.profiler.storage import load_profile

PROFILE = handmade_profile()
ASKED: dict[str, dict[str, Any]] = {
    "step": {"step": 3},
    "tile": {"tile": 3},
    "tile_at_step": {"tile": 3, "step": 10},
    "variable": {"variable": "dense_1/kernel"},
    "operator": {"operator": "dense_1 matmul"},
}


@pytest.mark.parametrize("name", ASKED)
def test_text(name: str, golden: Callable[[str, str], None], tmp_path: Path) -> None:
    explained = PROFILE.explain(**ASKED[name])
    golden(f"profiler/explain.{name}.txt", str(explained))
    loaded = load_profile(PROFILE.save(tmp_path / "a"))
    assert str(loaded.explain(**ASKED[name])) == str(explained)


@pytest.mark.parametrize("name", [name for name in ASKED if name != "variable"])
def test_parts_sum_to_the_value(name: str) -> None:
    explained = PROFILE.explain(**ASKED[name])
    assert sum(part.value for part in explained.parts) == explained.value


def test_values_are_the_tables() -> None:
    steps, tiles = PROFILE.steps.set_index("id"), PROFILE.tiles.set_index("tile")
    assert PROFILE.explain(step=3).value == steps.loc[3, "cycles"]
    assert PROFILE.explain(tile=3).value == tiles.loc[3, "total_with_gaps_bytes"]
    assert PROFILE.explain(operator="dense_1 matmul").value == 3 * (1_040 + 600)
    assert PROFILE.explain(variable=0).value == 32_000
    view = PROFILE.liveness_view.of(tile=3)
    assert PROFILE.explain(tile=3, step=10).value == view.always_live_bytes + view.live_bytes[10]


def test_inputs_of_a_category_are_those_of_the_tile() -> None:
    stack = next(part for part in PROFILE.explain(tile=3).parts if part.subject == "stacks")
    assert stack.inputs == {"worker_bytes": 40, "workers": 6}
    assert stack.value == 40 * 6
    assert stack.typical_error == 0.04
    assert str(stack.error) == "typical error 4.0 % (1 number: hardware)"


def test_an_error_is_of_the_kind_alone_and_says_how_many_told_it() -> None:
    tile, step = PROFILE.explain(tile=3), PROFILE.explain(step=3)
    assert str(tile.error) == "typical error 5.0 % (nine of ten within 20.0 %; 12 numbers: published reports)"
    assert str(step.error) == "typical error 1.0 % (all within 2.0 %; 3 numbers: IPU Model)"
    assert {part.subject: part.typical_error for part in tile.parts}["parameters"] is None
    assert all("not known" in line for line in str(tile).splitlines() if line.startswith("  parameter"))


def test_one_line_for_beginners() -> None:
    assert str(PROFILE.explain(tile=3, depth=1)) == "memory of tile 3 of IPU 0: 9.8 KiB; 27.8 % of it is parameters"
    two = str(PROFILE.explain(tile=3, depth=2)).splitlines()
    assert [line for line in two if line.startswith("    =")]
    assert len(two) > 10
    with pytest.raises(InputError, match="depth 0"):
        PROFILE.explain(tile=3, depth=0)


def test_other_ipus() -> None:
    profile = handmade_pipeline()
    assert profile.explain(variable="stage_1/kernel").value == 48_000
    assert profile.explain(tile=0, step=6, ipu=1).value == 4_400 + 3_500
    assert profile.explain(tile=0, ipu=1).subject == "memory of tile 0 of IPU 1"


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (
            {},
            "explain was not given one thing to explain. Expected: a tile, a step, a tile and a step, a variable, or "
            "an operator. To mend it: for example profile.explain(step=profile.peak.step).",
        ),
        ({"step": 99}, "no step 99. Expected: an id of profile.steps."),
        ({"tile": 16}, "no tile 16 on IPU 0. Expected: tile 0 to 15, IPU 0 to 0."),
        ({"variable": "nothing"}, "no variable 'nothing'. Expected: a name or id of profile.variables."),
        ({"operator": "nothing"}, "no operator 'nothing'. Expected: a name of profile.operators."),
        (
            {"operator": "dense_1"},  # the layer's name, which is how its operators' names begin
            "no operator 'dense_1'. Expected: a name of profile.operators. To mend it: did you mean 'dense_1 matmul'?",
        ),
        (
            {"variable": "dense_1/k"},
            "no variable 'dense_1/k'. Expected: a name or id of profile.variables. "
            "To mend it: did you mean 'dense_1/kernel', or 'dense_1/kernel/momentum', or 'dense_1/kernel copy'?",
        ),
        (
            {"variable": "dense2/out"},
            "no variable 'dense2/out'. Expected: a name or id of profile.variables. "
            "To mend it: did you mean 'dense_2/out', or 'dense_1/out', or 'dense_1/relu'?",
        ),
    ],
    ids=["nothing", "step", "tile", "variable", "operator", "layer", "beginning", "misspelt"],
)
def test_bad_questions(asked: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        PROFILE.explain(**asked)
    assert str(caught.value) == text
