"""Rematerialise: what the backward pass can compute elementwise from values it reads anyway is not kept for it.

Autodiff saves masks, centred activations and the like as residuals. PopLibs' gradients read the activations instead
(poplibs@7eac0f26 lib/popnn/NonLinearity.cpp, lib/popnn/Norms.cpp: input gradients take activations, mean and inverse
deviation), so the residuals would be memory that an IPU does not spend. A residual moves to its readers when all it is
made of is small or read going backward anyway.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.passes.clusters import Flow, flow_of
from workbench.engine.passes.rematerialise.moving import all_moved
from workbench.engine.passes.rematerialise.residual_roots import AHEAD, keep_roots
from workbench.engine.passes.rematerialise.stages import between_passes, rematerialise_stages


def rematerialise(graph: Graph) -> Graph:
    """Move what can be computed again to where it is read, in every function and between those of a stage."""
    functions = {name: _of_function(function) for name, function in graph.functions.items()}
    return rematerialise_stages(between_passes(replace(graph, functions=functions), _of_function))


def _of_function(function: Function) -> Function:
    function = _masks_from_outputs(function)
    directions = {node.origin.direction for node in function.nodes}
    if "backward" not in directions or directions.isdisjoint(AHEAD):
        return function  # no pass in it reads what another makes
    return all_moved(keep_roots(function))


def _masks_from_outputs(function: Function) -> Function:
    """A ReLU's mask x > c equals max(x, c) > c: read the output, which the next layer keeps, not the input."""
    # Because a ReLU is a maximum, and its mask a comparison.
    if not {node.op for node in function.nodes}.issuperset(("max", "gt")):
        return function
    outputs: dict[tuple[Value, object], Value] = {}
    flow = flow_of(function)
    nodes: list[Node] = []
    for node in function.nodes:
        if node.op == "max":
            bound = _scalar(node.operands[1], flow)
            if bound is not None:
                outputs[(node.operands[0], bound)] = node.results[0]
        if node.op == "gt":
            output = outputs.get((node.operands[0], _scalar(node.operands[1], flow)))
            if output is not None:
                node = node.reading((output, node.operands[1]))
        nodes.append(node)
    return function if tuple(nodes) == function.nodes else replace(function, nodes=tuple(nodes))


def _scalar(value: Value, flow: Flow) -> object:
    """The number a value is everywhere, seen through broadcasts and casts; None if it is no constant."""
    node = flow.producer.get(value)
    # Because a number is written so where it is read over a shape or in another type.
    while node is not None and node.op in ("broadcast_in_dim", "convert_element_type", "reshape"):
        node = flow.producer.get(node.operands[0])
    return node.attr("value") if node is not None and node.op == "constant" else None
