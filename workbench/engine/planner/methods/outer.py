"""The outer product vertex: one input channel, nothing added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np

from workbench.base.arrays import ceil_div
from workbench.base.dtypes import TYPE_BYTES
from workbench.engine.cost import formula
from workbench.engine.emit import vertex_groups
from workbench.engine.planner.method import Layout, Method, OnTiles, Rules, Shares, TermSpec, register, vector_macs
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.program import VertexGroup
from workbench.engine.target import Target
from workbench.engine.vertices.conv import outer_product_cycles
from workbench.engine.vertices.sizes import Sizes


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class OuterProduct(Method):
    """Its results are of the type of its operands, as nothing is added up, and its blocks are vectors.

    Source: poplibs@7eac0f26 lib/poplin/ConvVertexType.cpp (getConvVertexOuterProductCandidates).
    """

    vertex: ClassVar[str] = "outer_product"

    @classmethod
    def variants(cls, layout: Layout, target: Target) -> Sequence[OuterProduct]:
        """One, for a single input channel of halves or floats and no field."""
        problem = layout.problem
        if problem.in_type == "quarter" or prod(problem.in_chans) != 1 or problem.field:
            return []
        block = target.data_path_bytes // TYPE_BYTES[problem.in_type]
        return [cls(out_block=block, partials_type=problem.in_type)]

    def cost(self, problem: ConvProblem, shares: Shares, rules: Rules) -> TermSpec:
        """A vertex a worker and group."""
        sizes = {
            "width": shares.positions,
            "chans": self._chans(shares),
            "block": self.out_block,
            "groups": shares.groups,
        }
        workers = rules.target.workers_per_tile
        return "compute", "plan.outer_product", {**sizes, "type": problem.in_type, "workers": workers}

    def macs_per_cycle(self, in_type: str) -> int:
        """A vector."""
        return vector_macs(in_type)

    def groups(self, at: OnTiles) -> list[VertexGroup]:
        """`OuterProduct`, as many on a tile as there are workers and groups."""
        workers = at.target.workers_per_tile
        columns = at.columns(width=ceil_div(at.sizes.positions, workers), chans=self._chans(at.sizes))
        columns["chans_per_group"] = np.where(columns["chans"] > 0, self.out_block, 0)
        counts = at.columns(count=at.sizes.groups * workers)["count"]
        found: list[VertexGroup] = []
        for count in np.unique(counts[counts > 0]).tolist():
            chosen = {name: column * (counts == count) for name, column in columns.items()}
            groups = vertex_groups("poplin::OuterProduct", chosen, type=at.in_type)
            found += [replace(group, count=count) for group in groups]
        return found

    def _chans(self, shares: Shares) -> Sizes:
        return self.out_blocks(shares) * self.out_block


@formula(
    "plan.outer_product",
    text="6 x OuterProduct of a worker's share of the inputs",
    source="poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1516",
    error_kind="product",
)
def outer_cycles(width: Sizes, chans: Sizes, block: Sizes, groups: Sizes, type: str, workers: int) -> Sizes:
    """Cycles of the outer products of a tile, a vertex per worker and group; channels in blocks."""
    share = ceil_div(width, workers)
    return workers * groups * outer_product_cycles(type=type, width=share, chans=chans, chans_per_group=block)
