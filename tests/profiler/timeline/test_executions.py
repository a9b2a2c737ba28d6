"""Blocks of pipelines as progressions and their levels of detail: they cover the time, and cost what they show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.profiler.scheduled import COPY, HOST, UPDATE, scheduled_profile
from workbench.engine.pipeline_schedule import SCHEDULES, stash_depth
from workbench.errors import InputError
from workbench.profiler.profile import Profile
from workbench.profiler.timeline import Later, TimedNode
from workbench.profiler.timeline.executions import Executions
from workbench.profiler.timeline.levels import WORK, level

PROFILES = {
    "by hand": handmade_pipeline,
    "Grouped": lambda: scheduled_profile("Grouped", 4, 16, recompute=200),
    "Interleaved": lambda: scheduled_profile("Interleaved", 4, 16, recompute=200),
    "Sequential": lambda: scheduled_profile("Sequential", 4, 16),
}
each_profile = pytest.mark.parametrize("make", PROFILES.values(), ids=PROFILES)


def by_cause(profile: Profile, found: dict[str, float]) -> None:
    table = profile.cycle_breakdown.groupby("cause")["cycles"].sum().to_dict()
    assert {cause: round(cycles, 3) for cause, cycles in found.items() if cycles} == table


@each_profile
def test_blocks_cover_every_ipu_without_a_gap(make: object) -> None:
    profile: Profile = make()  # type: ignore[operator]
    blocks = Executions.from_profile(profile).window(0, profile.total_cycles, WORK)
    for ipu in range(profile.ipus):
        mine = blocks.take(blocks.ipu == ipu)
        assert mine.start[0] == 0
        assert mine.end[-1] == profile.total_cycles
        assert np.array_equal(mine.start[1:], mine.end[:-1])


@each_profile
@pytest.mark.parametrize("budget", [20_000, 20])
def test_causes_of_all_rectangles_are_the_breakdown(make: object, budget: int) -> None:
    profile: Profile = make()  # type: ignore[operator]
    shown = level(Executions.from_profile(profile), 0, profile.total_cycles, budget)
    assert (shown.group == 1) == (budget == 20_000)
    found: dict[str, float] = {}
    for place, body in enumerate(shown.bodies):
        cycles = float(shown.busy[shown.body == place].sum())
        for cause, part in body.mix:
            found[cause] = found.get(cause, 0.0) + part * cycles
    by_cause(profile, found)


@each_profile
@given(data=st.data())
def test_a_window_is_what_the_whole_has_there(make: object, data: st.DataObject) -> None:
    profile: Profile = make()  # type: ignore[operator]
    executions, total = Executions.from_profile(profile), profile.total_cycles
    first = data.draw(st.integers(0, total - 1))
    last = data.draw(st.integers(first + 1, total))
    whole, part = executions.window(0, total, WORK), executions.window(first, last, WORK)
    expected = whole.take((whole.start < last) & (whole.end > first))
    assert np.array_equal(part.start, expected.start)
    assert np.array_equal(part.micro_batch, expected.micro_batch)
    assert executions.count(first, last, WORK) == len(part)
    inside = np.minimum(part.end, last) - np.maximum(part.start, first)
    between = executions.cycles_between(executions.table[executions.table[:, 0] >= 0], np.array([first, last]))
    assert between.sum() == inside.sum() == (last - first) * profile.ipus


@each_profile
def test_a_micro_batch_is_found_on_every_ipu(make: object) -> None:
    profile: Profile = make()  # type: ignore[operator]
    executions = Executions.from_profile(profile)
    whole = executions.window(0, profile.total_cycles, ("stage", "copy"))
    for number in (0, 3):
        found = executions.of_micro_batch(number)
        assert np.array_equal(found.start, whole.start[whole.micro_batch == number])
        assert set(found.ipu.tolist()) == set(range(profile.ipus))
    assert len(executions.of_micro_batch(99)) == 0


def test_bodies_say_stage_direction_and_layers() -> None:
    executions = Executions.from_profile(scheduled_profile("Grouped", 2, 4, recompute=200))
    stages = [body for body in executions.bodies if body.kind == "stage"]
    assert {(body.stage, body.direction) for body in stages} == {
        (stage, direction) for stage in (0, 1) for direction in ("forward", "recompute", "backward", "update")
    }
    layers = {body.layer for body in stages if body.stage == 1 and body.direction == "forward"}
    assert layers == {"block_1/a, block_1/b"}


def test_columns_wait_for_their_slowest_stage() -> None:
    """Two stages, four micro-batches, the second forward pass 100 cycles longer: fill, steady and drain columns."""
    executions = Executions.from_profile(scheduled_profile("Grouped", 2, 4, slower=(1, 100)))
    columns = executions.window(0, 10**9, ("column",))
    bodies = [executions.bodies[place] for place in columns.body]
    # Forward 300 and 400, backward 600. Column 0: F0. 1: F0 F1. 2: F0 and B1 F1. 3: B0 F0 and B1 F1. ...
    assert columns.cycles[:4].tolist() == [300, 400, 600 + 400, 600 + 400]
    assert [body.ipu for body in bodies[:4]] == [0, 1, 1, 1]
    assert [body.phase for body in bodies] == ["fill"] * 3 + ["steady"] + ["drain"] * 3 + ["update"]
    assert columns.start[0] == HOST
    assert columns.start[1] == HOST + 300 + COPY
    assert columns.cycles[-1] == UPDATE


def test_many_micro_batches_cost_as_many_rows_as_few() -> None:
    few, many = (Executions.from_profile(scheduled_profile("Grouped", 4, count)) for count in (16, 1_024))
    assert len(many.table) == len(few.table)


def test_a_level_stays_within_its_budget_and_groups_neighbours() -> None:
    profile = scheduled_profile("Grouped", 8, 512)
    executions = Executions.from_profile(profile)
    shown = level(executions, 0, profile.total_cycles, 2_000)
    assert shown.group > 1
    assert len(shown) <= 2_000
    runs = shown.micro_batch >= 0
    assert np.array_equal(shown.micro_batch[runs] // shown.group, shown.last[runs] // shown.group)
    # Every micro-batch is forward once and backward once on each IPU.
    assert (shown.last[runs] - shown.micro_batch[runs] + 1).sum() == 2 * 8 * 512
    near = level(executions, profile.total_cycles // 2, profile.total_cycles // 2 + 3_000, 2_000)
    assert near.group == 1


def test_a_program_without_stages_is_one_block() -> None:
    executions = Executions.from_profile(handmade_profile())
    assert {body.kind for body in executions.bodies} == {"other"}
    assert executions.table[:, 3].sum() == handmade_profile().total_cycles


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("stages", [2, 4, 5])
def test_fifo_depths_seen_in_the_trace_are_the_schedule_s(schedule: str, stages: int) -> None:
    table = scheduled_profile(schedule, stages, 4 * stages).pipeline.to_pandas()
    assert table["fifo_depth"].tolist() == [stash_depth(schedule, stages, stage) for stage in range(stages)]


def test_range_of_the_whole_call_is_the_breakdown() -> None:
    profile = scheduled_profile("Grouped", 4, 16, recompute=200)
    spent = profile.pipeline.spent(0, profile.total_cycles)
    keys = ["ipu", "cause"]
    assert spent.set_index(keys)["cycles"].to_dict() == profile.cycle_breakdown.set_index(keys)["cycles"].to_dict()


def test_ranges_add_up() -> None:
    profile = scheduled_profile("Interleaved", 3, 12)
    total = profile.total_cycles
    parts = [profile.pipeline.spent(*ends) for ends in ((0, 777), (777, 5_001), (5_001, total))]
    summed = pd.concat(parts).groupby(["ipu", "cause"])["cycles"].sum().to_dict()
    assert summed == profile.pipeline.spent(0, total).groupby(["ipu", "cause"])["cycles"].sum().to_dict()


def test_an_unknown_micro_batch_is_named() -> None:
    with pytest.raises(InputError, match=r"^there is no micro-batch 16\. Expected: 0 to 15\.$"):
        scheduled_profile("Grouped", 4, 16).pipeline.of_micro_batch(16)
    with pytest.raises(InputError, match="a program with pipeline stages"):
        handmade_profile().pipeline.of_micro_batch(0)


def test_branches_are_made_when_somebody_looks_into_them() -> None:
    """The pipeline of 64 IPUs opens without the nodes of its branches; a window of the timeline makes those it cuts."""
    profile = scheduled_profile("Grouped", 64, 128)
    spent = profile.pipeline.bubbles()
    assert len(profile.pipeline.executions.table) > 50_000
    overlaps = [node for node in every(profile.timeline.root) if node.kind == "overlap"]
    made = sum(isinstance(node.parts, Later) and node.parts.asked_for for node in overlaps)
    assert len(overlaps) > 50
    assert made < 0.01 * len(overlaps)
    first, last = profile.pipeline.span
    whole = profile.pipeline.spent(first, last)["cycles"].sum()
    assert whole == 64 * (last - first)
    parts = [profile.pipeline.bubbles(cut, end) for cut, end in ((first, first + 12_345), (first + 12_345, last))]
    assert sum(sum(part["by_ipu"]) for part in parts) == sum(spent["by_ipu"])


def every(node: TimedNode) -> Iterator[TimedNode]:
    """A node and those below it that have been made."""
    yield node
    for child in node.parts.known.values() if isinstance(node.parts, Later) else node.parts:
        yield from every(child)
