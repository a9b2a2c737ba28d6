"""Reports from profiles made by hand: their text as golden files, and their numbers against the tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import pandas as pd
import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.profiler.report_names import REPORTS
from tests.profiler.scheduled import scheduled_profile
from tests.widgets.large import large_profile
from workbench.errors import InputError
from workbench.profiler.advice.compare import compare
from workbench.profiler.advice.tips import cycle_tips
from workbench.profiler.profile import Profile
from workbench.profiler.report import Report, face, text_table
from workbench.profiler.timeline import told_cut

PROFILES = {
    "fits": handmade_profile(),
    "over": handmade_profile(fits=False),
    "pipeline": handmade_pipeline(),
}

each_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
each_report = pytest.mark.parametrize("name", REPORTS)


def report_of(profile: Profile, name: str) -> Report:
    found = getattr(profile, name)
    assert isinstance(found, Report)
    return found


@pytest.mark.parametrize("which", PROFILES)
@each_report
def test_text(which: str, name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"profiler/{name}.{which}.txt", report_of(PROFILES[which], name).to_text())


@each_profile
@each_report
def test_every_report_keeps_the_contract(profile: Profile, name: str) -> None:
    report = report_of(profile, name)
    assert report.name == name
    assert report.sentence
    assert "\n" not in report.sentence
    assert json.loads(json.dumps(report.data)).keys() == report.data.keys()
    assert len(report.to_pandas().columns) > 0


# Summary


@pytest.mark.parametrize(
    ("ipus", "replicas", "said"), [(1, 1, "1"), (2, 1, "2"), (2, 4, "2 for each of 4 replicas, 8 in all")]
)
def test_the_ipus_of_a_summary_are_told_with_their_replicas(ipus: int, replicas: int, said: str) -> None:
    plain = handmade_profile() if ipus == 1 else handmade_pipeline()
    profile = replace(plain, meta={**plain.meta, "replicas": replicas})
    assert dict(profile.summary.lines)["IPUs"] == said


@pytest.mark.parametrize(
    ("name", "architecture", "said"), [("ipu2", "ipu2", "ipu2, "), ("bow", "ipu2", "bow (architecture ipu2), ")]
)
def test_a_target_names_its_architecture_where_that_is_another_word(name: str, architecture: str, said: str) -> None:
    plain = handmade_profile()
    target = {**plain.meta["target"], "name": name, "architecture": architecture}
    found = dict(replace(plain, meta={**plain.meta, "target": target}).summary.lines)["Target"]
    assert found.startswith(f"{said}{target['tiles_per_ipu']} tiles × ")


def test_verdict_is_first() -> None:
    fits, over = PROFILES["fits"], PROFILES["over"]
    # Tile 3: 5,864 B always live; the lowest free places for 4,200 B of variables: 10,064 B of 16,384 B and of 6,000 B.
    assert str(fits).splitlines()[0] == "Fits: worst tile 3 uses 9.8 KiB of 16.0 KiB, 6.2 KiB to spare."
    assert str(over).splitlines()[0] == "Does not fit: worst tile 3 uses 9.8 KiB of 5.9 KiB, 4.0 KiB over."
    assert str(PROFILES["pipeline"]).startswith("Fits: worst tile 0 of IPU 0 uses ")


@pytest.mark.parametrize(("spread", "doubted"), [(0.6, False), (0.65, True), (2.0, True)])
def test_a_verdict_within_the_spread_of_whole_models_is_in_doubt(spread: float, doubted: bool) -> None:
    """10,064 B of 16,384 B: half as much again fits, 1.63 times as much does not; the median says nothing of it."""
    fits, known = PROFILES["fits"], {"typical": 3.0, "spread": spread, "numbers": 58}
    caution = with_errors(fits, {"memory": known}).summary.caution
    assert bool(caution) == doubted
    assert not doubted or caution.startswith(
        "The verdict is in doubt: of 58 published memories of whole models nine of"
    )
    over = PROFILES["over"]  # 10,064 B of 6,000 B
    assert bool(with_errors(over, {"memory": {**known, "spread": 0.67}}).summary.caution) is False
    assert bool(with_errors(over, {"memory": {**known, "spread": 0.68}}).summary.caution) is True


def test_how_sure_a_verdict_is_are_counts_of_published_cases() -> None:
    """10,064 B of 16,384 B hold to 1.628 times as much, 10,064 B of 6,000 B from 0.596 times on."""
    ratios = (0.5, 0.59, 0.6, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.62, 1.63, 2.0)
    known = {"memory": {"typical": 0.1, "spread": 0.1, "numbers": len(ratios), "ratios": list(ratios)}}
    fits, over = (with_errors(PROFILES[name], known).summary for name in ("fits", "over"))
    assert fits.data["turnout"] == {"fits": True, "factor": 16384 / 10064, "alike": 11, "numbers": 13}
    assert over.data["turnout"] == {"fits": False, "factor": 6000 / 10064, "alike": 11, "numbers": 13}
    for summary in (fits, over):  # two of thirteen are more than one in ten
        assert summary.caution == summary.sureness
        assert summary.sureness.startswith("The verdict is in doubt: it holds if the real memory is ")
        assert summary.sureness.endswith(" times the modelled, as for 11 of 13 published models")
        assert summary.sureness in str(summary)
        assert summary.sureness in summary._repr_mimebundle_()["text/html"]
    known["memory"]["ratios"] = [*ratios[:-1], *[1.0] * 8]  # one of twenty
    sure = with_errors(PROFILES["fits"], known).summary
    assert sure.caution == ""
    assert sure.sureness == (
        "It holds if the real memory is at most 1.63 times the modelled, as for 19 of 20 published models"
    )
    assert sure.sureness in str(sure)


def test_an_error_that_no_number_told_is_not_known() -> None:
    unknown = with_errors(PROFILES["fits"], {"vertex reduce": {"typical": 0.0, "spread": 0.0, "numbers": 4}})
    assert unknown.summary.caution == ""
    assert unknown.summary.error_text("cycles") == "typical error not known"
    assert unknown.explain(step=3).error is None
    assert "typical error not known" in str(unknown.explain(step=3))


def with_errors(profile: Profile, known: dict[str, Any]) -> Profile:
    """The profile with other typical errors."""
    return Profile(meta={**profile.meta, "typical_errors": known}, tables=profile.tables, arrays=profile.arrays)


# Memory


@each_profile
@pytest.mark.parametrize("measure", ["peak", "allocated"])
def test_memory_sums_to_the_tiles(profile: Profile, measure: str) -> None:
    for ipu in range(profile.ipus):
        report = profile.memory.of(ipu=ipu, measure=measure)  # type: ignore[arg-type]
        tiles = profile.tiles.query("ipu == @ipu")
        expected = tiles["total_bytes"]
        if measure == "peak":
            expected = tiles["always_live_bytes"] + tiles["not_always_live_bytes"]
        assert (sum(report.by_category.values()) == expected.to_numpy()).all()
        assert (sum(report.by_liveness.values()) == (tiles["always_live_bytes"] + tiles["not_always_live_bytes"])).all()


@each_profile
def test_details_of_a_tile(profile: Profile) -> None:
    found = profile.memory.of(ipu=0).tile(3)
    row = profile.tiles.query("ipu == 0 and tile == 3").iloc[0]
    assert found["total_bytes"] == sum(found["by_category"].values()) == sum(found["by_region"].values())
    assert found["total_bytes"] == row["total_bytes"]
    assert found["total_with_gaps_bytes"] == row["total_with_gaps_bytes"]


def test_bytes_of_one_variable() -> None:
    memory = PROFILES["fits"].memory
    bias = memory.variables(["dense_1/bias"])["dense_1/bias"]
    assert bias.tolist() == [400 if tile == 3 else 0 for tile in range(16)]


def test_tile_map_shows_steps_and_variables() -> None:
    tile_map = PROFILES["fits"].tile_map
    assert tile_map.of("cycles", 3).values.tolist() == [600 if tile == 3 else 300 for tile in range(16)]
    assert tile_map.of("variable", "dense_1/bias").values.sum() == 400
    assert tile_map.of("received", 2).values.sum() == 16_000
    column, row = tile_map.places
    assert len(set(zip(column.tolist(), row.tolist(), strict=True))) == 16


def test_a_tile_map_moves_to_the_ipu_of_its_step_or_variable() -> None:
    tile_map = PROFILES["pipeline"].tile_map.of(ipu=0)
    # Step 4 is stage 1's: 500 cycles on each of 16 tiles of IPU 1. Step 9 copies from IPU 0 to IPU 1, both are busy.
    found = tile_map.of("cycles", 4)
    assert (found.ipu, found.values.tolist()) == (1, [500] * 16)
    assert found.sentence.startswith("Modelled tile map of IPU 1, cycles of 4: ")
    assert [tile_map.of(quantity, 9).ipu for quantity in ("cycles", "sent", "received")] == [0, 0, 1]
    assert tile_map.of("variable", "stage_1/kernel").ipu == 1
    assert tile_map.of("parameter").ipu == 0
    # What the other end of a copy sends is not sent here.
    assert tile_map.of("sent", 9, ipu=1).values.tolist() == [0] * 16


@pytest.mark.parametrize(
    ("quantity", "item", "ipu", "said"),
    [
        ("cycles", 4, 0, "step 4 is not of IPU 0"),
        ("received", 2, 1, "step 2 is not of IPU 1"),
        ("variable", "stage_0/stash", 1, "variable 'stage_0/stash' is not of IPU 1"),
    ],
)
def test_a_tile_map_of_an_ipu_without_the_step_is_refused(quantity: str, item: Any, ipu: int, said: str) -> None:
    profile = PROFILES["pipeline"]
    with pytest.raises(InputError, match=f"^{re.escape(said)}. Expected: an IPU that has it: {1 - ipu}"):
        profile.tile_map.of(quantity, item, ipu=ipu)


# Liveness


@each_profile
def test_liveness_is_the_table(profile: Profile) -> None:
    for ipu in range(profile.ipus):
        view = profile.liveness_view.of(ipu=ipu)
        table = profile.liveness.query("ipu == @ipu")
        assert view.live_bytes.tolist() == table["live_bytes"].tolist()
        by_tile = sum(profile.liveness_view.of(ipu=ipu, tile=tile).live_bytes for tile in range(16))
        assert by_tile.tolist() == table["live_bytes"].tolist()
        for position, live in enumerate(view.live_bytes.tolist()):
            shown = view.at(position)
            assert shown.loc[~shown["always_live"].astype(bool), "bytes"].sum() == live


def test_an_early_tensor_used_late_is_first_at_the_peak() -> None:
    profile = PROFILES["fits"]
    view = profile.liveness_view
    # From position 9 to 10 one gradient of 32,000 B begins and nothing ends.
    assert view.live_bytes[10] - view.live_bytes[9] == 32_000
    assert view.at(10)["name"].tolist()[:2] == ["dense_1/kernel grad", "images"]
    assert view.lifetime(5) == [(0, 10)]
    assert view.lifetime(0) == [(0, 12)]


# X-ray


@each_profile
def test_xray_heights_sum_to_what_is_live(profile: Profile) -> None:
    for ipu in range(profile.ipus):
        always = profile.arrays["always_live"][ipu]
        for tile in range(16):
            xray, view = profile.xray.of(ipu, tile), profile.liveness_view.of(ipu=ipu, tile=tile)
            expected = (view.live_bytes + always[tile]).tolist()
            assert [xray.bytes_at(position) for position in range(xray.positions)] == expected


@each_profile
def test_xray_rectangles_never_overlap(profile: Profile) -> None:
    for tile in (0, 3):
        rectangles = profile.xray.of(0, tile).rectangles.to_dict("records")
        for place, one in enumerate(rectangles):
            for other in rectangles[:place]:
                apart = one["last"] < other["first"] or other["last"] < one["first"]
                beside = one["address"] >= other["address"] + other["bytes"]
                assert apart or beside or other["address"] >= one["address"] + one["bytes"]


# Time


@each_profile
def test_causes_sum_to_the_total(profile: Profile) -> None:
    for ipu in range(profile.ipus):
        own = profile.cycle_breakdown.query("ipu == @ipu")
        table = dict(zip(own["cause"], own["cycles"], strict=True))
        assert profile.trace.proportions(ipu) == table
        assert sum(table.values()) == profile.total_cycles


def test_window_of_the_trace() -> None:
    # The first iteration begins at 1,100: exchange to 2,140, matmul to 2,740, relu to 2,790.
    found = PROFILES["fits"].trace.window(0, 2_000, 2_750)
    phases = found[found["lane"] == "phase"]
    assert phases[["name", "cycles_from", "cycles_to"]].to_numpy().tolist() == [
        ["dense_1/exchange", 1_100, 2_140],
        ["dense_1/matmul", 2_140, 2_740],
        ["dense_1/relu", 2_740, 2_790],
    ]
    layers = found[found["lane"] == "layer"]
    assert layers[["name", "cycles_from", "cycles_to", "merged"]].to_numpy().tolist() == [["dense_1", 1_100, 2_790, 3]]
    assert PROFILES["fits"].trace.proportions(0, 2_000, 2_750) == {"exchange": 140, "compute": 610}


@pytest.mark.parametrize("limit", [6, 12, 30])
def test_a_window_keeps_to_its_limit_and_covers_all(limit: int) -> None:
    profile = PROFILES["fits"]
    found = profile.trace.window(0, max_rects=limit)
    assert 0 < len(found) <= limit
    phases = found[found["lane"] == "phase"].sort_values("cycles_from")
    assert (phases["cycles_to"].to_numpy()[:-1] <= phases["cycles_from"].to_numpy()[1:]).all()
    assert (phases["cycles_to"] - phases["cycles_from"]).sum() == profile.total_cycles


def test_a_window_tells_what_its_limit_took() -> None:
    """Two steps, three turns of nine, then two: 31 executions."""
    trace = PROFILES["fits"].trace
    every, few = trace.window(0), trace.window(0, max_rects=2)
    assert every.attrs == {"steps": 31, "merged_below_cycles": 0, "left_out": 0}
    assert int((every["lane"] == "phase").sum()) == 31
    # A share of one rectangle a lane: all that is shorter than twice the window is one.
    assert few.attrs == {"steps": 31, "merged_below_cycles": 2 * PROFILES["fits"].total_cycles, "left_out": 0}
    assert len(few) == 1
    assert trace.window(0, max_rects=0).attrs["left_out"] == 1
    with pytest.warns(UserWarning, match="the first 30 of 31 rows: give max_rects for more"):
        told_cut(every.head(30), 1, asked=False, limit="max_rects")


def test_bands_tell_which_steps_have_not_all_of_theirs() -> None:
    """The matmul has three bands, the relu one."""
    trace = PROFILES["fits"].trace
    whole = trace.tiles(0, 2_140, 2_790)
    assert (len(whole), whole.attrs["left_out"]) == (4, 0)
    assert trace.tiles(0, 2_140, 2_790, max_rects=1).attrs["left_out"] == 1
    assert trace.tiles(0, 2_140, 2_790, max_rects=0).attrs["left_out"] == 2


def test_bands_of_single_tiles() -> None:
    bands = PROFILES["fits"].trace.tiles(0, 2_140, 2_740)
    assert bands[["tile_from", "tile_to", "cycles_from", "cycles_to"]].to_numpy().tolist() == [
        [0, 2, 2_140, 2_440],
        [3, 3, 2_140, 2_740],
        [4, 15, 2_140, 2_440],
    ]


def test_tile_balance_of_a_window() -> None:
    # One tile of 600 and fifteen of 300: 5,100 / (16 x 600).
    assert PROFILES["fits"].trace.tile_balance(0, 2_140, 2_740) == pytest.approx(5_100 / 9_600)


def test_active_tiles_of_a_window() -> None:
    trace = PROFILES["fits"].trace
    assert trace.active_tiles(0, 2_140, 2_740) == 16  # the matmul of the first layer, on all tiles
    assert (trace.active_tiles(0, 0, 1_000), trace.tile_balance(0, 0, 1_000)) == (0, 1)  # a copy from the host


def test_one_tile_of_many_is_even_with_itself() -> None:
    trace = PROFILES["fits"].trace
    # The matmul of the second layer from 2,930 on: 400 cycles on four tiles alike; then the loss, 90 on one.
    assert (trace.tile_balance(0, 3_330, 3_420), trace.active_tiles(0, 3_330, 3_420)) == (1, 1)
    assert trace.tile_balance(0, 2_930, 3_420) == 1
    assert trace.active_tiles(0, 2_930, 3_420) == (400 * 4 + 90 * 1) / 490


# Pipeline


def test_bubbles_of_two_equal_stages() -> None:
    """Four micro-batches on two stages, so (N - 1) / (G + N - 1) = 1 / 5 of the columns; copies are busy."""
    pipeline = PROFILES["pipeline"].pipeline
    # Forward columns begin at 600: five of 600 with four copies of 200, then backward ones of 1,000, updates of 150.
    assert pipeline.span == (600, 10_350)
    for column_cycles, first in ((600, 600), (1_000, 4_400)):
        last = first + 5 * column_cycles + 4 * 200
        bubbles = pipeline.bubbles(first, last)
        assert bubbles["fraction"] == pytest.approx((column_cycles * 5 / (5 * column_cycles + 800)) / 5)
        assert bubbles["by_cause"] == {"idle_fill": column_cycles, "idle_drain": column_cycles}
        assert bubbles["by_ipu"] == [column_cycles, column_cycles]


def test_most_of_the_idle_cycles_is_more_than_half_of_them() -> None:
    # Two times 600 + 1,000 cycles on either IPU: filling is half of it, draining the other half.
    alike = "is idle, the largest parts of it filling and draining, alike within the typical error; "
    assert alike in PROFILES["pipeline"].pipeline.sentence
    # Nothing fills or drains: all of it is waiting.
    assert "is idle, most of it waiting for a stage; " in scheduled_profile("Sequential", 2, 4).pipeline.sentence


def test_a_pipeline_in_replicas_says_how_many_there_are() -> None:
    def build() -> Any:
        return keras.Sequential([keras.Input((16,)), keras.layers.Dense(8), keras.layers.Dense(4)])

    common: dict[str, Any] = {"stages": [0, 1], "gradient_accumulation_steps": 4, "mode": "training", "batch_size": 4}
    target = wb.target("ipu2", tiles_per_ipu=4)
    said = wb.compile(build, replicas=2, target=target, **common).profile.pipeline.sentence
    assert said.startswith("Grouped pipeline of 2 stages in each of 2 replicas, 4 micro-batches: ")
    assert " % of 2 IPUs × " in said


def test_blocks_name_stage_micro_batch_and_direction() -> None:
    blocks = PROFILES["pipeline"].pipeline.blocks()
    assert len(blocks) == 2 * 2 * 4
    third = blocks[blocks["micro_batch"] == 3]
    assert third[["ipu", "stage", "direction", "cycles_from"]].to_numpy().tolist() == [
        [0, 0, "forward", 3_000],
        [1, 1, "forward", 3_800],
        [1, 1, "backward", 8_000],
        [0, 0, "backward", 9_200],
    ]
    busy = blocks.assign(cycles=blocks["cycles_to"] - blocks["cycles_from"]).groupby("ipu")["cycles"].sum()
    assert busy.tolist() == [4 * 1_600, 4 * 1_600]


@each_profile
def test_tree_has_every_step_once(profile: Profile) -> None:
    steps = [row["step"] for row in profile.program_tree.nodes if row["step"] >= 0]
    assert sorted(steps) == profile.steps["id"].tolist()
    root = next(row for row in profile.program_tree.nodes if row["parent"] < 0 and not row["function"])
    assert root["cycles"] == profile.total_cycles


def test_search_of_the_tree() -> None:
    found = PROFILES["fits"].program_tree.search("DENSE_2/m")
    assert [row["step"] for row in found] == [6]


# Operations, roofline, source


@each_profile
def test_layers_cover_every_step(profile: Profile) -> None:
    layers = profile.operations.layers
    assert layers["cycles"].sum() == profile.steps["total_cycles"].sum()
    parts = ["forward_cycles", "recompute_cycles", "backward_cycles", "update_cycles"]
    assert (layers[parts].sum(axis=1) == layers["cycles"]).all()
    assert layers["flops"].sum() == profile.operators["flops"].sum()


def test_steps_outside_any_layer_are_no_layer_of_the_sentence() -> None:
    """A function has none; the network by hand has two and a loss, and steps that belong to none of them."""
    operands = np.ones((2, 64, 64), np.float32)
    profile = wb.compile(lambda a, b: a @ b, *operands, target=wb.target("ipu2", tiles_per_ipu=4)).profile
    assert profile.operations.layers["layer"].tolist() == [""]
    assert profile.operations.sentence.startswith("1 operator; the dearest, ")
    assert profile.roofline.sentence.startswith("1 operator: ")
    named = set(PROFILES["fits"].operations.layers["layer"])
    assert named == {"dense_1", "dense_2", "loss", ""}
    assert PROFILES["fits"].operations.sentence.startswith("2 operators in 2 layers and loss; ")


def test_gradients_summed_on_one_ipu_are_one_stage() -> None:
    def build() -> Any:
        return keras.Sequential([keras.Input((16,)), keras.layers.Dense(4, name="out")])

    target = wb.target("ipu2", tiles_per_ipu=4)
    profile = wb.compile(build, batch_size=4, mode="training", gradient_accumulation_steps=2, target=target).profile
    said = profile.pipeline.sentence
    assert said.startswith("Not pipelined: one stage runs 2 micro-batches one after another, ")


def test_roofline_points() -> None:
    points = PROFILES["fits"].roofline.points.set_index("name")
    # 16 tiles x 4 B/cycle x 1 GHz; 48,000 B received in three runs.
    assert PROFILES["fits"].roofline.ceilings["exchange"] == 64e9
    assert points.loc["dense_1 matmul", "intensity"] == 1_920_000 / 48_000
    assert points.loc["dense_1 matmul", "rate"] == pytest.approx(1_920_000 / 4_920 * 1e9)
    assert np.isinf(points.loc["dense_2 matmul", "intensity"])


@each_profile
def test_lines_and_the_rest_sum_to_the_total(profile: Profile) -> None:
    source = profile.source
    assert source.lines["cycles"].sum() + source.unattributed_cycles == profile.ipus * profile.total_cycles


def test_a_line_of_source() -> None:
    line = PROFILES["fits"].source.lines.set_index("source").loc["model.py:5"]
    assert line["cycles"] == 3 * (400 + 400)
    assert line["steps"] == [6, 8]


def test_a_gap_is_what_nothing_ever_uses_wherever_it_is_told() -> None:
    """What ends below 7,664 on tile 3 stays; the rest moves up by 136 B, which nothing uses then."""
    fits = PROFILES["fits"]
    told = "tile 3 is fullest with 9.2 KiB and 600 B that hold data at other steps, of 16.0 KiB"
    assert told in fits.memory.sentence  # 9,464 B at step 10, and no gap below the last address, 10,064
    table, arrays = dict(fits.tables["allocation"]), dict(fits.arrays)
    above = (table["tile"] == 3) & (table["address"] >= 7_664)
    table["address"] = table["address"] + np.where(above, 136, 0)
    arrays["total_with_gaps"] = arrays["total_with_gaps"].copy()
    arrays["total_with_gaps"][0, 3] += 136
    moved = Profile(meta=fits.meta, tables={**fits.tables, "allocation": table}, arrays=arrays)
    told = "with 9.2 KiB, 600 B that hold data at other steps and 136 B of gaps, of 16.0 KiB"
    assert told in moved.memory.sentence
    assert "tile 3 is fullest with 9.8 KiB and 136 B of gaps, of" in moved.memory.of(measure="allocated").sentence
    assert moved.memory.tile(3)["gap_bytes"] == 136
    assert moved.xray.gaps == [(7_664, 7_800)]
    assert "136 B of them gaps" in moved.xray.sentence
    assert moved.fragmentation == pytest.approx(136 / (10_064 + 136))
    assert compare(fits, moved).headlines.set_index("quantity")["after"]["fragmentation"] == moved.fragmentation


# Insights


@each_profile
def test_insights_are_the_tables(profile: Profile) -> None:
    insights = profile.insights
    peak = profile.peak
    categories = insights.peak_categories
    assert sum(categories.values()) == profile.explain(tile=peak.tile, step=peak.step, ipu=peak.ipu).value
    assert insights.histogram["tiles"].sum() == len(profile.tiles)
    assert insights.highest_tiles["total_with_gaps_bytes"].max() == profile.max_tile_bytes
    needed = profile.tiles["always_live_bytes"] + profile.tiles["not_always_live_bytes"]
    assert insights.highest_tiles["needed_bytes"].tolist() == sorted(needed, reverse=True)[:5]
    assert insights.largest_variables["bytes"].iloc[0] == profile.variables["bytes"].max()


def test_a_tip_names_its_number() -> None:
    assert PROFILES["fits"].insights.tips == [
        "exchange takes 35.9 % of all cycles: less data has to move when neighbouring layers share a layout, "
        "or with half precision"
    ]


# Text


def test_causes_have_one_name_in_sentences_tables_pictures_and_tips() -> None:
    profile = PROFILES["pipeline"]
    # 2 x 10,350 cycles: 3,200 between the IPUs, 1,600 that fill, 1,600 that drain, 600 that wait for the host.
    told = profile.trace.sentence
    for words in (
        "between IPUs 15.5 %",
        "idle: filling 7.7 %",
        "idle: draining 7.7 %",
        "idle: waits for the host 2.9 %",
    ):
        assert words in told
    for text in (str(profile.trace), face("trace").html(profile.trace), str(compare(PROFILES["fits"], profile))):
        assert not re.search("idle[ _](fill|drain|wait)|inter ipu", text)
    assert "idle: draining (blank)" in profile.trace.svg()
    waiting = {"ipu": np.array([0, 1]), "cause": np.array(["idle_wait_stage"] * 2), "cycles": np.array([0, 6_210])}
    tables = {**profile.tables, "cycle_breakdown": waiting}
    # 6,210 of 20,700 cycles.
    assert next(cycle_tips(Profile(meta=profile.meta, tables=tables, arrays=profile.arrays))).startswith(
        "idle: waits for a stage takes 30.0 % of all cycles"
    )


def test_names_are_text_in_html() -> None:
    profile = PROFILES["fits"]
    bad = Profile(
        meta={**profile.meta, "name": "<script>alert(1)</script>"}, tables=profile.tables, arrays=profile.arrays
    )
    html = bad._repr_mimebundle_()["text/html"]
    assert "<script>alert" not in html


def test_text_tables_say_what_is_left_out() -> None:
    frame = PROFILES["fits"].variables[["name", "bytes"]]
    text = text_table(frame, rows=2).splitlines()
    assert text[0].split() == ["name", "bytes"]
    assert text[-1] == "... 13 more rows"
    assert len(text) == 4


def test_long_texts_of_a_column_stay_different() -> None:
    """Fixes that begin the same are told apart by their ends; the first rows of a diagnosis were one text once."""
    start = "micro-batches of 2, 4 to a weight update, with the model in float16"
    fixes = [f"{start}, with half partials", f"{start}, with offloading"]
    text = text_table(pd.DataFrame({"fix": fixes, "other": [start, "a"]})).splitlines()
    for line, fix in zip(text[1:], fixes, strict=True):  # 60 letters: a third before, and the mark
        assert line.startswith(f"{fix[:20]}…{fix[-39:]}  ")
    assert text[1].endswith(f"{start[:59]}…")  # of which there is one: cut at its end
    same = pd.DataFrame({"fix": [f"{'a' * 40}{letter}{'b' * 60}" for letter in "xy"]})
    assert [line[40] for line in text_table(same).splitlines()[1:]] == ["x", "y"]


def test_numbers_of_a_table_have_the_digits_that_people_read() -> None:
    numbers = [21692.0, 1_307_467.0, 15321.4, 9568.4, 2.556e-05, 8.923e12, float("inf"), 0.0, -360.0]
    text = text_table(pd.DataFrame({"n": numbers})).split()
    assert text[1:] == ["21692", "1307467", "15321", "9568", "2.556e-05", "8.923e+12", "inf", "0", "-360"]


def test_reports_of_an_ipu_share_what_stands_at_its_positions() -> None:
    profile = handmade_pipeline()
    first, second = (profile.liveness_view.of(ipu=ipu).there for ipu in (0, 1))
    assert profile.playback.of(ipu=0).there is first
    assert second is not first
    assert not first.name.flags.writeable
    assert handmade_pipeline().playback.of(ipu=0).there is not first


# Numbers in words


def test_one_is_said_of_one_and_thousands_are_grouped() -> None:
    many = large_profile(ipus=1, tiles=1472, steps=2_400)
    assert " of 1,472 tiles, from " in many.tile_map.sentence
    assert "1,472 tiles × " in many.summary.to_text()
    last = int(many.steps["id"].max())
    assert last >= 1_000
    assert many.tile_map.of("cycles", last).sentence.startswith(f"Modelled tile map of IPU 0, cycles of {last:,}: ")
    assert f"place {last:,} of {last + 1:,}: " in many.playback.of(position=last).sentence
    assert many.xray.of(ipu=0, tile=1_471).sentence.startswith("Modelled addresses of tile 1,471 of IPU 0: ")
    one = large_profile(ipus=1, tiles=1, steps=120)
    assert "1 of 1 tile, from " in one.tile_map.sentence
    g = wb.tiles.Graph("ipu2", tiles=1)
    x = g.variable("x", (4,), "float32").map_linearly(tiles=1)
    negate = g.compute_set("negate")
    negate.vertex("popops::UnaryOp1DInPlace", tile=0, op="NEGATE", inOut=x)
    said = dict(wb.profile(g.sequence(negate)).summary.lines)["Program"]
    assert said == "1 variable, 1 step, 1 compute set, 0 exchanges, 1 vertex, 0 functions"
    # The loss is one tile's alone.
    assert "loss/softmax, 1 tile computes, 90 cycles" in PROFILES["fits"].playback.of(position=7).sentence
    assert "dense_2/matmul, 4 tiles compute, " in PROFILES["fits"].playback.of(position=6).sentence
