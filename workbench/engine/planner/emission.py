"""A plan becomes steps: operands to the tiles that need them, vertices, partials together, result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.base.dtypes import DTYPE_OF_WORD, DTYPE_WORDS, ITEMSIZE_BYTES
from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import Grid, Mapping, Placement, grid_of_cuts, pad_beside, padding, slice_
from workbench.engine.mapping.grid import whole
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.planner.operands import Wanted, Work, brought, gathered, rearranged
from workbench.engine.planner.plan import ConvPlan, step_of
from workbench.engine.planner.problem import Planned
from workbench.engine.planner.reduction import FAST_GRAIN
from workbench.engine.planner.tiles import Places, oriented, packed_places, places_of, step_places
from workbench.engine.planner.vertices import beside, strided_copies, vertices_of
from workbench.engine.program import VertexGroup


def lower_plan(node: Node, lowering: Lowering, planned: Planned, plan: ConvPlan) -> None:
    """Emit the steps of a plan and bind the node's result."""
    value = node.results[0]
    label = lowering.label(node)
    reordered = "outputs" in plan.transforms
    shape = outputs_shape(node, planned)

    def finish(mapping: Mapping) -> Tensor:
        if not reordered and not planned.spread:
            return lowering.result(node, 0, mapping)
        return lowering.emit.tensor(f"{label}/outputs", shape, value.dtype, mapping, "temporary")

    places = node_places(node, planned, plan, lowering.tiles)
    work = Work(
        lowering=lowering,
        plan=plan,
        places=places,
        packed=packed_places(plan, planned, places, lowering.tiles),
        label=label,
        dtype=value.dtype,
        finish=finish,
        axes=oriented(planned.operands, plan.swapped),
        wished=wished_outputs(node, lowering, planned),
    )
    streams, held = (lowering.get(node.operands[index]) for index in operand_order(plan))
    streams, held = rearranged(work, streams, held)
    steps = plan.serial_in * plan.serial_out
    result = multiplied(work, streams, held) if steps == 1 else in_steps(work, planned, streams, held)
    if planned.spread:
        _spread(work, node, planned, result)
    elif reordered:
        final = lowering.result(node, 0, result.mapping)
        groups = strided_copies(result.elements_per_tile(lowering.tiles), plan.problem.out_type)
        lowering.emit.compute(f"{label}/rearrange", groups, result.variables, final.variables)


def outputs_shape(node: Node, planned: Planned) -> tuple[int, ...]:
    """The result's shape without the zeros put between its elements."""
    shape = node.results[0].shape
    if not planned.spread:
        return shape
    return tuple(
        (size - low - high - 1) // (between + 1) + 1 if size else 0
        for size, (low, high, between) in zip(shape, planned.spread, strict=True)
    )


def wished_outputs(node: Node, lowering: Lowering, planned: Planned) -> Mapping | None:
    """Where the readers of the result would like its computed elements."""
    wished = lowering.wish(node.results[0])
    if wished is None or not planned.spread:
        return wished
    return _computed(wished, planned)


def _computed(mapping: Mapping, planned: Planned) -> Mapping:
    """Of a result with zeros put between its elements: where those lie that are computed."""
    low, high, between = zip(*planned.spread, strict=True)
    limits = [size - after for size, after in zip(mapping.shape, high, strict=True)]
    return slice_(mapping, low, limits, [gap + 1 for gap in between])


def _spread(work: Work, node: Node, planned: Planned, outputs: Tensor) -> None:
    """Outputs to their places between zeros: each on the tile it is on, if none gets too much so, else on all tiles."""
    lowering = work.lowering
    low, high, between = zip(*planned.spread, strict=True)
    wished = lowering.wish(node.results[0])
    stays = True
    if wished is None or work.wished != outputs.mapping:
        wished = pad_beside(outputs.mapping, padding(outputs.shape, low, high, between))
        stays = lowering.is_even(wished, outputs.dtype)
    result = lowering.result(node, 0, wished if stays else lowering.default_mapping(node.results[0]))
    workers = lowering.target.workers_per_tile
    zeros = ceil_div(result.elements_per_tile(lowering.tiles), workers)
    fills = vertex_groups("popops::Fill", {"n": zeros}, type=DTYPE_WORDS[result.dtype])
    fills = [replace(group, count=workers) for group in fills]
    lowering.emit.compute(f"{work.label}/zeros", fills, (), result.variables)
    if stays:
        _in_order(work, outputs, result)
        return
    if "outputs" in work.plan.transforms:
        name = f"{work.label}/ordered"
        ordered = lowering.emit.tensor(name, outputs.shape, outputs.dtype, outputs.mapping, "temporary")
        _in_order(work, outputs, ordered)
        outputs = ordered
    places = result.view(_computed(result.mapping, planned), outputs.shape)
    lowering.emit.move_into(f"{work.label}/spread", outputs, places)


def _in_order(work: Work, outputs: Tensor, result: Tensor) -> None:
    """Copies of outputs on their tiles, in the order that is asked for."""
    emit, tiles = work.lowering.emit, work.lowering.tiles
    if "outputs" in work.plan.transforms:
        copies = strided_copies(outputs.elements_per_tile(tiles), work.plan.problem.out_type)
    else:
        copies = emit.copy_groups(outputs.mapping.bytes_per_tile(outputs.itemsize_bytes, tiles))
    emit.compute(f"{work.label}/spread", copies, outputs.variables, result.variables)


def multiplied(work: Work, streams: Tensor, held: Tensor) -> Tensor:
    """Operands to the tiles that need them, vertices, partials together: the sums."""
    return _reduced(work, _partials(work, gathered(work, streams, held)))


def operand_order(plan: ConvPlan) -> tuple[int, int]:
    """Which operand streams through the unit and which one is held as weights."""
    return (1, 0) if plan.swapped else (0, 1)


def node_places(node: Node, planned: Planned, plan: ConvPlan, tiles: int) -> Places:
    """The mappings of a plan over the node's own shapes."""
    streams, held = operand_order(plan)
    shapes = (node.operands[streams].shape, node.operands[held].shape, outputs_shape(node, planned))
    return places_of(plan, planned, shapes, tiles)


def _partials(work: Work, operands: Sequence[int]) -> Tensor:
    """Compute partials; each is a result already if nothing is left to be done to it."""
    plan, places, emit = work.plan, work.places, work.lowering.emit
    groups = vertices_of(plan, work.lowering.target)
    word = plan.method.partials_type
    dtype = work.dtype if DTYPE_WORDS[work.dtype] == word else DTYPE_OF_WORD[word]
    zeros, spare = _beside(work, dtype)
    operands = [*operands, *zeros]
    if places.depth == 1 and dtype == work.dtype:
        result = work.finish(places.result)
        emit.compute(f"{work.label}/compute", groups, operands, [*result.variables, *spare])
        return result
    shape = places.partials.shape
    interleaved = plan.method.interleaved
    variable = emit.new(f"{work.label}/partials", shape, dtype, places.partials, "temporary", interleaved=interleaved)
    emit.compute(f"{work.label}/compute", groups, operands, [variable, *spare])
    return Tensor(variables=(variable,), mapping=places.partials, shape=shape, dtype=dtype, ipu=emit.ipu)


def _beside(work: Work, dtype: str) -> tuple[list[int], list[int]]:
    """Zeros beside the operands, and what the vertex needs to spare: a variable each, if the method wants them."""
    plan, emit, lowering = work.plan, work.lowering.emit, work.lowering
    zeros, spare_bytes = beside(plan)
    found: list[list[int]] = []
    in_dtype = DTYPE_OF_WORD[plan.problem.in_type]
    wanted = (("zeros", zeros, in_dtype), ("spare", ceil_div(spare_bytes, ITEMSIZE_BYTES[dtype]), dtype))
    for name, elements, kind in wanted:
        tiles = np.flatnonzero(elements)
        ends = np.cumsum(elements[tiles])
        made: list[int] = []
        if len(tiles):
            place = grid_of_cuts((int(ends[-1]),), [(ends - elements[tiles], ends, tiles)])
            made = [emit.new(f"{work.label}/{name}", place.shape, kind, place, "temporary")]
        found.append(made)
    if found[0]:
        workers = lowering.target.workers_per_tile
        fills = vertex_groups("popops::Fill", {"n": ceil_div(zeros, workers)}, type=plan.problem.in_type)
        emit.compute(f"{work.label}/pad", [replace(group, count=workers) for group in fills], (), found[0])
    return found[0], found[1]


def _reduced(work: Work, partials: Tensor) -> Tensor:
    """Add partials up over tiles, step by step, in the result's type at the end."""
    emit, places = work.lowering.emit, work.places
    if places.depth == 1:
        return partials if partials.dtype == work.dtype else cast(work, partials)
    partials = _travelling(work, partials)
    for stage in places.stages:
        landed = _partials_brought(work, partials, stage.wanted)
        sums = emit.tensor(f"{work.label}/sums", stage.held.shape, partials.dtype, stage.held, "temporary")
        groups = _adds(work, stage.wanted, stage.held, partials.dtype, partials.dtype)
        emit.compute(f"{work.label}/reduce", groups, landed, sums.variables)
        partials = sums
    wished = work.wished if isinstance(work.wished, Grid) and work.wished.is_owner else places.result
    wanted = partials_needed(partials.mapping, wished)
    landed = _partials_brought(work, partials, wanted)
    result = work.finish(wished)
    groups = _adds(work, wanted, wished, partials.dtype, work.dtype)
    emit.compute(f"{work.label}/reduce", groups, landed, result.variables)
    return result


def _partials_brought(work: Work, partials: Tensor, place: Placement) -> list[int]:
    axes = ("depth", *work.axes.out)
    return brought(work, f"{work.label}/reduce", [Wanted(name="partials", source=partials, place=place, axes=axes)])


def _travelling(work: Work, partials: Tensor) -> Tensor:
    """Partials in the type of `partialsType.interTile`, where they are."""
    emit, convolves = work.lowering.emit, work.plan.problem.kind == "convolution"
    word = work.lowering.options.get("convolutions.poplar_options.partialsType.interTile") if convolves else None
    if word is None or word == DTYPE_WORDS[partials.dtype]:
        return partials
    dtype = work.dtype if DTYPE_WORDS[work.dtype] == word else DTYPE_OF_WORD[word]
    result = emit.tensor(f"{work.label}/travelling", partials.shape, dtype, partials.mapping, "temporary")
    types = {"from_type": DTYPE_WORDS[partials.dtype], "to_type": word}
    groups = vertex_groups("popops::Cast1D", {"num_elems": partials.elements_per_tile(work.lowering.tiles)}, **types)
    emit.compute(f"{work.label}/travelling", groups, partials.variables, result.variables)
    return result


def cast(work: Work, partials: Tensor) -> Tensor:
    """Sums on the tiles they are on, in the result's type."""
    types = {"from_type": DTYPE_WORDS[partials.dtype], "to_type": DTYPE_WORDS[work.dtype]}
    result = work.finish(work.places.result)
    groups = vertex_groups("popops::Cast1D", {"num_elems": partials.elements_per_tile(work.lowering.tiles)}, **types)
    work.lowering.emit.compute(f"{work.label}/cast", groups, partials.variables, result.variables)
    return result


def _adds(work: Work, wanted: Placement, owned: Mapping, from_dtype: str, to_dtype: str) -> list[VertexGroup]:
    tiles = work.lowering.tiles
    results = owned.elements_per_tile(tiles)
    held = wanted.elements_per_tile(tiles)
    depth: IntArray = np.where(results > 0, ceil_div(held, np.maximum(results, 1)), 0)
    types = {"partials_type": DTYPE_WORDS[from_dtype], "out_type": DTYPE_WORDS[to_dtype]}
    group = "matmuls" if work.plan.problem.kind == "matmul" else "convolutions"
    if not work.lowering.options.get(f"{group}.poplar_options.enableFastReduce"):
        return vertex_groups("poplin::ReduceAdd", {"out_size": results, "partials": depth}, **types)
    whole = results % FAST_GRAIN[types["partials_type"]] == 0
    fast = {"out_size": np.where(whole, results, 0), "partials": np.maximum(depth - 1, 0)}
    rest = {"out_size": np.where(whole, 0, results), "partials": depth}
    return [
        *vertex_groups("poplin::ReduceAdd", fast, single_input=True, constrain_partials=True, **types),
        *vertex_groups("poplin::ReduceAdd", rest, **types),
    ]


def partials_needed(partials: Mapping, results: Grid) -> Grid:
    """All partials, over (depth, outputs), of the results that each tile owns."""
    depth = partials.shape[0]
    shape = (depth, *results.dims)
    return grid_of_cuts(shape, [whole(depth), *results.axes], first_tile=results.first_tile)


def in_steps(work: Work, planned: Planned, streams: Tensor, held: Tensor) -> Tensor:
    """The plan as a loop over slices of channels, its body stored once and its temporaries as small as a slice.

    Operands lie with their owners before the loop; every owner takes its slice out and the step is multiplied like a
    plan of its own. Its sums are added to those of the steps before it, or put where they belong in the result.
    """
    plan, emit, label = work.plan, work.lowering.emit, work.label
    step = step_of(plan)
    places = step_places(step, planned, work.lowering.tiles)
    sources = [streams, held]
    sliced = [plan.serial_in > 1, True]
    owners = [(work.places.staged_owner, places.staged_owner), (work.places.weight_owner, places.weight_owner)]
    for number, (whole_owner, _) in enumerate(owners):
        if sliced[number]:
            (sources[number],) = emit.rearrange(f"{label}/before_slice", [(sources[number], whole_owner)])
    adds = plan.serial_in > 1
    dtype = DTYPE_OF_WORD[plan.method.partials_type] if adds else work.dtype
    dtype = work.dtype if DTYPE_WORDS[work.dtype] == DTYPE_WORDS[dtype] else dtype
    result = total_of_steps(work, dtype)

    def temporary(mapping: Mapping) -> Tensor:
        return emit.tensor(f"{label}/step", mapping.shape, dtype, mapping, "temporary")

    body = replace(work, plan=step, places=places, packed=places, dtype=dtype, finish=temporary, wished=None)
    with emit.repeat(plan.serial_in * plan.serial_out, f"{label}/steps"):
        for number, (_, step_owner) in enumerate(owners):
            if sliced[number]:
                sources[number] = _slice(work, sources[number], step_owner)
        sums = multiplied(body, *sources)
        elements = sums.elements_per_tile(work.lowering.tiles)
        if adds:
            groups = vertex_groups("popops::BinaryOp1DInPlace", {"n": elements}, op="ADD", type=DTYPE_WORDS[dtype])
            emit.compute(f"{label}/add", groups, (*sums.variables, *result.variables), result.variables)
        else:
            groups = _slices("popops::DynamicUpdateSlice1D", elements, dtype, plan.serial_out)
            emit.compute(f"{label}/put", groups, sums.variables, result.variables)
    return result if dtype == work.dtype else cast(work, result)


def total_of_steps(work: Work, dtype: str) -> Tensor:
    """What the steps add to or put their sums into: the result itself, or its sums in the type of the partials."""
    mapping = work.places.result
    if dtype == work.dtype:
        return work.finish(mapping)
    return work.lowering.emit.tensor(f"{work.label}/sum", mapping.shape, dtype, mapping, "temporary")


def _slice(work: Work, source: Tensor, owner: Grid) -> Tensor:
    """One step's part of an operand, taken out by the tiles that own it."""
    emit, plan = work.lowering.emit, work.plan
    part = emit.tensor(f"{work.label}/slice", owner.shape, source.dtype, owner, "temporary")
    elements = owner.elements_per_tile(work.lowering.tiles)
    groups = _slices("popops::DynamicSlice1D", elements, source.dtype, plan.serial_in * plan.serial_out)
    emit.compute(f"{work.label}/slice", groups, source.variables, part.variables)
    return part


def _slices(vertex: str, elements: IntArray, dtype: str, steps: int) -> list[VertexGroup]:
    fixed = {"num_sub_elements": 1, "num_base_elements": steps}
    return vertex_groups(vertex, {"region_size": elements}, type=DTYPE_WORDS[dtype], **fixed)
