"""Strategies and Keras extensions have the SDK's names, parameters, defaults and kinds: data/api_second_half.json."""

import importlib
import inspect
import json
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from workbench import ipu

ROWS = json.loads((Path(__file__).parents[2] / "data" / "api_second_half.json").read_text(encoding="utf-8"))


def found(name: str) -> Any:
    module, first, *path = name.split(".")
    owner = getattr(getattr(ipu, module), first)
    for part in path:
        if inspect.ismodule(owner):
            owner = getattr(owner, part)
            continue
        owner = next(vars(kind)[part] for kind in owner.__mro__ if part in vars(kind))
    return owner


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_names_parameters_defaults_and_kinds(row: dict[str, Any]) -> None:
    ours = found(row["name"])
    plain = ours.__func__ if isinstance(ours, classmethod) else ours
    if row.get("parameters") is not None:
        signature = inspect.signature(plain)
        ours_are = [
            [f"**{each.name}"]
            if each.kind is inspect.Parameter.VAR_KEYWORD
            else [each.name]
            if each.default is inspect.Parameter.empty
            else [each.name, repr(each.default)]
            for each in signature.parameters.values()
            if each.name not in ("self", "cls")
        ]
        assert ours_are == row["parameters"]
    kinds = {
        "property": isinstance(ours, property),
        "class": inspect.isclass(ours),
        "enumeration": inspect.isclass(ours) and issubclass(ours, Enum),
        "function": isinstance(ours, classmethod),
        "method": inspect.isfunction(ours),
    }
    assert kinds[row["kind"]]
    assert inspect.getdoc(plain) or plain.__module__.startswith("keras.")  # what is inherited as Keras has it
    if "members" in row:
        assert list(ours.__members__) == row["members"]


NAMES = {
    "ipu_strategy": set(ipu.ipu_strategy.__all__),
    "keras": {each for each in dir(ipu.keras) if not each.startswith("_")} - {"layers"},
    "keras.layers": set(ipu.keras.layers.__all__),
}


def test_no_name_is_missing_and_none_is_public_that_the_sdk_has_not() -> None:
    """By module, both ways; and how many rows there are, so that none falls out of the file unseen."""
    listed: dict[str, set[str]] = {module: set() for module in NAMES}
    for row in ROWS:
        module = next(each for each in sorted(NAMES, reverse=True) if row["name"].startswith(f"{each}."))
        listed[module].add(row["name"].removeprefix(f"{module}.").split(".")[0])
    assert listed == NAMES
    missing = [row["name"] for row in ROWS if not _is_there(row["name"])]
    assert missing == []
    assert len(ROWS) == len({row["name"] for row in ROWS}) == 96


def _is_there(name: str) -> bool:
    try:
        return found(name) is not None
    except (AttributeError, StopIteration):
        return False


def test_names_of_modules_and_paths() -> None:
    assert ipu.ipu_strategy.IPUStrategy is ipu.ipu_strategy.IPUStrategyV1
    keras = importlib.import_module("keras")
    from workbench.tf.keras.layers import Dense

    assert Dense is keras.layers.Dense
    assert importlib.import_module("workbench.tf.keras").Model is keras.Model


@pytest.mark.parametrize("path", ["applications.resnet50", "datasets.mnist", "layers", "utils"])
def test_modules_of_keras_are_there_once(path: str) -> None:
    """A second module of the same file would keep what it had when somebody replaces a name in Keras' own."""
    assert importlib.import_module(f"workbench.tf.keras.{path}") is importlib.import_module(f"keras.{path}")


def test_keras_ipu_is_where_the_sdks_keras_has_it_while_a_scope_is_open() -> None:
    keras = importlib.import_module("keras")
    from workbench.tf.keras.ipu import PipelineStage

    from workbench.tf.keras import ipu as by_tf

    assert by_tf is ipu.keras
    assert PipelineStage is ipu.keras.PipelineStage
    strategy = ipu.ipu_strategy.IPUStrategy()
    with strategy.scope():
        assert keras.ipu is ipu.keras
        with strategy.scope(), keras.ipu.PipelineStage(0):
            pass
        assert keras.ipu is ipu.keras
    assert not hasattr(keras, "ipu")
