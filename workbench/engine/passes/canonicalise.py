"""Canonicalise: one form for what means the same, so that later passes see the model and not how it was written.

Equal operations are done once; a reduction over axes of size 1 and a broadcast that repeats nothing are reshapes; casts
to the same type and copies disappear.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.engine.graph import Function, Graph, Node, Value, attrs
from workbench.engine.graph.primitives import Kind, primitive
from workbench.engine.ops.pointwise import is_free


def canonicalise(graph: Graph) -> Graph:
    """Rewrite every function."""
    return replace(graph, functions={name: _rewrite(function) for name, function in graph.functions.items()})


def _rewrite(function: Function) -> Function:
    stands_for: dict[Value, Value] = {}
    known: dict[tuple[object, ...], tuple[Value, ...]] = {}
    nodes: list[Node] = []
    returned = set(function.results)
    for old in function.nodes:
        node = old.with_read(stands_for)
        same = _alias(node)
        if same is not None:
            stands_for[node.results[0]] = same
            continue
        node = _reshaped(node)
        key = _key(node)
        if is_free(node) and any(value in returned for value in node.results):
            key = None  # two results that are filled alike still lie in two places
        if key is not None and key in known:
            stands_for.update(zip(node.results, known[key], strict=True))
            continue
        if key is not None:
            known[key] = node.results
        nodes.append(node)
    if tuple(nodes) == function.nodes:
        return function
    results = tuple(stands_for.get(value, value) for value in function.results)
    return Function(function.name, function.params, results, tuple(nodes))


def _alias(node: Node) -> Value | None:
    """The operand that the node's only result equals."""
    if len(node.operands) != 1 or len(node.results) != 1:
        return None
    operand, result = node.operands[0], node.results[0]
    if (operand.shape, operand.dtype) != (result.shape, result.dtype):
        return None
    told = primitive(node.op)
    unchanged = told.kind is Kind.IDENTITY or told.reshapes or node.op == "convert_element_type"
    return operand if unchanged else None


def _reshaped(node: Node) -> Node:
    """The node as a reshape, if it only changes how its operand is seen."""
    if node.op != "broadcast_in_dim" and not primitive(node.op).keeps_one:
        return node
    operand, result = node.operands[0], node.results[0]
    if operand.elements != result.elements or operand.dtype != result.dtype or not operand.shape:
        return node
    return replace(node, op="reshape", operands=(operand,), attrs=attrs(new_sizes=result.shape))


def _key(node: Node) -> tuple[object, ...] | None:
    """What makes two nodes equal: None for those that are never shared. Directions stay apart: they live apart."""
    if node.calls or primitive(node.op).apart or not node.results:
        return None
    types = tuple((value.shape, value.dtype) for value in node.results)
    names = node.operands
    origin = node.origin
    place = () if node.op == "constant" else (origin.layer, origin.call, origin.direction, origin.shard)
    return (node.op, names, node.attrs, types, place)
