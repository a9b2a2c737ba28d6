"""Carries: which results of a body are the next value of which of its parameters, and so belong in the same memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from workbench.engine.graph.graph import RESIDENT_ROLES, Function, Graph, Node, Value, walk
from workbench.engine.graph.primitives import Kind, names
from workbench.engine.graph.stages import is_repeated, is_stage_call

INLINE = names(Kind.INLINE)
# Because autodiff adds what several readers give to a gradient by an addition of its own.
ADDITIONS = ("add", "add_any")


def carried(graph: Graph) -> dict[str, dict[int, int]]:
    """Function name → {result number: parameter number}, for the entry, loop bodies and called functions."""
    return dict(_carried(graph))


@lru_cache(maxsize=1)  # lowering asks of the graph that passes asked of last
def _carried(graph: Graph) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {graph.entry: _updates(graph)}
    entry = _Entry(graph)
    memory: dict[Value, Value] = {}  # value of the entry → parameter of the entry whose memory it has
    for function, node in walk(graph):
        if node.op == "scan":
            first = int(node.attr("num_consts", 0))
            found[node.calls[0]] = {index: first + index for index in range(int(node.attr("num_carry", 0)))}
        elif node.op == "while":
            first = int(node.attr("body_consts", 0))
            count = len(graph.functions[node.calls[1]].results)
            found[node.calls[1]] = {index: first + index for index in range(count)}
        elif is_stage_call(node) and function.name == graph.entry:
            pairs = _of_call(entry, node, memory)
            found[node.calls[0]] = pairs | found.get(node.calls[0], {})  # computing again keeps nothing
            for result, number in pairs.items():
                value = node.operands[number]
                memory[node.results[result]] = memory.get(value, value)
    return found


def private_params(graph: Graph) -> dict[str, frozenset[int]]:
    """Function name → parameters that are made anew for every call: the slices a scan's body gets."""
    found: dict[str, frozenset[int]] = {}
    for _, node in walk(graph):
        if node.op == "scan":
            first = int(node.attr("num_consts", 0)) + int(node.attr("num_carry", 0))
            found[node.calls[0]] = frozenset(range(first, len(node.operands)))
    return found


@lru_cache(maxsize=1)  # as above
def callees_first(graph: Graph) -> tuple[Function, ...]:
    """Functions with values of their own (no inline bodies), each after those it calls."""
    order: dict[str, Function] = {}

    def visit(function: Function, inline: bool) -> None:
        for node in function.nodes:
            for name in node.calls:
                if name not in order:
                    visit(graph.functions[name], node.op in INLINE)
        if not inline:
            order[function.name] = function

    inline = {name for _, node in walk(graph) if node.op in INLINE for name in node.calls}
    for name, function in graph.functions.items():
        if name not in inline and name not in order:
            visit(function, inline=False)
    return tuple(order.values())


def _updates(graph: Graph) -> dict[int, int]:
    return {
        index: output.updates
        for index, output in enumerate(graph.outputs)
        if output.updates is not None and graph.inputs[output.updates].role in RESIDENT_ROLES
    }


class _Entry:
    """What calls of an entry are looked at for: `updated` are values with the parameters they update, `buffers` are the
    accumulators, by identity.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        described = zip(graph.outputs, graph.body.results, strict=True)
        self.updated = [
            (value, graph.body.params[output.updates]) for output, value in described if output.updates is not None
        ]
        self.buffers = {
            value for value, item in zip(graph.body.params, graph.inputs, strict=True) if item.role == "accumulator"
        }


def _of_call(entry: _Entry, node: Node, memory: dict[Value, Value]) -> dict[int, int]:
    """Results that update an entry parameter the call reads, and sums that go back into their accumulators."""
    place = {memory.get(value, value): number for number, value in enumerate(node.operands)}
    number_of = {result: number for number, result in reversed(list(enumerate(node.results)))}
    pairs = {number_of[value]: place[param] for value, param in entry.updated if value in number_of and param in place}
    if is_repeated(node):
        buffers = {place[name] for name in entry.buffers & place.keys()}
        pairs.update(_sums(entry.graph, entry.graph.functions[node.calls[0]], buffers))
    return pairs


def _sums(graph: Graph, function: Function, buffers: set[int]) -> dict[int, int]:
    """Result number → the accumulator (a parameter number) that it is the sum of with a gradient.

    A running mean scales what is in the accumulator first.
    """
    buffer_of = {function.params[number]: number for number in buffers}
    result_of = {value: number for number, value in enumerate(function.results)}
    found: dict[int, int] = {}
    for node in flat(graph, function):
        read = [buffer_of[value] for value in node.operands if value in buffer_of]
        if node.op in ADDITIONS and read and node.results[0] in result_of:
            found[result_of[node.results[0]]] = read[0]
        elif node.op == "mul" and read and node.results[0].shape == function.params[read[0]].shape:
            buffer_of[node.results[0]] = read[0]
        elif node.op == "scan" and read:  # several gradients are added up in a loop
            carries = zip(node.results, node.operands[int(node.attr("num_consts", 0)) :], strict=False)
            for result, value in list(carries)[: int(node.attr("num_carry", 0))]:
                if value in buffer_of and result in result_of:
                    found[result_of[result]] = buffer_of[value]
    return found


def flat(graph: Graph, function: Function) -> Iterator[Node]:
    """The nodes of a function with those of its inline bodies, which share its values."""
    for node in function.nodes:
        yield node
        if node.op in INLINE:
            yield from flat(graph, graph.functions[node.calls[0]])
