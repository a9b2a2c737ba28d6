"""Convolutions: `conv_general_dilated`, planned for the matrix unit or the multiply-accumulate vertices."""

from __future__ import annotations

from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import Mapping
from workbench.engine.ops import Family, register
from workbench.engine.planner.family import lower_node, macs_of, planned_text, wished_layouts


class Convolution(Family):
    """Convolutions of any dimension, and the gradients of their inputs and weights."""

    name = "convolution"
    ops = frozenset({"conv_general_dilated"})
    called = "convolution"

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """Each element on one of the tiles that multiply it."""
        return wished_layouts(node, lowering)

    def flops(self, node: Node, lowering: Lowering) -> int:
        """Two per multiply-accumulate; zeros of padding and dilation count nothing."""
        return 2 * macs_of(node, lowering)

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """The plan with its cost."""
        return planned_text(node, lowering)

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Exchange, multiply, reduce."""
        lower_node(node, lowering)


register(Convolution())
