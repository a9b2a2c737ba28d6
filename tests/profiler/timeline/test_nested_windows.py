"""Loops in loops: windows are summed and merged, never unrolled, and say what the unrolled ones say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.engine.random_programs import programs
from tests.profiler.handmade import handmade_pipeline
from tests.profiler.measured import compiled
from tests.profiler.nested import nested
from workbench.engine.program import TileProgram
from workbench.profiler.collect import collect
from workbench.profiler.profile import Profile
from workbench.profiler.registry import reports
from workbench.profiler.timeline import Block, BlockCounts, TimedNode, executions, timeline
from workbench.profiler.timeline.counting import mean_within
from workbench.profiler.timeline.executions import Executions
from workbench.widgets.face import views

MOST_NODES = 100_000  # visited for one answer; the program below has 2 * 10^12 steps


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many blocks a walk over a tree has made; more than `MOST_NODES` are an error at once."""
    seen = [0]

    def counted(*fields: Any) -> Block:
        seen[0] += 1
        assert seen[0] <= MOST_NODES, "unrolled"
        return Block(*fields)

    monkeypatch.setattr(timeline, "Block", counted)
    return seen


def windows(total: int) -> list[tuple[int, int]]:
    """The whole, all but its edges, and ever smaller parts around the middle."""
    middle = total // 2
    return [(0, total), (5, total - 5), *((middle, middle + total // 10**k) for k in (1, 5, 9, 13))]


def test_a_window_of_a_program_without_end_costs_what_it_shows(visits: list[int]) -> None:
    profile = nested(10**6, 10**6)
    total = profile.total_cycles
    for first, last in windows(total):
        visits[0] = 0
        shown = profile.trace.window(cycles_from=first, cycles_to=last)
        phases = shown[shown["lane"] == "phase"]
        assert len(shown) <= 20_000
        # The loops leave no gap but the cycles before and behind them.
        covered = phases["cycles_to"].clip(upper=last) - phases["cycles_from"].clip(lower=first)
        assert covered.sum() == last - first
        assert len(profile.trace.tiles(cycles_from=first, cycles_to=last)) <= 20_000
        assert 0.0 < profile.trace.tile_balance(cycles_from=first, cycles_to=last) <= 1.0
        assert sum(profile.trace.proportions(cycles_from=first, cycles_to=last).values()) == last - first
        assert len(profile.blocks(cycles_from=first, cycles_to=last, max_rows=9_999)) <= 9_999


def test_what_is_merged_counts_its_turns() -> None:
    profile = nested(3, 1000)
    merged = profile.trace.window(max_rects=60)
    phases = merged[merged["lane"] == "phase"]
    assert len(phases) <= 20
    assert phases["merged"].sum() >= 3 * 1000
    every = profile.trace.window(max_rects=60_000)
    assert len(every[every["lane"] == "phase"]) == 2 * 3 * 1001 + 4
    assert int(merged["cycles_to"].max()) == int(every["cycles_to"].max()) == profile.total_cycles


@settings(max_examples=30, deadline=None)
@given(programs(), st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 10**4)), min_size=1, max_size=4))
def test_a_mean_is_that_of_the_steps_one_by_one(program: TileProgram, parts: list[tuple[int, int]]) -> None:
    profile = collect(compiled(program))
    tree, end = profile.timeline, profile.total_cycles + 1
    values = {int(step): 1.0 / (2 + int(step)) for step in profile.tables["steps"]["id"] if step % 3}
    for one, other in parts:
        window = (min(one % end, other % end), max(one % end, other % end))
        for ipu in range(profile.ipus):
            weight = value = 0.0
            for block in tree.walk(*window, ipu):
                if block.node.step in values:
                    inside = min(window[1], block.end) - max(window[0], block.start)
                    weight, value = weight + inside, value + inside * values[block.node.step]
            expected = value / weight if weight else None
            assert mean_within(tree, window, ipu, values) == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(programs(), st.integers(1, 2000))
def test_runs_hold_the_cycles_of_what_is_in_them(program: TileProgram, smallest: int) -> None:
    profile = collect(compiled(program))
    tree = profile.timeline
    for ipu in range(profile.ipus):
        spent = sum(block.node.cycles_of(ipu, "compute") for block in tree.walk(0, profile.total_cycles, ipu))
        merged = list(tree.walk(0, profile.total_cycles, ipu, smallest=smallest))
        assert sum(block.node.cycles_of(ipu, "compute") for block in merged) == spent
        assert len(merged) <= BlockCounts(profile).within(0, profile.total_cycles)


def asked_everything(profile: Profile) -> None:
    """Every report and every drawn face of a profile, none larger than a page."""
    for name in reports:
        report = getattr(profile, name)
        for answer in (report.data, report.sentence, report.to_text(), report.to_pandas()):
            assert len(str(answer)) < 100_000, name
    for shown in views():
        report = getattr(profile, shown.name)
        assert len(report.svg()) < 200_000
        assert len(report.figure().to_json()) < 2_000_000
        assert report.widget() is not None
        assert len(repr(shown.stored(report))) < 2_000_000


def test_every_report_and_view_of_loops_without_end(visits: list[int]) -> None:
    asked_everything(nested(10**6, 10**6))


def test_every_report_and_view_of_micro_batches_without_end(visits: list[int]) -> None:
    import keras

    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, name="cut"), keras.layers.Dense(2)])
    given: dict[str, Any] = {"batch_size": 4, "mode": "training", "stages": ["cut"]}
    profile = wb.profile(
        model, gradient_accumulation_steps=2 * 10**9, target=wb.target("ipu2", tiles_per_ipu=4), **given
    )
    asked_everything(profile)
    few = wb.profile(model, gradient_accumulation_steps=8, **given)
    assert profile.pipeline.in_flight == few.pipeline.in_flight
    first, last = profile.pipeline.span
    middle = (first + last) // 2
    columns = profile.pipeline.columns(middle, middle + 10**5)
    assert 0 < len(columns) < 1000
    assert columns["column"].diff().dropna().eq(1).all()
    assert columns["column"].iloc[0] > 10**8


def turns_of(body: TimedNode, times: int) -> TimedNode:
    """A loop."""
    totals, rest = (Counter({key: value * times for key, value in each.items()}) for each in (body.totals, body.rest))
    return TimedNode(
        kind="repeat",
        name="loop",
        cycles=body.cycles * times,
        totals=totals,
        rest=rest,
        ipus=body.ipus,
        parts=(body,),
        times=times,
    )


def test_a_loop_around_a_pipeline_is_summed_behind_its_first_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = handmade_pipeline()
    before = profile.timeline
    whole = Executions.from_profile(profile)
    inner = turns_of(before.root, 3)
    turns = turns_of(inner, 1000)
    monkeypatch.setattr(executions, "MOST_ROWS", 10 * len(whole.table))
    monkeypatch.setitem(profile.__dict__, "timeline", replace(before, root=turns))
    found = Executions.from_profile(profile)
    assert len(found.table) < 12 * len(whole.table) + 10
    rest = [body for body in found.bodies if "summed" in body.name]
    assert rest
    assert rest[0].name.startswith("turns 10 to 999 of ")
    for ipu in range(profile.ipus):
        mine = found.window(0, turns.cycles, ("stage", "copy", "collective", "other", "idle"))
        covered = mine.cycles[mine.ipu == ipu].sum()
        assert covered == turns.cycles
