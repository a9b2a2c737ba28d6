"""Outline: operators that are the same and planned the same are one body, called with copies of their arguments.

A body keeps its vertices, exchange and control code once for all its calls. Its arguments and results have memory of
their own, which is live only around a call: each call copies its operands in and its results out, on their tiles where
the layouts agree. Bodies are made by the first call; outlining stands behind planning, whose plans are equal for equal
operators, and can be turned off (`optimizations.enable_graph_outlining`). What stands between the planned operators is
shared as runs (`runs.py`, `calls.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from workbench.base.arrays import IntArray
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.graph.flow import callees_first
from workbench.engine.lower.outline.calls import SharedRuns
from workbench.engine.lower.outline.room import held_at_once
from workbench.engine.lower.outline.runs import RunFinder
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import family_of
from workbench.engine.program import Call
from workbench.engine.program import Sequence as ProgramSequence

Key = tuple[object, ...]
# The driver makes a function of every convolution and product, and compiles equal ones once (graphcore/tensorflow@
# b2127bba driver/passes/outline_instructions.cc, driver/tools/subcomputation_graph_caching.cc); here a lone one stays.
LEAST_EQUAL = 2


def key_of(node: Node) -> Key | None:
    """What makes two operators the same body; None for those that are not outlined."""
    if not family_of(node).outlined:
        return None
    types = tuple((value.shape, value.dtype) for value in (*node.operands, *node.results))
    return (node.op, node.attrs, types, node.origin.direction)


def repeated(functions: Iterable[Function]) -> frozenset[Key]:
    """The keys that occur often enough in one of the functions."""
    found: set[Key] = set()
    for function in functions:
        counted = Counter(key for node in function.nodes if (key := key_of(node)) is not None)
        found.update(key for key, count in counted.items() if count >= LEAST_EQUAL)
    return frozenset(found)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Outlining:
    """What of a graph can be shared, which outliners of it begin with: keys of planned operators, and runs."""

    keys: frozenset[Key]
    runs: SharedRuns

    def outliner(self) -> Outliner:
        """An outliner that has lowered nothing."""
        return Outliner(self.keys, self.runs.unused())


def outlining(graph: Graph, reuse: Mapping[Value, Value], *, runs: bool = True) -> Outlining:
    """What can be shared; without `runs` only single planned operators."""
    functions = callees_first(graph)
    shared = SharedRuns()
    shared.room.add(graph)
    for function in functions if runs else ():
        found = RunFinder(graph, function, reuse)
        shared.add(found.classes(), found)
    return Outlining(keys=repeated(functions), runs=shared)


@dataclass(frozen=True, slots=True, eq=False)
class _Body:
    name: str
    arguments: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    held_bytes: IntArray  # while it runs


@dataclass(slots=True)
class Outliner:
    """Makes bodies as their first call comes and calls them; one table per IPU and enclosing function."""

    keys: frozenset[Key] = frozenset()
    runs: SharedRuns = field(default_factory=SharedRuns)
    bodies: dict[tuple[object, ...], _Body] = field(default_factory=dict)

    def covers(self, node: Node) -> bool:
        """Whether a body that has been called stands for the node."""
        return node in self.runs.paths

    def lower(self, node: Node, lowering: Lowering) -> str | None:
        """Lower the node as a call, if it is to be one; the name of the body, or of the part of a body, it shares."""
        if self.keys and key_of(node) in self.keys:
            return self._call(node, lowering)
        return self.runs.lower(node, lowering, len(self.bodies) + self.runs.made)

    def _call(self, node: Node, lowering: Lowering) -> str:
        emit = lowering.emit
        place = (key_of(node), emit.ipu, emit.function)
        operands = [lowering.get(value) for value in node.operands]
        if place not in self.bodies:
            self.bodies[place] = self._body(node, operands, lowering)
        body = self.bodies[place]
        self.runs.room.note(node, body.held_bytes, lowering)
        label = lowering.label(node)
        with lowering.at(node):
            emit.move_all(f"{label}/arguments", list(zip(operands, body.arguments, strict=True)))
            emit.add(Call(function=body.name, name=label, ipu=emit.ipu, origin=node.origin))
            results = []
            for value, inside in zip(node.results, body.results, strict=True):
                made = lowering.destinations.get(value) or emit.tensor(
                    label, value.shape, value.dtype, inside.mapping, emit.result_kind()
                )
                lowering.bind(value, made)
                results.append((inside, made))
            emit.move_all(f"{label}/results", results)
        return body.name

    def _body(self, node: Node, operands: list[Tensor], lowering: Lowering) -> _Body:
        """Lower the node once, on arguments of its own that lie as the first call's operands do."""
        emit = lowering.emit
        name = f"shared{len(self.bodies) + self.runs.made}_{lowering.word(node)}"
        first = len(emit.variables)
        try:
            with emit.inside(function=name, operator=""), emit.body() as collected, lowering.at(node):
                arguments = tuple(
                    emit.tensor(f"{name}/argument{number}", t.shape, t.dtype, t.mapping, "temporary")
                    for number, t in enumerate(operands)
                )
                for value, argument in zip(node.operands, arguments, strict=True):
                    lowering.bind(value, argument)
                lowering.lower_node(node)
                results = tuple(lowering.get(value) for value in node.results)
        finally:
            for value, tensor in zip(node.operands, operands, strict=True):
                lowering.bind(value, tensor)
        program = emit.functions[name] = ProgramSequence(children=tuple(collected), name=name)
        own = frozenset(range(first, len(emit.variables)))
        return _Body(name, arguments, results, held_at_once(program, own, lowering))
