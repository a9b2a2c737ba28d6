"""Carries: which results of a body are the next value of which of its parameters, and so belong in the same memory."""

from __future__ import annotations

from workbench.engine.graph import RESIDENT_ROLES, Function, Graph, Node, walk

ACCUMULATOR = "/accumulator"


def carried(graph: Graph) -> dict[str, dict[int, int]]:
    """Function name → {result number: parameter number}, for the entry, loop bodies and called functions."""
    found: dict[str, dict[int, int]] = {graph.entry: _updates(graph)}
    for function, node in walk(graph):
        if node.op == "scan":
            first = int(node.attr("num_consts", 0))
            found[node.calls[0]] = {index: first + index for index in range(int(node.attr("num_carry", 0)))}
        elif node.op == "while":
            first = int(node.attr("body_nconsts", 0))
            count = len(graph.functions[node.calls[1]].results)
            found[node.calls[1]] = {index: first + index for index in range(count)}
        elif node.op == "call" and function.name == graph.entry:
            found[node.calls[0]] = _of_call(graph, function, node)
    return found


def _updates(graph: Graph) -> dict[int, int]:
    return {
        index: output.updates
        for index, output in enumerate(graph.outputs)
        if output.updates is not None and graph.inputs[output.updates].role in RESIDENT_ROLES
    }


def _of_call(graph: Graph, entry: Function, node: Node) -> dict[int, int]:
    """Results that update an entry parameter the call reads; the last results of a backward are its accumulators."""
    place = {id(value): number for number, value in enumerate(node.operands)}
    pairs: dict[int, int] = {}
    for output, value in zip(graph.outputs, entry.results, strict=True):
        if output.updates is None or not any(value is result for result in node.results):
            continue
        param = entry.params[output.updates]
        if id(param) in place:
            number = next(i for i, result in enumerate(node.results) if result is value)
            pairs[number] = place[id(param)]
    buffers = [
        place[id(value)]
        for value, described in zip(entry.params, graph.inputs, strict=True)
        if described.name.endswith(ACCUMULATOR) and id(value) in place
    ]
    if node.origin.direction != "update" and node.attr("direction", "") != "update" and buffers:
        first = len(node.results) - len(buffers)
        pairs.update({first + index: number for index, number in enumerate(sorted(buffers))})
    return pairs
