"""In place: which results may take the memory of an operand that nobody reads afterwards.

Parameters, optimizer slots and moving statistics are updated where they live: without it every weight counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from workbench.engine import ops
from workbench.engine.graph import Function, Graph, Node, Value, walk
from workbench.engine.passes.carries import carried
from workbench.errors import VerificationError


@dataclass(frozen=True, slots=True, eq=False)
class InPlace:
    """`reuse[id(result)]` is the operand it overwrites; `updated[i]` says entry parameter i is written in place."""

    reuse: Mapping[int, Value]
    updated: frozenset[int]


def flat_nodes(graph: Graph, function: Function) -> Iterator[Node]:
    """The nodes of a function with the bodies of its regions in their place (they share its values)."""
    for node in function.nodes:
        if node.op == "region":
            yield from flat_nodes(graph, graph.functions[node.calls[0]])
        else:
            yield node


def own_functions(graph: Graph) -> list[Function]:
    """Functions with values of their own: all but the inline bodies of fused nodes and regions."""
    inline = {name for _, node in walk(graph) if node.op in ("fused", "region") for name in node.calls}
    return [function for name, function in graph.functions.items() if name not in inline]


@dataclass(slots=True)
class _Aliases:
    """Values that are views of one memory, and the last place any of them is read."""

    root: dict[int, int]
    last_read: dict[int, int]

    def of(self, value: Value) -> int:
        return self.root.get(id(value), id(value))


def _aliases(graph: Graph, function: Function) -> _Aliases:
    root: dict[int, int] = {}
    joined: dict[int, list[int]] = {}
    last: dict[int, int] = {}
    place = 0
    for place, node in enumerate(flat_nodes(graph, function)):
        for value in node.operands:
            for name in joined.get(id(value), [id(value)]):
                last[root.get(name, name)] = place
        family = ops.family_of(node)
        if not family.pure_view:
            continue
        sources = [name for value in node.operands for name in joined.get(id(value), [root.get(id(value), id(value))])]
        for value in node.results:
            joined[id(value)] = sources
            if sources:
                root[id(value)] = sources[0]
    end = place + 1
    for value in function.results:
        for name in joined.get(id(value), [id(value)]):
            last[root.get(name, name)] = end
    return _Aliases(root, last)


def find_in_place(graph: Graph) -> InPlace:
    """Choose, for every function, the results that overwrite an operand."""
    reuse: dict[int, Value] = {}
    updated: set[int] = set()
    pairs = carried(graph)
    for function in own_functions(graph):
        targets = {
            id(function.results[result]): (param, function.params[param])
            for result, param in pairs.get(function.name, {}).items()
        }
        kept = {id(value) for value in function.params}
        found = _in_function(graph, function, targets, kept)
        reuse.update(found)
        if function.name == graph.entry:
            updated |= {place for value, (place, param) in targets.items() if found.get(value) is param}
    return InPlace(reuse=reuse, updated=frozenset(updated))


def _in_function(
    graph: Graph, function: Function, targets: Mapping[int, tuple[int, Value]], kept: set[int]
) -> dict[int, Value]:
    aliases = _aliases(graph, function)
    reuse: dict[int, Value] = {}
    taken: set[int] = set()
    for place, node in enumerate(flat_nodes(graph, function)):
        family = ops.family_of(node)
        if family.pure_view:
            continue
        for result, operand in _ordered(node, family.in_place(node), targets):
            value, old = node.results[result], node.operands[operand]
            memory = aliases.of(old)
            if id(value) in reuse or memory in taken:
                continue
            target = targets.get(id(value))
            is_param = memory in kept
            if is_param and (target is None or target[1] is not old):
                continue
            if aliases.last_read.get(memory, -1) > place:
                continue
            if sum(aliases.of(other) == memory for other in node.operands) > 1:
                continue
            reuse[id(value)] = old
            taken.add(memory)
    return reuse


def _ordered(
    node: Node, pairs: tuple[tuple[int, int], ...], targets: Mapping[int, tuple[int, Value]]
) -> list[tuple[int, int]]:
    """Updates of parameters first, then pairs as the family gave them."""

    def is_update(pair: tuple[int, int]) -> bool:
        target = targets.get(id(node.results[pair[0]]))
        return target is not None and target[1] is node.operands[pair[1]]

    return sorted(pairs, key=lambda pair: not is_update(pair))


def verify_in_place(graph: Graph, chosen: InPlace) -> InPlace:
    """Check by a plain walk that no overwritten memory is read afterwards; a broken rule is a `VerificationError`."""
    for function in own_functions(graph):
        dead: dict[int, Node] = {}
        view_of: dict[int, set[int]] = {}
        for node in flat_nodes(graph, function):
            for value in node.operands:
                for memory in view_of.get(id(value), {id(value)}):
                    if memory in dead:
                        raise VerificationError(f"{node} reads {value}, which {dead[memory]} overwrote")
            memories = set().union(*(view_of.get(id(value), {id(value)}) for value in node.operands))
            for value in node.results:
                old = chosen.reuse.get(id(value))
                if old is not None:
                    dead.update(dict.fromkeys(view_of.get(id(old), {id(old)}), node))
                if ops.family_of(node).pure_view:
                    view_of[id(value)] = set(memories)
    return chosen
