"""Challenges: the points of attempts worked out by hand, and that shortcuts earn none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import pytest

import workbench as wb
from tests.profiler.handmade import handmade_profile
from workbench.errors import InputError, WorkbenchError
from workbench.profiler.advice.challenge import Challenge, Goal, Grade, challenges
from workbench.profiler.profile import Profile
from workbench.profiler.schema import column

TABLE = 1_200_000


def square(mapping: Mapping[int, slice], *, tiles: int = 16, elements: int = TABLE, name: str = "square") -> Profile:
    g = wb.tiles.Graph("ipu2", tiles=tiles)
    table = g.variable("table", (elements,), "float32", kind="state").map(mapping)
    work = g.compute_set(name)
    for tile, part in mapping.items():
        work.vertex("popops::UnaryOp1DInPlace", tile=tile, op="SQUARE", inOut=table[part])
    return wb.profile(g.sequence(work))


def over(tiles: int, elements: int = TABLE) -> dict[int, slice]:
    each = elements // tiles
    return {tile: slice(tile * each, (tile + 1) * each if tile < tiles - 1 else elements) for tile in range(tiles)}


def earned(grade: Grade) -> list[int]:
    return [mark.points for mark in grade.marks]


def test_the_start_of_fit_the_tile_is_balanced_but_does_not_fit() -> None:
    grade = wb.challenge("fit-the-tile").check(square(over(4)))
    # 300,000 numbers of 4 B on each of 4 tiles; 12 idle tiles make the average 4/16 of the slowest
    assert earned(grade) == [1, 0, 3, 0]
    assert grade.sentence == "fit-the-tile: 4 of 10 points"
    assert not grade.passed
    assert "over" in grade.marks[1].found
    assert "25.0 %" in grade.marks[3].found
    assert grade.hints == [grade.marks[1].hint, grade.marks[3].hint]


def test_a_brief_says_one_point_and_several_points() -> None:
    task = wb.challenge("fit-the-tile")
    assert [goal.points for goal in task.goals] == [1, 3, 3, 3]
    for text in (str(task), task._repr_html_()):
        assert re.findall(r": (\d points?)\b", text) == ["1 point", "3 points", "3 points", "3 points"]


def test_all_tiles_evenly_solve_it() -> None:
    grade = wb.challenge("fit-the-tile").check(square(over(16)))
    assert earned(grade) == [1, 3, 3, 3]
    assert grade.passed
    assert grade.hints == []
    assert str(grade).startswith("fit-the-tile: 10 of 10 points, solved\n")


def test_fitting_on_twelve_tiles_leaves_four_idle() -> None:
    grade = wb.challenge("fit-the-tile").check(square(over(12)))
    # 100,000 numbers: 400,000 B of 638,976; balanced among themselves, 12/16 of the machine
    assert earned(grade) == [1, 3, 3, 0]


def test_an_uneven_mapping_that_fits_is_not_balanced() -> None:
    mapping = {tile: slice(tile * 73_000, (tile + 1) * 73_000) for tile in range(14)}
    mapping[14] = slice(1_022_000, 1_122_000)
    mapping[15] = slice(1_122_000, TABLE)
    # mean 75,000 over the largest 100,000 is 75 %
    assert earned(wb.challenge("fit-the-tile").check(square(mapping))) == [1, 3, 0, 0]


@pytest.mark.parametrize(
    "shortcut",
    [
        lambda: square(over(16, 1_000_000), elements=1_000_000),
        lambda: square(over(32), tiles=32),
        lambda: square(over(16), name="other"),
    ],
    ids=["a smaller table", "more tiles", "no square"],
)
def test_a_changed_exercise_earns_nothing(shortcut: object) -> None:
    grade = wb.challenge("fit-the-tile").check(shortcut())  # type: ignore[operator]
    assert grade.points == 0
    assert not grade.passed


def resnet(*, fits: bool = True, samples: int = 16, mode: str = "training", what_if: tuple[str, ...] = ()) -> Profile:
    """A hand-made profile that says it is ResNet-50's step."""
    small = handmade_profile(fits=fits)
    variables = dict(small.tables["variables"])
    shapes = [str(shape) for shape in variables["shape"]]
    first = [str(kind) for kind in variables["kind"]].index("parameter")
    shapes[first] = "(25583592,)"
    target = {**small.meta["target"], "what_if": list(what_if)}
    meta = {**small.meta, "mode": mode, "samples_per_call": samples, "target": target}
    return replace(small, meta=meta, tables={**small.tables, "variables": {**variables, "shape": column(shapes, "U")}})


def test_fit_resnet_is_solved_by_a_fitting_step_of_sixteen_images() -> None:
    assert earned(wb.challenge("fit-resnet").check(resnet())) == [2, 2, 2, 4]


def test_fit_resnet_gives_points_for_what_is_reached() -> None:
    assert earned(wb.challenge("fit-resnet").check(resnet(fits=False))) == [2, 2, 2, 0]
    assert earned(wb.challenge("fit-resnet").check(resnet(samples=8))) == [2, 2, 0, 4]


@pytest.mark.parametrize(
    "attempt", [{"mode": "inference"}, {"what_if": ("bytes_per_tile=900000",)}], ids=["inference", "a larger tile"]
)
def test_fit_resnet_takes_neither_another_step_nor_another_machine(attempt: dict[str, object]) -> None:
    assert wb.challenge("fit-resnet").check(resnet(**attempt)).points == 0  # type: ignore[arg-type]


def test_an_executable_is_graded_by_its_profile() -> None:
    executable = SimpleNamespace(profile=square(over(16)))
    assert wb.challenge("fit-the-tile").check(executable).passed


def test_anything_else_is_an_error_that_says_what_to_pass() -> None:
    with pytest.raises(InputError, match=r"^42 cannot be graded\. Expected: a profile\. .*wb\.profile\(\.\.\.\)"):
        wb.challenge("fit-the-tile").check(42)
    with pytest.raises(WorkbenchError, match=r"unknown challenge 'x'.*one of: fit-resnet, fit-the-tile"):
        wb.challenge("x")


def test_names_are_text_in_the_page() -> None:
    goal = Goal(text="<script>a</script>", points=1, hint="<b>h</b>", judge=lambda profile: (False, "<i>f</i>"))
    grade = Challenge(name="<u>n</u>", brief="<s>b</s>", goals=(goal,))
    shown = grade._repr_html_() + grade.check(handmade_profile())._repr_html_()
    for tag in ("<script>", "<i>", "<u>", "<s>"):
        assert tag not in shown
    assert "&lt;script&gt;" in shown


@pytest.mark.parametrize("name", challenges)
def test_every_challenge_says_what_to_do(name: str) -> None:
    found = wb.challenge(name)
    assert found.name == name
    assert found.brief.endswith(".")
    assert sum(goal.points for goal in found.goals) == 10
    assert all(goal.hint and goal.text for goal in found.goals)
