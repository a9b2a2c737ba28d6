"""The panel of all options: what stands in it, how values are typed, tried, written and read."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.engine.options import OPTIONS, Options
from workbench.errors import InputError, OptionError
from workbench.executable.configured import acting, as_json, as_toml, neighbours, read, text_of, value_of
from workbench.executable.reads import options_read
from workbench.widgets.app import App
from workbench.widgets.app import app as app_module
from workbench.widgets.app.form.options import OptionsForm

AMP = "convolutions.poplar_options.availableMemoryProportion"
FAST = "optimizations.math.fast"


def send(form: OptionsForm, **message: Any) -> dict[str, Any]:
    """What a message of the browser makes of the panel's state."""
    form.panel._handle_custom_msg(message, [])
    return dict(form.panel.state)


def test_every_option_that_acts_has_a_row() -> None:
    form = OptionsForm()
    names = [row["name"] for row in form.panel.rows]
    assert names == sorted(names)
    for each in OPTIONS.values():
        does = each.kind != "dictionary" and each.effect != "recorded" and not each.status.endswith("not yet read")
        assert (each.name in names) == does, each.name
    assert len(names) > 60


@pytest.mark.parametrize("declared", acting(), ids=lambda each: str(each.name))
def test_a_default_is_typed_as_it_is_shown(declared: Any) -> None:
    assert value_of(declared, text_of(declared.default)) == declared.default
    for value in neighbours(declared, declared.default):
        assert value != declared.default
        assert value_of(declared, text_of(value)) == declared.check(value) == value


def test_an_option_is_set_by_its_row_and_moves_its_control() -> None:
    changes: list[int] = []
    form = OptionsForm(None, lambda: changes.append(1))
    state = send(form, do="set", name=FAST, value=True)
    assert form.options().get(FAST) is True
    assert state["values"] == {FAST: "true"}
    send(form, do="set", name=AMP, value="0.25")
    assert form.controls[AMP].value == 0.25
    assert len(changes) == 2
    form.controls[AMP].value = 0.6
    assert form.panel.state["values"] == {FAST: "true"}
    form.reset_button.click()
    assert form.options() == Options()
    assert form.panel.state["values"] == {}


def test_a_value_for_each_ipu() -> None:
    form = OptionsForm()
    send(form, do="set", name=AMP, value="0.6, 0.2")
    assert form.options().several(AMP) == (0.6, 0.2)
    assert "0.6, 0.2" in form.controls[AMP].description
    form.controls[AMP].value = 0.3
    assert form.options().get(AMP) == 0.3


@pytest.mark.parametrize(
    ("name", "value"),
    [(AMP, "much"), (AMP, "-1"), (AMP, "nan"), (FAST, "perhaps"), ("scheduling.algorithm", "<b>"), (AMP, None)],
)
def test_what_is_no_value_is_told_at_its_row(name: str, value: Any) -> None:
    form = OptionsForm()
    form.set({"optimizations.math.dot_strength": False})
    before = form.options()
    state = send(form, do="set", name=name, value=value)
    assert form.options() == before
    assert name in state["problems"][name]
    assert send(form, do="set", name=FAST, value=True)["problems"] == {}


@pytest.mark.parametrize("message", [{}, {"do": "quit"}, {"do": 3}, {"do": "set"}, {"do": "set", "name": ["x"]}])
def test_other_messages_change_nothing(message: dict[str, Any]) -> None:
    form = OptionsForm()
    form.panel._handle_custom_msg(message, [])
    assert form.options() == Options()


VALUES = st.fixed_dictionaries(
    {},
    optional={
        each.name: st.sampled_from(found)
        for each in acting()
        if (found := [value for value in neighbours(each, each.default) if value is not None])
    },
)


@given(VALUES)
def test_what_is_written_is_read_again(values: dict[str, Any]) -> None:
    options = Options().with_values(values)
    for written in (as_toml(options), as_json(options)):
        assert Options().with_values(read(written)) == options
    assert tomllib.loads(as_toml(options)) is not None
    assert isinstance(json.loads(as_json(options)), dict)


@pytest.mark.parametrize("text", ["{", "a = [", "nosuch.option = 1", "optimizations = 3", "[" * 5000, "{}" * 60_000])
def test_a_text_that_is_no_configuration_changes_nothing(text: str) -> None:
    with pytest.raises((InputError, OptionError)):
        read(text)
    form = OptionsForm()
    form.set({FAST: True})
    state = send(form, do="read", text=text)
    assert state["problem"]
    assert form.options().changed == ((FAST, True),)


def test_a_text_sets_all_options() -> None:
    form = OptionsForm()
    form.set({FAST: True})
    text = "[convolutions.poplar_options]\navailableMemoryProportion = 0.2\n[io_tiles]\nnum_io_tiles = 32\n"
    state = send(form, do="read", text=text)
    assert form.options().changed == ((AMP, 0.2), ("io_tiles.num_io_tiles", 32))
    assert not state["problem"]
    text = send(form, do="write", format="toml")["text"]
    assert text == 'convolutions.poplar_options = { "availableMemoryProportion" = 0.2 }\nio_tiles.num_io_tiles = 32\n'


@pytest.fixture(scope="module")
def compiled() -> App:
    app = App(wb.ready("mlp", layers=1, hidden=64, input_size=32))
    app.options.controls["ipu_model.tiles_per_ipu"].value = 16
    app.compile()
    assert app.wait(120)
    return app


def test_the_panel_says_what_the_compile_read(compiled: App) -> None:
    reads = compiled.options.panel.state["reads"]
    assert reads == options_read(compiled.executable)
    assert reads["matmuls.poplar_options.availableMemoryProportion"]
    assert reads[FAST] == "graph passes"
    assert reads[AMP] in ("", "graph passes")  # there is no convolution that would be planned with it
    assert reads["slices.poplar_options.indicesDistribution"] == ""
    assert "auto_select_ipus" not in reads  # it acts before there is a graph


def test_what_is_not_read_changes_nothing(compiled: App) -> None:
    """Each option that was not read is set to a value beside its own: bytes and cycles stay as they are."""
    reads = options_read(compiled.executable)
    assert reads is not None
    request, profile = compiled.request(), compiled.profile
    assert profile is not None
    values = {}
    for each in acting():
        if reads.get(each.name) == "" and (around := neighbours(each, each.default)):
            values[each.name] = around[0]
    assert len(values) > 5
    executable = wb.executable.compile_request(request.replace(options=values))
    assert executable.profile.max_tile_bytes == profile.max_tile_bytes
    assert executable.profile.total_cycles == profile.total_cycles


def test_values_beside_an_option_are_compiled(compiled: App) -> None:
    name = "matmuls.poplar_options.partialsType"
    heard: list[tuple[str, int]] = []
    compiled.progress.observe(lambda change: heard.append((change.new["turn"], len(change.new["phases"]))), "data")
    compiled.options.panel._handle_custom_msg({"do": "try", "name": name}, [])
    assert compiled.wait(120)
    assert {turn for turn, _ in heard} <= {"value 1 of 2", "value 2 of 2", ""}
    assert "value 2 of 2" in dict(heard)
    assert {phases for _, phases in heard} == {len(wb.executable.PHASES)}
    (row,) = compiled.options.panel.state["tried"][name]["rows"]
    assert row["value"] == "half"
    request = compiled.request()
    before, after = (
        wb.executable.compile_request(each).profile for each in (request, request.replace(options={name: "half"}))
    )
    assert row["bytes"] == after.max_tile_bytes - before.max_tile_bytes
    assert row["cycles"] == pytest.approx(after.total_cycles / before.total_cycles - 1)
    assert compiled.progress.data["state"] == "done"
    assert compiled.options.options().get(name) == "float"


def test_a_value_that_cannot_be_compiled_is_a_row_with_its_reason(compiled: App) -> None:
    compiled.options.panel._handle_custom_msg({"do": "try", "name": "io_tiles.num_io_tiles"}, [])
    assert compiled.wait(120)
    rows = compiled.options.panel.state["tried"]["io_tiles.num_io_tiles"]["rows"]
    assert [row["value"] for row in rows] == ["32", "1024"]
    assert all("16" in row["problem"] for row in rows)


def test_what_values_gave_is_shown_while_the_form_asks_for_the_same_but_for_that_option(compiled: App) -> None:
    name, panel = "matmuls.poplar_options.partialsType", compiled.options.panel
    panel._handle_custom_msg({"do": "try", "name": name}, [])
    assert compiled.wait(120)
    told = panel.state["tried"][name]
    assert told["against"] == "float"
    panel._handle_custom_msg({"do": "set", "name": name, "value": "half"}, [])  # what Use does
    assert panel.state["tried"][name] == told  # still what is beside float
    compiled.options.reset()  # the tiles too: another program
    assert panel.state["tried"] == {}


def test_values_of_a_form_that_has_changed_meanwhile_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    app, name = App("mlp"), "matmuls.poplar_options.partialsType"
    monkeypatch.setattr(app_module, "tried", lambda *given: setattr(app.run.batch_size, "value", 8) or [])
    app.try_option(name)
    assert app.wait(60)
    assert app.options.panel.state["tried"] == {}
    assert app.progress.data["text"].endswith("it has changed since, so press Try again")
