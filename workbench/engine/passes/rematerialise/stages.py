"""Rematerialise across the functions of a stage: a residual that its backward pass can compute is not stashed.

A stage's residuals are made by its forward function, or by one that makes them again, and wait in FIFOs until its
backward function takes them. They are chosen in two ways. As if both passes were one function: the two bodies are laid
end to end, a rewrite gives up what better stays or is made from something else, and they are cut apart again; what then
crosses the cut are the results of the one and operands of the other. And by themselves: a residual that is elementwise
in what the backward function gets anyway (other residuals, parameters, inputs of the stage), or in much smaller values,
is computed there instead and leaves the results of one call and the operands of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.graph.rewriting import FreshIds
from workbench.engine.graph.stages import StageCall, stage_calls, stage_pairs
from workbench.engine.passes.clusters import flow_of
from workbench.engine.passes.recomputable import find_recipe, without_dead

CUT = Node("cut", (), ())
"""Stands between the two bodies; no rewrite moves anything over it but what the second body computes by itself."""


def rematerialise_stages(graph: Graph) -> Graph:
    """Do it for every stage that has a backward function, residual by residual."""
    functions = dict(graph.functions)
    calls = {node: node for node in graph.body.nodes}
    fresh = FreshIds(graph.body)
    for first, second in reversed(stage_pairs(graph)):
        forward, backward = first.node, second.node
        if _callers(graph, first) != [forward]:
            continue  # what is made again waits for nothing
        stage = _Stage(forward, backward, first.function, second.function, fresh)
        stage.choose()
        if not stage.recipes:
            continue
        calls[backward] = stage.backward_call()
        functions[stage.back.name] = stage.backward_body()
        calls[forward], functions[stage.ahead.name] = stage.forward_call(_read_beside(graph.body, calls, forward))
    return _with(graph, functions, calls)


def between_passes(graph: Graph, rewrite: Callable[[Function], Function]) -> Graph:
    """Rewrite the two passes of every stage that has a backward one, as one function."""
    functions, calls = dict(graph.functions), {node: node for node in graph.body.nodes}
    fresh = FreshIds(graph.body)
    for first, second in stage_pairs(graph, ("recompute", "forward")):
        callers = _callers(graph, first)
        pair = _Pair.of(first, second, callers, _read_of(graph.body, calls, callers, second.node))
        joined = pair.joined()
        changed = rewrite(joined)
        if changed is joined:
            continue
        found, calls[second.node], bodies = pair.cut(changed, fresh)
        calls.update(zip(callers, found, strict=True))
        functions.update((body.name, body) for body in bodies)
    return _with(graph, functions, calls)


def _callers(graph: Graph, first: StageCall) -> list[Node]:
    """The calls of a function, of which this is one and stands first: the stage's forward pass may run it too."""
    others = [call.node for call in stage_calls(graph) if call.function is first.function]
    return [first.node, *(node for node in others if node is not first.node)]


def _read_of(entry: Function, calls: Mapping[Node, Node], callers: Sequence[Node], second: Node) -> set[int]:
    """By number, the results of a function that are read of some call of it: of the first call, beside the second."""
    found: set[int] = set()
    for caller in callers:
        read = _read_beside(entry, calls, caller, *([second] if caller is callers[0] else []))
        found.update(number for number, value in enumerate(caller.results) if value in read)
    return found


def _with(graph: Graph, functions: Mapping[str, Function], calls: Mapping[Node, Node]) -> Graph:
    """The graph with these functions, and its entry with these nodes in the place of its own."""
    if all(node is now for node, now in calls.items()):
        return graph
    entry = replace(graph.body, nodes=tuple(calls.values()))
    return replace(graph, functions={**functions, entry.name: entry})


def _read_beside(entry: Function, calls: Mapping[Node, Node], *but: Node) -> set[Value]:
    """Values of the entry that it returns, or that a call reads which is none of these."""
    found = set(entry.results)
    for before, node in calls.items():
        if before not in but:
            found.update(node.operands)
    return found


@dataclass(slots=True)
class _Stage:
    """A forward and a backward call. Values of the forward body are `inner`, those of the entry `outer`."""

    forward: Node
    backward: Node
    ahead: Function
    back: Function
    entry_ids: FreshIds
    known: dict[Value, Value] = field(default_factory=dict)  # inner value → parameter of the backward body
    recipes: dict[Value, tuple[Value, list[Node]]] = field(default_factory=dict)  # parameter → inner value, recipe
    extra: list[tuple[Value, Value, Value]] = field(default_factory=list)  # inner, outer, new parameter

    def choose(self) -> None:
        """Find recipes for the residuals in the order of the forward body, so that each rests on earlier values."""
        outer = dict(zip(self.backward.operands, self.back.params, strict=True))
        for value, inner in self._crossing():
            if value in outer:
                self.known.setdefault(inner, outer[value])
        flow, ids = flow_of(self.ahead), FreshIds(self.back)
        for node in self.ahead.nodes:
            for inner in node.results:
                param = self.known.get(inner)
                recipe = None if param is None else find_recipe(inner, flow, self.known)
                if param is None or recipe is None:
                    continue
                self.recipes[param] = (inner, recipe)
                self._ask_for(recipe, ids)

    def _crossing(self) -> Iterator[tuple[Value, Value]]:
        """Outer and inner names of what enters and leaves the forward body."""
        yield from zip(self.forward.operands, self.ahead.params, strict=True)
        yield from zip(self.forward.results, self.ahead.results, strict=True)

    def _ask_for(self, recipe: list[Node], ids: FreshIds) -> None:
        """Small values that a recipe reads and the backward body does not get yet become its operands."""
        made = {value for node in recipe for value in node.results}
        outer = {inner: value for value, inner in self._crossing()}
        for inner in (value for node in recipe for value in node.operands):
            if inner not in made and inner not in self.known:
                self.known[inner] = ids.like(inner)
                value = outer.get(inner) or self.entry_ids.like(inner)
                self.extra.append((inner, value, self.known[inner]))

    def backward_call(self) -> Node:
        """The backward call without what is computed again, and with what that needs."""
        kept = [
            value
            for value, param in zip(self.backward.operands, self.back.params, strict=True)
            if param not in self.recipes
        ]
        return replace(self.backward, operands=(*kept, *(value for _, value, _ in self.extra)))

    def backward_body(self) -> Function:
        """The backward body with each recipe right before the first reader of what it makes."""
        params = [param for param in self.back.params if param not in self.recipes]
        placing = _Placing(self.known, dict(self.recipes), FreshIds(self.back))
        for node in self.back.nodes:
            for operand in node.operands:
                placing.place(operand)
            placing.nodes.append(node)
        for value in self.back.results:
            placing.place(value)
        new = [param for _, _, param in self.extra]
        return replace(self.back, params=(*params, *new), nodes=tuple(placing.nodes))

    def forward_call(self, used: set[Value]) -> tuple[Node, Function]:
        """The forward call and body with those results that somebody still reads."""
        pairs = list(zip(self.forward.results, self.ahead.results, strict=True))
        known = {value for value, _ in self._crossing()}
        pairs += [(value, inner) for inner, value, _ in self.extra if value not in known]
        pairs = [(value, inner) for value, inner in pairs if value in used]
        body = replace(self.ahead, results=tuple(inner for _, inner in pairs))
        suspects = {node for _, recipe in self.recipes.values() for node in recipe}
        return replace(self.forward, results=tuple(value for value, _ in pairs)), without_dead(body, suspects)


@dataclass(slots=True)
class _Placing:
    """Nodes of a backward body, written in order."""

    known: dict[Value, Value]
    recipes: dict[Value, tuple[Value, list[Node]]]
    ids: FreshIds
    nodes: list[Node] = field(default_factory=list)

    def place(self, param: Value) -> None:
        """Write what makes a former parameter, once."""
        if param not in self.recipes:
            return
        inner, recipe = self.recipes.pop(param)
        renamed: dict[Value, Value] = {}
        for node in recipe:
            operands = tuple(renamed.get(value) or self.known[value] for value in node.operands)
            for operand in operands:
                self.place(operand)
            results = tuple(param if value is inner else self.ids.like(value) for value in node.results)
            renamed.update(zip(node.results, results, strict=True))
            origin = replace(node.origin, direction="backward")
            self.nodes.append(replace(node, operands=operands, results=results, origin=origin))


# Both passes as one function


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Two calls and their bodies. `callers` are all calls of the first body, the one of the two first; `kept` are its
    results, by number, that are read beside the second call.
    """

    callers: Sequence[Node]
    second: Node
    ahead: Function
    back: Function
    kept: set[int]

    @classmethod
    def of(cls, first: StageCall, second: StageCall, callers: Sequence[Node], kept: set[int]) -> _Pair:
        return cls(callers, second.node, first.function, second.function, kept)

    def _given(self) -> list[tuple[Value, Value]]:
        """Operands of the first call, each with its value inside."""
        return list(zip(self.callers[0].operands, self.ahead.params, strict=True))

    def _kept(self) -> list[Value]:
        return [inner for number, inner in enumerate(self.ahead.results) if number in self.kept]

    def _shared(self) -> dict[Value, Value]:
        """Parameters of the second body that are values of the first."""
        inner = dict((*self._given(), *zip(self.callers[0].results, self.ahead.results, strict=True)))
        pairs = zip(self.second.operands, self.back.params, strict=True)
        return {param: inner[outer] for outer, param in pairs if outer in inner}

    def joined(self) -> Function:
        """Both bodies end to end. It returns what the second does, and of the first what is read elsewhere."""
        names = self._shared()
        return Function(
            self.ahead.name,
            (*self.ahead.params, *(param for param in self.back.params if param not in names)),
            (*self._kept(), *(names.get(value, value) for value in self.back.results)),
            (*self.ahead.nodes, CUT, *(_renamed(node, names) for node in self.back.nodes)),
        )

    def cut(self, joined: Function, fresh: FreshIds) -> tuple[list[Node], Node, tuple[Function, Function]]:
        """The calls of the first body, the second call, and the bodies of a joined function that was rewritten."""
        at = next(place for place, node in enumerate(joined.nodes) if node is CUT)
        ahead, back = joined.nodes[:at], joined.nodes[at + 1 :]
        results = joined.results[len(self.kept) :]
        made = [value for node in ahead for value in node.results]
        inside = set(made)
        crossing = _crossing((*self.ahead.params, *made), back, results)
        leaving, callers = self._leaving([value for value in crossing if value in inside], fresh)
        start = replace(self.ahead, results=tuple(leaving), nodes=ahead)
        outer_of = {inner: outer for outer, inner in (*self._given(), *zip(callers[0].results, leaving, strict=True))}
        shared, pairs = self._shared(), zip(self.second.operands, self.back.params, strict=True)
        own = [(outer, param) for outer, param in pairs if param not in shared]
        ids = FreshIds(replace(self.back, nodes=back))
        names = {value: ids.like(value) for value in crossing}
        operands = (*(outer for outer, _ in own), *(outer_of[value] for value in crossing))
        body = Function(
            self.back.name,
            (*(param for _, param in own), *names.values()),
            tuple(names.get(value, value) for value in results),
            tuple(_renamed(node, names) for node in back),
        )
        return callers, replace(self.second, operands=operands), (start, body)

    def _leaving(self, crossing: list[Value], fresh: FreshIds) -> tuple[list[Value], list[Node]]:
        """Results of the first body, and its calls, when these values cross."""
        kept = self._kept()
        leaving = [*kept, *(value for value in crossing if value not in set(kept))]
        number_of = {inner: number for number, inner in enumerate(self.ahead.results)}
        numbers = [*sorted(self.kept), *(number_of.get(value) for value in leaving[len(kept) :])]
        callers = []
        for caller in self.callers:
            known = [None if number is None else caller.results[number] for number in numbers]
            results = tuple(outer or fresh.like(inner) for outer, inner in zip(known, leaving, strict=True))
            callers.append(replace(caller, results=results))
        return leaving, callers


def _crossing(there: tuple[Value, ...], nodes: tuple[Node, ...], results: tuple[Value, ...]) -> list[Value]:
    """The values of the first body that the second one's nodes or results read, in order."""
    known = set(there)
    read = [value for node in nodes for value in node.operands] + list(results)
    return [value for value in dict.fromkeys(read) if value in known]


def _renamed(node: Node, names: dict[Value, Value]) -> Node:
    return node.reading(tuple(names.get(value, value) for value in node.operands))
