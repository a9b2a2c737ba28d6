"""The X-ray's payload and picture: rectangles sum to what is live at every place, on every tile."""

from __future__ import annotations

import itertools

import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.views.payloads import columns
from workbench.profiler.memory import live_bytes
from workbench.profiler.report import face
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views import xray


@pytest.mark.parametrize("tile", [0, 3, 15])
def test_at_every_place_the_rectangles_sum_to_the_live_bytes(tile: int) -> None:
    profile = handmade_profile()
    report = profile.xray.of(0, tile)
    data, buffer = xray.payload(report)
    sent = columns(data, buffer)
    curve = profile.liveness_view.of(ipu=0, tile=tile)
    for place, live in enumerate(curve.live_bytes.tolist()):
        here = (sent["first"] <= place) & (place <= sent["last"])
        assert sent["bytes"][here].sum() == live + curve.always_live_bytes
    assert sent["step"].tolist() == live_bytes.positions(profile, 0).tolist()


def test_rectangles_of_one_place_do_not_overlap() -> None:
    data, buffer = xray.payload(handmade_profile().xray)
    sent = columns(data, buffer)
    for place in range(data["positions"]):
        here = (sent["first"] <= place) & (place <= sent["last"])
        starts = sorted(zip(sent["address"][here].tolist(), sent["bytes"][here].tolist(), strict=True))
        for (low, size), (next_low, _) in itertools.pairwise(starts):
            assert low + size <= next_low


def test_the_view_follows_the_chosen_tile_and_ipu() -> None:
    profile, selection = handmade_pipeline(), Selection()
    view = face("xray").widget(profile.xray, selection=selection)
    assert (view.data["ipu"], view.data["tile"]) == (profile.peak.ipu, profile.peak.tile)
    selection.tile = 2
    assert view.data["tile"] == 2
    selection.ipu = 1
    assert view.data["ipu"] == 1


def test_picture_table_and_figure() -> None:
    report = handmade_profile().xray
    assert f"X-ray of tile {report.tile}" in report.svg()
    assert "always" in xray.html(report)
    assert report.figure().data
    assert set(xray.stored(report)) == {"data", "buffer"}


def test_rectangles_that_are_not_drawn_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    report = handmade_profile().xray
    count = len(report.rectangles)
    assert "are shown" not in report.svg() + report.figure().layout.title.text
    monkeypatch.setattr(xray, "DRAWN", 4)
    told = "of {} rectangles are shown, those with most bytes × places in the program"
    assert count > 4
    assert f"4 {told.format(count)}" in report.svg()
    assert report.figure().layout.title.text.endswith(f"; 2 {told.format(count)}")
