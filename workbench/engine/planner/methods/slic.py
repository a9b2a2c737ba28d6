"""The SLIC vertex: a window of 1 x 4 kernel positions at a time, for convolutions in groups of few channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from workbench.base.arrays import ceil_div
from workbench.base.dtypes import TYPE_BYTES
from workbench.engine.cost import formula
from workbench.engine.emit import vertex_groups
from workbench.engine.planner.method import Layout, Method, OnTiles, Rules, Shares, TermSpec, register
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.program import VertexGroup
from workbench.engine.target import Target
from workbench.engine.vertices.conv import slic_cycles
from workbench.engine.vertices.sizes import Sizes

WINDOW = 4
ALL_UNITS = 16
GROUPS_OF = {1: (4,), 2: (2,), 4: (1,)}  # groups side by side, by the channels of each
MANY_GROUPS = (8, 16)  # of one channel, where all units add up halves
SPARE_BYTES = 200  # weights in another order, and room to align the buffer: poplibs ConvVertices.cpp:1470


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class Slic(Method):
    """`group_block` groups side by side, each of `in_block` channels in and out; `chains` of units at once.

    The kernel's width is filled up to whole windows, and the inputs to what these read, with zeros on the tile.
    """

    vertex: ClassVar[str] = "slic"
    precedence: ClassVar[int] = 1

    chains: int
    stride: int = 1

    @classmethod
    def variants(cls, layout: Layout, target: Target) -> Sequence[Slic]:
        """For one block of at most four channels in and out: a tile takes no second one.

        Two chains of units are never cheaper where there are four, and are not tried then; nor are channels filled up
        to more than the fewest that a grouping has.
        Source: poplibs@7eac0f26 lib/poplin/ConvVertexType.cpp:433-580 (groupings, chains), ConvModel.cpp:2869-2908.
        [D] Input dilation, whose zeros would be put between the inputs on the tile, is left to the other vertices.
        """
        problem = layout.problem
        if layout.expanded or layout.swapped or not takes(problem):
            return []
        halves = problem.partials_type == "half"
        all_units = halves and target.conv_units_half_partials == ALL_UNITS
        chans = next(size for size in GROUPS_OF if size >= _chans(problem))
        blocks = GROUPS_OF[chans] + (MANY_GROUPS if all_units and chans == 1 else ())
        return [
            cls(
                in_block=chans,
                out_block=chans,
                group_block=block,
                partials_type=problem.partials_type,
                chains=4 if all_units else 2,
                stride=problem.field[-1].stride,
            )
            for block in blocks
        ]

    def cost(self, problem: ConvProblem, shares: Shares, rules: Rules) -> TermSpec:
        """One vertex over all positions of the tile."""
        arguments = {**self._sizes(shares), **self._template(), "workers": rules.target.workers_per_tile}
        return "compute", "plan.slic", arguments

    def groups(self, at: OnTiles) -> list[VertexGroup]:
        """`ConvPartial1xNSLIC`."""
        return vertex_groups("poplin::ConvPartial1xNSLIC", at.columns(**self._sizes(at.sizes)), **self._template())

    def _blocks(self, shares: Shares) -> Sizes:
        return ceil_div(shares.groups, self.group_block)

    def _sizes(self, shares: Shares) -> dict[str, Sizes]:
        windows = ceil_div(shares.kernel_width, WINDOW)
        return {
            "positions": shares.positions,
            "row_width": shares.row_width,
            "conv_groups": self._blocks(shares),
            "sub_kernels": shares.kernel // shares.kernel_width * windows,
        }

    def _template(self) -> dict[str, Any]:
        return {
            "conv_groups_per_group": self.group_block,
            "chans_per_group": self.in_block,
            "partials_type": self.partials_type,
            "conv_chains": self.chains,
            "stride": self.stride,
        }

    def macs_per_cycle(self, in_type: str) -> int:
        """A window of every group side by side, four groups of one channel at once, in one pass or two.

        [D] PopLibs' own bound counts one group only, and half as much of four channels as the vertex delivers:
        poplibs@7eac0f26 lib/poplin/ConvModel.cpp:617.
        """
        return WINDOW * WINDOW * self.in_block * self.chains // 4

    def zeros(self, problem: ConvProblem, shares: Shares) -> Sizes:
        """The kernel's width to whole windows; the inputs' padding, as if every tile had all of it.

        Source: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:675-835, 888-915.
        """
        blocks = self._blocks(shares) * self.group_block * self.in_block
        width = ceil_div(shares.kernel_width, WINDOW) * WINDOW - shares.kernel_width
        kernel = blocks * self.out_block * (shares.kernel // shares.kernel_width) * width
        around = [_padding(problem, index) for index in range(len(problem.field))]
        high = shares.rows // shares.batch
        padded = (high + sum(around[:-1])) * (shares.row_width + around[-1] + width)
        return kernel + blocks * shares.batch * (padded - high * shares.row_width)

    def spare_bytes(self, problem: ConvProblem, shares: Shares) -> Sizes:
        """A buffer for the outputs of one block of groups: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:650-662."""
        return ceil_div(shares.outputs * TYPE_BYTES[self.partials_type], self._blocks(shares)) + SPARE_BYTES


def takes(problem: ConvProblem) -> bool:
    """Whether the vertex can compute a problem: halves, few channels, nothing dilated, a stride of at most two."""
    plain = all(axis.kernel_dilation == axis.in_dilation == 1 for axis in problem.field)
    sized = 1 <= len(problem.field) <= 2 and len(problem.groups) == 1 and _chans(problem) <= max(GROUPS_OF)
    return problem.in_type == "half" and sized and plain and problem.field[-1].stride <= 2


def _chans(problem: ConvProblem) -> int:
    return max(prod(problem.in_chans), prod(problem.out_chans))


def _padding(problem: ConvProblem, index: int) -> int:
    """Zeros before and behind the inputs along an axis of the field."""
    axis = problem.field[index]
    reached = (axis.out_size - 1) * axis.stride + axis.kernel
    return max(axis.pad_low, 0) + max(reached - axis.pad_low - axis.in_size, 0)


formula(
    "plan.slic",
    text="ConvPartial1xNSLIC over the tile's positions, a block of groups side by side, window after window",
    source="poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1085-1320",
    error_kind="product",
)(slic_cycles)
