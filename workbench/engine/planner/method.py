"""What a planner vertex is (`Method`), and what it is asked about: layouts, sizes on tiles, rules.

To add one, write `methods/<vertex>.py` with a subclass of `Method` and `register(...)` it: which variants it has for
operands in a layout, what one costs the planner, and which vertices of the program it becomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.base.dtypes import TYPE_BYTES
from workbench.base.registry import Registry
from workbench.engine.planner.problem import ConvProblem, swapped_problem
from workbench.engine.program import VertexGroup
from workbench.engine.target import Target
from workbench.engine.vertices.sizes import Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a problem's operands lie for a vertex: which one streams (`swapped`: the right one), and kernel axes laid
    out as input channels (`expanded`).

    `problem` is already swapped.
    """

    problem: ConvProblem
    swapped: bool = False
    expanded: tuple[int, ...] = ()


def layouts_of(problem: ConvProblem) -> list[Layout]:
    """Operands as they are, exchanged if there is no field, kernels as channels."""
    found = [Layout(problem=problem)]
    if not problem.field:
        found.append(Layout(problem=swapped_problem(problem), swapped=True))
    if any(axis.kernel > 1 for axis in problem.field):
        found.append(Layout(problem=problem, expanded=tuple(range(len(problem.field)))))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Sizes on the fullest tile, for one candidate or as arrays that broadcast over candidates.

    `inputs`, `weights` and `outputs` count elements of one serial step, `owned` those inputs that no other part of the
    outputs owns; channels of operands are filled up to whole blocks, those of `unfilled_*` are not. `positions` are
    output positions (batch x field), `active` those a kernel position reaches, in rows of `row_width`. `*_parts`
    multiply the parts of the axes which the operand does not have: so many tiles need the same elements.
    `one_by_one`: the tile has one kernel position and rows follow each other.
    """

    groups: Sizes
    batch: Sizes
    positions: Sizes
    active: Sizes
    row_width: Sizes
    rows: Sizes
    kernel_outer: Sizes
    kernel_inner: Sizes
    kernel_width: Sizes  # of the last axis
    kernel: Sizes
    in_chans: Sizes
    out_chans: Sizes
    inputs: Sizes
    owned: Sizes
    weights: Sizes
    unfilled_owned: Sizes
    unfilled_weights: Sizes
    outputs: Sizes
    out_parts: Sizes  # tiles that need the same inputs
    kernel_parts: Sizes  # tiles that need inputs of the same part of the outputs
    position_parts: Sizes  # tiles that need the same weights
    depth: Sizes  # partials of one output
    tiles: Sizes
    one_by_one: Any
    serial_in: Sizes = 1
    serial_out: Sizes = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the pass of a problem fixes for every candidate: which operands are rearranged, and the machine."""

    rearrange_inputs: bool
    rearrange_weights: bool
    rearrange_outputs: bool
    pads_operands: bool  # whether operands are rearranged for no other reason than channels that fill no block
    fills_weights: bool  # whether weights are rearranged for no other reason than outputs that fill no block
    trims_outputs: bool  # the same of results
    operand_run: int  # elements that lie together in operands that are rearranged
    brings_operands: bool  # whether what is rearranged lies on other tiles
    output_elements: int  # of the whole result
    multi_stage: bool
    wide_load: bool
    target: Target
    fast_reduce: bool = False
    travelling: str = ""

    def travels_as(self, partials_type: str) -> str:
        """The type in which partials of this type go to other tiles."""
        return self.travelling or partials_type


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnTiles:
    """Computing tiles whose vertices have the same kernel positions (outer, inner), the others left out.

    `sizes` are of every tile, int64[tiles] or one number, `here` is 1 on the tiles meant. `one_by_one`: every tile has
    one kernel position and rows follow each other.
    """

    in_type: str
    sizes: Shares
    here: IntArray
    kernel: tuple[int, int]
    one_by_one: bool
    target: Target
    wide_load: bool

    def columns(self, **values: Any) -> dict[str, IntArray]:
        """Per-tile arguments of a vertex, all 0 where none runs."""
        return {name: np.asarray(value) * self.here for name, value in values.items()}


TermSpec: TypeAlias = tuple[str, str, dict[str, Any]]
"""A term of a plan's cost: name, formula, arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How a tile multiplies: a vertex, blocks of channels and groups it takes, and the type it adds up in.

    `precedence`: of plans that cost the same the one of the lower is taken. `interleaved`: its partials are written
    from interleaved memory.
    """

    vertex: ClassVar[str] = ""
    precedence: ClassVar[int] = 2
    interleaved: ClassVar[bool] = False

    in_block: int = 1
    out_block: int = 1
    group_block: int = 1
    partials_type: str = "float"

    @classmethod
    def variants(cls, layout: Layout, target: Target) -> Sequence[Method]:
        """The ways in which this vertex can compute operands in a layout; none if it cannot."""
        raise NotImplementedError

    def cost(self, problem: ConvProblem, shares: Shares, rules: Rules) -> TermSpec:
        """What computing costs the planner, of one candidate or of arrays of them."""
        raise NotImplementedError

    def least(self, problem: ConvProblem, shares: Shares, rules: Rules) -> TermSpec:
        """A lower bound of the cost that takes less time to work out, where there is one."""
        return self.cost(problem, shares, rules)

    def groups(self, at: OnTiles) -> list[VertexGroup]:
        """The vertices of the program on some tiles."""
        raise NotImplementedError

    def macs_per_cycle(self, in_type: str) -> int:
        """Most multiply-accumulates of one tile in a cycle: what could not be cheapest at this rate is not costed, be
        it a vertex on all tiles or a cut by its fullest tile.

        Source: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:610 (getMaxMACsPerCyclePerTile).
        """
        raise NotImplementedError

    @property
    def grouping(self) -> int:
        """Input channels that must lie together: operands with others are filled up to whole groups of them."""
        return self.in_block

    def zeros(self, problem: ConvProblem, shares: Shares) -> Sizes:
        """Elements of zero that a tile puts beside its operands before it multiplies them."""
        return 0

    def spare_bytes(self, problem: ConvProblem, shares: Shares) -> Sizes:
        """What the vertex needs on its tile beyond operands and partials."""
        return 0

    def in_blocks(self, shares: Shares) -> Sizes:
        """Blocks of input channels on a tile."""
        return ceil_div(shares.in_chans, self.in_block)

    def out_blocks(self, shares: Shares) -> Sizes:
        """Blocks of output channels on a tile."""
        return ceil_div(shares.out_chans, self.out_block)

    def __str__(self) -> str:
        return f"{self.vertex} {self.in_block}x{self.out_block}"


def vector_macs(in_type: str) -> int:
    """What a vertex without the matrix unit multiplies in a cycle: a vector of 8 bytes."""
    return 8 // TYPE_BYTES[in_type]


methods: Registry[type[Method]] = Registry("planner vertex")

M = TypeVar("M", bound=type[Method])


def register(method: M) -> M:
    """Have a vertex tried by the search."""
    methods.add(method.vertex, method)
    return method
