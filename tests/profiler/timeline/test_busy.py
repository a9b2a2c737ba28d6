"""How long IPUs were busy before given times: what the sums of windows say, of all times at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.random_programs import programs
from tests.profiler.builder import Builder
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.profiler.measured import compiled
from tests.profiler.nested import nested
from tests.profiler.scheduled import scheduled_profile
from workbench.engine.program import TileProgram
from workbench.profiler.collect import collect
from workbench.profiler.profile import Profile
from workbench.profiler.timeline.busy import busy_before

CAUSES = ("compute", "exchange", "sync", "host", "inter_ipu")
MADE: dict[str, Callable[[], Profile]] = {
    "loop": handmade_profile,
    "pipeline": handmade_pipeline,
    "grouped": lambda: scheduled_profile("Grouped", 3, 12),
    "recomputed": lambda: scheduled_profile("Interleaved", 3, 12, recompute=200),
    "sequential": lambda: scheduled_profile("Sequential", 3, 4),
    "nested": lambda: nested(1_000_000, 1_000_000),
}


def check(profile: Profile, times: list[int]) -> None:
    """Two of the times are neighbours, so that nothing is spread; every sum is that of the window up to a time."""
    times = sorted({*times, times[0] + 1})
    found = busy_before(profile, np.array(times, np.float64), range(profile.ipus), CAUSES)
    for row, time in zip(found, times, strict=True):
        totals = profile.timeline.totals(0, time)
        said = [[totals[ipu, cause] for cause in CAUSES] for ipu in range(profile.ipus)]
        assert np.allclose(row, said, rtol=1e-9, atol=1e-3)


@pytest.mark.parametrize("name", MADE)
@given(data=st.data())
def test_sums_are_those_of_windows(name: str, data: st.DataObject) -> None:
    profile = MADE[name]()
    check(profile, data.draw(st.lists(st.integers(0, profile.total_cycles - 1), min_size=1, max_size=8)))


@given(programs(), st.lists(st.floats(0, 0.999), min_size=1, max_size=6))
def test_of_random_programs_too(program: TileProgram, shares: list[float]) -> None:
    profile = collect(compiled(program))
    if profile.total_cycles:
        check(profile, [int(share * profile.total_cycles) for share in shares])


def test_two_steps_by_hand() -> None:
    """100 cycles of the host, then three turns of 30 of compute and 10 of exchange, looked at in the second turn."""
    build = Builder("by hand")
    host = build.step("StreamCopy", "images", 100, times=1)
    compute = build.step("OnTileExecute", "work", 30, times=3)
    exchange = build.step("DoExchange", "move", 10, times=3)
    body = ["sequence", "", [["step", compute], ["step", exchange]]]
    build.timeline = [{"ipu": 0, "position": 0, "step": compute}]
    profile = build.profile({"entry": ["sequence", "", [["step", host], ["repeat", "", 3, body]]], "functions": {}})
    # 25 and 75 cycles are halves of bins; 155 is 15 into the second turn, 175 five into its exchange.
    found = busy_before(profile, np.array([0.0, 25, 75, 100, 155, 175, 220, 300]), [0], ("compute", "exchange", "host"))
    assert found[:, 0].tolist() == [
        [0, 0, 0],
        [0, 0, 25],
        [0, 0, 75],
        [0, 0, 100],
        [45, 10, 100],
        [60, 15, 100],
        [90, 30, 100],
        [90, 30, 100],
    ]


def test_what_is_shorter_than_a_bin_is_spread_evenly() -> None:
    """Turns of 40 cycles under bins of 50: of the loop's 120 cycles a share of all 90 of compute."""
    build = Builder("short turns")
    compute = build.step("OnTileExecute", "work", 30, times=3)
    exchange = build.step("DoExchange", "move", 10, times=3)
    body = ["sequence", "", [["step", compute], ["step", exchange]]]
    build.timeline = [{"ipu": 0, "position": 0, "step": compute}]
    profile = build.profile({"entry": ["sequence", "", [["repeat", "", 3, body]]], "functions": {}})
    found = busy_before(profile, np.array([0.0, 50, 100, 150]), [0], ("compute", "exchange"))
    assert np.allclose(found[:, 0], [[0, 0], [37.5, 12.5], [75, 25], [90, 30]])
