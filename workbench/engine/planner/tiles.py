"""Where a plan puts operands, partials and results: what every tile needs, and owners spread over such tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.engine.mapping import Grid, grid_of_cuts
from workbench.engine.planner.formulas import SHORTEST_RUN
from workbench.engine.planner.plan import ConvPlan, Cutting, Pieces, cutting_of
from workbench.engine.planner.problem import FieldAxis, Labels, Operands, Planned, swapped_problem
from workbench.engine.planner.variant import parts_of_axis
from workbench.engine.remembered import remembered

AXIS_PENALTY = 1.25  # how much larger a part may be before one more axis is cut, and pieces become shorter
INNER_PENALTY = 1.5  # the same for the innermost axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """`count` tiles `stride` apart that need the same elements."""

    count: int
    stride: int


_SWAPPED = {"b": "o", "o": "b"}


def oriented(operands: Operands, swapped: bool) -> Operands:
    """Axes of the streaming operand, of the held one and of the result, as the plan names them."""
    if not swapped:
        return operands

    def renamed(labels: Labels) -> Labels:
        return tuple(_SWAPPED.get(label[0], label[0]) + label[1:] for label in labels)

    return Operands(left=renamed(operands.right), right=renamed(operands.left), out=renamed(operands.out))


def read_pieces(axis: FieldAxis, outputs: Pieces, kernels: Pieces) -> Pieces:
    """Input positions that each part of outputs reads with each part of kernel positions, without the gaps.

    Of every pair of parts in turn, each run of positions.
    """
    out, out_part = positions_of(outputs)
    kernel, kernel_part = positions_of(kernels)
    read, lane = axis.reads(out, kernel), axis.in_size + 1  # a lane for each pair, with a gap at its end
    pair = out_part[:, None] * len(kernels[0]) + kernel_part
    found = np.sort((pair * lane + read)[read >= 0])
    first = found[np.diff(found, prepend=-2) > 1]
    last = found[np.diff(found, append=found[-1:] + 2) > 1]
    of = first // lane
    offset = np.add.outer(outputs[2], kernels[2]).reshape(-1)[of]
    return first - of * lane, last - of * lane + 1, offset


def positions_of(pieces: Pieces) -> tuple[IntArray, IntArray]:
    """Every position of the pieces in turn, and the number of its piece."""
    lo, hi, _ = pieces
    part = np.repeat(np.arange(len(lo), dtype=np.int64), hi - lo)
    before = np.cumsum(hi - lo) - (hi - lo)
    return np.arange(len(part), dtype=np.int64) + (lo - before)[part], part


def owned_pieces(axis: FieldAxis, outputs: Pieces) -> Pieces:
    """Input positions cut so that each part of outputs owns the first ones it reads and no other part does."""
    everything = (np.zeros(1, np.int64), np.full(1, axis.kernel, np.int64), np.zeros(1, np.int64))
    lo, _, offset = read_pieces(axis, outputs, everything)
    if not len(lo):
        return np.zeros(1, np.int64), np.full(1, axis.in_size, np.int64), np.zeros(1, np.int64)
    tiles, first = np.unique(offset, return_index=True)
    starts = np.maximum.accumulate(lo[first])
    starts[0] = 0
    return starts, np.append(starts[1:], axis.in_size), tiles


def read_axes(axis: FieldAxis, outputs: Pieces, kernels: Pieces) -> list[tuple[int, Pieces]]:
    """What is read of an input axis, as (size, pieces) of one axis or of two that make it up.

    Every n-th position is the first digit of an axis of digits 0 to n-1: two short axes where one has a gap each.
    """
    first = (np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64))
    if axis.in_dilation == 1 and axis.pad_low == 0:
        if axis.kernel == 1 and axis.in_size == axis.out_size * axis.stride:
            return [(axis.out_size, outputs), (axis.stride, first)]
        if axis.out_size == 1 and axis.in_size == axis.kernel * axis.kernel_dilation:
            return [(axis.kernel, kernels), (axis.kernel_dilation, first)]
    return [(axis.in_size, read_pieces(axis, outputs, kernels))]


def _axes_read(cutting: Cutting, label: str) -> list[tuple[int, Pieces]]:
    if label[0] != "i":
        return [(cutting.cuts[label].size, cutting.pieces(label))]
    field = cutting.problem.field[int(label[1:])]
    return read_axes(field, cutting.pieces("f" + label[1:]), cutting.pieces("k" + label[1:]))


def axes_behind(labels: Labels) -> set[str]:
    """The cut axes that decide which part of an operand a tile has."""
    found = {label for label in labels if label[0] != "i"}
    for label in labels:
        if label[0] == "i":
            found |= {"f" + label[1:], "k" + label[1:]}
    return found


def sizes_of(cutting: Cutting, labels: Labels) -> tuple[int, ...]:
    """Size of every axis of an operand."""
    sizes = cutting.problem.sizes()
    return tuple(cutting.problem.field[int(label[1:])].in_size if label[0] == "i" else sizes[label] for label in labels)


def needed(cutting: Cutting, labels: Labels, shape: Sequence[int]) -> Grid:
    """What every computing tile needs of an operand, halos and copies included."""
    replicas = np.zeros(1, np.int64)
    for axis in cutting.order:
        if axis not in axes_behind(labels):
            filled = np.flatnonzero(cutting.cuts[axis].lengths > 0)
            replicas = (replicas[:, None] + filled * cutting.strides[axis]).reshape(-1)
    axes = [axis for label in labels for axis in _axes_read(cutting, label)]
    dims = [size for size, _ in axes]
    return grid_of_cuts(shape, [pieces for _, pieces in axes], dims=dims, replicas=replicas)


def owner(cutting: Cutting, labels: Labels, shape: Sequence[int]) -> Grid:
    """Each element on one of the tiles that need it, every such tile with about as many."""
    pieces = []
    behind = set(labels)
    for label in labels:
        if label[0] == "i":
            field = cutting.problem.field[int(label[1:])]
            pieces.append(owned_pieces(field, cutting.pieces("f" + label[1:])))
            behind.add("f" + label[1:])
        else:
            pieces.append(cutting.pieces(label))
    spreads = [
        Spread(count=cutting.parts(axis), stride=cutting.strides[axis])
        for axis in cutting.order
        if axis not in behind and cutting.parts(axis) > 1
    ]
    return grid_of_cuts(shape, spread_pieces(pieces, spreads), dims=sizes_of(cutting, labels))


def joined(spreads: Sequence[Spread]) -> list[Spread]:
    """Neighbouring spreads that run through tiles at one stride, as one."""
    found: list[Spread] = []
    for one in spreads:
        if found and found[-1].stride == one.count * one.stride:
            found[-1] = Spread(count=found[-1].count * one.count, stride=one.stride)
        else:
            found.append(one)
    return found


def spread_pieces(pieces: list[Pieces], spreads: Sequence[Spread]) -> list[Pieces]:
    """Cut intervals further so that each of the tiles that need them gets a part."""
    result = list(pieces)
    for one in joined(spreads):
        lengths = tuple(_shortest(hi - lo) for lo, hi, _ in result)
        stride = one.stride
        for axis, count in reversed(list(enumerate(cuts_for(lengths, one.count)))):
            if count > 1:
                grain = SHORTEST_RUN if axis == len(result) - 1 else 1
                result[axis] = _cut_again(result[axis], count, stride, grain)
                stride *= count
    return result


def _shortest(lengths: IntArray) -> int:
    """The shortest interval that is not empty: parts of an uneven axis may be."""
    real = lengths[lengths > 0]
    return int(real.max()) if len(real) else 1


@remembered(16384)
def cuts_for(lengths: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Cuts of a box's axes into at most `count` parts together, for the smallest largest part.

    Of equal ones the one that cuts outer axes; the innermost is cut last and in runs of `SHORTEST_RUN`: what lies
    together is sent in one piece.
    """
    best: tuple[float, tuple[int, ...]] = (float("inf"), (1,) * len(lengths))  # cuts innermost first
    runs = ceil_div(lengths[-1], SHORTEST_RUN) if lengths else 1
    for cuts, part, left, scattered in _all_cuts(lengths[:-1], count) if lengths else ():
        for inner in {1, min(runs, left)}:
            share = max(SHORTEST_RUN, part * min(lengths[-1], ceil_div(runs, inner) * SHORTEST_RUN))
            cost = share * (scattered * INNER_PENALTY if inner > 1 else scattered)
            if cost <= best[0]:
                best = min(best, (cost, (inner, *cuts[::-1])))
    return best[1][::-1]


def _all_cuts(
    lengths: tuple[int, ...], left: int, cuts: tuple[int, ...] = (), part: int = 1, scattered: float = 1
) -> Iterator[tuple[tuple[int, ...], int, int, float]]:
    """Cuts of axes into at most `left` parts, with the elements of the largest, what is left, and the penalty of the
    axes that are cut.
    """
    if not lengths:
        yield cuts, part, left, scattered
        return
    for cut in parts_of_axis(lengths[0], 1):
        if cut > left:
            break
        largest, penalty = part * ceil_div(lengths[0], cut), scattered * AXIS_PENALTY if cut > 1 else scattered
        yield from _all_cuts(lengths[1:], left // cut, (*cuts, cut), largest, penalty)


def _cut_again(pieces: Pieces, count: int, stride: int, grain: int) -> Pieces:
    """Each interval in `count` parts, of whole grains but for the last."""
    lo, hi, offset = pieces
    step = np.arange(count + 1, dtype=np.int64)
    grains = -(-(hi - lo) // grain)[:, None]
    even = grains * step // count
    bounds = lo[:, None] + np.minimum(even * grain, (hi - lo)[:, None])
    offsets = offset[:, None] + step[:-1] * stride
    return bounds[:, :-1].reshape(-1), bounds[:, 1:].reshape(-1), offsets.reshape(-1)


def expanded_labels(labels: Labels) -> Labels:
    """The streaming operand with the kernel's positions laid out beside its channels."""
    fields = tuple("f" + label[1:] if label[0] == "i" else label for label in labels if label[0] != "c")
    kernels = tuple("k" + label[1:] for label in labels if label[0] == "i")
    return (*fields, *kernels, *(label for label in labels if label[0] == "c"))


def staged_needs(cutting: Cutting, labels: Labels, staged: Grid, shape: Sequence[int]) -> Grid:
    """What the owners of the rearranged operand need of the operand as it comes."""
    order = expanded_labels(labels)
    if staged.dims != sizes_of(cutting, order):
        return staged
    part = {label: (axis.lo, axis.hi, axis.offset) for label, axis in zip(order, staged.axes, strict=True)}
    axes: list[tuple[int, Pieces]] = []
    for label in labels:
        if label[0] == "i":
            field = cutting.problem.field[int(label[1:])]
            axes += read_axes(field, part["f" + label[1:]], part["k" + label[1:]])
        else:
            axes.append((cutting.cuts[label].size, part[label]))
    dims = [size for size, _ in axes]
    return grid_of_cuts(shape, [pieces for _, pieces in axes], dims=dims, first_tile=staged.first_tile)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReduceStage:
    """An intermediate step of a reduction: what tiles need of the partials before it, and where its sums lie.

    Both are over (partials left, outputs); `together` partials are added up.
    """

    together: int
    wanted: Grid
    held: Grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Every mapping of a plan over operands of given shapes."""

    cutting: Cutting
    inputs: Grid
    weights: Grid
    input_owner: Grid
    weight_owner: Grid
    staging: Grid
    staged_owner: Grid
    partials: Grid
    depth: int
    result: Grid
    stages: tuple[ReduceStage, ...]


@remembered(2048)
def places_of(
    plan: ConvPlan, planned: Planned, shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], tiles: int
) -> Places:
    """The mappings of a plan; `shapes` are those of the streaming operand, the held one and the result."""
    cutting = cutting_of(plan)
    labels = oriented(planned.operands, plan.swapped)
    depth_axes = [axis for axis in cutting.order if axis[0] in "ck"]
    depth_offsets = np.zeros(1, np.int64)
    for axis in depth_axes:
        depth_offsets = (depth_offsets[:, None] + cutting.pieces(axis)[2]).reshape(-1)
    depth = len(depth_offsets)
    streamed, stream_shape = labels.left, shapes[0]
    if plan.expanded:
        streamed = expanded_labels(labels.left)
        stream_shape = sizes_of(cutting, streamed)
    staged = owner(cutting, streamed, stream_shape)
    out = [cutting.pieces(label) for label in labels.out]
    dims = (depth, *sizes_of(cutting, labels.out))
    row = np.arange(depth, dtype=np.int64)
    partials = grid_of_cuts(dims, [(row, row + 1, depth_offsets), *out])
    return Places(
        cutting=cutting,
        inputs=needed(cutting, streamed, stream_shape),
        weights=needed(cutting, labels.right, shapes[1]),
        input_owner=owner(cutting, labels.left, shapes[0]),
        weight_owner=owner(cutting, labels.right, shapes[1]),
        staging=staged_needs(cutting, labels.left, staged, shapes[0]),
        staged_owner=staged,
        partials=partials,
        depth=depth,
        result=owner(cutting, labels.out, shapes[2]),
        stages=_stages(plan, depth_offsets, out, dims, tiles),
    )


def _stages(
    plan: ConvPlan, offsets: IntArray, out: list[Pieces], dims: tuple[int, ...], tiles: int
) -> tuple[ReduceStage, ...]:
    """Intermediate steps, each over neighbours along the depth; their sums are spread over these neighbours."""
    found = []
    stride = int(offsets[1] - offsets[0]) if len(offsets) > 1 else 0
    left, reach = len(offsets), 1
    for after in plan.stages:
        together = ceil_div(left, after)
        groups = ceil_div(left, together)
        first = np.arange(groups, dtype=np.int64) * together
        at = first * stride * reach
        beyond = int(at[-1]) + sum(int(part[2].max(initial=0)) for part in out)
        count = min(together, (tiles - 1 - beyond) // (stride * reach) + 1)
        pieces = spread_pieces(out, [Spread(count=count, stride=stride * reach)])
        wanted = grid_of_cuts((left, *dims[1:]), [(first, np.minimum(first + together, left), at), *pieces])
        row = np.arange(groups, dtype=np.int64)
        held = grid_of_cuts((groups, *dims[1:]), [(row, row + 1, at), *pieces])
        found.append(ReduceStage(together=together, wanted=wanted, held=held))
        out, left, reach = pieces, groups, reach * together
    return tuple(found)


@remembered(2048)
def packed_places(plan: ConvPlan, planned: Planned, places: Places, tiles: int) -> Places:
    """The mappings of operands that were rearranged: channels of every tile filled up with zeros to whole blocks.

    Source: poplibs@7eac0f26 lib/poplin/ConvTransforms.cpp, lib/poplin/Convolution.cpp (channels are padded to a
    multiple of the plan's channels per group).
    """
    problem, grains = places.cutting.problem, dict(plan.grains)

    def padded(role: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
        named = [(size, grains.get(f"{role}{index}", 1)) for index, size in enumerate(sizes)]
        return tuple(ceil_div(size, grain) * grain for size, grain in named)

    filled = replace(problem, in_chans=padded("c", problem.in_chans), out_chans=padded("o", problem.out_chans))
    if filled == problem or plan.serial_in * plan.serial_out > 1:
        return places
    whole_blocks = swapped_problem(filled) if plan.swapped else filled
    return step_places(replace(plan, problem=whole_blocks), planned, tiles)


def step_places(step: ConvPlan, planned: Planned, tiles: int) -> Places:
    """The mappings of one serial step, over slices of the operands."""
    cutting = cutting_of(step)
    labels = oriented(planned.operands, step.swapped)
    left, right, out = (sizes_of(cutting, side) for side in (labels.left, labels.right, labels.out))
    return places_of(step, planned, (left, right, out), tiles)
