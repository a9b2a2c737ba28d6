"""Regions: a norm, a softmax, a dropout is one operator; what is inside is lowered as what it is.

Reductions of a region that do not wait for each other run together, as popops `reduceMany` makes them share their
compute sets and exchanges (poplibs@7eac0f26 lib/popops/reduction/Reduction.cpp).
"""

from __future__ import annotations

from workbench.engine import ops
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.ops import Family, register
from workbench.engine.ops.reduce import OPERATIONS, lower_reductions


class Regions(Family):
    """One region of a known layer class or named function; its body is inline and shares the caller's values."""

    name = "regions"
    ops = frozenset({"region"})
    shareable = True

    def word(self, node: Node) -> str:
        """Its kind."""
        return str(node.attr("kind"))

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Lower the body's nodes under the region's operator, reductions as late and as many at once as may be."""
        waiting: list[Node] = []
        for inner in lowering.body(node).nodes:
            awaited = {value for reduction in waiting for value in reduction.results}
            if any(value in awaited for value in inner.operands):
                _together(waiting, lowering)
                waiting = []
            if inner.op in OPERATIONS:
                waiting.append(inner)
            else:
                lowering.lower_node(inner)
        _together(waiting, lowering)

    def flops(self, node: Node, lowering: Lowering) -> int:
        """Those of everything in the region."""
        known: int | None = lowering.of_nodes.get(node)
        if known is None:
            known = sum(ops.family_of(inner).flops(inner, lowering) for inner in lowering.body(node).nodes)
            lowering.of_nodes[node] = known
        return known


def _together(reductions: list[Node], lowering: Lowering) -> None:
    if reductions:
        with lowering.at(reductions[0]):
            lower_reductions(reductions, lowering)


register(Regions())
