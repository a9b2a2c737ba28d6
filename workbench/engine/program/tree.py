"""The control tree of a program as plain data, and what it says about each step: names above it, and its stage."""

from __future__ import annotations

from collections.abc import Sequence as PySequence
from typing import Any

from workbench.engine.program.program import (
    Call,
    If,
    Leaf,
    Overlap,
    Program,
    Repeat,
    Sequence,
    Step,
    TileProgram,
    children,
)


class StepContext:
    """What the control tree says about steps: the path of names above each, and the stage of the call it is in."""

    def __init__(self, program: TileProgram) -> None:
        self.path: dict[int, str] = {}
        self._stage: dict[str, int] = {}
        for name, body in program.functions.items():
            self._walk(body, (name,))
        self._walk(program.entry, ())
        self._function = {step: path.split("/")[0] for step, path in self.path.items()}

    def _walk(self, node: Program, above: tuple[str, ...]) -> None:
        if isinstance(node, Step):
            self.path[node.id] = "/".join(above)
            return
        if isinstance(node, Call) and node.stage is not None:
            self._stage.setdefault(node.function, node.stage)
        name = getattr(node, "name", "") or ""
        inside = (*above, name) if name and above[-1:] != (name,) else above
        for child in children(node):
            self._walk(child, inside)

    def stage_of(self, step: Leaf) -> int:
        """The stage of a step, its own or its function's; -1 without one."""
        if step.stage is not None:
            return step.stage
        return self._stage.get(self._function.get(step.id, ""), -1)


class Below:
    """What is right below the nodes of a program, steps and other nodes told apart once."""

    def __init__(self) -> None:
        self._known: dict[Program, tuple[PySequence[Step], PySequence[Program]]] = {}

    def steps(self, node: Program) -> PySequence[Step]:
        """The steps right below a node, in order."""
        return self._of(node)[0]

    def nodes(self, node: Program) -> PySequence[Program]:
        """Nodes right below that are no steps, in order."""
        return self._of(node)[1]

    def _of(self, node: Program) -> tuple[PySequence[Step], PySequence[Program]]:
        if node not in self._known:
            parts = children(node)
            steps = [part for part in parts if isinstance(part, Step)]
            others = [part for part in parts if not isinstance(part, Step)] if len(steps) < len(parts) else []
            self._known[node] = (steps, others)
        return self._known[node]


def dumped(node: Program) -> list[Any]:
    """A control node as JSON data, its kind first.

    `["step", id]`, `["sequence", name, [children]]`, `["repeat", name, times, child]`, `["if", name, [arms]]`,
    `["call", function, name, ipu, stage, direction, micro_batch]`, `["overlap", name, phase, [branches]]`. The call of
    an outlined body says at its end for whom it is made: layer, operator, class of the layer, and the line of source of
    each part of the body, or one of all; or the first of these.
    """
    if isinstance(node, Step):
        return ["step", node.id]
    if isinstance(node, Call):
        call = ["call", node.function, node.name, node.ipu, node.stage, node.direction, node.micro_batch]
        return call + _called_for(node)
    below = [dumped(child) for child in children(node)]
    if isinstance(node, Sequence):
        return ["sequence", node.name, below]
    if isinstance(node, Repeat):
        return ["repeat", node.name, node.times, below[0]]
    if isinstance(node, If):
        return ["if", node.name, below]
    assert isinstance(node, Overlap)
    return ["overlap", node.name, node.phase, below]


def _called_for(call: Call) -> list[str]:
    """For whom a call is made; what nobody says at the end is left out."""
    origin = call.origin
    sources = call.sources or (origin.source,)
    if call.operator and (origin.layer_class or any(sources)):
        return [origin.layer, call.operator, origin.layer_class, *sources]
    return [origin.layer, call.operator] if call.operator else [origin.layer] * bool(origin.layer)


def dump(program: TileProgram) -> dict[str, Any]:
    """The tree of the entry, and those of the functions by name, as a profile keeps them."""
    functions = {name: dumped(body) for name, body in program.functions.items()}
    return {"entry": dumped(program.entry), "functions": functions}
