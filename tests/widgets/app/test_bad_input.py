"""What is no value in any field of the app: told at the field, the last result kept, and nothing half-applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets
import pytest
from traitlets import TraitError

import workbench as wb
from workbench.errors import InputError
from workbench.executable.configured import acting
from workbench.widgets.app import App
from workbench.widgets.app.builder.kinds import KINDS
from workbench.widgets.app.builder.layers import Layer

EVIL = "<img src=x onerror=alert(1)>"
NUMBERS = (ipywidgets.BoundedIntText, ipywidgets.BoundedFloatText)
CHOICES = (ipywidgets.Dropdown, ipywidgets.SelectMultiple)


@pytest.fixture(scope="module")
def shared() -> App:
    """An app that shows a result, its sizes folded out."""
    app = App("mlp")
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    app.compile()
    assert app.wait(120)
    assert app.error is None
    app.picker.sizes.box.selected_index = 0
    return app


@pytest.fixture
def app(shared: App) -> Iterator[App]:
    """The app; behind each test it shows the same result, and its form asks for what it asked."""
    asked, profile, code = shared.request(), shared.profile, shared.code.code
    yield shared
    shared.picker.box.selected_index = 1
    shared.picker.builder.start_from("MLP")
    assert shared.profile is profile
    assert shared.history.current is not None
    assert shared.history.current.profile is profile
    assert (shared.request(), shared.code.code, shared.code.problem) == (asked, code, "")


def fields_of(app: App) -> dict[str, Any]:
    """Every control of the form by its name."""
    sizes = {f"size {name}": field for name, field in app.picker.sizes.fields.items()}
    run = {name: getattr(app.run, name) for name in app.run.state() if name != "cuts"}
    picked = {"preset": app.picker.builder.preset, "ready": app.picker.ready, "models": app.picker.models}
    return {**app.options.controls, **run, **sizes, **picked}


def typed(control: Any, **state: Any) -> None:
    """What ipywidgets does with a message of the browser."""
    control.set_state(state)


def test_fields_are_all_there_are(app: App) -> None:
    known = {id(field) for field in fields_of(app).values()}
    known |= {id(app.picker.builder.input_shape), id(app.picker.box), id(app.picker.sizes.box)}
    stack, found = [app.run.box, app.options.box, app.picker.box], 0
    while stack:
        widget = stack.pop()
        stack += getattr(widget, "children", ())
        if "value" in widget.traits() and not isinstance(widget, (ipywidgets.HTML, ipywidgets.Label)):
            assert id(widget) in known, widget
            found += 1
    assert found > 25


@pytest.mark.parametrize("value", ["", "x", EVIL, None, [], {}], ids=repr)
def test_another_type_moves_no_field(app: App, value: Any) -> None:
    for name, control in fields_of(app).items():
        key = "index" if isinstance(control, CHOICES) else "value"
        if key == "index" and value in (None, []):
            continue  # which a list of choices takes as nothing chosen
        before = control.value
        with pytest.raises((TraitError, TypeError)):
            typed(control, **{key: value})
        assert control.value == before, name


@pytest.mark.parametrize("value", [float("nan"), None], ids=repr)
def test_what_an_option_refuses_leaves_its_control_where_it_was(app: App, value: Any) -> None:
    kinds = ipywidgets.BoundedFloatText if value is not None else ipywidgets.Dropdown
    found = {name: each for name, each in app.options.controls.items() if isinstance(each, kinds)}
    assert found
    for name, control in found.items():
        before, options = control.value, app.options.options()
        control.value = value
        assert control.value == before
        assert app.options.options() == options
        assert name in app.options.panel.state["problems"][name]


@pytest.mark.parametrize("value", [-(10**12), -1, 10**12])
def test_a_number_out_of_bounds_is_brought_within_them_in_its_field(app: App, value: int) -> None:
    for name, control in fields_of(app).items():
        if isinstance(control, NUMBERS):
            before = control.value
            typed(control, value=value)
            assert control.value == (control.min if value < control.min else control.max), name
            control.value = before


@pytest.mark.parametrize("place", [-2, 999])
def test_a_choice_that_is_not_offered_is_not_taken(app: App, place: int) -> None:
    for control in fields_of(app).values():
        if isinstance(control, CHOICES):
            before = control.value
            with pytest.raises((TraitError, IndexError)):
                typed(control, index=[place] if isinstance(control, ipywidgets.SelectMultiple) else place)
            assert control.value == before


@pytest.mark.parametrize("text", ["", "x", "64, x", "0", "-3", "1e9", "9" * 30, "9" * 5000, "64,,3", EVIL])
def test_a_shape_that_is_none_is_told_at_the_builder(app: App, text: str) -> None:
    app.picker.box.selected_index = 0
    typed(app.picker.builder.input_shape, value=text)
    builder = app.picker.builder
    told = builder.rows.problem + "".join(row["problem"] for row in builder.rows.rows)
    assert told
    assert app.code.problem
    app.compile()
    assert app.wait(10)
    assert isinstance(app.error, InputError)
    assert app.progress.data["problem"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_setting_that_is_none_is_told_at_its_row(app: App, kind: str) -> None:
    app.picker.box.selected_index = 0
    builder = app.picker.builder
    builder.change(0, Layer.new(kind))
    before = builder.layers()
    for place, setting in enumerate(KINDS[kind].settings):
        for value in ("", "x", EVIL, None, [], "nan", str(setting.minimum - 1), str(setting.maximum + 1)):
            builder.rows._handle_custom_msg({"do": "set", "at": 0, "setting": place, "value": value}, [])
            assert setting.label in builder.rows.rows[0]["problem"]
            assert builder.layers() == before


@pytest.mark.parametrize("declared", acting(), ids=lambda each: str(each.name))
def test_an_option_that_is_none_is_told_at_its_row(app: App, declared: Any) -> None:
    panel, before = app.options.panel, app.options.options()
    names = declared.type is str and not declared.choices  # of which any text may be one
    for value in (None, [], {"a": 1}, *([] if names else [EVIL, "\x00"])):
        panel._handle_custom_msg({"do": "set", "name": declared.name, "value": value}, [])
        assert declared.name in panel.state["problems"][declared.name]
        assert app.options.options() == before
    bounds = (declared.minimum, -1), (declared.maximum, 1)
    for value in (bound + past for bound, past in bounds if bound is not None):
        panel._handle_custom_msg({"do": "set", "name": declared.name, "value": str(value)}, [])
        assert app.options.options() == before
    app.options.restore(before)
    assert panel.state["problems"] == {}


def test_a_text_with_one_bad_line_sets_none_of_its_options(app: App) -> None:
    panel = app.options.panel
    text = "[optimizations.math]\nfast = true\n[io_tiles]\nnum_io_tiles = -5\n"
    panel._handle_custom_msg({"do": "read", "text": text}, [])
    assert "num_io_tiles" in panel.state["problem"]
    assert panel.state["text"] == text
    assert app.options.options().changed == (("ipu_model.tiles_per_ipu", 16),)


def test_fields_that_do_not_go_together_keep_the_result() -> None:
    app = App(wb.ready("mlp", layers=1, hidden=64, input_size=32))
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    app.compile()
    assert app.wait(120)
    profile = app.profile
    app.options.controls["auto_select_ipus"].value = 3
    app.run.replicas.value = 2
    assert "3 IPUs are selected, for 2 replicas" in app.code.problem
    app.compile()
    assert app.wait(10)
    assert isinstance(app.error, InputError)
    assert app.profile is profile
