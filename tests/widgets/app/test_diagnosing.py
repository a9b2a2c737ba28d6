"""A diagnosis in the app: how far it is, and what stays of one that is left off."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import workbench as wb
from tests.profiler.advice.fake_compiler import FakeCompiler, over
from workbench.profiler.advice.diagnose import COMPILES, Diagnosis, diagnose
from workbench.widgets.app import App
from workbench.widgets.app import app as app_module
from workbench.widgets.app.form.run import compiled
from workbench.widgets.app.trial import tried
from workbench.widgets.views.diagnosis import DiagnosisView


@pytest.fixture
def app() -> App:
    app = App(wb.ready("mlp", layers=1, hidden=64, input_size=32))
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    app.run.mode.value = "inference"
    app.compile()
    assert app.wait(120)
    return app


def left_off_after(app: App, compiles: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """A diagnosis that is cancelled once so many changes were measured; what the button says that cancels it."""

    def held(executable: Any, request: Any, *, so_far: Callable[[Diagnosis], None], **more: Any) -> Diagnosis:
        def heard(found: Diagnosis) -> None:
            so_far(found)
            if len(found.tried) == compiles:
                app.cancel()

        return diagnose(executable, request, so_far=heard, **more)

    with monkeypatch.context() as patched:
        patched.setattr(app_module, "diagnose", held)
        app.diagnose()
        tooltip = str(app.cancel_button.tooltip)
        assert app.wait(300)
    assert app.progress.data["state"] == "cancelled"
    assert app.cancel_button.tooltip == "Nothing runs that could be stopped"
    return tooltip


def test_how_many_compiles_are_over_of_how_many_there_are_at_most(app: App) -> None:
    heard: list[tuple[str, int, int]] = []
    told = ("state", "most", "over")
    app.progress.observe(lambda change: heard.append(tuple(change.new[name] for name in told)), "data")
    app.diagnose()
    assert app.wait(300)
    assert heard[0] == ("running", COMPILES, 0)
    assert {over for state, _, over in heard if state == "running"} == set(range(len(app.diagnosis.tried) + 1))
    app.compile()
    assert app.wait(120)
    assert app.progress.data["most"] == 0  # its phases are known


def test_what_was_measured_before_a_diagnosis_was_cancelled_stays_and_can_be_applied(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = left_off_after(app, 3, monkeypatch)
    assert told == "Stop the diagnosis: what it has measured stays, and can be applied"
    (view,) = app.mending.children
    assert isinstance(view, DiagnosisView)
    assert (view.live, view.data["ended"]) == (True, True)  # nothing is awaited
    said = app.progress.data["problem"]
    assert said["what"] == "Diagnosing was cancelled after 3 compiles"
    assert said["todo"] == "press Diagnose again; what was measured stays below"
    assert view.data["sentence"].startswith("3 compiled, then it was left off. ")
    assert len(app.diagnosis.tried) == 3
    best = app.diagnosis.fixes[0]
    app.apply(0)
    assert app.wait(120)
    assert app.profile is not None
    assert app.profile.max_tile_bytes == best.verified_bytes
    app.undo()
    assert app.mending.children[0].data["sentence"] == view.data["sentence"]


def test_a_whole_diagnosis_stays_where_a_second_one_is_cancelled(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    app.diagnose()
    assert app.wait(300)
    whole = app.diagnosis
    told = left_off_after(app, 1, monkeypatch)
    assert told == "Stop the diagnosis: the one of before stands again, nothing of this one is kept"
    assert app.progress.data["problem"]["todo"] == "press Diagnose again; the one of before stands below"
    assert app.diagnosis is whole
    assert app.mending.children[0].data["sentence"] == whole.sentence


def test_while_it_goes_on_a_diagnosis_says_nothing_of_what_is_still_to_be_tried() -> None:
    came: list[Diagnosis] = []
    diagnose(over(), FakeCompiler(lambda asked: (12_500, 1)), so_far=came.append)
    assert came[0].sentence == "It is a modelled 2.0 KiB over, and none of these helps"
    came.clear()
    diagnose(over(), FakeCompiler(lambda asked: (11_000, 12_000)), so_far=came.append)
    assert came[0].sentence.startswith("It is a modelled 2.0 KiB over; none of these makes it fit, and ")


def test_what_cancel_says_of_a_compile_and_of_a_try_is_so(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    entries, shown, state = list(app.history.entries), app.profile, dict(app.options.panel.state)
    go_on = threading.Event()
    monkeypatch.setattr(app_module, "compiled", lambda *given: go_on.wait(60) and compiled(*given))
    monkeypatch.setattr(app_module, "tried", lambda *given: go_on.wait(60) and tried(*given))
    for press, told, said in (
        (app.compile, "Stop the compile: nothing of it is kept", "the compile was cancelled"),
        (lambda: app.try_option("allow_recompute"), "Stop trying values: none of this try", "Trying values of"),
    ):
        go_on.clear()
        press()
        assert app.cancel_button.tooltip.startswith(told)
        app.cancel()
        go_on.set()
        assert app.wait(120)
        assert app.progress.data["problem"]["what"].startswith(said)
        assert (app.history.entries, app.profile) == (entries, shown)
    assert app.progress.data["problem"]["todo"] == "press Try again; none of its values is kept"
    assert app.options.panel.state["tried"] == state["tried"]
