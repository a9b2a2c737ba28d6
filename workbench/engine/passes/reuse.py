"""Reuse: a stage that is computed again runs its forward function again, so that its code is there once.

The driver runs the forward stage's program for the recomputation too, with copies of what it reads into places of its
own and of what it makes out of them (graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/visitors/
pipeline_visitor.cc `CreatePipelineStageRecomputationOp`, pipeline_stage_visitor.cc `ReusablePipelineStageVisitor`), and
PopART adds the program of an operation to both passes (graphcore/popart willow/src/popx/irlowering.cpp,
`createRecomputeFragment`). Here the two functions of a stage become one, which makes what either makes. Before any
rewrite they are of one trace, so that every product is in both: rewritten apart they would differ, and both be kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from workbench.engine.graph import RESIDENT_ROLES, Function, Graph, Node, Value
from workbench.engine.graph.rewriting import FreshIds
from workbench.engine.graph.stages import stage_pairs


def reuse(graph: Graph) -> Graph:
    """Let the recomputation of every stage call the stage's forward function, where all it needs comes to both."""
    functions, calls = dict(graph.functions), {node: node for node in graph.body.nodes}
    fresh = FreshIds(graph.body)
    for forward, again in stage_pairs(graph, second="recompute"):
        joined = None if forward.function is again.function else _Joined.of(graph, forward.node, again.node)
        if joined is None:
            continue
        calls[forward.node], calls[again.node], body = joined.calls(fresh)
        del functions[again.function.name]
        functions[body.name] = body
    if all(node is now for node, now in calls.items()):
        return graph
    entry = replace(graph.body, nodes=tuple(calls.values()))
    return replace(graph, functions=functions | {entry.name: entry})


@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    """Two calls and the nodes of both bodies; `stands_for` maps values of the second body (by identity) to those."""

    forward: Node
    again: Node
    ahead: Function
    back: Function
    nodes: tuple[Node, ...]
    stands_for: dict[Value, Value]
    operands: tuple[Value, ...]  # of the second call, one for each parameter of the first body

    @classmethod
    def of(cls, graph: Graph, forward: Node, again: Node) -> _Joined | None:
        """None when the second body gets what the first does not, or would need what is not there any more."""
        ahead, back = graph.functions[forward.calls[0]], graph.functions[again.calls[0]]
        given = dict(zip(forward.operands, ahead.params, strict=True))
        params = set(ahead.params)
        results = zip(forward.results, ahead.results, strict=True)
        given.update({outer: inner for outer, inner in results if inner in params})
        pairs = list(zip(again.operands, back.params, strict=True))
        if not all(outer in given for outer, _ in pairs):
            return None
        stands_for = {param: given[outer] for outer, param in pairs}
        known = {given[outer]: outer for outer, _ in pairs}
        operands = tuple(known.get(param, outer) for outer, param in zip(forward.operands, ahead.params, strict=True))
        resident = {
            value for value, each in zip(graph.body.params, graph.inputs, strict=True) if each.role in RESIDENT_ROLES
        }
        left = [outer for outer, param in zip(operands, ahead.params, strict=True) if param not in known]
        if not all(outer in resident for outer in left):
            return None
        nodes = _merged(graph, ahead, back, stands_for)
        return cls(forward, again, ahead, back, nodes, stands_for, operands)

    def calls(self, fresh: FreshIds) -> tuple[Node, Node, Function]:
        """Both calls of the one body, which returns what either returned."""
        results, first, second = list(self.ahead.results), list(self.forward.results), list[Value | None]()
        second = [None] * len(results)
        for outer, inner in zip(self.again.results, self.back.results, strict=True):
            value = self.stands_for[inner]
            place = next((at for at, one in enumerate(results) if one is value and second[at] is None), len(results))
            if place == len(results):
                results.append(value)
                first.append(fresh.like(value))
                second.append(None)
            second[place] = outer
        made = tuple(value if value is not None else fresh.like(results[at]) for at, value in enumerate(second))
        body = Function(self.ahead.name, self.ahead.params, tuple(results), self.nodes)
        again = replace(self.again, operands=self.operands, results=made, calls=self.forward.calls)
        return replace(self.forward, results=tuple(first)), again, body


def _merged(graph: Graph, ahead: Function, back: Function, stands_for: dict[Value, Value]) -> tuple[Node, ...]:
    """The nodes of the first body, and those of the second that it has not, each behind what it reads.

    Values are compared by what makes them: the first body may make one twice, such as a cast that two layers read.
    """
    ids = FreshIds(ahead)
    equal: dict[Value, Value] = {}  # value of the first body → the first one that is made alike
    known: dict[tuple[Any, ...], Node] = {}

    def key(node: Node, operands: tuple[Value, ...]) -> tuple[Any, ...]:
        return _key(graph, node, tuple(equal.get(value, value) for value in operands))

    for node in ahead.nodes:
        equal.update(zip(node.results, known.setdefault(key(node, node.operands), node).results, strict=True))
    place = {value: float(at) for at, node in enumerate(ahead.nodes) for value in node.results}
    order = [(float(at), node) for at, node in enumerate(ahead.nodes)]
    for number, node in enumerate(back.nodes):
        operands = tuple(stands_for[value] for value in node.operands)
        same = known.get(key(node, operands))
        if same is None:
            origin = replace(node.origin, direction="forward")
            results = tuple(map(ids.like, node.results))
            same = replace(node, operands=operands, results=results, origin=origin)
            known[key(node, operands)] = same
            behind = max((place.get(value, -1.0) for value in operands), default=-1.0)
            order.append((behind + (number + 1) / (len(back.nodes) + 2) ** 2, same))
            place.update((value, order[-1][0]) for value in results)
        stands_for.update((old, new) for old, new in zip(node.results, same.results, strict=True))
    return tuple(node for _, node in sorted(order, key=lambda pair: pair[0]))


def _key(graph: Graph, node: Node, operands: tuple[Value, ...]) -> tuple[Any, ...]:
    """Equal for nodes that make the same of the same values."""
    bodies = tuple(_written(graph, graph.functions[name]) for name in node.calls)
    types = tuple((value.shape, value.dtype) for value in node.results)
    return (node.op, node.attrs, node.times, tuple(operands), types, bodies)


def _written(graph: Graph, function: Function) -> tuple[Any, ...]:
    """A body by numbers of its values."""
    number: dict[Value, int] = {}

    def of(values: tuple[Value, ...]) -> tuple[Any, ...]:
        return tuple((number.setdefault(value, len(number)), value.shape, value.dtype) for value in values)

    nodes = tuple(
        (
            node.op,
            node.attrs,
            node.times,
            of(node.operands),
            of(node.results),
            tuple(_written(graph, graph.functions[name]) for name in node.calls),
        )
        for node in function.nodes
    )
    return (of(function.params), nodes, of(function.results))
