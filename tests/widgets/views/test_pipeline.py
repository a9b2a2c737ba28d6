"""The payload of the pipeline view: what is drawn is what ran, within the budgets."""

from __future__ import annotations

import json
from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.profiler.scheduled import scheduled_profile
from tests.widgets.views.payloads import columns
from workbench.base.causes import CAUSES
from workbench.profiler.profile import Profile
from workbench.widgets import linked
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views import pipeline, pipeline_faces, trace


def whole(profile: Profile) -> tuple[dict[str, Any], dict[str, Any]]:
    data, buffer = pipeline.payload(profile.pipeline, (0.0, float(profile.total_cycles)))
    return data, columns(data, buffer)


def drawn(profile: Profile, kind: str) -> list[tuple[int, int, int, str]]:
    """IPU, start, micro-batch and title of the rectangles of one kind."""
    data, sent = whole(profile)
    lanes = np.repeat(np.arange(profile.ipus), np.diff(data["offsets"]))
    rows = zip(lanes, sent["start"], sent["batch"], (data["bodies"][place] for place in sent["body"]), strict=True)
    return [(int(ipu), int(at), int(batch), body["title"]) for ipu, at, batch, body in rows if body["kind"] == kind]


def test_blocks_are_the_report_s() -> None:
    profile = scheduled_profile("Grouped", 4, 16, recompute=200)
    table = profile.pipeline.blocks().sort_values(["ipu", "cycles_from"])
    expected = [
        (row["ipu"], row["cycles_from"], row["micro_batch"], f"{row['direction']}, stage {row['stage']}")
        for row in table.to_dict("records")
    ]
    assert drawn(profile, "stage") == expected
    # Forward, recompute and backward of 16 micro-batches and an update on each of four IPUs.
    assert len(expected) == 4 * (3 * 16 + 1)


@pytest.mark.parametrize("schedule", ["Grouped", "Interleaved", "Sequential"])
def test_whole_range_is_the_cycle_breakdown(schedule: str) -> None:
    profile = scheduled_profile(schedule, 4, 16)
    data, sent = whole(profile)
    table = profile.cycle_breakdown
    by_cause = table.groupby("cause")["cycles"].sum()
    assert dict(zip(CAUSES, data["spent"], strict=True)) == {cause: by_cause.get(cause, 0) for cause in CAUSES}
    idle = table[table["cause"].str.startswith("idle_")].groupby("ipu")["cycles"].sum()
    assert data["idle_by_ipu"] == [idle[ipu] for ipu in range(4)]
    # What the browser adds up by itself, between two answers.
    found = np.zeros(len(CAUSES))
    for cycles, place in zip(sent["span"].tolist(), sent["body"], strict=True):
        for cause, part in data["bodies"][place]["mix"]:
            found[cause] += cycles * part
    assert found == pytest.approx(data["spent"], abs=1)


def test_a_window_is_answered_with_its_own_causes() -> None:
    """Two equal stages: in the first column only the first works, for 300 cycles from 100 on."""
    view = pipeline.widget(scheduled_profile("Grouped", 2, 8).pipeline)
    view.window = [100.0, 400.0]
    assert dict(zip(CAUSES, view.data["spent"], strict=True)) == {
        **dict.fromkeys(CAUSES, 0),
        "compute": 300,
        "idle_fill": 300,
    }
    assert view.data["idle_by_ipu"] == [0, 300]
    assert view.data["visible"] == [100.0, 400.0]


def test_waiting_says_for_whom() -> None:
    profile = scheduled_profile("Grouped", 2, 4, slower=(1, 100))
    data, _ = whole(profile)
    waits = {(body["title"], body["note"]) for body in data["bodies"] if body["kind"] == "idle"}
    assert {("idle: filling", "for IPU 0"), ("idle: waits for a stage", "for IPU 1")} <= waits
    # The data comes in with the first IPU's host step.
    assert ("idle: waits for the host", "for the host") in waits


def test_choosing_a_micro_batch_finds_it_everywhere() -> None:
    profile = scheduled_profile("Interleaved", 4, 512)
    selection = Selection()
    view = pipeline.widget(profile.pipeline, selection)
    assert view.mine == {}
    selection.micro_batch = 300
    table = profile.pipeline.of_micro_batch(300)
    assert view.mine["micro_batch"] == 300
    assert [(row["ipu"], row["start"]) for row in view.mine["blocks"]] == list(
        zip(table["ipu"], table["cycles_from"], strict=True)
    )
    # Forward and backward on four IPUs, and three copies with two ends each.
    kinds = [row["kind"] for row in view.mine["blocks"]]
    assert (kinds.count("stage"), kinds.count("copy")) == (4 * 2, 3 * 2)
    assert [row["layers"] for row in view.data["stages"]] == [f"block_{stage}" for stage in range(4)]
    selection.clear()
    assert view.mine == {}


@pytest.mark.parametrize("schedule", ["Grouped", "Sequential"])
def test_64_ipus_and_1024_micro_batches_stay_within_the_budget(schedule: str) -> None:
    profile = scheduled_profile(schedule, 64, 1_024)
    data, sent = whole(profile)
    assert len(sent["start"]) + len(sent["col_start"]) <= pipeline.MAX_RECTANGLES
    assert data["group"] > 1
    assert len(json.dumps(data)) + sum(column.nbytes for column in sent.values()) < 1_000_000
    near = pipeline.payload(profile.pipeline, (50_000.0, 52_000.0))[0]
    assert near["group"] == 1


def test_a_rectangle_is_16_bytes() -> None:
    data, _ = whole(scheduled_profile("Grouped", 4, 16))
    widths = {"f8": 8, "f4": 4, "i4": 4, "i2": 2}
    assert sum(widths[part["type"]] for part in data["layout"] if not part["name"].startswith("col_")) == 16


def test_legend_names_what_there_is_and_stays_when_zoomed() -> None:
    report = scheduled_profile("Grouped", 4, 16, recompute=200).pipeline
    expected = ["forward", "recompute", "backward", "update", "between IPUs", "other work"]
    expected += ["idle: filling", "idle: draining", "idle: waits for a stage", "idle: waits for the host"]
    for visible in ((0.0, 30_000.0), (2_000.0, 2_100.0)):
        keys = pipeline.payload(report, visible)[0]["keys"]
        assert [key["label"] for key in keys] == expected
        marks = [(key["colour"], key["pattern"]) for key in keys]
        assert len(set(marks)) == len(marks)
        # Told apart without colour: no two directions have one pattern.
        assert len({pattern for _, pattern in marks[:4]}) == 4


def test_by_hand() -> None:
    profile = handmade_pipeline()
    data, sent = whole(profile)
    assert [batch for _, _, batch, _ in drawn(profile, "stage")] == [0, 1, 2, 3] * 4
    assert data["phases"] == [
        (600, 1_200, "fill", 1),
        (1_400, 3_600, "steady", 3),
        (3_800, 4_400, "drain", 1),
        (4_400, 5_400, "fill", 1),
        (5_600, 9_000, "steady", 3),
        (9_200, 10_200, "drain", 1),
        (10_200, 10_350, "update", 1),
    ]
    assert sent["col_number"].tolist() == list(range(11))
    # Up to the update at 10,200, that is in 9,600 cycles of two IPUs, each waits 600 + 1,000.
    assert data["ideal"] == (
        "Equal stages alone would leave (N - 1) / (G + N - 1) = 20.0 % waiting, N = 2 stages, G = 4; "
        "here it is 16.7 % before the weight update"
    )
    assert [row["depth"] for row in data["stages"]] == [3, 3]


def test_stages_are_told_by_their_outermost_layers() -> None:
    def nested(number: int) -> keras.Layer:
        parts = [keras.layers.Dense(8, name=part) for part in ("query", "key", "value", "output")]
        return keras.Sequential(parts, name=f"encoder_{number}")

    def build() -> keras.Model:
        layers = [nested(0), nested(1), keras.layers.Dense(8, name="pooler"), nested(2)]
        return keras.Sequential([keras.Input((8,)), *layers])

    target = wb.target("ipu2", tiles_per_ipu=4)
    common: dict[str, Any] = {"batch_size": 4, "mode": "inference", "target": target}
    profile = wb.compile(build, stages=[0, 0, 1, 1], gradient_accumulation_steps=2, **common).profile
    assert [row["layers"] for row in whole(profile)[0]["stages"]] == ["encoder_0, encoder_1", "pooler, encoder_2"]
    # What two stages share does not tell them apart.
    assert pipeline.layers_of_stages({0: ("net/a", "net/b"), 1: ("net/c",), 2: ("end",)}) == {
        0: "net/a, net/b",
        1: "net/c",
        2: "end",
    }


def test_program_without_stages_has_a_pipeline_view_that_says_so() -> None:
    data, sent = whole(handmade_profile())
    assert data["sentence"] == "Not pipelined: all steps run one after another"
    assert len(sent["col_start"]) == 0
    assert data["stages"] == data["phases"] == []
    assert "pipeline" not in linked.shown(handmade_profile())


def test_the_trace_knows_the_micro_batch_of_a_block() -> None:
    profile = handmade_pipeline()
    view = trace.widget(profile.trace)
    sent = columns(view.data, view.buffer)
    found = {batch: int((sent["batch1"] == batch).sum()) for batch in set(sent["batch1"].tolist())}
    # On the second IPU: two steps forward and two backward each; copies and the update belong to none.
    assert {batch: found[batch] for batch in range(4)} == dict.fromkeys(range(4), 4)
    assert len(sent["batch1"]) == len(sent["start1"])
    assert sum(sent[name].itemsize for name in ("start1", "cycles1", "step1", "batch1")) == 16
    alone = trace.widget(handmade_profile().trace)
    assert "batch0" not in columns(alone.data, alone.buffer)


def test_columns_that_are_too_many_to_hold_are_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = scheduled_profile("Grouped", 2, 8)
    every = profile.pipeline.columns(0, profile.total_cycles)
    for module in (pipeline, pipeline_faces):
        monkeypatch.setattr(module, "HELD", 5)
    end, last = int(every["cycles_to"][4]), int(every["cycles_to"].max())
    data, sent = whole(profile)
    assert data["phases"][-1] == (end, last, "phases not told apart", len(every) - 5)
    told = [sent[name].tolist() for name in ("col_start", "col_cycles", "col_number", "col_count")]
    assert [column[-1] for column in told] == [end, last - end, 5, len(every) - 5]
