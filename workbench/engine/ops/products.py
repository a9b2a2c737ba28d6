"""Products: matrix products and convolutions, planned for the matrix unit or the multiply-accumulate vertices."""

from __future__ import annotations

from collections.abc import Callable

from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import Mapping
from workbench.engine.ops import Family, register
from workbench.engine.options import Options
from workbench.engine.planner.family import (
    allowed_bytes,
    lower_node,
    macs_of,
    planned_cycles,
    planned_text,
    wished_layouts,
)


class Product(Family):
    """Whatever the planner plans; its rows differ in what they own only."""

    outlined = True
    alone = True

    def __init__(self, name: str, op: str) -> None:
        self.name = name
        self.ops = frozenset({op})
        self.called = name

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """Each element on one of the tiles that multiply it."""
        return wished_layouts(node, lowering)

    def flops(self, node: Node, lowering: Lowering) -> int:
        """Two per multiply-accumulate; zeros of padding and dilation count nothing."""
        known: int | None = lowering.of_nodes.get(node)
        if known is None:
            known = lowering.of_nodes[node] = 2 * macs_of(node, lowering)
        return known

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """The plan with its cost."""
        return planned_text(node, lowering)

    def plan_cycles(self, node: Node, lowering: Lowering) -> int:
        """What the planner charges, by which it chose the plan."""
        return planned_cycles(node, lowering)

    def bound(self, node: Node, lowering: Lowering) -> Callable[[Options], int] | None:
        """What availableMemoryProportion allows."""
        return allowed_bytes(node, lowering)

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Exchange, multiply, reduce."""
        lower_node(node, lowering)


# Matrix products, batched or not.
register(Product("matmul", "dot_general"))
# Convolutions of any dimension, and the gradients of their inputs and weights.
register(Product("convolution", "conv_general_dilated"))
