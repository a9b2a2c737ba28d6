"""The form set to what was asked for an earlier result, and back."""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from workbench.widgets.app import App
from workbench.widgets.app.builder.layers import Layer
from workbench.widgets.app.form import source as app_source

USE, UNDO = "Use its settings", "Undo its settings"
AMP = "matmuls.poplar_options.availableMemoryProportion"


@pytest.fixture
def app() -> App:
    app = App()
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    return app


def compiled(app: App) -> Any:
    app.compile()
    assert app.wait(120)
    assert app.error is None
    return app.history.entries[-1]


def offered(app: App) -> str:
    """What the button beside the form's line says, "" where there is none."""
    return "" if app.bar.back.layout.display == "none" else str(app.bar.back.description)


def show(app: App, place: int) -> None:
    app.history.box.children[place].children[0].click()


def test_the_form_is_set_to_an_earlier_result_and_back(app: App) -> None:
    assert offered(app) == ""
    first = compiled(app)
    assert offered(app) == ""  # the form says what is shown
    app.run.batch_size.value, app.run.precision.value = 16, "float16"
    app.options.set({AMP: 0.3})
    compiled(app)
    app.run.batch_size.value = 32
    show(app, 0)
    assert offered(app) == USE
    app.bar.back.click()
    assert app.code.code == first.asked
    assert (app.run.batch_size.value, app.run.precision.value, app.options.options().get(AMP)) == (
        *(4, first.stands[2]["precision"]),
        wb.ipu.config.IPUConfig().freeze().get(AMP),
    )
    assert "changed since" not in app.bar.form.value
    assert offered(app) == UNDO
    app.bar.back.click()
    assert (app.run.batch_size.value, app.run.precision.value, app.options.options().get(AMP)) == (32, "float16", 0.3)
    assert offered(app) == USE


def test_the_way_back_is_over_results_that_were_looked_at_and_ends_with_a_change(app: App) -> None:
    for batch in (4, 8):
        app.run.batch_size.value = batch
        compiled(app)
    app.run.batch_size.value = 64
    for place in (0, 1):
        show(app, place)
        app.bar.back.click()
        assert app.run.batch_size.value == (4, 8)[place]
    app.bar.back.click()
    assert app.run.batch_size.value == 64  # where its user had set it, not the result before
    app.bar.back.click()
    app.run.batch_size.value = 2
    assert offered(app) == USE
    app.run.batch_size.value = 8
    app.run.mode.value = "inference"
    app.bar.back.click()
    app.bar.back.click()
    assert app.run.mode.value == "inference"


def test_another_model_is_chosen_again_as_the_object_that_it_was(app: App) -> None:
    app.picker.builder.insert(1, Layer.new("Dense"))
    rows = compiled(app)
    app.picker.box.selected_index, app.picker.ready.value = 1, "mlp"
    app.picker.sizes.box.selected_index = 0
    app.picker.sizes.fields["hidden"].value = 16
    sized = compiled(app)
    app.picker.ready.value = "lstm"
    app.picker.builder.preset.value = "CNN"
    for place, entry in enumerate((rows, sized)):
        show(app, place)
        app.bar.back.click()
        assert app.code.code == entry.asked
        assert app.picker.choice().source is entry.basis.request.source  # so that what if and a fix go on from it
    app.bar.back.click()
    assert (app.picker.ready.value, app.picker.builder.preset.value) == ("lstm", "CNN")


def test_a_model_that_the_notebook_has_no_more_is_said(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    model = wb.ready("mlp", layers=1, hidden=16, input_size=16)
    monkeypatch.setattr(app_source, "notebook_models", lambda: {"mine": model})
    app.picker.refresh()
    app.picker.box.selected_index = 2
    compiled(app)
    app.picker.box.selected_index = 0
    monkeypatch.setattr(app_source, "notebook_models", dict)
    app.bar.back.click()
    assert "the notebook has no model mine any more" in str(app.error)
    assert app.picker.box.selected_index == 0


def test_what_came_from_a_file_has_no_settings(app: App) -> None:
    profile = compiled(app).profile
    other = App()
    other.bring(profile)
    assert offered(other) == ""


def test_nobody_is_offered_settings_while_something_runs(app: App) -> None:
    compiled(app)
    app.run.batch_size.value = 8
    app.bar.say_running(True)
    assert offered(app) == ""
    app.bar.say_running(False)
    assert offered(app) == USE
