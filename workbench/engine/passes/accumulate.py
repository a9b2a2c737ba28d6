"""Accumulate: a gradient is added to its sum as soon as it is there, so that it does not live through the body.

Autodiff gives the sums at the end of a body. What leads from a gradient to its sum without an operator of its own
(casts, scales, views and the addition) runs right behind the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workbench.engine import ops
from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.graph.flow import carried
from workbench.engine.graph.stages import stage_calls


def accumulate(graph: Graph) -> Graph:
    """Reorder the functions that add to accumulators."""
    described = zip(graph.body.params, graph.inputs, strict=True)
    buffers = {value for value, item in described if item.role == "accumulator"}
    if not buffers:
        return graph
    functions, pairs = dict(graph.functions), carried(graph)
    for call in (call for call in stage_calls(graph) if call.repeated):
        function = functions[call.function.name]
        sums = {
            function.results[result]
            for result, place in pairs.get(function.name, {}).items()
            if call.node.operands[place] in buffers
        }
        functions[function.name] = _early(function, sums)
    return replace(graph, functions=functions)


def _early(function: Function, sums: set[Value]) -> Function:
    """Every light node that leads to sums alone runs once the last of its operands is there."""
    readers: dict[Value, list[int]] = {}
    for number, node in enumerate(function.nodes):
        for value in node.operands:
            readers.setdefault(value, []).append(number)
    kept = set(function.results) - sums
    light: set[int] = set()
    for number in reversed(range(len(function.nodes))):
        node = function.nodes[number]
        led = all(
            value not in kept
            and (value in sums or bool(readers.get(value)))
            and all(reader in light for reader in readers.get(value, ()))
            for value in node.results
        )
        if led and node.operands and node.results and ops.family_of(node).light:
            light.add(number)
    return replace(function, nodes=tuple(_in_order(function, light)))


def _in_order(function: Function, light: set[int]) -> Iterator[Node]:
    made_by = {value: number for number, node in enumerate(function.nodes) for value in node.results}
    left: dict[int, int] = {}
    behind: dict[int, list[int]] = {}
    for number in light:
        awaited = {made_by[value] for value in function.nodes[number].operands if value in made_by}
        left[number] = len(awaited)
        for other in awaited:
            behind.setdefault(other, []).append(number)
    first = sorted(number for number, count in left.items() if not count)
    for number in (*first, *(each for each in range(len(function.nodes)) if each not in light)):
        pending = [number]
        while pending:
            current = pending.pop(0)
            yield function.nodes[current]
            for reader in sorted(behind.get(current, ())):
                left[reader] -= 1
                if not left[reader]:
                    pending.append(reader)
