"""Every argument of `wb.compile` on every kind of source: it changes what comes out, or it is refused by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import workbench as wb
from workbench.engine.frontends.functions import trace_function
from workbench.errors import InputError, OptionError
from workbench.executable import Executable

TARGET = wb.target("ipu2", tiles_per_ipu=8)
KIND = jax.ShapeDtypeStruct((8, 8), "float32")
MLP = {"hidden": 16, "input_size": 16, "classes": 4}


def keras_model() -> Any:
    """With the layers of the ready MLP."""
    import keras

    hidden = [keras.layers.Dense(16, "relu", name=f"hidden_{number}") for number in range(2)]
    return keras.Sequential([keras.Input((16,)), *hidden, keras.layers.Dense(4, "softmax", name="classifier")])


def looping_model() -> Any:
    """With a loop whose count depends on numbers."""
    import keras

    class Looping(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return looping(x)

    return keras.Sequential([keras.Input((16,)), Looping(name="looping"), keras.layers.Dense(4)])


def multiplied(x: Any) -> Any:
    return jnp.tanh(x @ x.T)


def looping(x: Any) -> Any:
    return jax.lax.while_loop(lambda held: jnp.sum(held) < 10, lambda held: held * 1.5 + 1, x)


class TracesItself:
    """As what a session runs does."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def trace_source(self) -> Any:
        return trace_function(self.function, KIND)


def by_hand() -> Any:
    graph = wb.tiles.Graph(TARGET)
    x, y = (graph.variable(name, 64).map_linearly(tiles=4) for name in "xy")
    return graph.sequence(graph.host_copy(x), graph.copy(x, y), graph.host_copy(y, "to_host"))


# What is compiled, with the inputs it cannot do without; and with a loop whose count is not known.
SOURCES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "a Keras model": lambda: (keras_model(),),
    "a builder": lambda: (keras_model,),
    "a ready model by name": lambda: ("mlp",),
    "a ready model in a size": lambda: (wb.ready("mlp", **MLP),),
    "a JAX function": lambda: (multiplied, KIND),
    "what traces itself": lambda: (TracesItself(multiplied),),
    "a program by hand": lambda: (by_hand(),),
}
LOOPING: dict[str, Callable[[], tuple[Any, ...]]] = {
    "a Keras model": lambda: (looping_model(),),
    "a builder": lambda: (looping_model,),
    "a JAX function": lambda: (looping, KIND),
    "what traces itself": lambda: (TracesItself(looping),),
}
MODELS = ("a Keras model", "a builder", "a ready model by name", "a ready model in a size")
BASE: dict[str, dict[str, Any]] = {name: {"batch_size": 4} if name in MODELS else {} for name in SOURCES}


@dataclass(frozen=True, kw_only=True)
class Acts:
    """The value makes another program than none. `beside`: other arguments of both."""

    value: Any
    beside: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Callable[[], tuple[Any, ...]]] = field(default_factory=lambda: SOURCES)


@dataclass(frozen=True, kw_only=True)
class Refused:
    """The value is refused with a text that holds these words."""

    value: Any
    words: str
    beside: dict[str, Any] = field(default_factory=dict)


Cell = Acts | Refused
TRAINED = {"mode": "training"}
MICRO_BATCHES = {"mode": "training", "gradient_accumulation_steps": 4}
STAGED = {**MICRO_BATCHES, "stages": ["hidden_0"]}


def configured() -> Any:
    config = wb.ipu.config.IPUConfig()
    config.ipu_model.compile_ipu_code = False
    return config


def of_models(*cells: Cell) -> dict[str, tuple[Cell, ...]]:
    return dict.fromkeys(MODELS, cells)


def nowhere_else(value: Any) -> dict[str, tuple[Cell, ...]]:
    """Refused where there is no model."""
    sentences = {
        "a JAX function": "and the source is a JAX function with inputs",
        "what traces itself": "and the source is what traces itself",
        "a program by hand": "and the source is a program made by hand",
    }
    return {name: (Refused(value=value, words=words),) for name, words in sentences.items()}


def everywhere(value: Any) -> dict[str, tuple[Cell, ...]]:
    return dict.fromkeys(SOURCES, (Acts(value=value),))


MATRIX: dict[str, dict[str, tuple[Cell, ...]]] = {
    "inputs": {
        **of_models(Acts(value=(jax.ShapeDtypeStruct((6, 16), "float32"),), beside={"batch_size": None})),
        "a ready model by name": (
            Acts(value=(jax.ShapeDtypeStruct((6, 64), "float32"),), beside={"batch_size": None}),
            Refused(value=(jax.ShapeDtypeStruct((6, 64), "float32"),), words="one batch size"),
        ),
        "a builder": (Refused(value=(KIND,), words="'keras_model'() -> 'Any' was given 1 input:"),),
        "a JAX function": (Refused(value=(KIND,), words="too many positional arguments"),),  # one more than it takes
        "what traces itself": (Refused(value=(KIND,), words="inputs is given"),),
        "a program by hand": (Refused(value=(KIND,), words="inputs is given"),),
    },
    "config": everywhere(configured),
    "target": {
        **everywhere(wb.target("bow", tiles_per_ipu=8)),
        "a program by hand": (Refused(value="bow", words="the program was made for 'ipu2'"),),
    },
    "mode": {**of_models(Acts(value="training")), **nowhere_else("training")},
    "batch_size": {
        **of_models(Acts(value=8)),
        **nowhere_else(8),
        "a JAX function": (Acts(value=8),),
    },
    "optimizer": {
        **of_models(
            Acts(value="adam", beside=TRAINED),
            Refused(value="adam", beside={"mode": "inference"}, words="the model is compiled for inference"),
        ),
        **nowhere_else("adam"),
    },
    "loss": {
        **of_models(
            Acts(value="kl_divergence", beside=TRAINED),
            Refused(value="kl_divergence", words="the model is compiled for inference"),
        ),
        **nowhere_else("mean_squared_error"),
    },
    "precision": {**of_models(Acts(value="float16")), **nowhere_else("float16")},
    "stages": {
        **of_models(Acts(value=["hidden_0"], beside=MICRO_BATCHES), Acts(value=[0, 1, 1], beside=MICRO_BATCHES)),
        **nowhere_else([0, 1]),
    },
    "pipeline_schedule": {
        **of_models(
            Acts(value="Sequential", beside=STAGED), Refused(value="Sequential", words="the model is one stage")
        ),
        **nowhere_else("Sequential"),
    },
    "device_mapping": {
        **of_models(Acts(value=[0, 0], beside=STAGED), Refused(value=[0], words="the model is one stage")),
        **nowhere_else([0]),
    },
    "gradient_accumulation_steps": {
        **of_models(
            Acts(value=4, beside=TRAINED),
            Acts(value=4, beside={"stages": ["hidden_0", "hidden_1"], "pipeline_schedule": "Sequential"}),
            Refused(value=4, words="the model is compiled for inference"),
        ),
        **nowhere_else(4),
    },
    "replicas": {
        **of_models(Acts(value=2, beside=TRAINED), Acts(value=2)),
        **nowhere_else(2),
        "a JAX function": (Acts(value=2),),
    },
    "recomputation": {
        **of_models(
            Acts(value=True, beside=STAGED),
            Acts(value=True, beside=TRAINED),
            Refused(value=True, words="the model is compiled for inference"),
        ),
        **nowhere_else(True),
    },
    "recomputation_checkpoints": {
        **of_models(
            Acts(value=("hidden_0",), beside={**TRAINED, "recomputation": True}),
            Refused(value=("hidden_0",), beside=TRAINED, words="nothing is computed again without recomputation=True"),
        ),
        **nowhere_else(("hidden_0",)),
    },
    "offload": {
        **of_models(
            Acts(value=("optimizer_state",), beside={**TRAINED, "optimizer": "adam"}),
            Acts(value=("weights",)),
            Acts(value=("activations",), beside=STAGED),
            Acts(value=("gradient_accumulation_buffers",), beside=STAGED),
            Acts(value=("optimizer_state_to_replicas",), beside={**TRAINED, "optimizer": "adam", "replicas": 2}),
            Acts(
                value=("optimizer_state", "optimizer_state_to_replicas"),
                beside={**TRAINED, "optimizer": "adam", "replicas": 2},
            ),
            Refused(value=("optimizer_state",), beside={**TRAINED, "optimizer": "sgd"}, words="no variable moves by"),
            Refused(value=("optimizer_state",), words="no variable moves by 'optimizer_state'"),
            Refused(value=("activations",), beside=TRAINED, words="'activations' are what stages keep"),
            Refused(
                value=("activations",),
                beside={**STAGED, "pipeline_schedule": "Sequential"},
                words="under the Sequential schedule nothing does",
            ),
            Refused(value=("gradient_accumulation_buffers",), beside=TRAINED, words="no variable moves by"),
            Refused(
                value=("optimizer_state", "optimizer_state_to_replicas"),
                beside={**TRAINED, "optimizer": "adam"},
                words="no variable moves by 'optimizer_state_to_replicas'",
            ),
        ),
        **nowhere_else(("weights",)),
    },
    "trip_counts": {
        **of_models(Refused(value={"looping": 5}, words="every loop of this program has a count")),
        **nowhere_else({"while_body": 5}),
        "a Keras model": (Acts(value={"looping": 5}, sources=LOOPING),),
        "a builder": (Acts(value={"looping": 5}, sources=LOOPING),),
        "a JAX function": (
            Acts(value={"while_body": 5}, sources=LOOPING),
            Refused(value={"while_body": 5}, words="every loop of this program has a count"),
        ),
        "what traces itself": (Acts(value={"while_body": 5}, sources=LOOPING),),
    },
    "execution_profile": everywhere("NO_PROFILE"),
    "progress": {name: (Refused(value=3, words="progress is 3"),) for name in SOURCES},
}


def test_every_argument_has_a_cell_for_every_kind_of_source() -> None:
    names = set(inspect.signature(wb.compile).parameters) - {"source"}
    assert names == set(MATRIX)
    for name, row in MATRIX.items():
        assert set(row) == set(SOURCES), name


def shown(executable: Executable) -> str:
    """All that a profile shows but its times of phases."""
    profile = executable.profile
    meta = {name: value for name, value in profile.meta.items() if name not in ("passes", "config", "config_changed")}
    tables = {name: {key: each.tolist() for key, each in rows.items()} for name, rows in profile.tables.items()}
    return f"{meta} {tables} {profile.arrays}"


def compiled(source: tuple[Any, ...], name: str, value: Any, arguments: dict[str, Any]) -> Executable:
    if callable(value) and value is configured:
        value = value()
    chosen = {"target": TARGET, **arguments} if not hasattr(source[0], "compile_program") else dict(arguments)
    if name == "inputs":
        return wb.compile(*source, *value, **chosen)
    return wb.compile(*source, **{**chosen, name: value})


@cache
def without(kind: str, looping: bool, beside: str) -> str:
    source = (LOOPING if looping else SOURCES)[kind]()
    chosen = BASE[kind] | dict(_BESIDE[beside])
    try:
        return shown(compiled(source, "mode", chosen.pop("mode", None), chosen))
    except InputError as error:
        return str(error)


_BESIDE: dict[str, dict[str, Any]] = {}
CELLS = [
    pytest.param(name, kind, cell, id=f"{name}-{kind}-{number}")
    for name, row in MATRIX.items()
    for kind, cells in row.items()
    for number, cell in enumerate(cells)
]


@pytest.mark.parametrize(("name", "kind", "cell"), CELLS)
def test_it_acts_or_is_refused(name: str, kind: str, cell: Cell) -> None:
    arguments = BASE[kind] | cell.beside
    if isinstance(cell, Refused):
        with pytest.raises((InputError, OptionError)) as caught:
            compiled(SOURCES[kind](), name, cell.value, arguments)
        assert cell.words in str(caught.value)
        assert name in str(caught.value) or name == "inputs"
        return
    key = repr(cell.beside)
    _BESIDE[key] = cell.beside
    source = cell.sources[kind]()
    assert shown(compiled(source, name, cell.value, arguments)) != without(kind, cell.sources is LOOPING, key)


@pytest.mark.parametrize("kind", SOURCES)
def test_progress_hears_every_kind(kind: str) -> None:
    heard: list[str] = []
    compiled(SOURCES[kind](), "progress", heard.append, BASE[kind])
    assert heard[0] == "trace"


@pytest.mark.parametrize("source", [3, None, b"mlp", ["mlp"], {"a": 1}, object(), KIND])
def test_what_is_no_source_is_refused(source: Any) -> None:
    with pytest.raises(InputError, match="cannot be compiled"):
        wb.compile(source)


def test_a_loaded_executable_is_run_and_not_compiled(tmp_path: Any) -> None:
    from workbench.ipu._files.executables import load_executable, save_executable

    path = save_executable(wb.compile(multiplied, KIND, target=TARGET), tmp_path / "program")
    with pytest.raises(InputError, match="cannot be compiled"):
        wb.compile(load_executable(path))
