"""What the form asks for otherwise than the result that is shown: all of it is found, and named."""

from __future__ import annotations

from typing import Any

import keras
import pytest

import workbench as wb
from workbench.widgets.app import App
from workbench.widgets.app.form import source as app_source
from workbench.widgets.app.form.changes import Asked, changes, some_changes

SAME = ""


@pytest.fixture(scope="module")
def app() -> App:
    app = App()
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    return compiled(app)


def compiled(app: App) -> App:
    app.compile()
    assert app.wait(120)
    assert app.error is None
    return app


def said(app: App) -> str:
    """What is marked in the form's line."""
    return str(app.bar.form.value.partition("<em>")[2].partition(": press Compile</em>")[0])


def test_an_argument_and_an_option_are_named_with_both_values(app: App) -> None:
    assert said(app) == SAME
    app.run.batch_size.value = 8
    assert said(app) == "the form has changed since: batch size 4 → 8"
    app.options.set({"matmuls.poplar_options.partialsType": "half"})
    assert said(app) == "the form has changed since: batch size 4 → 8, partialsType (matmuls) float → half"
    app.run.batch_size.value = 4
    app.options.set({"matmuls.poplar_options.partialsType": "float"})
    assert said(app) == SAME


def test_an_option_that_the_code_does_not_write_is_a_change_too(app: App) -> None:
    for value in ("SNAKE", "ZIGZAG"):
        app.options.set({"selection_order": value})
        assert said(app) == f"the form has changed since: selection_order AUTO → {value}"
    app.options.reset()
    assert said(app) == "the form has changed since: tiles per IPU 16 → 0"
    app.options.set({"ipu_model.tiles_per_ipu": 16})
    assert said(app) == SAME


def test_of_many_changes_the_first_are_named() -> None:
    assert some_changes(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_another_model_other_layers_and_what_a_training_alone_takes(app: App) -> None:
    app.picker.builder.insert(1, app.picker.builder.layers()[0])
    assert said(app) == "the form has changed since: model mlp → mlp_edited"
    app.picker.builder.remove(1)
    assert said(app) == SAME
    app.run.loss.value = "huber"
    assert said(app) == "the form has changed since: loss as by default → huber"
    app.run.loss.value = app.run.loss.options[0]
    app.picker.box.selected_index, app.picker.ready.value = 1, "cnn"
    assert said(app).startswith("the form has changed since: model mlp → cnn")
    app.picker.box.selected_index = 0
    assert said(app) == SAME


def test_a_model_of_the_notebook_that_was_made_anew_is_told_from_the_one_that_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def model() -> Any:
        return keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])

    models = {"mine": model()}
    monkeypatch.setattr(app_source, "notebook_models", lambda: dict(models))
    app = App()
    app.picker.refresh()
    app.picker.box.selected_index = 2
    compiled(app)
    assert said(app) == SAME
    models["mine"] = model()
    app.picker.look.click()
    assert said(app) == "the form has changed since: model mine, which was made anew"


def test_a_target_is_named_where_no_option_describes_it(app: App) -> None:
    app.target = wb.target("ipu2", tiles_per_ipu=8)
    app.run.batch_size.value = 8
    assert said(app) == "the form has changed since: batch size 4 → 8, target"
    app.target, app.run.batch_size.value = None, 4
    assert said(app) == SAME


def test_a_profile_of_a_file_was_not_asked_for_by_the_form(app: App) -> None:
    profile = app.profile
    other = App()
    assert profile is not None
    other.bring(profile)
    told = "what is shown was not compiled here"
    assert said(other) == f"{told}; the form says otherwise: tiles per IPU 16 → 0"
    other.options.set({"ipu_model.tiles_per_ipu": 16})
    assert said(other) == told


def test_options_of_another_version_are_compared_as_they_are_written() -> None:
    one, other = (Asked(model="m", words={}, options={"gone": value}) for value in ("1", "2"))
    assert changes(one, other) == ["gone 1 → 2"]
    assert changes(one, one) == []
