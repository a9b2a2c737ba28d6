"""In place: which results may take the memory of an operand that nobody reads afterwards.

Parameters, optimizer slots and moving statistics are updated where they live: without it every weight counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from workbench.engine import ops
from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.graph.flow import callees_first, carried, private_params
from workbench.errors import VerificationError


@dataclass(frozen=True, slots=True, eq=False)
class InPlace:
    """`reuse[result]` is the operand it overwrites, or the parameter it is the next value of that nobody reads any
    more; `updated[i]` says entry parameter i is written in place.
    """

    reuse: Mapping[Value, Value]
    updated: frozenset[int]


def flat_nodes(graph: Graph, function: Function) -> Iterator[Node]:
    """The nodes of a function with the bodies of its regions in their place (they share its values)."""
    for node in function.nodes:
        if node.op == "region":
            yield from flat_nodes(graph, graph.functions[node.calls[0]])
        else:
            yield node


@dataclass(slots=True)
class _Aliases:
    """The memories each value is a view of (a joined value: of several), and the last place each is read."""

    memories: dict[Value, tuple[Value, ...]]
    last_read: dict[Value, int]

    def of(self, value: Value) -> tuple[Value, ...]:
        return self.memories.get(value, (value,))

    def read_after(self, memories: tuple[Value, ...], place: int) -> bool:
        """Whether any of the memories is read after a place."""
        return any(self.last_read.get(memory, -1) > place for memory in memories)


def _aliases(function: Function, nodes: Sequence[Node]) -> _Aliases:
    found = _Aliases({}, {})
    place = 0
    for place, node in enumerate(nodes):
        shown = dict.fromkeys(memory for value in node.operands for memory in found.of(value))
        found.last_read.update(dict.fromkeys(shown, place))
        if ops.family_of(node).pure_view and shown:
            found.memories.update((value, tuple(shown)) for value in node.results)
    for value in function.results:
        found.last_read.update(dict.fromkeys(found.of(value), place + 1))
    return found


def find_in_place(graph: Graph) -> InPlace:
    """Choose, for every function, the results that overwrite an operand; callers before what they call."""
    reuse: dict[Value, Value] = {}
    updated: set[int] = set()
    pairs = carried(graph)
    private = private_params(graph)
    for function in reversed(callees_first(graph)):
        targets = {
            function.results[result]: (param, function.params[param])
            for result, param in pairs.get(function.name, {}).items()
        }
        kept = {value for n, value in enumerate(function.params) if n not in private.get(function.name, ())}
        nodes = tuple(flat_nodes(graph, function))
        kept |= {value for node in nodes if node.op == "constant" for value in node.results}
        found = _in_function(function, nodes, targets, kept)
        reuse.update(found)
        for node in nodes:
            if node.op == "cond":
                _through_branches(node, found, pairs)
        if function.name == graph.entry:
            updated |= {place for value, (place, param) in targets.items() if found.get(value) is param}
    return InPlace(reuse=reuse, updated=frozenset(updated))


def _through_branches(node: Node, found: Mapping[Value, Value], pairs: dict[str, dict[int, int]]) -> None:
    """What a branch node overwrites, its bodies may overwrite too: in every call of a body, or not at all."""
    place = {value: number for number, value in enumerate(node.operands[1:])}
    # A result may also take the memory of a parameter that the branches are not given.
    taken = {number: place[found[value]] for number, value in enumerate(node.results) if found.get(value) in place}
    for name in node.calls:
        known = pairs.get(name)
        pairs[name] = dict(taken if known is None else known.items() & taken.items())


@dataclass(slots=True)
class _Choosing:
    """The choice within one function: `kept` memory may only be overwritten by its own next value, a target."""

    aliases: _Aliases
    targets: Mapping[Value, tuple[int, Value]]
    kept: set[Value]
    reuse: dict[Value, Value]
    taken: set[Value]

    def over_operand(self, node: Node, place: int, result: int, operand: int) -> None:
        """Let a result overwrite an operand that is read for the last time, once, by this node."""
        value, old = node.results[result], node.operands[operand]
        memories = self.aliases.of(old)
        if value in self.reuse or self.taken.intersection(memories) or self.aliases.read_after(memories, place):
            return
        if self.kept.intersection(memories) and not self._is_target(value, old):
            return
        if sum(not set(memories).isdisjoint(self.aliases.of(other)) for other in node.operands) == 1:
            self._take(value, old, memories)

    def over_parameter(self, value: Value, place: int) -> None:
        """Let a parameter's next value, a target, take its memory if nobody reads it any more."""
        _, param = self.targets[value]
        if value in self.reuse:
            return
        memories = self.aliases.of(param)
        if not self.taken.intersection(memories) and not self.aliases.read_after(memories, place - 1):
            self._take(value, param, memories)

    def _is_target(self, value: Value, old: Value) -> bool:
        target = self.targets.get(value)
        return target is not None and target[1] is old

    def _take(self, value: Value, old: Value, memories: tuple[Value, ...]) -> None:
        self.reuse[value] = old
        self.taken.update(memories)


def _in_function(
    function: Function, nodes: Sequence[Node], targets: Mapping[Value, tuple[int, Value]], kept: set[Value]
) -> dict[Value, Value]:
    choosing = _Choosing(_aliases(function, nodes), targets, kept, {}, set())
    for place, node in enumerate(nodes):
        family = ops.family_of(node)
        if family.pure_view:
            continue
        # A parameter that is free already before its operand: an update in several steps ends where it began.
        for value in node.results:
            if value in targets:
                choosing.over_parameter(value, place)
        for result, operand in _ordered(node, family.in_place(node), targets):
            choosing.over_operand(node, place, result, operand)
    return choosing.reuse


def _ordered(
    node: Node, pairs: tuple[tuple[int, int], ...], targets: Mapping[Value, tuple[int, Value]]
) -> list[tuple[int, int]]:
    """Updates of parameters first, then pairs as the family gave them."""
    if len(pairs) < 2 or targets.keys().isdisjoint(node.results):
        return list(pairs)

    def is_update(pair: tuple[int, int]) -> bool:
        target = targets.get(node.results[pair[0]])
        return target is not None and target[1] is node.operands[pair[1]]

    return sorted(pairs, key=lambda pair: not is_update(pair))


def verify_in_place(graph: Graph, chosen: InPlace) -> InPlace:
    """Check by a plain walk that no overwritten memory is read afterwards; a broken rule is a `VerificationError`."""
    for function in callees_first(graph):
        dead: dict[Value, Node] = {}
        view_of: dict[Value, set[Value]] = {}
        for node in flat_nodes(graph, function):
            for value in node.operands:
                for memory in view_of.get(value, {value}):
                    if memory in dead:
                        raise VerificationError(f"{node} reads {value}, which {dead[memory]} overwrote")
            memories = set().union(*(view_of.get(value, {value}) for value in node.operands))
            for value in node.results:
                old = chosen.reuse.get(value)
                if old is not None:
                    dead.update(dict.fromkeys(view_of.get(old, {old}), node))
                if ops.family_of(node).pure_view:
                    view_of[value] = set(memories)
    return chosen
