"""Level of detail: whatever the window and the fineness, no cycle is lost and none is counted twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.profiler.scheduled import scheduled_profile
from tests.widgets.large import large_profile
from workbench.profiler.profile import Profile
from workbench.profiler.timeline import TimedNode
from workbench.widgets.kit.detail import BUSY, MAX_RECTANGLES, Detail, Lane, Window, bins_of, count_blocks

PROFILES = {"loop": handmade_profile, "pipeline": handmade_pipeline}


@cache
def made(name: str) -> Profile:
    return PROFILES[name]()


def cycles_of(detail: Detail, lane: Lane, window: Window) -> dict[str, float]:
    """Cycles by cause inside the window, of rectangles and bins."""
    found = dict.fromkeys(BUSY, 0.0)
    for start, cycles, step, _ in lane.blocks:
        found[detail.cause(step)] += max(0, min(window.last, start + cycles) - max(window.first, start))
    for place, cause in enumerate(BUSY):
        found[cause] += float(lane.bins[:, place].sum())
    return {cause: cycles for cause, cycles in found.items() if cycles > 1e-6}


@pytest.mark.parametrize("name", PROFILES)
@given(data=st.data())
def test_rectangles_and_bins_sum_to_the_window(name: str, data: st.DataObject) -> None:
    """Exactly for the whole program; a node cut by an edge of a window counts as an even mix, so within a bin there."""
    profile = made(name)
    first = data.draw(st.integers(0, profile.total_cycles - 1))
    last = data.draw(st.integers(first + 1, profile.total_cycles))
    least = data.draw(st.sampled_from([-1.0, 0.0, 500.0, math.inf]))
    window = Window(first=first, last=last, bins=data.draw(st.integers(1, 400)), least=least)
    detail = Detail(profile)
    totals = profile.timeline.totals(first, last)
    for ipu in range(profile.ipus):
        found = cycles_of(detail, detail.lane(ipu, window), window)
        whole = (first, last) == (0, profile.total_cycles) or least == 0.0
        for cause in BUSY:
            allowed = 1e-6 if whole else 2 * window.each
            assert found.get(cause, 0.0) == pytest.approx(totals.get((ipu, cause), 0), abs=allowed, rel=1e-9)


@pytest.mark.parametrize("name", PROFILES)
@given(bins=st.integers(1, 2_000), least=st.sampled_from([-1.0, 0.0, 120.0, math.inf]))
def test_the_whole_program_sums_exactly(name: str, bins: int, least: float) -> None:
    profile = made(name)
    window = Window(first=0, last=profile.total_cycles, bins=bins, least=least)
    detail = Detail(profile)
    for ipu in range(profile.ipus):
        found = cycles_of(detail, detail.lane(ipu, window), window)
        totals = {cause: profile.timeline.root.totals.get((ipu, cause), 0) for cause in BUSY}
        assert found == pytest.approx({cause: cycles for cause, cycles in totals.items() if cycles})


@pytest.mark.parametrize("name", PROFILES)
@given(bins=st.integers(1, 300))
def test_bins_are_never_more_than_full_and_rectangles_never_overlap(name: str, bins: int) -> None:
    profile = made(name)
    window = Window(first=0, last=profile.total_cycles, bins=bins)
    lane = Detail(profile).lane(0, window)
    assert (lane.bins.sum(axis=1) <= window.each * (1 + 1e-9)).all()
    ends = [start + cycles for start, cycles, _, _ in lane.blocks]
    assert all(end <= following[0] for end, following in zip(ends, lane.blocks[1:], strict=False))
    assert all(start < end for start, end, _, _ in lane.layers)


def test_every_block_is_kept_when_asked_for() -> None:
    # Once: copy, sync, update, copy. Three times: nine steps.
    profile = made("loop")
    lane = Detail(profile).lane(0, Window(first=0, last=profile.total_cycles, bins=7, least=0.0))
    assert len(lane.blocks) == 4 + 3 * 9 == count_blocks(profile, 1_000)
    assert not lane.bins.any()
    assert lane.blocks[0] == (0, 1_000, 0, -1)


def test_layers_of_the_loop() -> None:
    """Neighbouring steps of one layer and direction are one stretch."""
    profile = made("loop")
    lane = Detail(profile).lane(0, Window(first=1_100, last=1_100 + 1_040 + 600 + 50, bins=1, least=0.0))
    assert lane.layers == [(1_100, 2_790, "dense_1", "forward")]


def test_micro_batches_come_from_the_calls() -> None:
    profile = made("pipeline")
    lane = Detail(profile).lane(1, Window(first=0, last=profile.total_cycles, bins=1, least=0.0))
    batches = [batch for _, _, step, batch in lane.blocks if step == 4]
    assert batches == [0, 1, 2, 3]


def test_a_long_program_costs_what_is_shown() -> None:
    profile = large_profile(ipus=2, tiles=8, steps=1_200, micro_batches=50_000)
    detail = Detail(profile)
    for first, last in ((0, profile.total_cycles), (profile.total_cycles // 3, profile.total_cycles // 3 + 50_000)):
        window = Window(first=first, last=last, bins=1_000)
        lanes = [detail.lane(ipu, window) for ipu in range(2)]
        assert sum(len(lane.blocks) + len(lane.layers) for lane in lanes) <= MAX_RECTANGLES
        totals = profile.timeline.totals(first, last)
        for ipu, lane in enumerate(lanes):
            busy = sum(cycles for (place, cause), cycles in totals.items() if place == ipu and cause in BUSY)
            assert sum(cycles_of(detail, lane, window).values()) == pytest.approx(busy, rel=1e-6)


def test_empty_window() -> None:
    lane = Detail(made("loop")).lane(0, Window(first=5, last=5, bins=3))
    assert lane.blocks == []
    assert np.array_equal(lane.bins, np.zeros((3, len(BUSY))))


@pytest.mark.parametrize("schedule", ["Grouped", "Interleaved", "Sequential"])
@pytest.mark.parametrize("bins", [1, 7, 300, 5_000])
def test_bins_alone_are_those_of_lanes_without_rectangles(schedule: str, bins: int) -> None:
    profile = scheduled_profile(schedule, 3, 12, recompute=200 * (schedule != "Sequential"))
    for first, last in ((0, profile.total_cycles), (1_234, profile.total_cycles // 2), (0, 2 * profile.total_cycles)):
        window = Window(first=first, last=last, bins=bins, least=math.inf)
        lanes = np.stack([lane.bins for lane in Detail(profile).lanes(window)])
        assert np.allclose(bins_of(profile, window), lanes, atol=1e-6)
        assert np.allclose(bins_of(profile, window, [2, 0]), lanes[[2, 0]], atol=1e-6)


@pytest.mark.parametrize("make", [handmade_profile, handmade_pipeline], ids=["loop", "pipeline"])
@pytest.mark.parametrize(("bins", "least"), [(7, -1.0), (300, -1.0), (40, math.inf), (3, 0.0)])
def test_all_lanes_are_those_of_each_ipu_whoever_made_the_nodes(
    make: Callable[[], Profile], bins: int, least: float
) -> None:
    """One walk for all IPUs tells what a walk for each does, and no node is needed of calls that run side by side."""
    profile, asked = make(), make()
    for node in every(asked.timeline.root):
        assert all(child.cycles >= 0 for child in node.children)
    window = Window(first=profile.total_cycles // 9, last=profile.total_cycles, bins=bins, least=least)
    lanes, told = Detail(profile).lanes(window), Detail(asked)
    assert len(lanes) == profile.ipus
    for ipu, lane in enumerate(lanes):
        other = told.lane(ipu, window)
        assert (lane.blocks, lane.layers) == (other.blocks, other.layers)
        assert np.allclose(lane.bins, other.bins, atol=1e-9)


def every(node: TimedNode) -> Iterator[TimedNode]:
    yield node
    for child in node.children:
        yield from every(child)
