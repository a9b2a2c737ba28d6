"""Operands of a plan on their way to its vertices: rearranged, filled up, and brought to the tiles that need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.base.arrays import IntArray, frozen
from workbench.engine.emit.context import Lowering
from workbench.engine.mapping import Grid, Mapping, Placement, grid_of_cuts, slice_, transfer
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.planner.plan import ConvPlan
from workbench.engine.planner.problem import Labels, Operands
from workbench.engine.planner.tiles import Places
from workbench.engine.planner.vertices import strided_copies
from workbench.engine.program import Exchange


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """What one lowering of a plan needs at hand.

    `finish` makes the tensor that the sums go to, in the mapping it is given; `dtype` is its type, `wished` where its
    readers would like it.
    """

    lowering: Lowering
    plan: ConvPlan
    places: Places
    packed: Places  # of operands that were rearranged
    label: str
    dtype: str
    finish: Callable[[Mapping], Tensor]
    axes: Operands  # of the operand that streams, the held one and the result
    wished: Mapping | None = None


def rearranged(work: Work, streams: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
    """Operands in another order on their tiles: brought to their owners, then copied there.

    Element by element, but what only has its channels filled up lies in the blocks of the plan already, all but the
    last: poplibs@7eac0f26 lib/poplin/Convolution.cpp:1485-1545, 1636-1700, and 2590-2605 for why it is copied at all.
    """
    plan, places, packed, emit = work.plan, work.places, work.packed, work.lowering.emit
    wanted: list[Wanted] = []
    after: list[tuple[Grid, Grid]] = []
    if "inputs" in plan.transforms:
        wanted.append(Wanted(name="inputs", source=streams, place=places.staging))
        after.append((places.staged_owner, packed.staged_owner))
    if "weights" in plan.transforms:
        wanted.append(Wanted(name="weights", source=held, place=places.weight_owner))
        after.append((places.weight_owner, packed.weight_owner))
    if not wanted:
        return streams, held
    arrived = brought(work, f"{work.label}/rearrange", wanted)
    staged: list[Tensor] = []
    elements = np.zeros(work.lowering.tiles, np.int64)
    for one, (owner, filled) in zip(wanted, after, strict=True):
        staged.append(emit.tensor(f"{work.label}/rearranged", filled.shape, one.source.dtype, filled, "temporary"))
        elements = elements + owner.elements_per_tile(work.lowering.tiles)
    run = max(plan.method.in_block, plan.method.group_block) if plan.pads else 1
    groups = strided_copies(elements, plan.problem.in_type, run)
    emit.compute(f"{work.label}/rearrange", groups, arrived, [name for tensor in staged for name in tensor.variables])
    if "inputs" in plan.transforms:
        streams = staged.pop(0)
    return streams, staged.pop(0) if staged else held


def gathered(work: Work, streams: Tensor, held: Tensor) -> list[int]:
    """Variables that hold what every tile multiplies: copies brought by exchange, or the operands themselves."""
    moved = work.plan.transforms
    inputs = (work.packed if "inputs" in moved else work.places).inputs
    weights = (work.packed if "weights" in moved else work.places).weights
    left, right = work.axes.left, work.axes.right
    wanted = (
        Wanted(name="inputs", source=streams, place=inputs, paired=work.plan.paired, axes=left),
        Wanted(name="weights", source=held, place=weights, interleaved=work.plan.wide_load, axes=right),
    )
    used = brought(work, work.label, wanted, together=True)
    return [*used, *_filled(work, held)] if work.plan.fills and set(held.variables) <= set(used) else used


def _filled(work: Work, held: Tensor) -> list[int]:
    """The last block of outputs of weights that are used where they lie, copied to stand beside zeros.

    Weights lie as the plan wants them, but for the outputs that would fill the last block; results of the zeros are
    left out of the view of the sums. Weights that arrive from other tiles have their zeros sent with them.
    Source: poplibs@7eac0f26 lib/poplin/Convolution.cpp:1636-1700 (layout), 2570-2625 (no copy up to 7 receivers),
    905-940 (zeros), 1177-1187 (results).
    """
    labels, shape = work.axes.right, held.shape
    sizes = work.places.cutting.problem.sizes()
    low = tuple(
        (size - 1) // block * block if label[0] == "o" and size == sizes[label] else 0
        for label, size, block in zip(labels, shape, (work.plan.method.out_block,) * len(shape), strict=False)
    )
    last = slice_(held.mapping, low, shape) if len(low) == len(shape) else held.mapping
    emit, tiles = work.lowering.emit, work.lowering.tiles
    variable = emit.new(f"{work.label}/filled", last.shape, held.dtype, last, "temporary")
    groups = emit.copy_groups(last.bytes_per_tile(held.itemsize_bytes, tiles))
    emit.compute(f"{work.label}/fill", groups, held.variables, [variable])
    return [variable]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wanted:
    """A tensor and what tiles need of it; `paired`: neighbours need the same and share their exchange bus.

    `axes` are the labels of its axes: input channels are innermost in an operand's memory, outputs in that of partials.
    """

    name: str
    source: Tensor
    place: Placement
    paired: bool = False
    interleaved: bool = False
    axes: Labels = ()


def _laid_out(mapping: Placement, labels: Labels) -> Grid | None:
    """An operand or partials in the order of their memory, channels last; None where axes are joined or cut.

    Source: poplibs@7eac0f26 lib/poplin/Convolution.cpp:1445-1545 and 1579-1690 (inputs and weights as the plan groups
    them), 2627-2640 (partials).
    """
    if not isinstance(mapping, Grid) or len(mapping.axes) != len(labels):
        return None
    inner = "c" if any(label[0] == "c" for label in labels) else "o"
    order = sorted(range(len(labels)), key=lambda axis: labels[axis][0] == inner)
    axes = [mapping.axes[axis] for axis in order]
    sizes = [axis.size for axis in axes]
    return grid_of_cuts(sizes, axes, dims=sizes, first_tile=mapping.first_tile, replicas=mapping.replicas)


def _moved(work: Work, one: Wanted) -> tuple[Exchange, IntArray]:
    """The exchange and the bytes already there; its pieces are those of the order in memory."""
    emit = work.lowering.emit
    exchange, local_bytes = emit.move(one.source, one.place)
    source, place = _laid_out(one.source.mapping, one.axes), _laid_out(one.place, one.axes)
    if source is None or place is None:
        return exchange, local_bytes
    found = transfer(source, place, one.source.itemsize_bytes, work.lowering.tiles)
    return replace(exchange, fragments=found.fragments), local_bytes


def brought(work: Work, name: str, wanted: Sequence[Wanted], *, together: bool = False) -> list[int]:
    """Bring tensors to the tiles that need them; returns the variables to read them from.

    What a tile already has is read where it is, unless it must lie `together` with what arrives: then it is copied.
    """
    emit = work.lowering.emit
    moves: list[Exchange] = []
    sources: list[int] = []
    arrivals: list[int] = []
    used: list[int] = []
    local = np.zeros(work.lowering.tiles, np.int64)
    for one in wanted:
        exchange, local_bytes = _moved(work, one)
        if not exchange.received_bytes.any():
            used += one.source.variables
            continue
        variable = emit.new(
            f"{name}/{one.name}", one.place.shape, one.source.dtype, one.place, "temporary", interleaved=one.interleaved
        )
        moves.append(replace(exchange, shared_bytes=exchange.received_bytes) if one.paired else exchange)
        local = local + local_bytes
        sources += one.source.variables
        arrivals.append(variable)
        used += (variable,) if together else (variable, *one.source.variables)
    emit.exchange(f"{name}/exchange", moves, sources, arrivals)
    if together:
        emit.compute(f"{name}/copy", emit.copy_groups(frozen(local)), sources, arrivals)
    return used
