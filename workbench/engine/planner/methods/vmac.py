"""The vertical MAC vertex: groups of one channel side by side, for depthwise convolutions of halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from workbench.base.arrays import ceil_div
from workbench.engine.cost import formula
from workbench.engine.emit import vertex_groups
from workbench.engine.planner.method import Layout, Method, OnTiles, Rules, Shares, TermSpec, register, vector_macs
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.program import VertexGroup
from workbench.engine.target import Target
from workbench.engine.vertices.conv import vmac_cycles
from workbench.engine.vertices.sizes import Sizes


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class VerticalMac(Method):
    """`group_block` groups side by side."""

    vertex: ClassVar[str] = "vmac"
    precedence: ClassVar[int] = 1

    @classmethod
    def variants(cls, layout: Layout, target: Target) -> Sequence[VerticalMac]:
        """For groups of one channel, half only: 4 groups side by side, or 8 or 16 with half partials.

        Source: poplibs@7eac0f26 lib/poplin/ConvVertexType.cpp:207-222.
        """
        problem = layout.problem
        single = prod(problem.in_chans) == prod(problem.out_chans) == 1 and len(problem.groups) == 1
        if layout.expanded or layout.swapped or not single or not problem.field or problem.in_type != "half":
            return []
        widths = (16, 8, 4) if problem.partials_type == "half" else (4,)
        blocks = [block for block in widths if block <= max(4, prod(problem.groups))]
        return [cls(group_block=block, partials_type=problem.partials_type) for block in blocks]

    def cost(self, problem: ConvProblem, shares: Shares, rules: Rules) -> TermSpec:
        """One vertex over all positions of the tile."""
        return (
            "compute",
            "plan.vmac",
            {
                **self._sizes(shares),
                **self._template(),
                "workers": rules.target.workers_per_tile,
            },
        )

    def macs_per_cycle(self, in_type: str) -> int:
        """A vector."""
        return vector_macs(in_type)

    def groups(self, at: OnTiles) -> list[VertexGroup]:
        """`ConvPartialVerticalMac`."""
        return vertex_groups("poplin::ConvPartialVerticalMac", at.columns(**self._sizes(at.sizes)), **self._template())

    def _sizes(self, shares: Shares) -> dict[str, Sizes]:
        return {
            "rows": shares.positions,
            "kernel_height": shares.kernel_outer,
            "kernel_width": shares.kernel_inner,
            "out_elements": shares.positions * self.group_block,
            "conv_groups": ceil_div(shares.groups, self.group_block),
        }

    def _template(self) -> dict[str, Any]:
        return {"conv_groups_per_group": self.group_block, "partials_type": self.partials_type}


formula(
    "plan.vmac",
    text="ConvPartialVerticalMac over the tile's positions, a block of groups side by side",
    source="poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:246-395",
    error_kind="product",
)(vmac_cycles)
