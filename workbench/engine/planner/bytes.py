"""Temporary bytes of a plan on its fullest tile, and the bound that availableMemoryProportion puts on them."""

from __future__ import annotations

from workbench.base.arrays import ceil_div
from workbench.base.dtypes import TYPE_BYTES
from workbench.engine.planner.estimate import own_outputs, staged
from workbench.engine.planner.formulas import sums_of
from workbench.engine.planner.method import Method, Rules, Shares
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.target import Target
from workbench.engine.vertices.sizes import Sizes, larger, smaller, where


def temporary_bytes(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> Sizes:
    """Bytes beyond operands and result: the largest of what is live at once, plus what lives through all steps.

    While computing: inputs + weights + partials, and rearranged operands they are taken from. While rearranging: a copy
    before and after. While reducing: partials before and after their exchange.
    Source: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:2095-2130, whose reduction counts the partials once only.
    """
    item_bytes, partial_bytes = TYPE_BYTES[problem.in_type], TYPE_BYTES[method.partials_type]
    out_bytes = TYPE_BYTES[problem.out_type]
    staged_outputs = own_outputs(shares) * out_bytes * int(rules.rearrange_outputs)
    partials = shares.outputs * partial_bytes
    beside = method.zeros(problem, shares) * item_bytes + method.spare_bytes(problem, shares)
    computing = (shares.inputs + shares.weights) * item_bytes + partials + beside
    travelling_bytes = TYPE_BYTES[rules.travels_as(method.partials_type)]
    beyond = larger(rules.target.tiles_per_ipu * shares.depth // shares.tiles - shares.depth, 0)
    landed = widest_partials(shares.outputs, shares.depth, rules.multi_stage, beyond) * travelling_bytes
    reducing = where(shares.depth > 1, partials + landed, 0)
    sum_of_steps = where(shares.serial_in > 1, own_outputs(shares) * partial_bytes, 0)
    before_bytes = staged_bytes(problem, shares, rules)
    before = 2 * before_bytes
    return larger(larger(before, before_bytes + larger(computing, reducing)) + sum_of_steps, 2 * staged_outputs)


def floor_bytes(problem: ConvProblem, method: Method, shares: Shares, rules: Rules) -> Sizes:
    """A quick lower bound of the temporary bytes: rearranged operands, inputs, weights and partials of one step."""
    operands = (shares.inputs + shares.weights) * TYPE_BYTES[problem.in_type]
    computing = operands + shares.outputs * TYPE_BYTES[method.partials_type]
    before_bytes = staged_bytes(problem, shares, rules)
    if isinstance(before_bytes, int) and before_bytes == 0:
        return computing
    return larger(2 * before_bytes, before_bytes + computing)


def staged_bytes(problem: ConvProblem, shares: Shares, rules: Rules) -> Sizes:
    """Bytes of the operands that a tile rearranges."""
    return staged(shares, rules) * TYPE_BYTES[problem.in_type]


def widest_partials(elements: Sizes, depth: Sizes, multi_stage: bool, beyond: Sizes) -> Sizes:
    """Most partials that land on a tile in any step of the reduction of `elements` outputs.

    A sum is spread over the tiles of its partials, all sums over as many: those of the last one, which may be fewer,
    and the tiles that `beyond` further partials would be on.
    """
    most: Sizes = 0
    left, partials = elements, depth
    for together in sums_of(depth, multi_stage):
        sums = ceil_div(partials, together)
        count = smaller(together, partials - (sums - 1) * together + beyond)
        after = ceil_div(left, count)
        most = larger(most, where(together > 1, after * together, 0))
        left, partials, beyond = after, sums, beyond // together
    return most


def bounds(target: Target, proportion: float) -> list[int]:
    """Bounds in bytes to try in turn: the proportion's, doubled until twice a tile's memory; 0 asks for the least.

    Source: poplibs@7eac0f26 lib/poplin/ConvPlan.cpp (the bound is doubled with a warning while no plan fits).
    """
    limit = int(proportion * target.bytes_per_tile)
    if limit <= 0:
        return []
    tried = [limit]
    while tried[-1] < 2 * target.bytes_per_tile:
        tried.append(tried[-1] * 2)
    return tried
