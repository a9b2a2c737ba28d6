"""The matrix unit (AMP): blocks of channels as deep and as wide as its convolution units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from workbench.base.arrays import ceil_div
from workbench.base.dtypes import TYPE_BYTES
from workbench.engine.cost import formula
from workbench.engine.emit import vertex_groups
from workbench.engine.planner.method import Layout, Method, OnTiles, Rules, Shares, TermSpec, register
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.program import VertexGroup
from workbench.engine.target import Target
from workbench.engine.vertices.conv import amp_1x1_cycles, nx1_cycles
from workbench.engine.vertices.sizes import Sizes, where

GROUPING = 16
"""Channels that lie together in a value of any type: as many as the unit is deep for half."""


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class Amp(Method):
    """`units` convolution units, and `filter_height` kernel rows side by side when there are fewer input channels than
    the unit is deep.
    """

    vertex: ClassVar[str] = "amp"
    precedence: ClassVar[int] = 0
    interleaved: ClassVar[bool] = True

    units: int
    filter_height: int = 1

    @classmethod
    def variants(cls, layout: Layout, target: Target) -> Sequence[Amp]:
        """Blocks as deep as the unit, and shallower ones that take several kernel rows at once if channels are few.

        Where one block holds all channels nothing is added up afterwards, and the unit may write the type of the
        result: poplibs@7eac0f26 lib/poplin/ConvVertexType.cpp:403-432.
        """
        problem = layout.problem
        depth = target.weights_per_conv_unit_bytes // TYPE_BYTES[problem.in_type]
        chans = prod(problem.in_chans)
        heights = [1]
        if problem.field and not layout.expanded:
            heights += [height for height in (2, 4) if chans * height <= depth]
        kinds = [(height, problem.partials_type) for height in heights]
        narrower = problem.in_type != "quarter" and TYPE_BYTES[problem.out_type] < TYPE_BYTES[problem.partials_type]
        if narrower and chans <= depth and all(axis.kernel == 1 for axis in problem.field):
            kinds.insert(0, (1, problem.out_type))
        found = []
        for height, partials_type in kinds:
            units = units_of(problem.in_type, partials_type, target)
            found.append(
                cls(
                    in_block=depth // height,
                    out_block=units,
                    units=units,
                    filter_height=height,
                    partials_type=partials_type,
                )
            )
        return found

    def cost(self, problem: ConvProblem, shares: Shares, rules: Rules) -> TermSpec:
        """One vertex a tile, of the kind that its share allows."""
        return (
            "compute",
            "plan.amp",
            {
                "one_by_one": self.filter_height == 1 and shares.one_by_one,
                "flat_positions": shares.positions,
                "positions": shares.active,
                "row_width": shares.row_width,
                "kernel_outer": ceil_div(shares.kernel_outer, self.filter_height),
                "kernel_inner": shares.kernel_inner,
                "filter_height": self.filter_height,
                **self._blocks(shares),
                "out_chans_per_group": self.out_block,
                **self._unit(problem.in_type, rules.target, rules.wide_load),
                **rules.target.machine._asdict(),
            },
        )

    def least(self, problem: ConvProblem, shares: Shares, rules: Rules) -> TermSpec:
        """The vertex of one worker, who has the largest share of the positions."""
        name, formula_id, arguments = self.cost(problem, shares, rules)
        return name, formula_id, {**arguments, "at_least": True}

    def groups(self, at: OnTiles) -> list[VertexGroup]:
        """`ConvPartial1x1Out` where all tiles can use it, else `ConvPartialnx1`."""
        blocks = self._blocks(at.sizes)
        unit = self._unit(at.in_type, at.target, at.wide_load)
        if at.one_by_one and self.filter_height == 1:
            columns = at.columns(positions=at.sizes.positions, **blocks)
            return vertex_groups("poplin::ConvPartial1x1Out", columns, out_chans_per_group=self.out_block, **unit)
        return vertex_groups(
            "poplin::ConvPartialnx1",
            at.columns(positions=at.sizes.active, row_width=at.sizes.row_width, **blocks),
            kernel=at.kernel,
            filter_height=self.filter_height,
            chans_per_group=self.out_block,
            in_chans_per_group=self.in_block,
            **unit,
        )

    def _blocks(self, shares: Shares) -> dict[str, Sizes]:
        return {
            "in_groups": self.in_blocks(shares),
            "out_groups": self.out_blocks(shares),
            "conv_groups": shares.groups,
        }

    def _unit(self, in_type: str, target: Target, wide_load: bool) -> dict[str, Any]:
        return {
            "in_type": in_type,
            "partials_type": self.partials_type,
            "conv_units": self.units,
            "weight_load_bytes_per_cycle": target.conv_weight_load_bytes_per_cycle * (1 + wide_load),
        }

    def macs_per_cycle(self, in_type: str) -> int:
        """What the core loop delivers; the one for float takes 8 cycles for 8 channels of every unit.

        Source: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:610 (getMaxMACsPerCyclePerTile).
        """
        return self.units * {"quarter": 8, "half": 4}.get(in_type, 1)

    @property
    def grouping(self) -> int:
        """A group of the value's own, shared among the kernel rows taken at once."""
        return GROUPING // self.filter_height

    def __str__(self) -> str:
        height = f" height {self.filter_height}" if self.filter_height > 1 else ""
        return f"{self.vertex} {self.units} units {self.in_block}x{self.out_block}{height}"


def units_of(in_type: str, partials_type: str, target: Target) -> int:
    """Convolution units that multiply these types at once; the four figures are the target's."""
    if in_type == "quarter":
        return target.conv_units_quarter
    if in_type == "float":
        return target.conv_units_float
    return target.conv_units_half_partials if partials_type == "half" else target.conv_units_half_input


@formula(
    "plan.amp",
    text="ConvPartial1x1Out where the tile has one kernel position and rows follow each other, else ConvPartialnx1",
    source="poplibs@7eac0f26 lib/poplin/ConvModel.cpp:49 (canUse1x1Vertex);"
    " lib/poplin/PerformanceEstimation.hpp:672, :694",
    error_kind="product",
)
def amp_cycles(
    one_by_one: Any,
    flat_positions: Sizes,
    kernel_outer: Sizes,
    kernel_inner: Sizes,
    positions: Sizes,
    row_width: Sizes,
    filter_height: int,
    data_path_bytes: int,
    **arguments: Any,
) -> Sizes:
    """Cycles of the matrix unit on the fullest tile."""
    if np.all(one_by_one):
        return amp_1x1_cycles(positions=flat_positions, **arguments)
    general = nx1_cycles(
        positions=positions,
        row_width=row_width,
        kernel_outer=kernel_outer,
        kernel_inner=kernel_inner,
        filter_height=filter_height,
        data_path_bytes=data_path_bytes,
        **arguments,
    )
    if not np.any(one_by_one):
        return general
    return where(one_by_one, amp_1x1_cycles(positions=flat_positions, **arguments), general)
