"""The view of exchanges: what is sent is the report's, every arrow, and the page puts the same together."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.kit.javascript import evaluate
from tests.widgets.views.payloads import columns
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views import exchange


@pytest.fixture(scope="module")
def profile() -> Any:
    return wb.profile("cnn", batch_size=2, mode="training", target=wb.target("ipu2", tiles_per_ipu=64))


def test_arrows_into_a_tile_are_what_the_step_says_it_receives(profile: Any) -> None:
    report = profile.exchange
    data, buffer = exchange.payload(report)
    sent = columns(data, buffer)
    received = np.bincount(sent["arrow_to"], sent["arrow_bytes"], data["tiles"])[report.tile]
    assert received == sent["tile_received"][report.tile] == report.vectors["received"][report.tile] > 0
    row = sent["step"].tolist().index(report.step)
    assert sent["tile_received"].sum() == sent["bytes_received"][row]
    steps = report.profile.steps
    assert sent["bytes_received"][row] == steps.loc[steps["id"] == report.step, "bytes_received"].item()
    assert sent["tile_sent"].sum() == sent["bytes_sent"][row]
    assert data["part"]["known"] == [report.tile]
    assert data["part"]["explained"][str(report.tile)]["value"] == report.cycles


def test_the_steps_are_those_of_the_ipu_that_move_bytes() -> None:
    report = handmade_pipeline().exchange
    for ipu in range(2):
        wanted = report.steps[report.steps["ipu"] == ipu]
        data, buffer = exchange.payload(report.of(step=int(wanted["step"].iloc[0])))
        sent = columns(data, buffer)
        assert sent["step"].tolist() == wanted["step"].tolist()
        assert sent["total_cycles"].tolist() == wanted["total_cycles"].tolist()
        assert [data["names"][place] for place in sent["name"]] == wanted["name"].tolist()


def test_a_page_without_a_kernel_has_the_arrows_of_some_tiles(profile: Any) -> None:
    state = exchange.stored(profile.exchange)
    known, sent = state["data"]["part"]["known"], columns(state["data"], state["buffer"])
    assert len(known) > 1
    for tile in known:
        table = profile.exchange.of(tile=tile).to_pandas()
        into, out = sent["arrow_to"] == tile, sent["arrow_from"] == tile
        assert sorted(sent["arrow_bytes"][into | out]) == sorted(table["bytes"])
    large = wb.profile("cnn", batch_size=2, mode="training").exchange
    assert len(exchange.stored(large)["buffer"]) < 120_000


def test_a_tile_and_a_step_that_are_asked_for_are_sent(profile: Any) -> None:
    view = exchange.widget(profile.exchange)
    sent: list[Any] = []
    view.send = lambda content, buffers=None: sent.append((content, buffers))
    steps = profile.exchange.steps
    step = int(steps.loc[steps["cause"] == "exchange", "step"].iloc[0])
    for message in ({"exchange": {"step": step, "tile": 3}}, {"exchange": {"step": step}}):
        view._handle_custom_msg(message, [])
    for message in ({"exchange": {"step": -4}}, {"exchange": {"step": "1"}}, {"exchange": 5}, [], {"exchange": {}}):
        view._handle_custom_msg(message, [])
    assert [content["part"]["tile"] for content, _ in sent] == [3, profile.exchange.of(step=step).busiest_tile]
    told, buffers = sent[0]
    found = columns(told["part"], buffers[0])
    table = profile.exchange.of(step=step, tile=3).to_pandas()
    assert sorted(found["arrow_bytes"]) == sorted(table["bytes"])


def test_another_ipu_has_its_own_exchanges() -> None:
    selection, report = Selection(), handmade_pipeline().exchange
    view = exchange.widget(report, selection)
    first = view.data["ipu"]
    selection.ipu = 1 - first
    assert view.data["ipu"] == 1 - first
    steps = report.steps.set_index("step")
    assert steps.loc[view.data["part"]["step"], "ipu"] == 1 - first


def test_a_view_that_is_opened_later_shows_the_chosen_ipu() -> None:
    report, selection = handmade_pipeline().exchange, Selection()
    selection.ipu = 1 - report.ipu
    view = exchange.widget(report, selection)
    assert (view.data["ipu"], view.data["movers"]) == (1 - report.ipu, [0, 1])
    selection.ipu = 7  # no such
    assert view.data["ipu"] == 1 - report.ipu


def test_the_page_sums_to_the_same(profile: Any, node: str) -> None:
    report = profile.exchange
    told, own = exchange.part(report, [report.tile])
    plain = {name: np.asarray(values).tolist() for name, (_, values) in own.items()}
    source = f"""
        import {{Parts, between, costOf, summed}} from "WIDGETS/views/exchange.js";
        const parts = new Parts(), told = {json.dumps(told)};
        parts.take(told, {json.dumps(plain)});
        const found = parts.of(told.step, told.tile), cost = costOf(found.parts, told.tile);
        console.log(JSON.stringify([summed(found.ends.in), found.ends.in.length, found.ends.out.length,
            cost.cycles, cost.decides, [...between(found.ends, {len(report.vectors["sent"])})]]));
    """
    received, senders, receivers, cycles, decides, between = evaluate(node, source)
    assert (received, senders, receivers) == tuple(
        report.data[name] for name in ("received_bytes", "senders", "receivers")
    )
    assert (cycles, decides) == (report.cycles, report.decided_by)
    table = report.to_pandas()
    assert between == np.bincount(table["tile"], table["bytes"], len(between)).tolist()


def test_pictures_say_what_the_step_does() -> None:
    report = handmade_profile().exchange
    assert f"step {report.step}" in report.svg()
    chart = report.figure()
    assert {each.type for each in chart.data} == {"heatmap", "scatter"}
    assert "<img" in exchange.html(report)


def test_arrows_that_are_not_drawn_are_told(profile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report = profile.exchange
    counts = {way: len(report.partners(way)) for way in ("in", "out")}
    most = max(counts.values())
    assert "arrows:" not in report.svg()
    monkeypatch.setattr(exchange, "PICTURE_ARROWS", 1)
    monkeypatch.setattr(exchange, "FIGURE_ARROWS", 1)
    words = {"in": "that come in", "out": "that go out"}
    told = " and ".join(f"1 of {count} {words[way]}" for way, count in counts.items() if count)
    assert most > 1
    assert f"arrows: {told} are shown, those with most bytes" in report.svg()
    assert report.figure().layout.title.text.endswith(f"; arrows: {told} are shown, those with most bytes")
