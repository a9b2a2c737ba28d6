"""Plans over other sizes than the operands': one serial step, and operands with their channels filled up."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod

from workbench.engine.planner.plan import ConvPlan
from workbench.engine.planner.problem import Planned
from workbench.engine.planner.tiles import Places, cutting_of, oriented, places_of, sizes_of
from workbench.engine.planner.variant import Variant, swapped_problem


@lru_cache(maxsize=2048)
def packed_places(plan: ConvPlan, planned: Planned, places: Places, tiles: int) -> Places:
    """The mappings of operands that were rearranged: channels of every tile filled up with zeros to whole blocks.

    Source: poplibs@7eac0f26 lib/poplin/ConvTransforms.cpp, lib/poplin/Convolution.cpp (channels are padded to a
    multiple of the plan's channels per group).
    """
    problem, grains = places.cutting.problem, dict(plan.grains)

    def padded(role: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
        named = [(size, grains.get(f"{role}{index}", 1)) for index, size in enumerate(sizes)]
        return tuple(-(-size // grain) * grain for size, grain in named)

    filled = replace(problem, in_chans=padded("c", problem.in_chans), out_chans=padded("o", problem.out_chans))
    if filled == problem or plan.serial_in * plan.serial_out > 1:
        return places
    whole_blocks = swapped_problem(filled) if plan.swapped else filled
    return step_places(replace(plan, problem=whole_blocks), planned, tiles)


@lru_cache(maxsize=2048)
def step_of(plan: ConvPlan) -> ConvPlan:
    """One serial step as a plan of its own: every part of a tile's channels is cut further, into a part per step."""
    cutting = cutting_of(plan)
    variant = Variant(problem=cutting.problem, method=plan.method, swapped=plan.swapped, expanded=plan.expanded)
    sizes = cutting.problem.sizes()
    for role, steps in (("c", plan.serial_in), ("o", plan.serial_out)):
        axes = [axis for axis in variant.axes(role) if axis[0] == role]
        if steps > 1 and axes:
            blocks = [-(-int(cutting.cuts[axis].lengths.max()) // variant.grain(axis)) for axis in axes]
            for axis, held, cut in zip(axes, blocks, evenest(tuple(blocks), steps), strict=True):
                if cut > 1:
                    sizes[axis] = min(sizes[axis], -(-held // cut) * variant.grain(axis) * cutting.parts(axis))
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
        largest = prod(-(-held // cut) for held, cut in zip(blocks, cuts, strict=True))
        longest = max(held for held, cut in zip(blocks, cuts, strict=True) if cut > 1)
        return largest, sum(cut > 1 for cut in cuts), -longest

    return min(ways, key=order)


def step_places(step: ConvPlan, planned: Planned, tiles: int) -> Places:
    """The mappings of one serial step, over slices of the operands."""
    cutting = cutting_of(step)
    labels = oriented(planned.operands, step.swapped)
    left, right, out = (sizes_of(cutting, side) for side in (labels.left, labels.right, labels.out))
    return places_of(step, planned, (left, right, out), tiles)
