"""Widen: a float32 sum or product of halves that were only cast for it reads the halves themselves.

The driver's pattern "reduction_fp16_input" does so, graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/
driver/passes/fuse_ops_late.cc:496-508: PopLibs' reductions read half and write float without a cast between.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.engine.graph import Function, Graph, Node
from workbench.engine.graph.primitives import Kind, names

# Because these have partials that are wider than what they read; the others choose among what they read.
WIDENING = names(Kind.REDUCTION, exact=False) - {"reduce_and", "reduce_or"}


def sums_of_casts(graph: Graph) -> Graph:
    """Let the reductions of every function read what was cast from float16 to float32 for them alone."""
    return replace(graph, functions={name: _widened(function) for name, function in graph.functions.items()})


def _widened(function: Function) -> Function:
    casts = {node.results[0]: node for node in function.nodes if _is_cast(node)}
    if not casts:
        return function
    kept_for = set(function.results)
    kept_for.update(value for node in function.nodes if not _reads_halves(node) for value in node.operands)
    gone = {place for place in casts if place not in kept_for}
    nodes = [
        replace(node, operands=(casts[node.operands[0]].operands[0],))
        if _reads_halves(node) and node.operands[0] in gone
        else node
        for node in function.nodes
        if not (_is_cast(node) and node.results[0] in gone)
    ]
    return replace(function, nodes=tuple(nodes))


def _is_cast(node: Node) -> bool:
    if node.op != "convert_element_type":
        return False
    return node.operands[0].dtype == "float16" and node.results[0].dtype == "float32"


def _reads_halves(node: Node) -> bool:
    """Whether the node reduces; one that only drops axes of size 1 is a view and cannot widen."""
    return node.op in WIDENING and node.operands[0].elements != node.results[0].elements
