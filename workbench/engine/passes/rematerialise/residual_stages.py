"""Residuals of a stage: what is kept between two of its passes is chosen as if both were one function.

A stage's residuals are made by its forward function, or by one that makes them again, and read by its backward
function. The two bodies are laid end to end, a rewrite gives up what better stays or is made from something else, and
they are cut apart again: what then crosses the cut are the results of the one and operands of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.graph.rewriting import FreshIds

CUT = Node("cut", (), ())
"""Stands between the two bodies; no rewrite moves anything over it but what the second body computes by itself."""


def between_passes(graph: Graph, rewrite: Callable[[Function], Function]) -> Graph:
    """Rewrite the two passes of every stage that has a backward one, as one function."""
    functions, calls = dict(graph.functions), {node: node for node in graph.body.nodes}
    fresh = FreshIds(graph.body)
    for first, second in _pairs(graph.body):
        elsewhere = _read_elsewhere(graph.body, calls, first, second)
        pair = _Pair(first, second, functions[first.calls[0]], functions[second.calls[0]], elsewhere)
        joined = pair.joined()
        changed = rewrite(joined)
        if changed is joined:
            continue
        calls[first], calls[second], bodies = pair.cut(changed, fresh)
        functions.update((body.name, body) for body in bodies)
    if functions == graph.functions:
        return graph
    entry = replace(graph.body, nodes=tuple(calls.values()))
    return replace(graph, functions=functions | {entry.name: entry})


def _pairs(entry: Function) -> Iterator[tuple[Node, Node]]:
    """Of every stage the call that makes its residuals last and the backward call."""
    found = {(int(n.attr("stage", 0)), str(n.attr("direction", ""))): n for n in entry.nodes if n.op == "call"}
    for (stage, direction), second in found.items():
        first = found.get((stage, "recompute")) or found.get((stage, "forward"))
        if direction == "backward" and first is not None:
            yield first, second


def _read_elsewhere(entry: Function, calls: dict[Node, Node], first: Node, second: Node) -> set[int]:
    """Values of the entry that it returns, or that another call than these two reads."""
    found = {id(value) for value in entry.results}
    for before, node in calls.items():
        if before is not first and before is not second:
            found.update(id(value) for value in node.operands)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Two calls and their bodies; `elsewhere` are the values of the entry that are read beside the second call."""

    first: Node
    second: Node
    ahead: Function
    back: Function
    elsewhere: set[int]

    def _made(self) -> list[tuple[Value, Value]]:
        """Results of the first call, each with its value inside."""
        return list(zip(self.first.results, self.ahead.results, strict=True))

    def _given(self) -> list[tuple[Value, Value]]:
        return list(zip(self.first.operands, self.ahead.params, strict=True))

    def _kept(self) -> list[tuple[Value, Value]]:
        return [(outer, inner) for outer, inner in self._made() if id(outer) in self.elsewhere]

    def _shared(self) -> dict[int, Value]:
        """Parameters of the second body that are values of the first."""
        inner = {id(outer): value for outer, value in (*self._given(), *self._made())}
        pairs = zip(self.second.operands, self.back.params, strict=True)
        return {id(param): inner[id(outer)] for outer, param in pairs if id(outer) in inner}

    def joined(self) -> Function:
        """Both bodies end to end. It returns what the second does, and of the first what is read elsewhere."""
        names = self._shared()
        return Function(
            self.ahead.name,
            (*self.ahead.params, *(param for param in self.back.params if id(param) not in names)),
            (*(inner for _, inner in self._kept()), *(names.get(id(value), value) for value in self.back.results)),
            (*self.ahead.nodes, CUT, *(_renamed(node, names) for node in self.back.nodes)),
        )

    def cut(self, joined: Function, fresh: FreshIds) -> tuple[Node, Node, tuple[Function, Function]]:
        """The two calls and bodies of a joined function that was rewritten."""
        at = next(place for place, node in enumerate(joined.nodes) if node is CUT)
        ahead, back = joined.nodes[:at], joined.nodes[at + 1 :]
        results = joined.results[len(self._kept()) :]
        made = [value for node in ahead for value in node.results]
        inside = {id(value) for value in made}
        crossing = _crossing((*self.ahead.params, *made), back, results)
        leaving = self._leaving([value for value in crossing if id(value) in inside], fresh)
        first = replace(self.first, results=tuple(outer for outer, _ in leaving))
        start = replace(self.ahead, results=tuple(inner for _, inner in leaving), nodes=ahead)
        outer_of = {id(inner): outer for outer, inner in (*self._given(), *leaving)}
        shared, pairs = self._shared(), zip(self.second.operands, self.back.params, strict=True)
        own = [(outer, param) for outer, param in pairs if id(param) not in shared]
        ids = FreshIds(replace(self.back, nodes=back))
        names = {id(value): ids.like(value) for value in crossing}
        operands = (*(outer for outer, _ in own), *(outer_of[id(value)] for value in crossing))
        body = Function(
            self.back.name,
            (*(param for _, param in own), *names.values()),
            tuple(names.get(id(value), value) for value in results),
            tuple(_renamed(node, names) for node in back),
        )
        return first, replace(self.second, operands=operands), (start, body)

    def _leaving(self, crossing: list[Value], fresh: FreshIds) -> list[tuple[Value, Value]]:
        """Results of the first call when these values cross."""
        kept = self._kept()
        outer_of = {id(inner): outer for outer, inner in (*self._made(), *kept)}
        known = {id(inner) for _, inner in kept}
        new = [value for value in crossing if id(value) not in known]
        return [*kept, *((outer_of.get(id(value)) or fresh.like(value), value) for value in new)]


def _crossing(there: tuple[Value, ...], nodes: tuple[Node, ...], results: tuple[Value, ...]) -> list[Value]:
    """The values of the first body that the second one's nodes or results read, in order."""
    known = {id(value) for value in there}
    read = [value for node in nodes for value in node.operands] + list(results)
    return [value for value in dict.fromkeys(read) if id(value) in known]


def _renamed(node: Node, names: dict[int, Value]) -> Node:
    return node.reading(tuple(names.get(id(value), value) for value in node.operands))
