"""Rematerialise across the functions of a stage: a residual that its backward pass can compute is not stashed.

A stage's forward function returns residuals, which wait in FIFOs until its backward function takes them. One that is
elementwise in what the backward function gets anyway (other residuals, parameters, inputs of the stage), or in much
smaller values, is computed there instead and leaves the results of one call and the operands of the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.graph.rewriting import FreshIds
from workbench.engine.passes.clusters import flow_of
from workbench.engine.passes.recomputable import find_recipe, without_dead


def rematerialise_stages(graph: Graph) -> Graph:
    """Do it for every stage that has a backward function."""
    functions = dict(graph.functions)
    calls: dict[int, Node] = {}
    fresh = FreshIds(graph.body)
    for forward, backward in _pairs(graph.body):
        stage = _Stage(forward, backward, functions[forward.calls[0]], functions[backward.calls[0]], fresh)
        stage.choose()
        if not stage.recipes:
            continue
        calls[id(backward)] = stage.backward_call()
        functions[stage.back.name] = stage.backward_body()
        used = _used(graph.body, calls, without=forward)
        calls[id(forward)], functions[stage.ahead.name] = stage.forward_call(used)
    entry = replace(graph.body, nodes=tuple(calls.get(id(node), node) for node in graph.body.nodes))
    return replace(graph, functions=functions | {entry.name: entry}) if calls else graph


def _pairs(entry: Function) -> list[tuple[Node, Node]]:
    """The forward and the backward call of every stage."""
    found: dict[tuple[int, str], Node] = {
        (int(node.attr("stage", 0)), str(node.attr("direction", ""))): node for node in entry.nodes if node.op == "call"
    }
    return [
        (node, found[stage, "backward"])
        for (stage, direction), node in found.items()
        if direction == "forward" and (stage, "backward") in found
    ]


def _used(entry: Function, calls: dict[int, Node], without: Node) -> set[int]:
    """Values of the entry that it returns or that a call other than one reads."""
    found = {id(value) for value in entry.results}
    for node in entry.nodes:
        if node is not without:
            found.update(id(value) for value in calls.get(id(node), node).operands)
    return found


@dataclass(slots=True)
class _Stage:
    """A forward and a backward call. Values of the forward body are `inner`, those of the entry `outer`."""

    forward: Node
    backward: Node
    ahead: Function
    back: Function
    entry_ids: FreshIds
    known: dict[int, Value] = field(default_factory=dict)  # id(inner value) → parameter of the backward body
    recipes: dict[int, tuple[Value, list[Node]]] = field(default_factory=dict)  # id(parameter) → inner value, recipe
    extra: list[tuple[Value, Value, Value]] = field(default_factory=list)  # inner, outer, new parameter

    def choose(self) -> None:
        """Find recipes for the residuals in the order of the forward body, so that each rests on earlier values."""
        outer = dict(zip(map(id, self.backward.operands), self.back.params, strict=True))
        for value, inner in self._crossing():
            if id(value) in outer:
                self.known.setdefault(id(inner), outer[id(value)])
        flow, ids = flow_of(self.ahead), FreshIds(self.back)
        for node in self.ahead.nodes:
            for inner in node.results:
                param = self.known.get(id(inner))
                recipe = None if param is None else find_recipe(inner, flow, self.known)
                if param is None or recipe is None:
                    continue
                self.recipes[id(param)] = (inner, recipe)
                self._ask_for(recipe, ids)

    def _crossing(self) -> Iterator[tuple[Value, Value]]:
        """Outer and inner names of what enters and leaves the forward body."""
        yield from zip(self.forward.operands, self.ahead.params, strict=True)
        yield from zip(self.forward.results, self.ahead.results, strict=True)

    def _ask_for(self, recipe: list[Node], ids: FreshIds) -> None:
        """Small values that a recipe reads and the backward body does not get yet become its operands."""
        made = {id(value) for node in recipe for value in node.results}
        outer = {id(inner): value for value, inner in self._crossing()}
        for inner in (value for node in recipe for value in node.operands):
            if id(inner) not in made and id(inner) not in self.known:
                self.known[id(inner)] = ids.like(inner)
                value = outer.get(id(inner)) or self.entry_ids.like(inner)
                self.extra.append((inner, value, self.known[id(inner)]))

    def backward_call(self) -> Node:
        """The backward call without what is computed again, and with what that needs."""
        kept = [
            value
            for value, param in zip(self.backward.operands, self.back.params, strict=True)
            if id(param) not in self.recipes
        ]
        return replace(self.backward, operands=(*kept, *(value for _, value, _ in self.extra)))

    def backward_body(self) -> Function:
        """The backward body with each recipe right before the first reader of what it makes."""
        params = [param for param in self.back.params if id(param) not in self.recipes]
        placing = _Placing(self.known, dict(self.recipes), FreshIds(self.back))
        for node in self.back.nodes:
            for operand in node.operands:
                placing.place(operand)
            placing.nodes.append(node)
        for value in self.back.results:
            placing.place(value)
        new = [param for _, _, param in self.extra]
        return replace(self.back, params=(*params, *new), nodes=tuple(placing.nodes))

    def forward_call(self, used: set[int]) -> tuple[Node, Function]:
        """The forward call and body with those results that somebody still reads."""
        pairs = list(zip(self.forward.results, self.ahead.results, strict=True))
        known = {id(value) for value, _ in self._crossing()}
        pairs += [(value, inner) for inner, value, _ in self.extra if id(value) not in known]
        pairs = [(value, inner) for value, inner in pairs if id(value) in used]
        body = replace(self.ahead, results=tuple(inner for _, inner in pairs))
        suspects = {id(node) for _, recipe in self.recipes.values() for node in recipe}
        return replace(self.forward, results=tuple(value for value, _ in pairs)), without_dead(body, suspects)


@dataclass(slots=True)
class _Placing:
    """Nodes of a backward body, written in order."""

    known: dict[int, Value]
    recipes: dict[int, tuple[Value, list[Node]]]
    ids: FreshIds
    nodes: list[Node] = field(default_factory=list)

    def place(self, param: Value) -> None:
        """Write what makes a former parameter, once."""
        if id(param) not in self.recipes:
            return
        inner, recipe = self.recipes.pop(id(param))
        renamed: dict[int, Value] = {}
        for node in recipe:
            operands = tuple(renamed.get(id(value)) or self.known[id(value)] for value in node.operands)
            for operand in operands:
                self.place(operand)
            results = tuple(param if value is inner else self.ids.like(value) for value in node.results)
            renamed.update(zip(map(id, node.results), results, strict=True))
            origin = replace(node.origin, direction="backward")
            self.nodes.append(replace(node, operands=operands, results=results, origin=origin))
