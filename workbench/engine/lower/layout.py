"""Layout: where values would best lie, asked of their readers, so that what a plan needs is there from the start."""

from __future__ import annotations

from workbench.engine import ops
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Graph, Node, Value
from workbench.engine.graph.flow import callees_first
from workbench.engine.graph.primitives import Kind, kind
from workbench.engine.lower.in_place import flat_nodes
from workbench.engine.mapping import Mapping
from workbench.engine.ops import same_type

Wishes = dict[Value, Mapping]


def find_wishes(lowering: Lowering) -> Wishes:
    """value → the mapping its readers would like.

    Planned operators speak first (the reader written first wins, whatever the schedule made of it: the forward pass
    decides for the weights), then elementwise chains and views hand wishes from results to operands, and what an update
    reads follows what it overwrites. What a body wishes its parameters to be, the caller's control node asks of its
    operands.
    """
    graph = lowering.graph
    wishes: Wishes = {}
    lowering.wishes = wishes
    for function in callees_first(graph):
        nodes = list(flat_nodes(graph, function))
        # Products in the order in which their plans are searched beside: the last are not there yet.
        asked = {node: _layouts(node, lowering) for node in nodes if kind(node) is Kind.PRODUCT}
        for node in sorted(nodes, key=_written, reverse=True):
            layouts = asked[node] if node in asked else _layouts(node, lowering)
            for number, mapping in layouts.items():
                wishes[node.operands[number]] = mapping
        for _ in range(2):  # wishes of parameters reach optimizer slots, then the gradients that meet them there
            for node in reversed(nodes):
                _hand_back(node, wishes)
            for node in nodes:
                hand_across(node, wishes)
        lowering.summed_halves |= _summands(nodes)
    _anchor_parameters(lowering, wishes)
    return wishes


def _layouts(node: Node, lowering: Lowering) -> dict[int, Mapping]:
    return ops.family_of(node).layouts(node, lowering)


def _summands(nodes: list[Node]) -> set[Value]:
    """Halves that are summed: ids of the values that nothing here makes, of which sums of halves are made.

    Sums of halves have float partials. By PopLibs' 128 bytes a tile their terms lie on half the tiles of floats, and a
    product with a vector, which the driver rewrites to such a sum, would cost more in half than in single precision.
    """
    makers = {value: node for node in nodes for value in node.results}
    ahead = [node.operands[0] for node in nodes if node.op == "reduce_sum" and node.operands[0].dtype == "float16"]
    seen = set(ahead)
    while ahead:
        node = makers.get(ahead.pop())
        if node is not None and ops.family_of(node).light:
            halves = [one for one in node.operands if one.dtype == "float16" and one not in seen]
            ahead += halves
            seen |= set(halves)
    return seen - makers.keys()


def _written(node: Node) -> int:
    """The node's place in the model as it was read: ids count values in that order."""
    return min((value.id for value in node.results), default=0)


def _anchor_parameters(lowering: Lowering, wishes: Wishes) -> None:
    """Place parameters that nobody has a wish for, so that what updates them follows: else slots lie elsewhere."""
    graph = lowering.graph
    for value, described in zip(graph.body.params, graph.inputs, strict=True):
        if described.role == "parameter" and value not in wishes:
            wishes[value] = lowering.default_mapping(value)
    for node in flat_nodes(graph, graph.body):
        hand_across(node, wishes)
    _place_slots(graph, wishes)


def _place_slots(graph: Graph, wishes: Wishes) -> None:
    """Slots that meet their parameter nowhere (its norm comes between) lie as it does, and moving statistics too.

    They are updated together, in one codelet, which runs where what it writes lies.
    """
    described = list(zip(graph.body.params, graph.inputs, strict=True))
    homes: dict[tuple[str, tuple[int, ...]], Mapping] = {}
    for value, each in described:
        if each.role == "parameter" and value in wishes:
            homes.setdefault((each.layer, value.shape), wishes[value])
    for value, each in described:
        if each.role in ("optimizer", "accumulator", "state") and (each.layer, value.shape) in homes:
            wishes.setdefault(value, homes[each.layer, value.shape])


def _hand_back(node: Node, wishes: Wishes) -> None:
    """From results to operands of the same shape, and through views."""
    wished = wishes.get(node.results[0]) if node.results else None
    if wished is None:
        return
    for number, mapping in ops.family_of(node).handed_back(node, wished).items():
        wishes.setdefault(node.operands[number], mapping)


def hand_across(node: Node, wishes: Wishes) -> None:
    """Hand wishes on among the operands of an update: gradient and slots follow the parameter."""
    if node.origin.direction != "update" or not ops.family_of(node).pointwise:
        return
    known = [value for value in node.operands if value in wishes]
    for value in (*node.operands, *node.results):
        leader = _leader(value, known)
        if leader is not None:
            wishes.setdefault(value, wishes[leader])


def _leader(value: Value, known: list[Value]) -> Value | None:
    for other in known:
        if other.shape == value.shape and (same_type(other, value) or other.elements == value.elements):
            return other
    return None
