"""The plan of one matmul or convolution: how it is cut over tiles and into steps, and the modelled cost of that.

A plan cuts the axes of its problem (`planner/problem.py`) into parts; a tile has one part of each axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as default
from itertools import product
from math import prod

import numpy as np

from workbench.base.arrays import IntArray, ceil_div, frozen
from workbench.engine.cost import Cost
from workbench.engine.planner.method import Method
from workbench.engine.planner.problem import ConvProblem, swapped_problem
from workbench.engine.planner.variant import Variant
from workbench.engine.remembered import remembered

Pieces = tuple[IntArray, IntArray, IntArray]
"""Intervals of an axis: first elements, ends, tile offsets."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AxisCuts:
    """One axis cut into parts: part i has elements lo[i] to hi[i]; parts may be empty at the end."""

    size: int
    lo: IntArray
    hi: IntArray

    @property
    def lengths(self) -> IntArray:
        """Elements of each part."""
        return self.hi - self.lo


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class ConvPlan:
    """How a problem is cut. `splits` gives the parts of every axis in tile order: the last varies fastest.

    `swapped`: the right operand is the one that streams through the unit and the left one is held as weights.
    `expanded`: field axes whose kernel positions are laid out as input channels beforehand. `serial_in`, `serial_out`:
    steps in which input and output channels are worked off one after the other. `stages`: partials left after each
    intermediate stage of the reduction. `transforms`: what is rearranged on tiles before or after. `pads`: operands are
    only to have their channels filled up, and are copied in whole blocks. `fills`: weights are used as they lie, but
    for the last block of outputs, which is filled up. `paired`: neighbours need the same inputs and share their
    exchange bus. `wide_load`: the unit loads weights 16 bytes a cycle. `cost` is in cycles, of the whole operation;
    `temporary_bytes` on the fullest tile. What it had to fit is not part of it: bounds that lead to one plan find the
    same object.
    """

    problem: ConvProblem
    method: Method
    splits: tuple[tuple[str, int], ...]
    grains: tuple[tuple[str, int], ...]
    swapped: bool = False
    expanded: tuple[int, ...] = ()
    serial_in: int = 1
    serial_out: int = 1
    stages: tuple[int, ...] = ()
    transforms: tuple[str, ...] = ()
    pads: bool = False
    fills: bool = False
    paired: bool = False
    wide_load: bool = False
    cost: Cost = default(default_factory=Cost)
    temporary_bytes: int = 0
    warning: str = ""

    @property
    def total_cycles(self) -> int:
        """The modelled cycles of the whole operation."""
        return self.cost.value

    @property
    def tiles(self) -> int:
        """Tiles that compute."""
        return prod(parts for _, parts in self.splits)

    def parts(self, axis: str) -> int:
        """Parts of an axis."""
        return dict(self.splits).get(axis, 1)

    def __str__(self) -> str:
        cut = " ".join(f"{axis}/{parts}" for axis, parts in self.splits if parts > 1) or "one tile"
        serial = f" serial in {self.serial_in} out {self.serial_out}" if self.serial_in * self.serial_out > 1 else ""
        marks = "".join(
            [
                " swapped" if self.swapped else "",
                f" kernel of field {','.join(map(str, self.expanded))} as channels" if self.expanded else "",
                f" reduce by way of {','.join(map(str, self.stages))}" if self.stages else "",
                f" rearranges {', '.join(self.transforms)}" if self.transforms else "",
                " fills weights" if self.fills else "",
            ]
        )
        terms = ", ".join(f"{part.name} {part.value}" for part in self.cost.terms if part.value)
        warning = f"; {self.warning}" if self.warning else ""
        return (
            f"{self.method} on {self.tiles} tiles: {cut}{serial}{marks}; {self.total_cycles} cycles ({terms}); "
            f"{self.temporary_bytes} B temporary{warning}"
        )


@remembered(8192)
def axis_cuts(size: int, parts: int, grain: int = 1) -> AxisCuts:
    """Parts of ceil(grains / parts) whole grains each, the last ones smaller or empty, as PopLibs cuts.

    Source: poplibs@7eac0f26 lib/poplin/ConvUtilInternal.cpp (partitions are rounded up).
    """
    grains = ceil_div(size, grain)
    bounds = np.minimum(np.arange(parts + 1, dtype=np.int64) * ceil_div(grains, parts) * grain, size)
    return AxisCuts(size=size, lo=frozen(bounds[:-1]), hi=frozen(bounds[1:]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cutting:
    """A plan's axes cut into parts: the cuts, and how far apart neighbouring parts are in tile numbers."""

    problem: ConvProblem
    cuts: Mapping[str, AxisCuts]
    strides: Mapping[str, int]
    order: tuple[str, ...]

    @property
    def tiles(self) -> int:
        """Tiles that compute."""
        return prod(len(self.cuts[axis].lo) for axis in self.order)

    def pieces(self, axis: str) -> Pieces:
        """The parts of an axis as intervals with tile offsets."""
        cut = self.cuts[axis]
        return cut.lo, cut.hi, np.arange(len(cut.lo), dtype=np.int64) * self.strides[axis]

    def parts(self, axis: str) -> int:
        """Parts of an axis."""
        return len(self.cuts[axis].lo)

    def lengths(self) -> dict[str, IntArray]:
        """Elements of every axis on every computing tile: int64[tiles] each, in tile order."""
        shape = [self.parts(axis) for axis in self.order]
        index = np.unravel_index(np.arange(self.tiles), shape) if shape else ()
        return {axis: self.cuts[axis].lengths[at] for axis, at in zip(self.order, index, strict=True)}


def variant_of(plan: ConvPlan) -> Variant:
    """The variant that was cut."""
    problem = swapped_problem(plan.problem) if plan.swapped else plan.problem
    return Variant(problem=problem, method=plan.method, swapped=plan.swapped, expanded=plan.expanded)


@remembered(4096)
def cutting_of(plan: ConvPlan) -> Cutting:
    """The cuts of a plan."""
    problem = variant_of(plan).problem
    sizes, grains = problem.sizes(), dict(plan.grains)
    order = tuple(axis for axis, _ in plan.splits)
    strides, step = {}, 1
    for axis, parts in reversed(plan.splits):
        strides[axis] = step
        step *= parts
    cuts = {axis: axis_cuts(sizes[axis], parts, grains[axis]) for axis, parts in plan.splits}
    return Cutting(problem=problem, cuts=cuts, strides=strides, order=order)


@remembered(2048)
def step_of(plan: ConvPlan) -> ConvPlan:
    """One serial step as a plan of its own: every part of a tile's channels is cut further, into a part per step."""
    cutting, variant = cutting_of(plan), variant_of(plan)
    sizes = cutting.problem.sizes()
    for role, steps in (("c", plan.serial_in), ("o", plan.serial_out)):
        axes = [axis for axis in variant.axes(role) if axis[0] == role]
        if steps > 1 and axes:
            blocks = [ceil_div(int(cutting.cuts[axis].lengths.max()), variant.grain(axis)) for axis in axes]
            for axis, held, cut in zip(axes, blocks, evenest(tuple(blocks), steps), strict=True):
                if cut > 1:
                    sizes[axis] = min(sizes[axis], ceil_div(held, cut) * variant.grain(axis) * cutting.parts(axis))
    problem = replace(
        cutting.problem,
        in_chans=tuple(sizes[f"c{index}"] for index in range(len(cutting.problem.in_chans))),
        out_chans=tuple(sizes[f"o{index}"] for index in range(len(cutting.problem.out_chans))),
    )
    problem = swapped_problem(problem) if plan.swapped else problem
    return replace(plan, problem=problem, serial_in=1, serial_out=1, transforms=(), fills=False)


def evenest(blocks: tuple[int, ...], steps: int) -> tuple[int, ...]:
    """Into how many parts each axis of so many blocks is cut for `steps` parts together, the largest part smallest.

    Of equal ones fewer axes are cut, and larger ones. PopLibs splits its one axis of channels into steps before it
    shares it out over tiles, so no step has more than its part (poplibs@7eac0f26 lib/poplin/Convolution.cpp:213-226).
    """
    divisors = [cut for cut in range(1, steps + 1) if steps % cut == 0]
    ways = [cuts for cuts in product(divisors, repeat=len(blocks)) if prod(cuts) == steps]

    def order(cuts: tuple[int, ...]) -> tuple[int, ...]:
        largest = prod(ceil_div(held, cut) for held, cut in zip(blocks, cuts, strict=True))
        longest = max(held for held, cut in zip(blocks, cuts, strict=True) if cut > 1)
        return largest, sum(cut > 1 for cut in cuts), -longest

    return min(ways, key=order)
