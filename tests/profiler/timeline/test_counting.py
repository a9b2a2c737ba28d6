"""Blocks of a window are counted without being unrolled: as many as come when they are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.random_programs import programs
from tests.engine.small_programs import Builder
from tests.profiler.handmade import handmade_pipeline
from tests.profiler.measured import compiled
from workbench.engine.program import Repeat, TileProgram
from workbench.profiler.collect import collect
from workbench.profiler.profile import Profile
from workbench.profiler.timeline import BlockCounts, block_rows


def unrolled(profile: Profile, first: int, last: int, ipu: int | None = None) -> int:
    return sum(1 for _ in block_rows(profile, ipu, first, last))


@settings(max_examples=30, deadline=None)
@given(programs(), st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 10**4)), min_size=1, max_size=4))
def test_as_many_as_come(program: TileProgram, windows: list[tuple[int, int]]) -> None:
    profile = collect(compiled(program))
    counts, end = BlockCounts(profile), profile.timeline.root.cycles + 1
    assert counts.within(0, end) == unrolled(profile, 0, end)
    for one, other in windows:
        first, last = sorted((one % end, other % end))
        assert counts.within(first, last) == unrolled(profile, first, last)


def test_every_window_of_a_pipeline() -> None:
    profile = handmade_pipeline()
    counts, end = BlockCounts(profile), profile.timeline.root.cycles + 1
    for first in range(0, end, max(1, end // 23)):
        for last in range(first, end, max(1, end // 19)):
            assert counts.within(first, last) == unrolled(profile, first, last)
            assert BlockCounts(profile, 1).within(first, last) == unrolled(profile, first, last, 1)


def test_a_loop_of_any_length_is_counted_at_once() -> None:
    b = Builder()
    step = b.compute(20)  # 200 cycles
    counts = BlockCounts(collect(compiled(b.program(Repeat(times=10**12, body=step)))))
    assert counts.within(0, 200 * 10**12) == 10**12
    assert counts.within(50, 450) == 3
    assert counts.longest(0, 7) == 1400
    assert counts.longest(50, 7) == 1400
