"""The horizontal MAC vertex: dot products over channels, for any problem that is laid out position by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from workbench.engine.cost import formula
from workbench.engine.emit import vertex_groups
from workbench.engine.planner.method import Layout, Method, OnTiles, Rules, Shares, TermSpec, register, vector_macs
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.program import VertexGroup
from workbench.engine.target import Target
from workbench.engine.vertices.conv import hmac_cycles
from workbench.engine.vertices.sizes import Sizes


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class HorizontalMac(Method):
    """Channels in vectors of four, outputs in pairs: what the widest of its inner loops takes."""

    vertex: ClassVar[str] = "hmac"

    @classmethod
    def variants(cls, layout: Layout, target: Target) -> Sequence[HorizontalMac]:
        """One, but not for kernels laid out as channels, nor for 8-bit floats, which it does not multiply."""
        if layout.expanded or layout.problem.in_type == "quarter":
            return []
        return [cls(in_block=4, out_block=2, partials_type=layout.problem.partials_type)]

    def cost(self, problem: ConvProblem, shares: Shares, rules: Rules) -> TermSpec:
        """One vertex over all rows of the tile."""
        rows, chans = self._rows(shares), self._chans(shares)
        types = {"in_type": problem.in_type, "partials_type": self.partials_type, **rules.target.machine._asdict()}
        return "compute", "plan.hmac", {**rows, "kernel_elements": shares.kernel, **chans, **types}

    def macs_per_cycle(self, in_type: str) -> int:
        """A vector."""
        return vector_macs(in_type)

    def groups(self, at: OnTiles) -> list[VertexGroup]:
        """`ConvPartialHorizontalMac`."""
        return vertex_groups(
            "poplin::ConvPartialHorizontalMac",
            at.columns(**self._rows(at.sizes), **self._chans(at.sizes)),
            kernel=prod(at.kernel),
            in_type=at.in_type,
            partials_type=self.partials_type,
        )

    def _rows(self, shares: Shares) -> dict[str, Sizes]:
        return {"rows": shares.rows, "row_width": shares.row_width}

    def _chans(self, shares: Shares) -> dict[str, Sizes]:
        return {
            "in_chans": self.in_blocks(shares) * self.in_block,
            "out_chans": self.out_blocks(shares) * self.out_block,
            "conv_groups": shares.groups,
        }


formula(
    "plan.hmac",
    text="ConvPartialHorizontalMac over the tile's rows, all its channels in one block",
    source="poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:133-244",
    error_kind="product",
)(hmac_cycles)
