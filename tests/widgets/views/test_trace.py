"""What the trace answers while it is looked at: a range measured, the next place of a step; nonsense is passed over."""

from __future__ import annotations

from typing import Any

import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.widgets.kit.detail import Detail
from workbench.widgets.views.trace import TraceView, payload


class Heard:
    """A view, and what it sends."""

    def __init__(self, profile: Any) -> None:
        self.view = TraceView(profile.trace)
        self.sent: list[Any] = []
        self.view.send = lambda content, buffers=None: self.sent.append(content)  # type: ignore[method-assign]

    def ask(self, message: Any) -> list[Any]:
        self.sent.clear()
        self.view._handle_custom_msg(message, [])
        return list(self.sent)


@pytest.mark.parametrize("make", [handmade_profile, handmade_pipeline])
def test_a_range_is_the_report_s(make: Any) -> None:
    profile = make()
    heard, (first, last) = Heard(profile), (1_200, 3_300)
    ((told,),) = [[each["told"] for each in heard.ask({"range": [first, last]})]]
    assert told["range"] == [first, last]
    assert sum(told["proportions"].values()) == profile.ipus * (last - first)
    ipu = profile.peak.ipu
    assert told["balance"] == profile.trace.tile_balance(ipu, first, last)
    assert told["active"] == profile.trace.active_tiles(ipu, first, last)
    for ipu in range(profile.ipus):
        for cause, cycles in profile.trace.proportions(ipu, first, last).items():
            assert told["proportions"][cause] >= cycles


def test_tiles_are_the_chosen_ipu_s_else_the_fullest_one_s_as_in_the_views_beside() -> None:
    profile = handmade_pipeline()
    profile.meta["verdict"]["peak"] |= {"ipu": 1}
    view = TraceView(profile.trace)
    assert view.data["tiles_of"] == 1
    view.selection.ipu = 0
    view.window = [0.0, 10.0]
    assert view.data["tiles_of"] == 0


def test_the_next_place_of_a_step_is_behind_what_is_in_view_else_the_first() -> None:
    profile = handmade_profile()
    heard = Heard(profile)
    # Host 1,000 and sync 100, then three turns of 3,360: the matmul of the first layer is 1,040 into each.
    places = [1_100 + turn * 3_360 + 1_040 for turn in range(3)]
    assert heard.ask({"step": 3, "ipu": 0, "asked": 5}) == [{"place": [places[0], places[0] + 600], "asked": 5}]
    heard.view.window = [0.0, float(places[0] + 1)]
    assert heard.ask({"step": 3, "ipu": 0, "asked": 6})[0]["place"][0] == places[1]
    heard.view.window = [float(places[2]), float(places[2] + 700)]
    assert heard.ask({"step": 3, "ipu": 0, "asked": 7})[0]["place"][0] == places[0]


def test_a_step_chosen_elsewhere_is_found_from_the_window_on() -> None:
    heard = Heard(handmade_profile())
    places = [1_100 + turn * 3_360 + 1_040 for turn in range(3)]
    inside = [places[1] + 100, places[1] + 200]  # in the middle of the second execution: it is there already
    asked = {"step": 3, "ipu": None, "asked": 1}
    for window, place in (
        (inside, 1),
        ([places[1] + 600, places[1] + 700], 2),
        ([places[2] + 600, places[2] + 700], 0),
    ):
        told = {"place": [places[place], places[place] + 600], "asked": 1, "window": window}
        assert heard.ask({**asked, "window": window}) == [told]


def test_a_step_without_an_ipu_is_found_on_its_own() -> None:
    # Of the pipeline's second stage, on IPU 1: behind the host, the first column and the first copy, and an exchange.
    place = 600 + 600 + 200 + 100
    asked = {"step": 4, "ipu": None, "asked": 1, "window": [0, 10]}
    assert Heard(handmade_pipeline()).ask(asked)[0]["place"] == [place, place + 500]


@pytest.mark.parametrize(
    "message",
    [
        {"step": 3, "ipu": 0, "window": [0]},
        {"step": 3, "ipu": 0, "window": None},
        {"range": [5]},
        {"range": [0, 10**12]},
        {"range": "ab"},
        {"range": None},
        {"step": 10**6, "ipu": 0},
        {"step": 3, "ipu": 9},
        {"step": None, "ipu": None},
        3,
    ],
)
def test_nonsense_is_not_answered(message: Any) -> None:
    assert Heard(handmade_profile()).ask(message) == []


def test_the_dearest_steps_are_the_profile_s() -> None:
    profile = handmade_profile()
    data, _ = payload(profile.trace, Detail(profile), (0.0, float(profile.total_cycles)))
    totals = [row["total"] for row in data["dearest"]]
    assert totals == sorted(profile.steps["total_cycles"], reverse=True)
    by_id = profile.steps.set_index("id")
    assert all(by_id.loc[row["step"], "name"] == row["name"] for row in data["dearest"])
    assert (data["balance"], data["active"]) == (profile.trace.tile_balance(0), profile.trace.active_tiles(0))
