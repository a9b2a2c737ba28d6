"""Programs by hand: every method of `wb.tiles` on a fresh graph of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import workbench as wb
from tests.hostile.surface import Call, call

TILES = 4


class Of(NamedTuple):
    """An argument that belongs to the fresh graph: what makes it of `Made`."""

    make: Callable[[Any], Any]


class Made:
    """A graph with mapped variables and a compute set, and one variable that is on no tile where it is asked for."""

    def __init__(self) -> None:
        self.graph = wb.tiles.Graph("ipu2", tiles=TILES)
        self.x = self.graph.variable("x", (8,)).map_linearly()
        self.y = self.graph.variable("y", (8,)).map_linearly()
        self.flag = self.graph.variable("flag", (), "bool").map_linearly()
        self.compute_set = self.graph.compute_set("set")

    @property
    def free(self) -> Any:
        return self.graph.variable("free", (8,))

    @property
    def step(self) -> Any:
        return self.graph.copy(self.x, self.y)


STEP = Of(lambda made: made.step)
STEPS = (STEP,)
ORDINARY: Mapping[str, Mapping[str, Any]] = {
    "Graph": {},
    "Graph.call": {"function": Of(lambda made: made.graph.function("f", made.step))},
    "Graph.compile_program": {"program": STEP},
    "Graph.compute_set": {"name": "other"},
    "Graph.copy": {"source": Of(lambda made: made.x), "destination": Of(lambda made: made.y)},
    "Graph.function": {"name": "f", "steps": STEPS},
    "Graph.host_copy": {"tensor": Of(lambda made: made.x)},
    "Graph.if_": {"condition": Of(lambda made: made.flag), "then": STEP},
    "Graph.repeat": {"times": 2, "steps": STEPS},
    "Graph.run": {"program": STEP, "x": np.arange(8, dtype="float32")},
    "Graph.sequence": {"steps": STEPS},
    "Graph.variable": {"name": "z", "shape": (4,)},
    "Step.compile_program": {},
    "Tensor.map": {"pieces": {0: slice(0, 8)}},
    "Tensor.map_linearly": {},
    "ComputeSet.vertex": {
        "name": "popops::Fill",
        "tile": 0,
        "out": Of(lambda made: made.x[:2]),
        "value": 1.0,
        "writes": Of(lambda made: (made.x[:2],)),
        "n": 2,
    },
}
MADE_OF: Mapping[str, Callable[[Made], Any]] = {
    "Graph": lambda made: made.graph,
    "Step": lambda made: made.step,
    "Tensor": lambda made: made.free,
    "ComputeSet": lambda made: made.compute_set,
}


def programs() -> Iterator[Call]:
    """The constructors and methods, each with what it is given of the fresh graph."""
    for name in ORDINARY:
        kind, _, method = name.partition(".")
        function = getattr(getattr(wb.tiles, kind), method) if method else getattr(wb.tiles, kind)
        opened = (
            {"x": ...} if name == "Graph.run" else {"out": ..., "value": ...} if name == "ComputeSet.vertex" else None
        )
        yield call(f"tiles.{name}", on_fresh(kind, method, inspect.signature(function)), opened, ORDINARY[name])


def on_fresh(kind: str, method: str, signature: inspect.Signature) -> Callable[..., Any]:
    def function(*starred: Any, **given: Any) -> Any:
        made = Made()
        bound = getattr(MADE_OF[kind](made), method) if method else getattr(wb.tiles, kind)
        values = {name: value.make(made) if isinstance(value, Of) else value for name, value in given.items()}
        return bound(*(value.make(made) if isinstance(value, Of) else value for value in starred), **values)

    named = [each for name, each in signature.parameters.items() if name != "self"]
    function.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    return function
