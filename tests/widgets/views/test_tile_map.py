"""The tile map at a step of the program: what is sent is what the program holds and does there."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.kit.javascript import evaluate
from tests.widgets.large import large_profile
from tests.widgets.views.payloads import columns
from workbench.profiler.report import face
from workbench.profiler.reports.memory import Memory
from workbench.widgets.kit import tile_bytes
from workbench.widgets.kit.frames import BLOCK
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views import tile_map

EVERY = pytest.mark.parametrize("make", [handmade_profile, handmade_pipeline])


def asked(view: Any, message: Any) -> list[Any]:
    told: list[Any] = []
    view.send = lambda content, buffers=None: told.append((content["program"], buffers[0]))
    view._handle_custom_msg(message, [])
    return told


@EVERY
def test_the_page_shows_the_bytes_and_cycles_of_each_place(make: Any, node: str) -> None:
    profile = make()
    for ipu in range(profile.ipus):
        report = profile.playback.of(ipu=ipu)
        ((told, buffer),) = asked(face("tile_map").widget(profile.tile_map), {"program": {"ipu": ipu, "block": 0}})
        sent = {name: values.tolist() for name, values in columns(told, buffer).items()}
        about = {name: told[name] for name in ("ipu", "positions", "position", "fullest_bytes", "names")}
        source = f"""
            import {{Programs}} from "WIDGETS/kit/frames.js";
            import {{measured}} from "WIDGETS/views/tile_map.js";
            const programs = new Programs(16), found = [];
            programs.take({about!r}, {sent!r});
            for (let now = 0; now < {len(report.steps)}; now++)
              for (const part of ["live", "compute", "sent", "received"]) {{
                const view = {{programs, live: true, now, columns: {{}}, measure: `step_${{part}}`}};
                view.data = {{tiles: 16, held: [0, 1]}};
                found.push([...measured(view, {ipu}).values]);
              }}
            console.log(JSON.stringify(found));
        """
        drawn = np.array(evaluate(node, source)).reshape(len(report.steps), 4, 16)
        curve = profile.liveness_view.of(ipu=ipu)
        assert drawn[:, 0].sum(axis=1).tolist() == (curve.live_bytes + curve.always_live_bytes).tolist()
        assert drawn[:, 0].max(axis=1).tolist() == curve.worst_tile_bytes.tolist()
        for place, step in enumerate(report.steps.tolist()):
            for way, values in zip(("sent", "received"), drawn[place, 2:], strict=True):
                assert values.tolist() == profile.tile_map.of(way, step, ipu=ipu).values.tolist()
            computed = profile.tile_map.of("cycles", step, ipu=ipu).values
            causes = profile.tables["steps"]["cause"][profile.tables["steps"]["id"] == step]
            assert drawn[place, 1].tolist() == (computed if causes[0] == "compute" else 0 * computed).tolist()


@EVERY
def test_a_chosen_step_is_found_where_it_is_chosen(make: Any) -> None:
    profile = make()
    view = face("tile_map").widget(profile.tile_map)
    for ipu in range(profile.ipus):
        steps = profile.playback.of(ipu=ipu).steps
        for place, step in enumerate(steps.tolist()):
            ((told, _),) = asked(view, {"program": {"ipu": ipu, "step": step, "position": place}})
            assert (told["at"], told["ipu"], told["positions"]) == (place, ipu, len(steps))
            ((told, _),) = asked(view, {"program": {"ipu": ipu, "step": step, "position": None}})
            assert told["at"] == np.flatnonzero(steps == step)[0]
        for nothing in (None, 10**6, "0"):
            ((told, _),) = asked(view, {"program": {"ipu": ipu, "step": nothing, "position": 0}})
            assert told["at"] == profile.playback.of(ipu=ipu).position


@pytest.mark.parametrize(
    "message",
    [
        {},
        "program",
        {"program": 1},
        {"program": {}},
        {"program": {"ipu": 1, "block": 0}},
        {"program": {"ipu": 0, "block": -1}},
        {"program": {"ipu": 0, "block": 1}},
        {"program": {"ipu": True, "block": "0"}},
    ],
)
def test_nonsense_is_not_answered(message: Any) -> None:
    assert asked(face("tile_map").widget(handmade_profile().tile_map), message) == []


def test_a_page_without_a_kernel_has_frames_spread_over_the_program() -> None:
    report = handmade_profile().tile_map
    state = tile_map.stored(report)
    sent, program = columns(state["data"], state["buffer"]), state["data"]["program"]
    assert {0, program["position"], program["positions"] - 1} <= set(sent["place"].tolist())
    assert len(sent["place"]) == len(program["names"]) <= tile_map.STORED
    assert state["data"]["block"] == BLOCK


def drawn_first(report: Any, ipu: int, node: str) -> Any:
    """The numbers and the sentence of an IPU as the page draws a report when it opens."""
    data, buffer = tile_map.payload(report)
    sent = {name: values.tolist() for name, values in columns(data, buffer).items()}
    source = f"""
        import {{measured, said}} from "WIDGETS/views/tile_map.js";
        const data = {json.dumps(data)}, columns = {{}};
        for (const [name, values] of Object.entries({json.dumps(sent)})) columns[name] = Float64Array.from(values);
        const selection = {{get: (name) => name === "ipu" ? {ipu} : null}};
        const view = {{data, columns, measure: data.first, selection}};
        console.log(JSON.stringify([[...measured(view, {ipu}).values], said(view)]));
    """
    return evaluate(node, source)


@pytest.mark.parametrize(
    ("quantity", "item"),
    [("total", None), ("cycles", 2), ("sent", 1), ("received", 1)],
)
def test_what_a_report_was_asked_for_is_drawn_and_said_of_each_ipu(quantity: str, item: Any, node: str) -> None:
    report = handmade_pipeline().tile_map.of(quantity, item)
    for ipu in report.ipus:
        mine = report.of(quantity, item, ipu=ipu)
        assert drawn_first(report, ipu, node) == [mine.values.tolist(), mine.sentence]


def test_an_ipu_without_what_was_asked_for_holds_zero_bytes_of_it_among_many_ipus(node: str) -> None:
    profile = large_profile(ipus=12, tiles=32, steps=120)
    table = profile.tables["variables"]
    name = str(table["name"][table["ipu"] == 3][0])
    report = profile.tile_map.of("variable", name)
    other = next(ipu for ipu in range(12) if ipu not in report.ipus)
    selection = Selection()
    view = face("tile_map").widget(report, selection=selection)
    selection.ipu = other
    sent = columns(view.data, view.buffer)
    assert view.data["held"] == [other]
    assert sent["given"].tolist() == [0] * 32
    # a variable chosen there does not bring the first IPU back
    selection.variable = int(table["id"][table["ipu"] == other][0])
    assert view.data["held"] == [other]


def test_a_step_of_another_ipu_is_drawn_where_it_runs(node: str) -> None:
    report = handmade_pipeline().tile_map.of("cycles", 4)  # stage 1's
    assert drawn_first(report, 0, node)[0] == [0] * 16
    assert drawn_first(report, 1, node)[0] == report.values.tolist()


def test_a_category_is_drawn_and_said_in_its_own_words(node: str) -> None:
    # 48,000 bytes of weights spread over 16 tiles of each IPU: 3,000 on each.
    report = handmade_pipeline().tile_map.of("parameter")
    values, said = drawn_first(report, 1, node)
    assert values == [3_000] * 16
    assert said == (
        "Modelled tile map of IPU 1, parameters: 16 of 16 tiles, from 2.9 KiB to 2.9 KiB on tile 0, 46.9 KiB in all"
    )
    # Nothing here is constant: there is no such category to draw, so that it is sent for itself.
    assert drawn_first(report.of("constant"), 0, node)[0] == [0] * 16


def test_a_variable_is_drawn_where_it_is_kept(node: str) -> None:
    report = handmade_pipeline().tile_map.of("variable", "stage_0/stash")
    assert drawn_first(report, 0, node) == [[1_600] * 16, report.sentence]  # 25,600 bytes over 16 tiles
    values, said = drawn_first(report, 1, node)
    assert values == [0] * 16
    assert said.startswith("Modelled tile map of IPU 1, variable of stage_0/stash: 0 of 16 tiles")


def test_of_many_ipus_only_the_one_that_is_shown_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = large_profile(ipus=12, tiles=32, steps=120)
    asked: list[int] = []
    work = Memory.by_category.func
    counted = cached_property(lambda report: asked.append(report.ipu) or work(report))
    counted.__set_name__(Memory, "by_category")
    monkeypatch.setattr(Memory, "by_category", counted)
    view = face("tile_map").widget(profile.tile_map.of(ipu=3))
    assert asked == [3]
    view.selection.ipu = 7
    assert asked == [3, 7]
    first, names = (tile_bytes.by_category(profile.memory, [ipu])[0] for ipu in (3, 7))
    assert first == names  # a category that is hidden or chosen stays the one it was
    every, values = tile_bytes.by_category(profile.memory, range(12))
    assert names == every
    assert values[:, 7].sum() == profile.memory.of(ipu=7).total.sum()


def test_columns_are_numbered_as_numbers_are_written() -> None:
    """Every fourth of 64 columns of 23 tiles, the twelfth number beyond a thousand."""
    drawn = face("tile_map").svg(large_profile(ipus=1, steps=120).tile_map)
    assert ">920<" in drawn
    assert ">1,012<" in drawn


@pytest.mark.parametrize(
    ("values", "unit", "ends"),
    [
        ([307_200, 307_216], "bytes", ["307,200 B", "307,216 B"]),  # 300.0 KiB both
        ([307_200, 409_600], "bytes", ["300.0 KiB", "400.0 KiB"]),
        ([307_200, 307_200], "bytes", ["300.0 KiB", "300.0 KiB"]),  # one value: nothing to tell apart
        ([1_234_000, 1_234_999], "cycles", ["1,234,000 cycles", "1,234,999 cycles"]),  # 1.23 M both
    ],
)
def test_the_ends_of_a_stored_key_do_not_read_alike(values: list[int], unit: str, ends: list[str]) -> None:
    tiles = np.full(16, values[0], dtype=np.int64)
    tiles[3] = values[1]
    profile = handmade_profile()
    steps = profile.tables["steps"]
    computes = int(steps["id"][steps["cause"] == "compute"][0])
    report = profile.tile_map.of("cycles", computes) if unit == "cycles" else profile.tile_map
    vars(report)["values"] = tiles
    assert [each for each in re.findall(r">([^<]*)</text>", tile_map.draw(report)) if each in ends] == ends
