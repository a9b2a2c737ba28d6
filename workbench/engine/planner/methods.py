"""Which vertices can compute a problem, how its operands may be laid out for them, and what that rearranges."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from workbench.base.dtypes import TYPE_BYTES
from workbench.engine.planner.estimate import Rules
from workbench.engine.planner.plan import ConvPlan, ConvProblem, Method
from workbench.engine.planner.variant import Variant, swapped_problem
from workbench.engine.target import Target

GROUPING = 16
"""Channels that lie together in a value of any type: as many as the unit is deep for half."""


def units_of(in_type: str, partials_type: str, target: Target) -> int:
    """Convolution units that multiply these types at once; the three figures are the target's."""
    if in_type == "float":
        return target.conv_units_float
    return target.conv_units_half_partials if partials_type == "half" else target.conv_units_half_input


def _amp(problem: ConvProblem, target: Target, expanded: bool) -> list[Method]:
    """Blocks as deep as the unit, and shallower ones that take several kernel rows at once if channels are few.

    Where one block holds all channels nothing is added up afterwards, and the unit may write the type of the result:
    poplibs@7eac0f26 lib/poplin/ConvVertexType.cpp:403-432.
    """
    depth = target.weights_per_conv_unit_bytes // TYPE_BYTES[problem.in_type]
    chans = prod(problem.in_chans)
    heights = [1]
    if problem.field and not expanded:
        heights += [height for height in (2, 4) if chans * height <= depth]
    kinds = [(height, problem.partials_type) for height in heights]
    narrower = TYPE_BYTES[problem.out_type] < TYPE_BYTES[problem.partials_type]
    if narrower and chans <= depth and all(axis.kernel == 1 for axis in problem.field):
        kinds.insert(0, (1, problem.out_type))
    return [
        Method(
            vertex="amp",
            in_block=depth // height,
            out_block=units_of(problem.in_type, partials_type, target),
            units=units_of(problem.in_type, partials_type, target),
            filter_height=height,
            partials_type=partials_type,
        )
        for height, partials_type in kinds
    ]


def _mac(problem: ConvProblem) -> Method:
    """Channels in vectors of four, outputs in pairs: what the widest of its inner loops takes."""
    return Method(vertex="hmac", in_block=4, out_block=2, partials_type=problem.partials_type)


def _vertical_macs(problem: ConvProblem) -> list[Method]:
    """Vertices for groups of one channel, half only: 4 groups side by side, or 8 or 16 with half partials.

    Source: poplibs@7eac0f26 lib/poplin/ConvVertexType.cpp:207-222.
    """
    depthwise = prod(problem.in_chans) == prod(problem.out_chans) == 1 and len(problem.groups) == 1 and problem.field
    if not depthwise or problem.in_type != "half":
        return []
    widths = (16, 8, 4) if problem.partials_type == "half" else (4,)
    blocks = [block for block in widths if block <= max(4, prod(problem.groups))]
    return [Method(vertex="vmac", group_block=block, partials_type=problem.partials_type) for block in blocks]


def _layouts(problem: ConvProblem) -> list[tuple[ConvProblem, bool, tuple[int, ...]]]:
    """(problem, swapped, expanded): operands as they are, exchanged if there is no field, kernels as channels."""
    found: list[tuple[ConvProblem, bool, tuple[int, ...]]] = [(problem, False, ())]
    if not problem.field:
        found.append((swapped_problem(problem), True, ()))
    if any(axis.kernel > 1 for axis in problem.field):
        found.append((problem, False, tuple(range(len(problem.field)))))
    return found


@lru_cache(maxsize=2048)
def variants_of(problem: ConvProblem, target: Target) -> tuple[Variant, ...]:
    """Every method with every layout it can take, the matrix unit first."""
    found: list[Variant] = []
    layouts = _layouts(problem)
    for oriented, swapped, expanded in layouts:
        for method in _amp(oriented, target, bool(expanded)):
            found.append(Variant(problem=oriented, method=method, swapped=swapped, expanded=expanded))
    found += [Variant(problem=problem, method=method) for method in _vertical_macs(problem)]
    for oriented, swapped, expanded in layouts:
        if not expanded:
            found.append(Variant(problem=oriented, method=_mac(oriented), swapped=swapped))
        # Its results are of the type of its operands, as nothing is added up, and its blocks are vectors:
        # poplibs@7eac0f26 lib/poplin/ConvVertexType.cpp (getConvVertexOuterProductCandidates).
        if prod(oriented.in_chans) == 1 and not oriented.field:
            block = target.data_path_bytes // TYPE_BYTES[oriented.in_type]
            outer = Method(vertex="outer_product", out_block=block, partials_type=oriented.in_type)
            found.append(Variant(problem=oriented, method=outer, swapped=swapped))
    return tuple(found)


def is_foreign(one: Variant | ConvPlan) -> bool:
    """Whether operands and result are not in the layout of their kind: a matmul's is the swapped one."""
    return one.swapped != (one.problem.kind == "matmul")


def macs_per_cycle(variant: Variant) -> int:
    """Most multiply-accumulates of one tile in a cycle.

    Source: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:610 (getMaxMACsPerCyclePerTile), with what the float core loop
    delivers: 8 cycles for 8 channels of every unit.
    """
    method = variant.method
    if method.vertex == "amp":
        per_unit = 4 if variant.problem.in_type == "half" else 1
        return method.units * per_unit
    return 8 // TYPE_BYTES[variant.problem.in_type]


def rules_of(variant: Variant, target: Target, *, multi_stage: bool, wide_load: bool) -> Rules:
    """What the layout of a variant rearranges.

    A matmul's operands arrive as the swapped layout wants them, a convolution's as the plain one does; the other
    layout rearranges all three. A weight gradient rearranges its operands, as the sum runs over what is the batch
    elsewhere; an input gradient its weights, whose blocks are transposed; kernels as channels both; channels that fill
    no whole group of 16 (without the unit: no whole block) are padded. Outputs that fill no block fill weights up, and
    the results are a view; [D] PopLibs plans as if both were rearranged element by element, which its steps are not.
    Source: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:1345-1410; Convolution.cpp:2570-2625, 1177-1187.
    """
    problem, method = variant.problem, variant.method
    foreign = is_foreign(variant)
    gradient = problem.direction == "weight_update"
    chans = prod(problem.in_chans) * prod(problem.field[index].kernel for index in variant.expanded)
    grouping = GROUPING // method.filter_height if method.vertex == "amp" else method.in_block
    pad_in, pad_out = chans % grouping != 0, prod(problem.out_chans) % method.out_block != 0
    pad_groups = len(problem.groups) == 1 and prod(problem.groups) % method.group_block != 0
    convolution_gradient = gradient and problem.kind == "convolution"
    laid_out = bool(variant.expanded) or convolution_gradient or foreign or pad_in or pad_groups
    transposed = problem.direction == "backward" and problem.kind == "convolution"
    pads = laid_out and not (bool(variant.expanded) or gradient or foreign or transposed)
    return Rules(
        rearrange_inputs=laid_out or gradient,
        rearrange_weights=laid_out or transposed or pad_out,
        rearrange_outputs=foreign or pad_out,
        pads_operands=pads,
        operand_run=max(method.in_block, method.group_block) if pads else 1,
        fills_weights=pad_out and not (laid_out or transposed),
        trims_outputs=pad_out and not foreign,
        brings_operands=foreign or bool(variant.expanded) or problem.direction != "forward",
        output_elements=_positions(problem) * prod(problem.out_chans),
        multi_stage=multi_stage,
        wide_load=wide_load,
        target=target,
    )


def _positions(problem: ConvProblem) -> int:
    return prod(problem.groups) * prod(problem.batch) * prod(axis.out_size for axis in problem.field)
