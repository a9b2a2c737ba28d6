"""The app over several IPUs: stages that are found, cuts moved by hand, replicas, and the cure of a missing count."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from workbench.errors import InputError, WorkbenchError
from workbench.executable import PHASES
from workbench.widgets.app import App
from workbench.widgets.app.form.run import AUTO, BY_HAND, EVEN, FOUND
from workbench.widgets.app.ribbon import Ribbon

STEPS = "pipeline.gradient_accumulation_steps"


def deep() -> App:
    app = App(wb.ready("mlp", layers=5, hidden=128, input_size=64))
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    app.options.controls["auto_select_ipus"].value = 2
    app.run.batch_size.value = 8
    app.run.precision.value = "float32"
    return app


def ribbon_of(box: Any) -> list[Ribbon]:
    """The ribbons that an app shows."""
    if isinstance(box, Ribbon):
        return [box]
    return [ribbon for each in getattr(box, "children", ()) for ribbon in ribbon_of(each)]


def compile_(app: App) -> None:
    app.compile()
    assert app.wait(300)


def test_a_ready_model_s_stages_are_found_and_moved_by_hand() -> None:
    app = deep()
    assert app.request().stages == AUTO
    turns: list[str] = []
    app.progress.observe(lambda change: turns.append(change.new["turn"]), "data")
    compile_(app)
    assert "split 1 of at most 8" in turns
    assert [each["name"] for each in app.progress.data["phases"]] == [*PHASES, "profile"]
    assert app.profile is not None
    assert app.options.controls[STEPS].value == 16  # four fillings, as `wb.autosplit` takes where none are given
    set_too = "Set for these stages, in the form too: pipeline.gradient_accumulation_steps = 16"
    assert app.progress.data["text"].endswith(set_too)
    assert "changed since" not in app.bar.form.value
    assert len(app.profile.stages) == 2
    (ribbon,) = ribbon_of(app)
    (cut,) = ribbon.data["cuts"]
    other = cut - 1 if cut > 1 else cut + 1
    ribbon._handle_custom_msg({"cuts": [other]}, [])
    assert app.wait(300)
    assert "Set for" not in app.progress.data["text"]
    assert app.run.stages.value == BY_HAND
    assert app.executable.request.stages == [ribbon.data["names"][other - 1]]
    assert f"stages=['{ribbon.data['names'][other - 1]}']" in app.code.code.replace('"', "'")
    (moved,) = ribbon_of(app)
    assert moved.data["cuts"] == [other]
    assert moved.data["measured"]["cycles"] == list(moved.found.cycles) != ribbon.data["measured"]["cycles"]
    app.run.stages.value = FOUND
    assert app.request().stages == AUTO


def test_what_a_pipeline_lacks_is_set_by_a_button() -> None:
    app = deep()
    app.run.cut_by_hand(["hidden_2"])
    compile_(app)
    assert isinstance(app.error, WorkbenchError)
    assert app.error.mends == {"gradient_accumulation_steps": 4}
    assert app.progress.data["problem"]["cure"] == "Set gradient accumulation steps to 4, and compile"
    app.progress._handle_custom_msg("anything", [])
    assert app.options.controls[STEPS].value == 1
    app.progress._handle_custom_msg("mend", [])
    assert app.wait(300)
    assert app.options.controls[STEPS].value == 4
    assert app.profile is not None
    assert app.error is None


def test_another_source_has_no_cuts_by_hand() -> None:
    app = deep()
    app.run.cut_by_hand(["dense"])
    assert app.run.stages.value == BY_HAND
    app.picker.box.selected_index = 0
    assert app.run.cuts == []
    assert app.run.stages.options == (EVEN, FOUND)


def test_one_ipu_has_no_ribbon() -> None:
    app = deep()
    app.options.controls["auto_select_ipus"].value = 1
    compile_(app)
    assert ribbon_of(app) == []


def test_replicas_are_ipus_of_their_own() -> None:
    app = deep()
    app.run.replicas.value = 2
    request = app.request()
    assert (request.replicas, request.stages) == (2, None)
    assert "(16 samples to a weight update)" in app.bar.form.value
    compile_(app)
    assert app.profile is not None
    assert app.profile.meta["replicas"] == 2
    app.run.replicas.value = 3
    with pytest.raises(InputError, match="2 IPUs are selected, for 3 replicas"):
        app.request()
    assert "select 3 IPUs" in app.code.problem


def test_what_says_how_stages_are_cut_is_what_is_asked_for() -> None:
    """The layers of a ready model are not known before it is built, and three cannot be spread over four IPUs."""
    app = App()
    app.options.controls["auto_select_ipus"].value = 2
    assert app.run.stages.options == (EVEN, FOUND)
    assert app.run.stages.value == EVEN
    app.picker.box.selected_index = 1  # a ready model
    assert app.run.stages.options == (FOUND,)
    assert app.run.stages.value == FOUND
    assert app.request().stages == AUTO
    kept = app.run.state()
    app.picker.box.selected_index = 0  # three rows
    assert app.run.stages.value == EVEN
    assert app.request().stages == [0, 0, 1]
    app.options.controls["auto_select_ipus"].value = 4
    assert (app.run.stages.options, app.request().stages) == ((FOUND,), AUTO)
    app.run.restore({**kept, "stages": EVEN})
    assert app.run.stages.value == FOUND
