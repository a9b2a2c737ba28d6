"""Code that is offered makes what it says, whatever stands in names: it is typed here as a user types it."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any

import keras
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.base.text import literal, shown
from workbench.engine.options import OPTIONS
from workbench.executable import Executable, make_request
from workbench.profiler.advice.levers import Change
from workbench.profiler.advice.snippet import assignment, code_of, request_code
from workbench.widgets.app.builder.layers import PRESETS, keras_code, read_shape

# What ends a text, a line or a call, turns a line round, is half a letter, or would be run if it were code.
NAMES = (
    '"); ran.append(1); ("',
    "'); ran.append(1); ('",
    '\\"); ran.append(1); (\\"',
    "\\",
    "\"\"\"'''",
    "a\nran.append(1)\n",
    "\u202ereversed\x1b[2J",
    "\ud800half",
    "<img src=x onerror=alert(1)>{ran}%s",  # Keras has no layers with a / in their name
)


def typed(code: str, **known: Any) -> dict[str, Any]:
    """What is bound after these lines; none of a name's text may have been run, and nothing in them is hidden."""
    ran: list[int] = []
    assert shown(code, keep="\n") == code
    names: dict[str, Any] = {"wb": wb, "ran": ran, **known}
    exec(code, names)
    assert ran == []
    return names


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_made_again(text: str) -> None:
    assert typed(f"value = {literal(text)}")["value"] == text
    assert "\n" not in literal(text)


@given(st.recursive(st.text(max_size=4) | st.integers() | st.booleans() | st.none(), st.lists))
def test_any_value_is_made_again(value: Any) -> None:
    assert typed(f"value = {literal(value)}")["value"] == value


def test_texts_stand_in_double_quotes_where_they_may() -> None:
    assert literal("half") == '"half"'
    assert literal("it's") == '"it\'s"'
    assert literal('a "word"') == "'a \"word\"'"


@pytest.mark.parametrize("name", NAMES)
def test_keys_and_values_of_options(name: str) -> None:
    config = SimpleNamespace(matmuls=SimpleNamespace(poplar_options={}), compilation_poplar_options={})
    for option in (f"matmuls.poplar_options.{name}", f"opt.{name}"):
        typed(assignment(option, name), config=config)
    assert config.matmuls.poplar_options == {name: name}
    assert config.compilation_poplar_options == {f"opt.{name}": name}


@pytest.mark.parametrize("name", NAMES)
def test_the_model_of_the_app(name: str) -> None:
    for shape, layers in PRESETS.values():
        model = typed(keras_code(name, read_shape(shape), layers))["model"]
        assert model.name == name
        assert [layer.name for layer in model.layers][-1].startswith("dense_")


ASKED: dict[str, Any] = {
    "batch_size": 4,
    "mode": "training",
    "loss": "mse",
    "optimizer": "sgd",
    "gradient_accumulation_steps": 2 * len(NAMES),
}


def small() -> wb.Target:
    return wb.target("ipu2", tiles_per_ipu=8)


@pytest.fixture(scope="module")
def executable() -> Executable:
    """A stage for each of the names, which is its layer's, compiled."""
    layers = [keras.layers.Dense(4, name=name) for name in NAMES]
    model = keras.Sequential([keras.Input((4,), name="in"), *layers], name=NAMES[0])
    return wb.compile(model, stages=list(NAMES[:-1]), recomputation=True, target=small(), **ASKED)


def test_a_request_is_made_again(executable: Executable) -> None:
    asked = executable.request
    again = typed(request_code(asked), model=asked.source, target=small())["executable"].request
    assert list(again.stages) == list(asked.stages) == list(NAMES[:-1])
    assert (again.mode, again.loss, again.optimizer) == (asked.mode, asked.loss, asked.optimizer)
    assert again.options.changed == asked.options.changed


def test_a_change_of_it_is_made(executable: Executable) -> None:
    stages = list(NAMES[: len(NAMES) // 2])
    change = Change(lever="by hand", title="", arguments=(("stages", stages), *ASKED.items()), estimated_bytes=0)
    told: dict[str, Any] = {}
    typed(code_of(change), model=None, wb=SimpleNamespace(compile=lambda model, **given: told.update(given)))
    assert told == {"stages": stages, **ASKED}


def test_the_split_that_is_found_compiles(executable: Executable) -> None:
    model = executable.request.source
    split = wb.autosplit(model, len(NAMES), compiles=1, target=small(), **ASKED)
    arguments = typed(f"arguments = dict({split.code})")["arguments"]
    assert arguments == split.arguments
    assert arguments["stages"] == list(NAMES[:-1])
    assert wb.compile(model, target=small(), **{**ASKED, **arguments}).profile.ipus == len(NAMES)


def test_the_fixes_of_a_diagnosis_compile() -> None:
    """A model that does not fit, so that there is something to offer."""
    layers = [keras.layers.Dense(512, name=name) for name in NAMES]
    model = keras.Sequential([keras.Input((512,), name="in"), *layers], name=NAMES[0])
    arguments = {**ASKED, "batch_size": 64, "gradient_accumulation_steps": None}
    found = wb.diagnose(wb.compile(model, target=wb.target("ipu2", tiles_per_ipu=16), **arguments), compiles=8)
    assert found.fixes
    for fix in found.fixes[:2]:
        assert typed(fix.code, model=model)["executable"].profile.max_tile_bytes == fix.verified_bytes


@pytest.mark.parametrize(
    ("target", "written"),
    [
        (None, ""),
        ("ipu2", ""),
        ("bow", 'target="bow"'),
        (wb.target("ipu1"), 'target="ipu1"'),
        (wb.target("bow", tiles_per_ipu=16), 'target=wb.target("bow", tiles_per_ipu=16)'),
        (wb.target("ipu2").replace(tiles_per_ipu=16, bytes_per_tile=1 << 18), "target=target"),
    ],
)
def test_the_target_that_was_asked_for_is_asked_for_again(target: Any, written: str) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
    request = wb.compile(model, batch_size=4, target=target).request
    code = request_code(request)
    assert written in code
    assert ("target" in code) == bool(written)
    assert typed(code, model=model, target=target)["executable"].request.target == request.target


def test_a_target_of_the_options_is_told_by_them() -> None:
    config = wb.ipu.config.IPUConfig()
    config.ipu_model.version = "bow"
    config.ipu_model.tiles_per_ipu = 16
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
    code = request_code(wb.compile(model, batch_size=4, config=config).request)
    assert "target" not in code
    assert typed(code, model=model)["executable"].request.target == wb.target("bow", tiles_per_ipu=16)


SOURCE = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
MEMBERS = [each for each in OPTIONS.values() if each.kind == "attribute" and issubclass(each.type, Enum)]


def set_alone(name: str, value: Any) -> Any:
    """A request of which one option is not at its default, and others that follow from it."""
    return make_request(SOURCE, batch_size=4).replace(options={name: value})


def configured(code: str) -> dict[str, Any]:
    """The options of the configuration that code makes, with nothing of it made before."""
    told: dict[str, Any] = {}
    typed(code, model=None, wb=SimpleNamespace(compile=lambda model, **given: told.update(given)))
    return dict(told["config"].freeze().changed)


@pytest.mark.parametrize("declared", MEMBERS, ids=lambda each: each.name)
def test_an_option_that_is_a_member_is_set_by_code_that_runs(declared: Any) -> None:
    other = next(each for each in declared.choices if each not in (declared.default, "PRE_COMPILE", "NEVER"))
    assert configured(request_code(set_alone(declared.name, other))) == {declared.name: other}


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("device_connection.version", "ipu2", 'config.device_connection.version = "ipu2"'),
        ("auto_select_ipus", (1, 1), "config.auto_select_ipus = [1, 1]"),
    ],
)
def test_texts_and_lists_are_set_by_code_that_runs(name: str, value: Any, written: str) -> None:
    code = request_code(set_alone(name, value))
    assert written in code.splitlines()
    assert configured(code) == {name: value}


def test_chosen_devices_are_set_without_their_count_which_cannot_stand_beside_them() -> None:
    config = wb.ipu.config.IPUConfig()
    config.select_ipus = [0]
    changed = config.freeze().changed
    assert changed == (("auto_select_ipus", 1), ("select_ipus", 0))
    assert configured(request_code(make_request(SOURCE, batch_size=4, config=config))) == dict(changed)


def test_how_much_of_the_trace_is_kept_is_said_in_the_call() -> None:
    request = make_request(SOURCE, batch_size=4, execution_profile="NO_PROFILE")
    code = request_code(request)
    assert 'execution_profile="NO_PROFILE"' in code
    assert typed(code, model=SOURCE)["executable"].request.options.changed == request.options.changed


def test_what_nothing_sets_is_named_and_the_code_runs() -> None:
    code = request_code(set_alone("synthetic_data", ("infeed",)))
    assert code.startswith('# synthetic_data = "infeed" is not in these lines')
    assert typed(code, model=SOURCE)["executable"].request.options.changed == ()
