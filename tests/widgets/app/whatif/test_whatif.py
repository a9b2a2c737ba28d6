"""What if: what can be moved, what a move compiles, what is drawn of it, its curve, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import Cancelled
from workbench.executable import compile_request
from workbench.widgets.app import App
from workbench.widgets.app.task import Outcome
from workbench.widgets.app.whatif import panel as whatif_panel
from workbench.widgets.app.whatif.knobs import Basis, knobs_of, option_knob, part_stops, whole_stops
from workbench.widgets.app.whatif.newest import Asked, Newest, TooSlow
from workbench.widgets.app.whatif.picture import fastest, through

AMP = "matmuls.poplar_options.availableMemoryProportion"
IO = "io_tiles.num_io_tiles"


@pytest.fixture(scope="module")
def compiled() -> App:
    app = App(wb.ready("mlp", layers=1, hidden=64, input_size=32))
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    app.compile()
    assert app.wait(120)
    return app


@pytest.fixture
def app(compiled: App, monkeypatch: pytest.MonkeyPatch) -> App:
    """Where it was compiled, with no point but that one; on a busy machine too its compiles are quick enough to follow
    a slider."""
    monkeypatch.setattr(whatif_panel, "LIVE_SECONDS", 600.0)
    compiled.whatif.of(Basis.of(compiled.executable), compiled.executable)
    return compiled


def send(app: App, **message: Any) -> dict[str, Any]:
    app.whatif._handle_custom_msg(message, [])
    assert app.whatif.wait(120)
    return dict(app.whatif.state)


def place(app: App, name: str, text: str) -> int:
    knob = next(each for each in app.whatif.knobs if each["name"] == name)
    found: int = knob["texts"].index(text)
    return found


def head(app: App, label: str) -> tuple[float, float]:
    row = next(each for each in app.whatif.data["heads"] if each["label"] == label)
    return row["before"], row["after"]


# What can be moved


@given(st.integers(0, 5000), st.integers(0, 10), st.none() | st.integers(100, 70_000))
def test_stops_of_whole_numbers(value: int, low: int, high: int | None) -> None:
    stops = whole_stops(value, low, high)
    assert value in stops
    assert sorted(set(stops)) == list(stops)
    assert all((low <= each) and (high is None or each <= high) for each in stops if each != value)


def test_stops_by_hand() -> None:
    assert whole_stops(4, 1, None)[:14] == (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24)
    assert whole_stops(4, 1, 12) == (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
    assert part_stops(0.6, 0.0, 10.0)[:3] == (0.0, 0.05, 0.1)
    assert part_stops(0.33, 0.0, None)[6:9] == (0.3, 0.33, 0.35)
    assert part_stops(8.0, None, None)[0] == 2.0


def test_what_can_be_moved_is_what_acts(app: App) -> None:
    names = [knob["name"] for knob in app.whatif.knobs]
    assert names == ["batch_size", "precision", AMP, "ipu_model.tiles_per_ipu"]
    assert app.whatif.state["at"] == {knob["name"]: knob["compiled"] for knob in app.whatif.knobs}
    assert "mlp, training, batch size 4" in app.whatif.state["from"]
    assert not set(names) & set(app.whatif.state["others"])


@pytest.mark.parametrize("name", ["scheduling.algorithm", "optimizations.math.fast", IO])
def test_a_knob_of_an_option_has_its_value(app: App, name: str) -> None:
    knob = option_knob(app.executable.request, name)
    assert knob is not None
    assert knob.values[knob.at] == app.executable.request.options.get(name)
    assert knob.menu == (name != IO)


def test_values_for_each_ipu_have_no_knob(app: App) -> None:
    assert option_knob(app.executable.request.replace(options={AMP: (0.6, 0.2)}), AMP) is None


def test_a_program_by_hand_has_options_alone() -> None:
    g = wb.tiles.Graph("ipu2", tiles=4)
    x = g.variable("x", 16).map_linearly(tiles=4)
    executable = wb.compile(g.sequence(g.fill(x, 1.0)) if hasattr(g, "fill") else g.sequence())
    assert [knob.kind for knob in knobs_of(Basis.of(executable))] == ["option"] * len(knobs_of(Basis.of(executable)))


# What a move draws


def test_a_move_is_compiled_and_drawn_over_the_earlier_picture(app: App) -> None:
    state = send(app, do="move", name="batch_size", at=place(app, "batch_size", "8"), done=False)
    before = app.executable.profile
    after = compile_request(app.executable.request.replace(batch_size=8)).profile
    assert head(app, "Fullest tile") == (before.max_tile_bytes, after.max_tile_bytes)
    assert head(app, "Spare on it") == (before.margin_bytes, after.margin_bytes)
    assert head(app, "Cycles a sample") == (before.total_cycles / 4, after.total_cycles / 8)
    for side, profile, samples in (("before", before, 4), ("after", after, 8)):
        cycles = sum(row[side] for row in app.whatif.data["causes"])
        assert cycles == pytest.approx(profile.tables["cycle_breakdown"]["cycles"].sum() / samples)
    layout = {row["name"]: row for row in app.whatif.data["layout"]}
    tiles = np.frombuffer(app.whatif.buffer, "<i4", layout["after_tiles"]["length"], layout["after_tiles"]["offset"])
    assert tiles.tolist() == (after.arrays["always_live"][0] + after.arrays["live_peak"][0]).tolist()
    assert app.whatif.data["asked"] == "batch size 8"
    assert (state["working"], state["problem"]) == ("", "")
    assert app.executable.profile is before


def test_the_most_of_each_stretch_is_kept(app: App) -> None:
    worst = app.executable.profile.liveness_view.of(ipu=0).worst_tile_bytes
    drawn = through(app.executable.profile, 0)
    assert drawn.max() == max(worst)
    assert len(drawn) <= 480
    assert len(through(app.executable.profile, 3)) == 0


def test_back_is_where_it_was_compiled(app: App) -> None:
    send(app, do="move", name="precision", at=place(app, "precision", "float16"), done=True)
    assert app.whatif.data["asked"] == "precision float16"
    state = send(app, do="back")
    assert state["at"] == {knob["name"]: knob["compiled"] for knob in app.whatif.knobs}
    assert app.whatif.data["asked"] == ""
    assert head(app, "Fullest tile")[0] == head(app, "Fullest tile")[1]


def test_a_slow_model_is_compiled_when_it_is_let_go(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whatif_panel, "LIVE_SECONDS", 0.0)
    state = send(app, do="move", name="batch_size", at=place(app, "batch_size", "24"), done=False)
    assert state["slow"]
    data = app.whatif.data
    send(app, do="move", name="batch_size", at=place(app, "batch_size", "28"), done=False)
    assert app.whatif.data is data
    state = send(app, do="move", name="batch_size", at=place(app, "batch_size", "28"), done=True)
    assert app.whatif.data["asked"] == "batch size 28"
    assert state["slow"]


def test_what_cannot_be_compiled_is_said_and_the_picture_stays(app: App) -> None:
    send(app, do="add", name=IO)
    send(app, do="move", name="batch_size", at=place(app, "batch_size", "2"), done=True)
    data = app.whatif.data
    state = send(app, do="move", name=IO, at=place(app, IO, "32"), done=True)
    assert "16" in state["problem"]
    assert state["working"] == ""
    assert app.whatif.data is data
    state = send(app, do="move", name=IO, at=place(app, IO, "0"), done=True)
    assert state["problem"] == ""


@pytest.mark.parametrize(
    "message",
    [
        {"do": "quit"},
        {"do": "move", "name": "batch_size", "at": "3"},
        {"do": "move", "name": "batch_size", "at": 10_000, "done": True},
        {"do": "move", "name": "<b>", "at": 0},
        {"do": "move", "name": "batch_size", "at": True},
        {"do": "curve", "name": ["x"]},
        {"do": "add", "name": "no.such"},
    ],
)
def test_other_messages_move_nothing(app: App, message: dict[str, Any]) -> None:
    at = dict(app.whatif.state["at"])
    assert send(app, **message)["at"] == at


def test_nothing_is_moved_before_a_compile() -> None:
    app = App("mlp")
    assert send(app, do="move", name="batch_size", at=1, done=True)["from"] == ""


def test_what_was_moved_is_taken_over_into_the_form(app: App) -> None:
    fresh = App(app.executable.request.source)
    fresh.options.controls["ipu_model.tiles_per_ipu"].value = 16
    fresh.compile()
    assert fresh.wait(120)
    send(fresh, do="move", name="batch_size", at=place(fresh, "batch_size", "2"), done=True)
    send(fresh, do="move", name="precision", at=place(fresh, "precision", "float16"), done=True)
    send(fresh, do="move", name=AMP, at=place(fresh, AMP, "0.2"), done=True)
    drawn = fresh.whatif.profile
    send(fresh, do="take")
    assert fresh.wait(120)
    assert (fresh.run.batch_size.value, fresh.run.precision.value) == (2, "float16")
    assert fresh.options.options().get(AMP) == 0.2
    assert fresh.profile is not None
    assert (fresh.profile.max_tile_bytes, fresh.profile.total_cycles) == (drawn.max_tile_bytes, drawn.total_cycles)
    assert len(fresh.history.entries) == 2
    assert fresh.whatif.state["at"] == {knob["name"]: knob["compiled"] for knob in fresh.whatif.knobs}


# Its curve


def test_a_curve_is_of_compiles_along_one_knob(app: App) -> None:
    state = send(app, do="curve", name="batch_size")
    curve = state["curve"]
    assert curve["left"] == 0
    assert 9 <= len(curve["rows"]) <= 10
    for row in curve["rows"][:2]:
        profile = compile_request(app.executable.request.replace(batch_size=int(row["value"]))).profile
        assert (row["bytes"], row["fits"]) == (profile.max_tile_bytes, profile.fits)
        assert row["cycles"] == profile.total_cycles / int(row["value"])
    best = next(row for row in curve["rows"] if row["at"] == curve["best"])
    assert best["cycles"] == min(row["cycles"] for row in curve["rows"] if row["fits"])
    state = send(app, do="move", name="precision", at=place(app, "precision", "float16"), done=True)
    assert state["curve"]["name"] == "precision"
    assert [row["value"] for row in state["curve"]["rows"]] == ["as the model", "float16"]


def test_points_of_a_move_grow_its_curve(app: App) -> None:
    for batch in ("5", "6"):
        send(app, do="move", name="batch_size", at=place(app, "batch_size", batch), done=False)
    assert [row["value"] for row in app.whatif.state["curve"]["rows"]] == ["4", "5", "6"]
    send(app, do="add", name=IO)
    send(app, do="move", name="batch_size", at=place(app, "batch_size", "7"), done=False)
    assert [row["value"] for row in app.whatif.state["curve"]["rows"]] == ["4", "5", "6", "7"]


def test_what_still_compiles_says_nothing_of_what_is_shown_since(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A point of a curve ends, and a move has ended, after another result is shown: no number of theirs is of it."""
    beside = Basis.of(compile_request(app.executable.request.replace(batch_size=8)))
    go_on, began = threading.Event(), threading.Event()

    def held(*given: Any) -> Any:
        began.set()
        assert go_on.wait(60)
        return compile_request(given[0])

    monkeypatch.setattr(whatif_panel, "compile_request", held)
    for message in ({"do": "curve", "name": "batch_size"}, {"do": "move", "name": "batch_size", "at": 0, "done": True}):
        go_on.clear()
        began.clear()
        app.whatif.of(Basis.of(app.executable), app.executable)
        app.whatif._handle_custom_msg(message, [])
        assert began.wait(60)
        app.whatif.of(beside, app.executable)
        state, data = app.whatif.state, app.whatif.data
        go_on.set()
        assert app.whatif.wait(60)
        assert (app.whatif.state, app.whatif.data) == (state, data)
        state = send(app, do="move", name="batch_size", at=place(app, "batch_size", "2"), done=True)
        assert [row["value"] for row in state["curve"]["rows"]] == ["2", "8"]  # and no 1, which was the other's


def test_an_option_that_is_added_while_a_move_compiles(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(whatif_panel, "compile_request", lambda *given: go_on.wait(60) and compile_request(*given))
    app.whatif._handle_custom_msg({"do": "move", "name": "batch_size", "at": 0, "done": True}, [])
    app.whatif._handle_custom_msg({"do": "add", "name": IO}, [])
    go_on.set()
    assert app.whatif.wait(60)
    assert app.whatif.state["working"] == ""
    assert app.whatif.data["asked"] == "batch size 1"


def test_what_is_refused_is_a_row_with_its_reason(app: App) -> None:
    send(app, do="add", name=IO)
    rows = send(app, do="curve", name=IO)["curve"]["rows"]
    assert rows[0]["fits"]
    assert all("16" in row["problem"] and not row["fits"] for row in rows if int(row["value"]) > 16)


def test_the_fastest_that_fits() -> None:
    rows: list[dict[str, Any]] = [
        {"at": 0, "fits": True, "cycles": 5.0, "bytes": 9},
        {"at": 1, "fits": False, "cycles": 1.0, "bytes": 99},
        {"at": 2, "fits": True, "cycles": 3.0, "bytes": 12},
        {"at": 3, "fits": True, "cycles": 3.0, "bytes": 11},
        {"at": 4, "fits": False, "problem": "no"},
    ]
    assert fastest(rows) == 3
    assert fastest(rows[1:2]) is None


# The work that was asked for last


def _giving(number: int) -> Callable[[Any], int]:
    return lambda progress: number


def test_the_newest_of_what_waits_is_done_and_no_other() -> None:
    newest = Newest()
    done: list[int] = []
    go, began = threading.Event(), threading.Event()

    def first(progress: Any) -> int:
        began.set()
        assert go.wait(30)
        return 0

    def record(outcome: Outcome) -> None:
        done.append(outcome.result)

    newest.ask(Asked(work=first, ended=record, within=60))
    assert began.wait(30)
    for number in (1, 2, 3):
        newest.ask(Asked(work=_giving(number), ended=record, within=60))
    go.set()
    assert newest.wait(30)
    assert done == [0, 3]
    assert not newest.busy


def test_work_without_a_limit_is_stopped_by_what_is_newer() -> None:
    newest, ended = Newest(), []
    began = threading.Event()

    def long(progress: Any) -> None:
        began.set()
        for _ in range(10_000_000):
            progress("part")

    newest.ask(Asked(work=long, ended=lambda outcome: ended.append(type(outcome.error))))
    assert began.wait(30)
    newest.ask(Asked(work=lambda progress: None, ended=lambda outcome: ended.append(type(outcome.error))))
    assert newest.wait(60)
    assert ended == [Cancelled, type(None)]


def test_what_takes_too_long_ends_and_takes_what_waits_with_it() -> None:
    newest, ended = Newest(), []
    go, began = threading.Event(), threading.Event()

    def slow(progress: Any) -> None:
        began.set()
        assert go.wait(30)
        progress("part")

    newest.ask(Asked(work=slow, ended=lambda outcome: ended.append(type(outcome.error)), within=0.0))
    assert began.wait(30)
    newest.ask(Asked(work=lambda progress: None, ended=lambda outcome: ended.append(type(None)), within=0.0))
    go.set()
    assert newest.wait(30)
    assert ended == [TooSlow]
