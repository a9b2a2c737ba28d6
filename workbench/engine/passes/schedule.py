"""Schedule: the order of a function's nodes. Updates run as soon as they can, so that gradients die young."""

from __future__ import annotations

from dataclasses import replace

from workbench.engine import ops
from workbench.engine.graph import Function, Graph, Node


def schedule(graph: Graph) -> Graph:
    """Reorder the entry (inline bodies keep their order)."""
    functions = dict(graph.functions)
    functions[graph.entry] = _early_updates(graph, graph.body)
    return replace(graph, functions=functions)


def _early_updates(graph: Graph, function: Function) -> Function:
    """Keep the order of the model, but run an update once its operands are there and its parameter is read no more."""
    waiting = _waits(graph, function)
    made_by = {id(value): number for number, node in enumerate(function.nodes) for value in node.results}
    needs = [_needs(node, number, made_by, waiting) for number, node in enumerate(function.nodes)]
    readers: dict[int, list[int]] = {}
    for number, wanted in enumerate(needs):
        for other in wanted:
            readers.setdefault(other, []).append(number)
    left = [len(wanted) for wanted in needs]
    done = [False] * len(function.nodes)
    order: list[Node] = []

    def run(number: int) -> None:
        pending = [number]
        while pending:
            current = pending.pop()
            done[current] = True
            order.append(function.nodes[current])
            for reader in readers.get(current, ()):
                left[reader] -= 1
                if left[reader] == 0 and not done[reader] and function.nodes[reader].origin.direction == "update":
                    pending.append(reader)

    for number in range(len(function.nodes)):
        if not done[number]:
            run(number)
    return replace(function, nodes=tuple(order))


def _needs(node: Node, number: int, made_by: dict[int, int], waiting: dict[int, set[int]]) -> set[int]:
    found = {made_by[id(value)] for value in node.operands if id(value) in made_by}
    return (found | waiting.get(number, set())) - {number}


def _waits(graph: Graph, function: Function) -> dict[int, set[int]]:
    """Node → the other readers of the parameters it overwrites, themselves or through views, which must run first."""
    producer = {id(value): number for number, node in enumerate(function.nodes) for value in node.results}
    readers: dict[int, set[int]] = {}
    seen: dict[int, set[int]] = {}  # id(view) → the values it shows
    for number, node in enumerate(function.nodes):
        shown = set().union(*(seen.get(id(value), {id(value)}) for value in node.operands))
        for value in shown:
            readers.setdefault(value, set()).add(number)
        if ops.family_of(node).pure_view:
            seen.update((id(value), shown) for value in node.results)
    waits: dict[int, set[int]] = {}
    for output, value in zip(graph.outputs, function.results, strict=True):
        if output.updates is None or id(value) not in producer:
            continue
        writer = producer[id(value)]
        earlier = {number for number in readers.get(id(function.params[output.updates]), set()) if number < writer}
        waits.setdefault(writer, set()).update(earlier)
    return waits
