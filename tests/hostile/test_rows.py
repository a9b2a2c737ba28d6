"""Every public callable, argument and class of value: an error of ours that names both, or a result that is right."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.hostile.classes import CLASSES
from tests.hostile.ends import CALLED, OWN, RESULTS, expected, listed
from tests.hostile.in_numpy import IN_NUMPY
from tests.hostile.known import KNOWN
from tests.hostile.rows import Cell, cells, chosen
from tests.hostile.surface import ROOMS

TENTH, THIRD = 10, 3
RANDOM = "tf.nn.dropout"  # draws, and so NumPy has none
PACKAGE = Path(wb.__path__[0])
SECONDS = 900


def share() -> int:
    """What `make test-all` runs: a third; `make hostile` runs all."""
    return 1 if os.environ.get("WORKBENCH_HOSTILE") == "all" else THIRD


def run(rooms: Sequence[str], share: int) -> dict[str, Any]:
    """The cells of rooms in a process of its own, whose memory and time are limited; a crash names its cell."""
    command = [sys.executable, "-m", "tests.hostile.rows", str(share), *rooms]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=PACKAGE.parent)
    assert done.returncode == 0, f"it stopped with {done.returncode} at\n{done.stderr[-3000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def hold(rooms: Sequence[str], share: int) -> None:
    found = run(rooms, share)
    known = {name for name in found["problems"] if name.startswith(tuple(KNOWN))}
    problems = {name: text for name, text in found["problems"].items() if name not in known}
    assert not problems, "\n".join(f"{name}: {text}" for name, text in problems.items())
    if share == 1:
        calls = {call.name for room in rooms for call in ROOMS[room]()}
        own = [each for each in KNOWN if each.partition("(")[0] in calls]
        gone = [each for each in own if not any(name.startswith(each) for name in known)]
        assert not gone, f"these are mended, so take them out of known.py: {gone}"


def test_a_tenth() -> None:
    hold(list(ROOMS), TENTH)


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_a_third_or_all(room: str) -> None:
    hold([room], share())


def test_every_public_function_has_its_cells() -> None:
    """A function that is added, or an argument, has cells by itself, or `ordinary` does not know how to call it."""
    names = {call.name for call in ROOMS["api"]()}
    assert names == {f"wb.{name}" for name in wb.__all__ if inspect.isfunction(getattr(wb, name))}
    arguments = {call.name: set(call.arguments) for call in ROOMS["api"]()}
    for name in ("compile", "profile", "sweep", "search", "autosplit", "fewest_ipus", "compare_schedules"):
        assert set(inspect.signature(wb.compile).parameters) - {"inputs"} <= arguments[f"wb.{name}"], name
    methods = {call.name for call in ROOMS["objects"]()}
    assert {"Profile.blocks", "Profile.save", "Profile.to_csv", "Executable.run", "Target.replace"} <= methods


def test_every_operation_has_cells() -> None:
    operations = {f"tf.{name}" for name in vars(wb.tf.math)} | {f"tf.nn.{name}" for name in dir(wb.tf.nn)}
    assert {name for name in operations if not name.rpartition(".")[2].startswith("_")} - {RANDOM} == set(IN_NUMPY)


# Made by other calls, or given nothing.
MADE = ("DType", "Operation", "Tensor", "Graph", "enable_eager_execution", "disable_v2_behavior")


def test_every_public_name_of_tf_has_cells() -> None:
    from workbench.tf._names import PUBLIC

    spaces = ("train", "random", "nn", "math", "dtypes", "initializers", "errors", "logging")
    found = {name: value for name, value in PUBLIC.items() if callable(value) and name not in spaces}
    found |= {f"train.{name}": value for name, value in vars(wb.tf.train).items() if name != "Optimizer"}
    found |= {f"random.{name}": value for name, value in vars(wb.tf.random).items()}
    cells = {call.name.removeprefix("tf.") for room in ("of tf", "operations", "sessions") for call in ROOMS[room]()}
    functions = {PUBLIC.get(name) for name in cells} | {
        getattr(wb.tf.nn, name.removeprefix("nn."), None) for name in cells
    }
    functions |= {getattr(wb.tf.random, name.removeprefix("random."), None) for name in cells}
    without = {
        name
        for name, value in found.items()
        if name not in cells
        and name not in MADE
        and getattr(value, "func", value) not in functions
        and inspect.signature(value).parameters
    }
    assert without == set()


def test_every_public_class_of_ipu_has_cells() -> None:
    """Those that are given something when they are made, and are no choices of a fixed set."""
    from tests.hostile.of_ipu import public

    cells = {call.name.removeprefix("ipu.") for call in ROOMS["classes of ipu"]()}
    without = {
        name
        for name, kind in public(inspect.isclass)
        if not issubclass(kind, Enum) and inspect.signature(kind).parameters and name not in cells
    }
    assert without == {  # the first is another's with another end, the second is made by a strategy, the third is one
        "ipu_infeed_queue.IPUOwnedIterator",
        "ipu_strategy.IPUExtendedV1",
        "ipu_strategy.IPUStrategy",
    }


def test_every_model_of_tensorflow_2_1_has_cells() -> None:
    """A pipelined functional model takes what the other pipelined one does, but for the layers."""
    from workbench.ipu.keras._extensions import of_2_1

    cells = {call.name.removeprefix("ipu.keras.") for call in ROOMS["models of ipu"]()}
    assert {getattr(wb.ipu.keras, name.split(".")[0]) for name in cells} | {of_2_1.PipelineModel} == {
        getattr(of_2_1, name) for name in of_2_1.__all__
    }


def test_the_tables_name_what_there_is() -> None:
    """What is said of an argument or a class that is gone would hide nothing and mislead."""
    calls = [call for room in ROOMS for call in ROOMS[room]()]
    known = {name for call in calls for each in call.arguments for name in (each, f"{call.name}.{each}")}
    assert {*RESULTS, *OWN, *CALLED} <= known
    assert all(listed(text) <= set(CLASSES) for table in (RESULTS, OWN) for text in table.values())


def test_shares_are_what_they_say() -> None:
    """A tenth and a third of the cells, the same everywhere, and a third of the results compared."""
    every = [cell for room in ROOMS for _, cell in cells(room)]
    assert len({cell.name for cell in every}) == len(every)
    for count in (TENTH, THIRD):
        found = sum(chosen(cell, count) for cell in every)
        assert abs(found * count - len(every)) < 0.15 * len(every)
    assert chosen(Cell("wb.compile", "batch_size", "zero"), 1)


def test_a_third_of_the_results_is_compared() -> None:
    from tests.hostile.checks import CHECKS

    ends = Counter(
        (f"{cell.call}.{cell.argument}" in CHECKS or cell.call in CHECKS)
        for room in ROOMS
        for call, cell in cells(room)
        if expected(call, cell.argument, cell.kind) == "result"
    )
    assert ends[True] * 3 >= sum(ends.values()), ends


# Functions where every exception of somebody else's code becomes one of ours, and why.
DOORS = {
    "cli/given.py imported": "whatever the module of a model raises while it is imported, its trace with it",
    "engine/frontends/step/precision.py in_precision": "whatever the configurations of other people's layers raise",
}


def doors(source: str) -> list[tuple[str, int]]:
    """Functions in which a handler of all exceptions raises an error of ours whatever it caught, with their lines."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ExceptHandler) and _of_all(node.type) and _raises_ours(node.body):
                    found.append((function.name, node.lineno))
    return found


def _of_all(kind: ast.expr | None) -> bool:
    return kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException"))


def _raises_ours(body: list[ast.stmt]) -> bool:
    """Whether the last thing a handler does, whatever it caught, is to raise something new."""
    return any(isinstance(each, ast.Raise) and isinstance(each.exc, ast.Call) for each in body)


def test_no_door_turns_all_exceptions_into_ours_but_those_named() -> None:
    found = {
        f"{path.relative_to(PACKAGE)} {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, _ in doors(path.read_text(encoding="utf-8"))
    }
    assert found == set(DOORS)
    assert len(DOORS) <= 2


@pytest.mark.parametrize(
    ("handler", "is_one"),
    [
        ("except Exception as error:\n  raise InputError('x') from error", True),
        ("except:\n  raise InputError('x')", True),
        ("except Exception:\n  return None", False),
        ("except Exception:\n  raise", False),
        ("except ValueError:\n  raise InputError('x')", False),
        ("except Exception as error:\n  if 1:\n   raise InputError('x')\n  raise", False),
    ],
)
def test_a_door_would_be_found(handler: str, is_one: bool) -> None:
    source = f"def f():\n try:\n  g()\n {handler.replace(chr(10), chr(10) + ' ')}"
    assert bool(doors(source)) == is_one
