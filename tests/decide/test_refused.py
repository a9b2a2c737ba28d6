"""What no search can be made of: each is refused by name, and nothing is compiled before."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.executable import compile as compiling
from workbench.sweeps import jobs

TARGET = wb.target("ipu2", tiles_per_ipu=8)
OVER = TARGET.replace(bytes_per_tile=8192)
GRID = {"batch_size": [2, 4]}


def network() -> Any:
    import keras

    layers = [keras.layers.Dense(8, activation="relu", name=f"d{place}") for place in range(4)]
    return keras.Sequential([keras.Input((8,)), *layers])


@functools.cache
def too_large() -> Any:
    """A training program that is over."""
    return wb.compile("mlp", batch_size=64, mode="training", target=OVER)


def sweep(grid: Any, **more: Any) -> Any:
    return wb.sweep("mlp", grid, **{"target": TARGET, "progress": lambda text: None, **more})


def search(space: Any, *more: Any, **named: Any) -> Any:
    return wb.search("mlp", space, *more, **{"target": TARGET, "trials": 4, **named})


def diagnose(**more: Any) -> Any:
    return wb.diagnose(too_large(), **more)


def autosplit(ipus: Any, **more: Any) -> Any:
    return wb.autosplit(network, ipus, **{"batch_size": 2, "target": TARGET, **more})


def fewest(**more: Any) -> Any:
    return wb.fewest_ipus(network, **{"batch_size": 2, "target": TARGET, **more})


def plan(**more: Any) -> Any:
    return wb.plan(network, **{"global_batch": 8, "system": "pod4", "target": TARGET, **more})


# What is called, and the words that name what was wrong with it.
EMPTY_OR_UNKNOWN: list[tuple[Callable[..., Any], Any, str]] = [
    (sweep, {"grid": {}}, "no axis"),
    (sweep, {"grid": []}, "no point"),
    (sweep, {"grid": {"batch_size": [2], "hidden": []}}, "the axis 'hidden' is empty"),
    (sweep, {"grid": {"batch_size": [2], "nosuch": [1]}}, "'nosuch' is nothing a sweep can change"),
    (search, {"space": {}}, "space is {}"),
    (search, {"space": {"batch_size": []}}, "the values of 'batch_size' in the space are []"),
    (search, {"space": {"nosuch": [1]}}, "'nosuch' is nothing a sweep can change"),
    (diagnose, {"levers": []}, "levers is empty"),
    (diagnose, {"levers": ["nosuch"]}, "unknown lever 'nosuch'"),
    (plan, {"system": "pod5"}, "no system is called 'pod5'"),
]
# The value of no use is never the first: those before it are of use.
NO_VALUES: list[tuple[Callable[..., Any], Any, str]] = [
    (sweep, {"grid": {"batch_size": [2, 0]}}, "batch_size is 0"),
    (sweep, {"grid": {"hidden": [8, 0]}}, "hidden is 0"),
    (sweep, {"grid": {"io_tiles.num_io_tiles": [0, "many"]}}, "io_tiles.num_io_tiles is 'many'"),
    (
        sweep,
        {"grid": [{"matmuls.poplar_options": {each: "0.3"}} for each in ("availableMemoryProportion", "nosuch")]},
        "there is no option 'matmuls.poplar_options.nosuch'",
    ),
    (sweep, {"grid": {"pipeline_schedule": ["Grouped", "nosuch"]}}, "pipeline_schedule is 'nosuch'"),
    (sweep, {"grid": {"offload": [(), ("nosuch",)]}}, "offload names 'nosuch'"),
    (sweep, {"grid": {"precision": ["float32", "float7"]}}, "precision is 'float7'"),
    (sweep, {"grid": {"optimizer": ["sgd", "nosuch"]}, "mode": "training"}, "optimizer is 'nosuch'"),
    (sweep, {"grid": GRID, "columns": ["fits", "nosuch"]}, "the column 'nosuch'"),
    (search, {"space": {"batch_size": [2, 0]}}, "batch_size is 0"),
    (search, {"space": {"batch_size": (0, 4)}}, "batch_size is 0"),
    (search, {"space": {"precision": ["float32", "float7"]}}, "precision is 'float7'"),
    (search, {"space": {"batch_size": (4, 4)}}, "the range of 'batch_size' is (4, 4)"),
    (search, {"space": {"batch_size": [2, 4]}, "objective": "nosuch"}, "objective is 'nosuch'"),
    (diagnose, {"keep_numbers": "nosuch"}, "keep_numbers is 'nosuch'"),
    (diagnose, {"compiles": 0}, "compiles is 0"),
    (diagnose, {"seconds": 0}, "seconds is 0"),
    (diagnose, {"ipus": 0}, "ipus is 0"),
    (autosplit, {"ipus": 1}, "ipus is 1"),
    (autosplit, {"ipus": 2, "optimizer": "nosuch"}, "optimizer is 'nosuch'"),
    (fewest, {"most": 0}, "most is 0"),
    (plan, {"global_batch": 0}, "global_batch is 0"),
    (plan, {"compiles": 2}, "compiles is 2"),
]
CONTRADICTIONS: list[tuple[Callable[..., Any], Any, str]] = [
    (sweep, {"grid": GRID, "batch_size": 3}, "batch_size is 3, and the grid varies it"),
    (search, {"space": {"batch_size": [2, 4]}, "batch_size": 3}, "batch_size is 3, and the grid varies it"),
    (diagnose, {"keep_numbers": "exact", "levers": ["half_precision"]}, "none of the levers that are named keeps"),
    (autosplit, {"ipus": 2, "stages": [0, 0, 1, 1]}, "stages is given, and wb.autosplit finds them"),
    (fewest, {"stages": [0, 0, 1, 1]}, "stages is given, and wb.fewest_ipus finds them"),
    (plan, {"stages": [0, 0, 1, 1]}, "stages is given, and wb.plan finds it"),
    (plan, {"mode": "inference"}, "mode is 'inference', and wb.plan is for training"),
    (plan, {"batch_size": 3}, "8 samples are no multiple"),
]
NO_EXECUTORS: list[tuple[Callable[..., Any], Any, str]] = [
    (sweep, {"grid": GRID, "executor": 3}, "executor is 3"),
    (diagnose, {"executor": "processes"}, "executor is 'processes'"),
]
TOO_MANY_IPUS: list[tuple[Callable[..., Any], Any, str]] = [
    (autosplit, {"ipus": 65}, "need 65 IPUs"),
    (autosplit, {"ipus": 2, "replicas": 64, "mode": "training"}, "need 128 IPUs"),
    (autosplit, {"ipus": 5}, "4 layers cannot be 5 stages"),
    (diagnose, {"ipus": 65}, "need 65 IPUs"),
    (fewest, {"most": 65}, "need 65 IPUs"),
]


@pytest.mark.parametrize(
    ("call", "arguments", "words"),
    [*EMPTY_OR_UNKNOWN, *NO_VALUES, *CONTRADICTIONS, *NO_EXECUTORS, *TOO_MANY_IPUS],
    ids=lambda each: each.__name__ if callable(each) else str(each)[:50] if isinstance(each, str) else "",
)
def test_it_is_said_before_anything_compiles(
    call: Callable[..., Any], arguments: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_large()
    compiled: list[Any] = []
    for module in (compiling, jobs):
        monkeypatch.setattr(module, "compile_graph", lambda *graph, **more: compiled.append(graph))
    with pytest.raises(WorkbenchError, match=re.escape(words)):
        call(**arguments)
    assert not compiled


def test_what_is_of_use_is_compiled() -> None:
    """The same calls without the value of no use: so it is that which was refused."""
    assert not sweep({"batch_size": [2], "hidden": [8], "precision": ["float32"]}).rows[0].problem
    assert len(search({"batch_size": [2]}, trials=1).rows) == 1
    assert autosplit(2, compiles=1).attempts
    assert fewest(most=1).numbers
    assert plan(compiles=3, batch_size=2).uses
    assert diagnose(levers=["half_precision"], compiles=1).tried
