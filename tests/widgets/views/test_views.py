"""Payloads of the views: what they show equals the tables, and stays within the budgets."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import comm
import numpy as np
import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.large import large_profile
from tests.widgets.views.payloads import columns
from workbench.profiler.profile import Profile
from workbench.profiler.report import face
from workbench.widgets import linked
from workbench.widgets.face import views
from workbench.widgets.kit.detail import MAX_RECTANGLES
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views import liveness_view, memory, summary, tile_map, trace

VIEWS = [each.name for each in views()]


def test_liveness_is_the_report_s() -> None:
    report = handmade_profile().liveness_view.of(ipu=0, tile=3)
    data, buffer = liveness_view.payload(report)
    sent = columns(data, buffer)
    assert sent["live"].tolist() == report.live_bytes.tolist()
    assert sent["fullest"].tolist() == report.worst_tile_bytes.tolist()
    assert data["always_live_bytes"] == report.always_live_bytes


@pytest.mark.parametrize("tile", [None, 0, 3])
def test_what_is_listed_at_a_step_sums_to_its_live_bytes(tile: int | None) -> None:
    data, buffer = liveness_view.payload(handmade_profile().liveness_view.of(ipu=0, tile=tile))
    sent = columns(data, buffer)
    for position, live in enumerate(sent["live"]):
        here = (sent["interval_first"] <= position) & (position <= sent["interval_last"])
        assert sent["variable_bytes"][np.unique(sent["interval_variable"][here])].sum() == live


@pytest.mark.parametrize("make", [handmade_profile, handmade_pipeline])
def test_memory_and_tile_map_sum_to_always_live_plus_peak(make: Any) -> None:
    profile = make()
    expected = profile.arrays["always_live"] + profile.arrays["live_peak"]
    for data, buffer in (memory.payload(profile.memory), tile_map.payload(profile.tile_map)):
        sent = columns(data, buffer)["bytes"].reshape(-1, profile.ipus, 16)
        assert len(sent) == len(data["categories"])
        assert sent.sum(axis=0).tolist() == expected.tolist()


def test_busy_cycles_of_a_tile() -> None:
    # Tile 3, three times: 600 + 50 + 400 (spread of 1,600 over four tiles) + 0 + 400 + 400; once the update's 200.
    assert tile_map.busy_cycles(handmade_profile(), [0])[0, 3] == 3 * (600 + 50 + 400 + 400 + 400) + 200


def test_a_chosen_variable_is_shown_on_the_plan() -> None:
    profile = handmade_profile()
    selection = Selection()
    view = tile_map.widget(profile.tile_map, selection)
    assert "variable" not in view.data
    selection.variable = 1
    kept = columns(view.data, view.buffer)["variable"]
    assert view.data["variable"] == "dense_1/bias"
    assert kept.tolist() == [0, 0, 0, 400] + [0] * 12


def test_a_chosen_tile_is_shown_in_the_liveness() -> None:
    profile = handmade_profile()
    views = linked.views(profile, "liveness", "trace")
    liveness = views.view("liveness_view")
    assert liveness.selection is views.view("trace").selection is views.selection
    assert liveness.data["tile"] == 3
    views.selection.tile = 5
    assert liveness.data["tile"] == 5
    liveness.mode = "ipu"
    assert liveness.data["tile"] is None


def test_a_view_is_made_when_the_page_first_sees_it() -> None:
    views = linked.views(handmade_pipeline())
    assert views.names[:2] == ("chips", "summary")
    place = views.names.index("trace")
    (strip,), (summary,), (trace,) = (views.children[number].children for number in (0, 1, place))
    assert [type(each).__name__ for each in (strip, summary, trace)] == ["ChipsView", "SummaryView", "Unseen"]
    for message in ({"seen": 1}, {"seen": False}, [], {}):
        trace._handle_custom_msg(message, [])
    assert views.children[place].children == (trace,)
    trace._handle_custom_msg({"seen": True}, [])
    assert views.children[place].children == (trace, views.view("trace"))
    assert trace.taken
    assert type(views.view("trace")).__name__ == "TraceView"


def test_a_room_stays_for_what_its_view_shows_later() -> None:
    shown = linked.profile_view(handmade_pipeline())
    strip, summary, tabs = shown.children
    assert strip.room is summary.room is tabs.children[0].room is None  # made at once, they never had one
    other = tabs.children[1]
    room = other.room
    tabs.selected_index = 1
    assert other.children == (room, other.see())  # a page may still be drawing it: it is never taken out
    assert room.comm is not None
    other.renew(lambda view: view)
    assert (other.children, room.taken) == ((room,), False)
    other.see()
    assert (other.children, room.taken) == ((room, other.see()), True)
    linked.close(shown)
    assert room.comm is None  # it does not outlive its box
    assert other.see().comm is None


def told_by(view: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a view tells the page it is drawn on from now on, in order."""
    told: list[Any] = []
    monkeypatch.setattr(view, "send", lambda message, buffers=None: told.append(message.get("drawn")))
    return told


def test_another_profile_is_shown_by_the_same_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was seen is sent anew when it is seen again; a page keeps something of every widget that there ever was."""
    before, after = (large_profile(ipus=1, tiles=64, steps=steps) for steps in (40, 60))
    assert linked.shown(before) == linked.shown(after)
    shown = linked.profile_view(before)
    tabs = shown.children[-1]
    for title in ("Trace", "Liveness", "Tile map"):
        tabs.selected_index = tabs.titles.index(title)
    made = {name: shown.view(name) for name in ("summary", "trace", "liveness_view", "tile_map")}
    made["trace"].window = [0.0, 100.0]
    made["liveness_view"].mode = "ipu"
    told = {name: told_by(view, monkeypatch) for name, view in made.items()}
    open_comms, old = len(comm.get_comm_manager().comms), shown.selection
    assert shown.take(after, "Tile map", Selection(tile=5))
    assert len(comm.get_comm_manager().comms) == open_comms + 2  # room of the tab that was open first, and its layout
    assert old.comm is None
    assert [told[name] for name in made] == [["leave", "again"], [], [], ["leave", "again"]]
    assert shown.tab == "Tile map"
    fresh = linked.profile_view(after, "Tile map", Selection(tile=5))
    for name, view in made.items():
        assert shown.view(name) is view
        assert view.selection is shown.selection
        assert (view.data, view.buffer) == (fresh.view(name).data, fresh.view(name).buffer)
    shown.selection.tile = 9
    assert made["liveness_view"].data["tile"] == 9
    old.tile = 2
    assert made["liveness_view"].data["tile"] == 9


def test_views_of_another_kind_of_profile_are_not_taken() -> None:
    shown = linked.profile_view(handmade_profile())
    view = shown.view("summary")
    assert not shown.take(handmade_pipeline(), "", Selection())
    assert shown.view("summary") is view
    assert shown.profile is not None
    assert shown.selection.comm is not None


def test_views_that_are_named_are_made_at_once_under_the_strip() -> None:
    views = linked.views(handmade_pipeline(), "liveness", "trace")
    made = [type(each.children[0]).__name__ for each in views.children]
    assert made == ["ChipsView", "LivenessView", "TraceView"]


def test_a_profile_s_tabs_are_made_when_they_are_opened() -> None:
    shown = linked.profile_view(handmade_pipeline(), "Trace")
    strip, summary, tabs = shown.children
    made = {title: type(each.children[-1]).__name__ for title, each in zip(tabs.titles, tabs.children, strict=True)}
    assert [type(each.children[0]).__name__ for each in (strip, summary)] == ["ChipsView", "SummaryView"]
    assert made.pop("Trace") == "TraceView"
    assert set(made.values()) == {"Unseen"}
    assert shown.tab == "Trace"
    tabs.selected_index = tabs.titles.index("Liveness")
    _, opened = tabs.children[tabs.selected_index].children
    assert type(opened).__name__ == "LivenessView"
    assert opened.selection is shown.selection


def test_trace_answers_a_window_and_shows_tiles_when_steps_are_few() -> None:
    profile = handmade_profile()
    view = trace.widget(profile.trace)
    total = float(profile.total_cycles)
    assert view.data["visible"] == [0.0, total]
    assert view.data["proportions"] == {"compute": 6_020, "exchange": 4_260, "sync": 100, "host": 1_500}
    view.window = [2_140.0, 2_740.0]
    assert view.data["visible"] == [2_140.0, 2_740.0]
    assert view.data["proportions"] == {"compute": 600}
    sent = columns(view.data, view.buffer)
    # The matmul takes 600 cycles on tile 3 and 300 on the others.
    bands = zip(sent["band_low"].tolist(), sent["band_high"].tolist(), sent["band_cycles"].tolist(), strict=True)
    assert {(0, 2, 300.0), (3, 3, 600.0), (4, 15, 300.0)} <= set(bands)


@pytest.mark.parametrize(
    ("change", "status", "headline"),
    [
        ({"fits": True}, "good", "Fits"),
        ({"fits": False}, "bad", "Does not fit"),
    ],
)
def test_summary_says_the_verdict_first(change: dict[str, Any], status: str, headline: str) -> None:
    data = face("summary").stored(handmade_profile(**change).summary)["data"]
    assert (data["status"], data["headline"]) == (status, headline)
    assert data["verdict"].startswith("Worst tile 3")


@pytest.mark.parametrize(("fits", "headline"), [(True, "Fits"), (False, "Does not fit")])
def test_a_verdict_in_doubt_is_said_first_and_marked(fits: bool, headline: str) -> None:
    made = handmade_profile(fits=fits)
    known = {"memory": {"typical": 0.1, "spread": 2.0, "numbers": 58}}
    doubted = Profile(meta={**made.meta, "typical_errors": known}, tables=made.tables, arrays=made.arrays)
    data = face("summary").stored(doubted.summary)["data"]
    assert (data["status"], data["headline"]) == ("close", headline)
    assert data["caution"].startswith("The verdict is in doubt")


def test_the_stored_picture_holds_the_notes_of_all_cards_whole() -> None:
    made = handmade_profile()
    numbers = {"typical": 0.371, "spread": 1.3, "numbers": 58}
    known = {"memory": numbers, "cycles": numbers}
    report = Profile(meta={**made.meta, "typical_errors": known}, tables=made.tables, arrays=made.arrays).summary
    drawn = " ".join(html.unescape(each) for each in re.findall("<text[^>]*>([^<]*)</text>", summary.draw(report)))
    notes = [card["note"] for card in summary.cards(report)]
    assert max(map(len, notes)) > 70  # longer than the width of a card
    assert [note for note in notes if note not in drawn] == []


def test_unmodelled_operations_and_what_if_machines_are_alerts() -> None:
    data = face("summary").stored(handmade_profile(fits=False).summary)["data"]
    alerts = {group["title"]: group["items"] for group in data["groups"] if group["alert"]}
    assert alerts["By the generic rule, not modelled on their own"] == ["sort × 2 in dense_2"]
    assert alerts["Not a real machine"] == ["tiles_per_ipu=16", "bytes_per_tile=6000"]


def test_four_ipus_of_five_thousand_steps_stay_within_the_budget() -> None:
    """First pictures of all views: under 2 MB, 16 bytes a step and a rectangle, at most 20,000 rectangles."""
    profile = large_profile(ipus=4, tiles=1472, steps=5_000)
    sizes = {}
    for name in VIEWS:
        view = face(name).widget(getattr(profile, name))
        sizes[name] = len(view.buffer) + len(json.dumps(view.data))
    assert sum(sizes.values()) < 2_000_000
    view = face("trace").widget(profile.trace)
    lengths = [part["length"] for part in view.data["layout"] if part["name"].startswith("start")]
    assert sum(lengths) <= MAX_RECTANGLES
    widths = {"f8": 8, "f4": 4, "i4": 4}
    block = [widths[part["type"]] for part in view.data["layout"] if part["name"] in ("start0", "cycles0", "step0")]
    assert sum(block) == 16


def test_an_unknown_view_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"^there is no view 'heat'. Expected: one of: code, exchange, insights, ipus, liveness,"
    ):
        linked.views(handmade_profile(), "heat")
