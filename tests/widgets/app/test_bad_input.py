"""What is no value in any field of the app: told at the field, the last result kept, and nothing half-applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets
import pytest
from traitlets import TraitError

import workbench as wb
from workbench.errors import InputError, OptionError
from workbench.executable.configured import acting
from workbench.widgets.app import App
from workbench.widgets.app.builder.kinds import KINDS
from workbench.widgets.app.builder.layers import Layer
from workbench.widgets.app.builder.rows import ASKED
from workbench.widgets.app.form.number import Number, PartNumber, WholeNumber
from workbench.widgets.kit.library import Drawn

EVIL = "<img src=x onerror=alert(1)>"
KNOWN = (WholeNumber, PartNumber, ipywidgets.Text, ipywidgets.Checkbox, ipywidgets.ToggleButton)
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


def inside(box: Any) -> Iterator[Any]:
    """A widget with all that is in it."""
    yield box
    for each in getattr(box, "children", ()):
        yield from inside(each)


def fields_of(app: App) -> list[Any]:
    """Every field of the app that holds a value: all that its boxes hold, so that a new one is among them."""
    shows = (ipywidgets.HTML, ipywidgets.Label)
    found = [each for each in inside(app) if "value" in each.traits() and not isinstance(each, shows)]
    assert len(found) > 25
    assert {type(each) for each in found} <= {*KNOWN, *CHOICES}
    return found


def drawn_in(app: App) -> list[Any]:
    """Every drawn part of the app, found in its boxes."""
    found = [each for each in inside(app) if isinstance(each, Drawn)]
    assert len(found) > 5
    return found


def send(widget: Any, content: Any) -> None:
    """What ipywidgets does with a message of the browser; an error in it is only logged."""
    widget._handle_custom_msg(content, [])


def typed(control: Any, **state: Any) -> None:
    """What ipywidgets does with a message of the browser."""
    control.set_state(state)


@pytest.mark.parametrize("value", ["", "x", EVIL, None, [], {}, float("inf"), 10**400], ids=lambda each: repr(each)[:9])
def test_another_type_moves_no_field(app: App, value: Any) -> None:
    for control in fields_of(app):
        before, label = control.value, control.description
        if isinstance(control, Number):  # where the browser sends what is typed
            if value != 10**400 or control.maximum is None:
                typed(control, value=value)
                assert control.value == before
                assert control.description == f"{label}: {control.problem}" == f"{label}: not {control.expected}"
                typed(control, value=before)
                assert (control.problem, control.description) == ("", label)
            continue
        key = "index" if isinstance(control, CHOICES) else "value"
        texts = isinstance(control, ipywidgets.Text) and isinstance(value, str)
        if (key == "index" and value in (None, [])) or texts or isinstance(value, int | float):
            continue  # a list of choices takes it as nothing chosen; a text is told by what reads it
        with pytest.raises((TraitError, TypeError)):
            typed(control, **{key: value})
        assert control.value == before, label


MESSAGES = (EVIL, "\x00", None, [], {}, 0, True, ["x"], float("nan"), 10**400, -1)


def test_no_message_of_another_shape_moves_or_breaks_a_drawn_part(app: App, caplog: pytest.LogCaptureFixture) -> None:
    """Each part hears what another kind may be in each member of each message that any of the parts has."""
    tables = (ASKED, *(getattr(each, name, {}) for each in drawn_in(app) for name in ("asked", "does")))
    does = {name for table in tables for name in table} - {"back", "stop", "curve", "take", "keep", "add", "write"}
    assert {"set", "move", "load", "file", "try", "read"} <= does
    for widget in drawn_in(app):
        for value in MESSAGES:
            for message in (value, {"do": value}, {"cuts": value}, {"apply": value}):
                send(widget, message)
            for name in does - {"insert", "remove"}:
                for key in ("name", "value", "at", "to", "setting", "kind", "size", "offset", "text"):
                    send(widget, {"do": name, key: value})
    assert caplog.text == ""
    assert app.error is None
    app.options.set({"ipu_model.tiles_per_ipu": 16})  # a text without options sets all to their defaults


@pytest.mark.parametrize("value", [float("nan"), None], ids=repr)
def test_what_an_option_refuses_leaves_its_control_where_it_was(app: App, value: Any) -> None:
    kinds = ipywidgets.FloatText if value is not None else ipywidgets.Dropdown
    found = {name: each for name, each in app.options.controls.items() if isinstance(each, kinds)}
    assert found
    for name, control in found.items():
        before, options = control.value, app.options.options()
        control.value = value
        assert control.value == before
        assert app.options.options() == options
        assert name in app.options.panel.state["problems"][name]


@pytest.mark.parametrize("value", [-(10**12), -1, 10**12])
def test_a_number_out_of_bounds_is_brought_within_them_and_told_in_its_label(app: App, value: int) -> None:
    found = [each for each in fields_of(app) if isinstance(each, Number)]
    assert len(found) > 8
    for control in found:
        bound = control.minimum if value < 0 else control.maximum
        if bound is None:
            continue
        before, label = control.value, control.description
        typed(control, value=value)
        assert control.value == bound, label
        assert control.problem
        assert control.description.endswith(f": {control.problem}")
        typed(control, value=value)  # again: what was told stands
        size = "small" if value < 0 else "large"
        assert control.problem == f"{value:,} is too {size}, {bound:,.15g} taken"
        assert f"{bound:,.15g}" in control.tooltip
        typed(control, value=before)
        assert (control.problem, control.description) == ("", label)


def test_what_was_taken_in_place_of_a_number_is_told_through_one_compile() -> None:
    app = App("mlp")
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    field = app.run.batch_size
    typed(field, value=100_000)
    told = "100,000 is too large, 65,536 taken"
    assert (field.value, field.problem, field.description) == (65_536, told, f"batch size: {told}")
    app.compile()  # of 65,536, which the label says
    app.cancel()
    assert app.wait(120)
    assert field.problem == told
    app.compile()
    app.cancel()
    assert app.wait(120)
    assert (field.value, field.problem, field.description) == (65_536, "", "batch size")
    typed(field, value=100_000)
    typed(field, value=8)
    assert field.problem == ""


def test_an_option_without_a_maximum_is_shown_as_it_was_set(app: App) -> None:
    name = "pipeline.gradient_accumulation_steps"
    send(app.options.panel, {"do": "set", "name": name, "value": "2000000"})
    assert app.options.options().get(name) == app.options.controls[name].value == 2_000_000
    send(app.options.panel, {"do": "set", "name": name, "value": ""})


def test_what_is_moved_is_set_whole_or_not_at_all(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    before = app.run.state()
    send(app.whatif, {"do": "move", "name": "batch_size", "at": 0, "done": True})
    assert app.whatif.wait(60)

    def refuse(values: Any) -> None:
        raise OptionError("these exclude each other")

    monkeypatch.setattr(app.options, "set", refuse)
    send(app.whatif, {"do": "take"})
    assert "exclude each other" in app.whatif.state["problem"]
    assert app.run.state() == before
    monkeypatch.undo()
    send(app.whatif, {"do": "back"})


@pytest.mark.parametrize("place", [-2, 999])
def test_a_choice_that_is_not_offered_is_not_taken(app: App, place: int) -> None:
    for control in fields_of(app):
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
