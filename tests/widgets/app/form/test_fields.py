"""Loss, offload and sizes of ready models: from a field of the form into the compile and its code."""

from __future__ import annotations

import pytest
from traitlets import TraitError

import workbench as wb
from workbench.errors import InputError
from workbench.widgets.app import App
from workbench.widgets.app.form.run import LOSSES, OWN_LOSS

MACHINE = "ipu_model.tiles_per_ipu"


def small(name: str = "mlp") -> App:
    app = App(name)
    app.options.controls[MACHINE].value = 16
    app.run.precision.value = "float32"
    return app


def compiled(app: App) -> App:
    app.compile()
    assert app.wait(300)
    assert app.error is None, app.error
    return app


def test_every_loss_is_one_of_keras() -> None:
    import keras

    for name in LOSSES[1:]:
        assert keras.losses.get(name) is not None


def test_a_loss_is_the_compile_s_own() -> None:
    app = small()
    assert app.run.loss.value == OWN_LOSS
    assert app.request().loss is None
    app.run.loss.value = "mean_squared_error"
    assert compiled(app).executable.request.loss == "mean_squared_error"
    assert "loss='mean_squared_error'" in app.code.code.replace('"', "'")
    app.run.mode.value = "inference"
    assert app.run.loss.disabled
    assert app.request().loss is None


def test_offload_is_the_pipeline_s() -> None:
    app = small()
    app.options.controls["auto_select_ipus"].value = 2
    app.options.controls["pipeline.gradient_accumulation_steps"].value = 4
    app.run.offload.value = ("activations",)
    assert compiled(app).profile is not None
    changed = dict(app.executable.request.options.changed)
    assert changed["pipeline.offload_activations"] is True
    code = app.code.code.replace('"', "'")
    assert "offload" in code
    app.run.offload.value = ()
    plain = compiled(app)
    assert "pipeline.offload_activations" not in dict(plain.executable.request.options.changed)
    assert plain.profile is not None


def test_what_moves_nothing_is_told() -> None:
    app = small()
    app.run.offload.value = ("optimizer_state",)  # SGD has none
    app.compile()
    assert app.wait(300)
    assert isinstance(app.error, InputError)
    assert "offload" in str(app.error)


def test_sizes_are_those_of_the_chosen_ready_model() -> None:
    app = small("cnn")
    sizes = app.picker.sizes
    assert sizes.fields == {}  # folded in, and Keras is not asked
    assert app.request().source == "cnn"
    sizes.box.selected_index = 0
    assert {name: field.value for name, field in sizes.fields.items()} == dict(wb.ready("cnn").size)
    assert app.request().source == "cnn"
    sizes.fields["image_size"].value = 16
    sizes.fields["hidden"].value = 8
    assert app.request().source == wb.ready("cnn", image_size=16, hidden=8) or app.request().source.size == (
        wb.ready("cnn", image_size=16, hidden=8).size
    )
    assert app.request().source is app.request().source
    assert "image_size=16" in app.code.code
    parameters = compiled(app).profile.variables.query("kind == 'parameter'")["bytes"].sum()
    app.picker.ready.value = "mlp"
    assert set(sizes.fields) == {"layers", "hidden", "input_size", "classes"}
    assert app.request().source == "mlp"
    app.picker.ready.value = "cnn"
    assert sizes.moved() == {}
    own = compiled(app).profile.variables.query("kind == 'parameter'")["bytes"].sum()
    assert parameters < own


def test_sizes_that_do_not_go_together_are_told_in_the_form() -> None:
    app = small("transformer-encoder")
    app.picker.sizes.box.selected_index = 0
    app.picker.sizes.fields["heads"].value = 7
    assert "heads=7" in app.code.problem
    app.picker.sizes.fields["hidden"].value = 49
    assert app.code.problem == ""


def test_an_undone_fix_gives_the_fields_back() -> None:
    app = small()
    app.run.loss.value = "huber"
    app.run.offload.value = ("weights", "activations")
    kept = app.run.state()
    app.run.set({"offload": "weights"})
    assert app.run.offload.value == ("weights",)
    app.run.restore(kept)
    assert app.run.loss.value == "huber"
    assert app.run.offload.value == ("weights", "activations")
    with pytest.raises(TraitError, match="Invalid selection"):
        app.run.offload.value = ("nosuch",)
