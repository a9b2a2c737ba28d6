"""A diagnosis in the app: how far it is, and what stays of one that is left off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import workbench as wb
from tests.profiler.advice.fake_compiler import FakeCompiler, over
from workbench.profiler.advice.diagnose import COMPILES, Diagnosis, diagnose
from workbench.widgets.app import App
from workbench.widgets.app import app as app_module
from workbench.widgets.views.diagnosis import DiagnosisView


@pytest.fixture
def app() -> App:
    app = App(wb.ready("mlp", layers=1, hidden=64, input_size=32))
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    app.run.mode.value = "inference"
    app.compile()
    assert app.wait(120)
    return app


def left_off_after(app: App, compiles: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A diagnosis that is cancelled once so many changes were measured."""

    def held(executable: Any, request: Any, *, so_far: Callable[[Diagnosis], None], **more: Any) -> Diagnosis:
        def heard(found: Diagnosis) -> None:
            so_far(found)
            if len(found.tried) == compiles:
                app.cancel()

        return diagnose(executable, request, so_far=heard, **more)

    with monkeypatch.context() as patched:
        patched.setattr(app_module, "diagnose", held)
        app.diagnose()
        assert app.wait(300)
    assert app.progress.data["state"] == "cancelled"


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
    left_off_after(app, 3, monkeypatch)
    (view,) = app.mending.children
    assert isinstance(view, DiagnosisView)
    assert (view.live, view.data["ended"]) == (True, True)  # nothing is awaited
    said = app.progress.data["problem"]
    assert said["what"] == "Diagnosing was cancelled after 3 compiles"
    assert said["todo"] == "press it again; what was measured stays below"
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
    left_off_after(app, 1, monkeypatch)
    assert app.diagnosis is whole
    assert app.mending.children[0].data["sentence"] == whole.sentence


def test_while_it_goes_on_a_diagnosis_says_nothing_of_what_is_still_to_be_tried() -> None:
    came: list[Diagnosis] = []
    diagnose(over(), FakeCompiler(lambda asked: (12_500, 1)), so_far=came.append)
    assert came[0].sentence == "It is 2.0 KiB over, and none of these helps"
    came.clear()
    diagnose(over(), FakeCompiler(lambda asked: (11_000, 12_000)), so_far=came.append)
    assert came[0].sentence.startswith("It is 2.0 KiB over; none of these makes it fit, and ")
