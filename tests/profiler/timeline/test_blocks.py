"""The blocks of a profile: what they say of the calls and loops around them, and that long loops are not walked."""

from __future__ import annotations

import pytest

from tests.engine.small_programs import Builder, sequence
from tests.profiler.handmade import handmade_profile
from tests.profiler.measured import compiled
from workbench.engine.graph.origin import Origin
from workbench.engine.program import Call, If, Overlap, Repeat
from workbench.errors import InputError
from workbench.profiler.collect import collect


def test_a_window_skips_whole_iterations() -> None:
    b = Builder()
    step = b.compute(20)  # 200 cycles
    profile = collect(compiled(b.program(Repeat(times=10**9, body=step))))
    rows = profile.blocks(0, cycles_from=200 * 10**6 + 50, cycles_to=200 * 10**6 + 450)
    assert list(zip(rows["iteration"], rows["cycles_from"], strict=True)) == [
        (10**6, 200 * 10**6),
        (10**6 + 1, 200 * 10**6 + 200),
        (10**6 + 2, 200 * 10**6 + 400),
    ]
    assert len(profile.blocks(0, max_rows=7)) == 7


def test_blocks_name_stage_micro_batch_direction_and_layer() -> None:
    b = Builder(ipus=2)
    b.functions["first"] = b.compute(20, ipu=0, origin=Origin(layer="dense", direction="recompute"))
    b.functions["second"] = b.compute(70, ipu=1)  # 200 and 500 cycles
    first = Call(function="first", stage=0, direction="forward", micro_batch=3)
    second = Call(function="second", stage=1, direction="backward", micro_batch=0)
    column = Overlap(branches=(first, second), phase="steady")
    profile = collect(compiled(b.program(Repeat(times=4, body=sequence(column)))))
    rows = profile.blocks(cycles_from=1500, cycles_to=2000)
    told = rows[["ipu", "step", "stage", "micro_batch", "layer", "cause", "cycles_from", "cycles_to"]]
    assert list(told.itertuples(index=False, name=None)) == [
        (0, 0, 0, 6, "dense", "compute", 1500, 1700),
        (1, 1, 1, 3, "", "compute", 1500, 2000),
    ]


def test_a_branch_without_arms_takes_no_time() -> None:
    b = Builder()
    profile = collect(compiled(b.program(If(arms=(), name="none"), b.compute(20))))
    assert profile.timeline.root.cycles == profile.total_cycles == 200
    assert len(profile.blocks()) == 1


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InputError, match=r"cycles_from is 5 and cycles_to 2.*ends where it begins or later"):
        handmade_profile().blocks(cycles_from=5, cycles_to=2)
    assert handmade_profile().blocks(cycles_from=5, cycles_to=5).shape[0] <= 1


def test_rows_that_are_left_out_are_counted_and_told() -> None:
    b = Builder(ipus=2)
    both = sequence(b.compute(20, ipu=0), b.compute(20, ipu=1))
    profile = collect(compiled(b.program(Repeat(times=10**6, body=both))))
    with pytest.warns(UserWarning, match=r"the first 10,000 of 2,000,000 rows: give max_rows for more"):
        found = profile.blocks()
    assert (len(found), found.attrs["left_out"]) == (10_000, 2 * 10**6 - 10_000)
    assert profile.blocks(max_rows=7).attrs["left_out"] == 2 * 10**6 - 7
    assert profile.blocks(1, max_rows=7).attrs["left_out"] == 10**6 - 7
    assert len(profile.blocks(0, cycles_from=0, cycles_to=4000, max_rows=2**70)) == 10
    window = profile.blocks(0, cycles_from=0, cycles_to=4000)  # ten turns of 400 cycles
    assert (len(window), window.attrs["left_out"]) == (10, 0)


def test_a_cut_pipeline_is_told_and_avoidable() -> None:
    b = Builder(ipus=2)
    b.functions["first"] = b.compute(20, ipu=0)
    b.functions["second"] = b.compute(70, ipu=1)
    first = Call(function="first", stage=0, direction="forward", micro_batch=1)
    second = Call(function="second", stage=1, direction="forward", micro_batch=0)
    column = Overlap(branches=(first, second), phase="steady")
    pipeline = collect(compiled(b.program(Repeat(times=15_000, body=sequence(column))))).pipeline
    with pytest.warns(UserWarning, match=r"the first 20,000 of 30,000 rows"):
        assert len(pipeline.blocks()) == 20_000
    assert pipeline.blocks(max_rows=100).attrs["left_out"] == 29_900
    every = pipeline.blocks(max_rows=10**6)
    assert (len(every), every.attrs["left_out"]) == (30_000, 0)
    columns = pipeline.columns(max_rows=40)
    assert (len(columns), columns.attrs["left_out"], len(pipeline.columns())) == (40, 14_960, 15_000)
