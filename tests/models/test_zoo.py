"""Every kind of model a user brings: nothing by the generic rule, everything reconciles, numbers are Keras' own."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import Any

import jax
import keras
import numpy as np
import pytest

import workbench as wb
from tests.engine import reconcile
from tests.models.zoo import applications, functions, language, layers, structures, training, unusual
from tests.models.zoo.case import Case, assert_close, compiled, data_for

MODULES = (layers, training, language, structures, unusual)
CASES: dict[str, Case] = {
    f"{table.lower()}: {name}": case
    for module in MODULES
    for table in module.TABLES
    for name, case in getattr(module, table).items()
}
SMALL = {f"small: {name}": case for name, case in applications.SMALL.items()}
WHOLE = {f"whole: {name}": case for name, case in applications.WHOLE.items()}
DEEP = {**SMALL, **WHOLE}
# Layers that prepare data on the host, or only say how others are made.
ELSEWHERE = frozenset(
    {
        "AugMix",
        "AutoContrast",
        "ContrastLimitedAdaptiveHistogramEqualization",
        "CutMix",
        "Equalization",
        "MixUp",
        "MaxNumBoundingBoxes",
        "Pipeline",
        "RandAugment",
        "Solarization",  # images on their way in
        "HashedCrossing",
        "Hashing",
        "IntegerLookup",
        "StringLookup",
        "TextVectorization",
        "MelSpectrogram",
        "FlaxLayer",
        "JaxLayer",
        "TFSMLayer",
        "TorchModuleWrapper",  # other libraries
        "InputLayer",
        "InputSpec",
        "Layer",
        "Wrapper",
    }
)


def modes(cases: dict[str, Case]) -> Iterator[tuple[str, str]]:
    for name, case in cases.items():
        if case.trains:
            yield name, "training"
        yield name, "inference"


def deepest(cases: dict[str, Case]) -> list[tuple[str, str]]:
    """Training where there is any: it runs forward too."""
    return [(name, "training" if case.trains else "inference") for name, case in cases.items()]


def checked(case: Case, mode: str, *, live: bool = False) -> Any:
    found = compiled(case, mode, live=live)
    assert found.profile.unmodelled.empty, found.profile.unmodelled
    reconcile.reconciles(found.compiled)
    return found


# Whole models and what is long to trace.
LONG = ("ready:", "written:", "recurrent: ConvLSTM", "structures: unet")
FIRST_OF_EACH = 2


def firsts(names: Iterable[str]) -> list[str]:
    """The first names of each table: what is run often. All of them run where numbers are compared."""
    tables = groupby((name for name in names if not name.startswith(LONG)), key=lambda name: name.partition(":")[0])
    return [name for _, table in tables for name in islice(table, FIRST_OF_EACH)]


@pytest.mark.parametrize("name", firsts(CASES))
def test_everything_is_modelled_and_reconciles(name: str) -> None:
    case = CASES[name]
    checked(case, "training" if case.trains else "inference")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(LONG)])
def test_whole_models_are_built_without_weights(name: str) -> None:
    case = CASES[name]
    checked(case, "training" if case.trains else "inference")


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_small_applications_are_modelled_in_inference(name: str) -> None:
    checked(SMALL[name], "inference")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mode"), [*((name, "training") for name in SMALL), *((name, "inference") for name in WHOLE)]
)
def test_applications_are_modelled(name: str, mode: str) -> None:
    checked(DEEP[name], mode)


def structured(model: Any, data: list[Any]) -> Any:
    """Flat arrays as the model takes them."""
    source = getattr(model, "input", None)
    if isinstance(source, dict):
        return dict(zip(sorted(source), data, strict=True))
    return data if len(data) > 1 else data[0]


def targets(model: Any, data: list[Any]) -> Any:
    output = getattr(model, "output", None) if getattr(model, "outputs", None) else None
    if isinstance(output, dict):
        return dict(zip(sorted(output), data, strict=True))
    return data if len(data) > 1 else data[0]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), [*deepest(CASES), *modes(SMALL)])
def test_numbers_are_those_of_keras(name: str, mode: str) -> None:
    """Two training steps and the variables after them, or a prediction; nothing by the generic rule."""
    case = {**CASES, **SMALL}[name]
    ours, theirs = checked(case, mode, live=True), case.model()
    specs = ours.traced.specs
    data = data_for(case, specs)
    count = sum(spec.name.startswith("x") for spec in specs)
    x = structured(theirs, data[:count])
    if mode == "inference":
        assert_close(ours.run(x), theirs.predict_on_batch(x), case)
        return
    y = targets(theirs, data[count:])
    theirs.compile(case.new_optimizer(), case.loss)
    for _ in range(2):
        assert_close(ours.run(x, y)["loss"], float(theirs.train_on_batch(x, y, return_dict=True)["loss"]), case)
    held = [np.asarray(each.value) for each in ours.request.source.variables]
    assert_close(held, [np.asarray(each.value) for each in theirs.variables], case)


def checked_function(name: str) -> Any:
    program = functions.ALL[name]
    found = wb.compile(program.function, *program.specs(), target=wb.target("ipu2", tiles_per_ipu=16))
    assert found.profile.unmodelled.empty, found.profile.unmodelled
    reconcile.reconciles(found.compiled)
    return found


@pytest.mark.parametrize("name", list(functions.ALL)[:: len(functions.ALL) // 20])
def test_functions_are_modelled_and_reconcile(name: str) -> None:
    checked_function(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", functions.ALL)
def test_numbers_of_functions_are_those_of_jax(name: str) -> None:
    program = functions.ALL[name]
    arguments = program.arguments()
    ours = checked_function(name).run(*arguments)
    theirs = jax.jit(program.function)(*arguments)
    for one, other in zip(jax.tree_util.tree_leaves(ours), jax.tree_util.tree_leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=1e-5, atol=1e-6)


def test_every_layer_of_keras_has_a_case() -> None:
    """By its class, whatever its aliases; images made at random on their way in have none."""
    public = {name: each for name, each in vars(keras.layers).items() if inspect.isclass(each)}
    cased = {name.split(" ")[0] for name in layers.ALL}
    cells = {"GRUCell", "LSTMCell", "SimpleRNNCell", "StackedRNNCells"}  # inside the RNN cases
    known = {public[name] for name in cased if name in public}
    missing = {
        name
        for name, each in public.items()
        if each not in known and name not in ELSEWHERE | cells and not name.startswith("Random")
    }
    assert not missing


def regions(graph: Any) -> Counter[tuple[str, str]]:
    """How many regions of each kind and direction do the sums of their layer (a copy made again does none)."""
    return Counter(
        (str(node.attr("kind")), node.origin.direction)
        for function in graph.functions.values()
        for node in function.nodes
        if node.op == "region"
    )


RECOGNISED: tuple[tuple[dict[str, Case], str, str], ...] = (
    *((language.READY, name, "training") for name in ("bert-base", "gpt2", "llama-block")),
    *((language.READY, name, "inference") for name in ("lstm", "llama-decode", "vit-b16")),
    *((layers.NORMS, name, "training") for name in layers.NORMS),
    (layers.REGULARISATION, "Dropout", "training"),
    (applications.SMALL, "resnet50", "inference"),
)


@pytest.mark.slow
def test_regions_are_recognised(golden: Callable[[str, str], None]) -> None:
    """A norm is one norm, a softmax one softmax, each way; below them, how many layers of each class there are."""
    lines = []
    for table, name, mode in RECOGNISED:
        graph = compiled(table[name], mode).graph
        found = regions(graph)
        classes = Counter(layer_class for _, layer_class in _normalising(graph))
        lines.append(f"{name}, {mode}: " + (", ".join(f"{n} {k} {d}" for (k, d), n in sorted(found.items())) or "none"))
        lines.append("    of " + (", ".join(f"{n} {c}" for c, n in sorted(classes.items())) or "no such layer"))
    golden("engine/recognised.txt", "\n".join(lines))


def _normalising(graph: Any) -> set[tuple[str, str]]:
    """(layer, class) of the layers that normalise."""
    return {
        (node.origin.layer, node.origin.layer_class)
        for function in graph.functions.values()
        for node in function.nodes
        if "Norm" in node.origin.layer_class or node.origin.layer_class in ("Softmax", "Dropout")
    }
