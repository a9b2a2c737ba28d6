"""Regions: a norm, a softmax, a dropout is one operator; what is inside is lowered as what it is."""

from __future__ import annotations

from workbench.engine import ops
from workbench.engine.graph import Node
from workbench.engine.lowering import Lowering
from workbench.engine.ops import Family, register


class Regions(Family):
    """One region of a known layer class or named function; its body is inline and shares the caller's values."""

    name = "regions"
    ops = frozenset({"region"})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Lower the body's nodes under the region's operator."""
        lowering.lower_function(lowering.body(node), operators=False)

    def flops(self, node: Node, lowering: Lowering) -> int:
        """Those of everything in the region."""
        return sum(ops.family_of(inner).flops(inner, lowering) for inner in lowering.body(node).nodes)


register(Regions())
