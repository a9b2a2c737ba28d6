"""A plan becomes steps: operands to the tiles that need them, vertices, partials together, result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.engine.emit import vertex_groups
from workbench.engine.graph import Node
from workbench.engine.lowering import Lowering
from workbench.engine.mapping import Grid, Mapping, Placement, grid_of_cuts
from workbench.engine.mapping_grid import whole
from workbench.engine.ops import DTYPE_WORDS
from workbench.engine.plan import ConvPlan
from workbench.engine.planner.placement import Places, places_of
from workbench.engine.planner.problem import Planned
from workbench.engine.planner.vertices import strided_copies, vertices_of
from workbench.engine.program import Exchange, VertexGroup
from workbench.engine.tensor import Tensor
from workbench.engine.tileset import IntArray, frozen

DTYPE_OF_WORD = {"half": "float16", "float": "float32"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """What one lowering of a plan needs at hand."""

    node: Node
    lowering: Lowering
    planned: Planned
    plan: ConvPlan
    places: Places
    label: str


def lower_plan(node: Node, lowering: Lowering, planned: Planned, plan: ConvPlan) -> None:
    """Emit the steps of a plan and bind the node's result."""
    work = Work(
        node=node,
        lowering=lowering,
        planned=planned,
        plan=plan,
        places=node_places(node, planned, plan, lowering.tiles),
        label=lowering.label(node),
    )
    streams, held = (lowering.get(node.operands[index]) for index in operand_order(plan))
    streams, held = _rearranged(work, streams, held)
    arranged = _gathered(work, streams, held)
    _reduced(work, *_partials(work, arranged))


def operand_order(plan: ConvPlan) -> tuple[int, int]:
    """Which operand streams through the unit and which one is held as weights."""
    return (1, 0) if plan.swapped else (0, 1)


def node_places(node: Node, planned: Planned, plan: ConvPlan, tiles: int) -> Places:
    """The mappings of a plan over the node's own shapes."""
    streams, held = operand_order(plan)
    shapes = (node.operands[streams].shape, node.operands[held].shape, node.results[0].shape)
    return places_of(plan, planned, shapes, tiles)


def _rearranged(work: Work, streams: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
    """Operands in another order on their tiles: brought to their owners, then copied there element by element."""
    plan, places, emit = work.plan, work.places, work.lowering.emit
    wanted: list[tuple[Tensor, Placement, Mapping]] = []
    if "inputs" in plan.transforms:
        wanted.append((streams, places.staging, places.staged_owner))
    if "weights" in plan.transforms:
        wanted.append((held, places.weight_owner, places.weight_owner))
    if not wanted:
        return streams, held
    arrived = emit.rearrange(f"{work.label}/rearrange", [(tensor, before) for tensor, before, _ in wanted])
    staged: list[Tensor] = []
    groups = np.zeros(work.lowering.tiles, np.int64)
    for tensor, (_, _, after) in zip(arrived, wanted, strict=True):
        staged.append(emit.tensor(f"{work.label}/rearranged", after.shape, tensor.dtype, after, "temporary"))
        groups = groups + after.elements_per_tile(work.lowering.tiles)
    emit.compute(
        f"{work.label}/rearrange",
        strided_copies(groups, plan.problem.in_type),
        [name for tensor in arrived for name in tensor.variables],
        [name for tensor in staged for name in tensor.variables],
    )
    if "inputs" in plan.transforms:
        streams = staged.pop(0)
    return streams, staged.pop(0) if staged else held


def _gathered(work: Work, streams: Tensor, held: Tensor) -> list[int]:
    """Variables that hold what every tile multiplies: copies brought by exchange, or the operands themselves."""
    emit, places, label = work.lowering.emit, work.places, work.label
    moves: list[tuple[Exchange, str]] = []
    reads: list[int] = []
    writes: list[int] = []
    used: list[int] = []
    copies = np.zeros(work.lowering.tiles, np.int64)
    for name, tensor, wanted in (("inputs", streams, places.inputs), ("weights", held, places.weights)):
        exchange, local_bytes = emit.move(tensor, wanted)
        if not exchange.received_bytes.any():
            used += tensor.variables
            continue
        wide = name == "weights" and places.wide_load
        variable = emit.new(f"{label}/{name}", tensor.shape, tensor.dtype, wanted, "temporary", interleaved=wide)
        moves.append((replace(exchange, paired_receive=name == "inputs" and work.plan.paired), name))
        copies = copies + local_bytes
        reads += tensor.variables
        writes.append(variable)
        used.append(variable)
    _exchanges(work, moves, reads, writes)
    emit.compute(f"{label}/copy", emit.copy_groups(frozen(copies)), reads, writes)
    return used


def _exchanges(work: Work, moves: Sequence[tuple[Exchange, str]], reads: Sequence[int], writes: Sequence[int]) -> None:
    """One exchange, or one per operand where the pairs of tiles that share a bus win more than a barrier costs."""
    emit, target, label = work.lowering.emit, work.lowering.target, work.label
    paired = [move for move, _ in moves if move.paired_receive]
    saved = sum(int(move.received_bytes.max()) for move in paired) // (2 * target.exchange_bytes_per_cycle)
    if len(moves) == 2 and saved > target.internal_sync_cycles + target.exchange_latency_cycles:
        for number, (move, name) in enumerate(moves):
            emit.exchange(f"{label}/{name}", [move], [reads[number]], [writes[number]])
        return
    emit.exchange(f"{label}/exchange", [move for move, _ in moves], reads, writes)


def _partials(work: Work, operands: Sequence[int]) -> tuple[Tensor, bool]:
    """Compute partials; without a reduction and in the result's type they are the result."""
    plan, places, lowering = work.plan, work.places, work.lowering
    groups = vertices_of(plan, lowering.target, places.wide_load)
    value = work.node.results[0]
    final = plan.method.partials_type == plan.problem.out_type and places.depth == 1
    if final and "outputs" not in plan.transforms:
        result = lowering.result(work.node, 0, places.result)
        lowering.emit.compute(f"{work.label}/compute", groups, operands, result.variables)
        return result, True
    dtype = value.dtype if final else DTYPE_OF_WORD[plan.method.partials_type]
    variable = lowering.emit.new(
        f"{work.label}/partials",
        places.partials.shape,
        dtype,
        places.partials,
        "temporary",
        interleaved=plan.method.vertex == "amp",
    )
    lowering.emit.compute(f"{work.label}/compute", groups, operands, [variable])
    partials = Tensor(
        variables=(variable,), mapping=places.partials, shape=places.partials.shape, dtype=dtype, ipu=lowering.emit.ipu
    )
    return partials, False


def _reduced(work: Work, partials: Tensor, done: bool) -> None:
    """Add partials up over tiles, step by step, and bring the sums to the result's type."""
    if done:
        return
    emit, places = work.lowering.emit, work.places
    for stage in places.stages:
        (landed,) = emit.rearrange(f"{work.label}/reduce", [(partials, stage.wanted)])
        sums = emit.tensor(f"{work.label}/sums", stage.held.shape, partials.dtype, stage.held, "temporary")
        groups = _adds(work, stage.wanted, stage.held, partials.dtype, partials.dtype)
        emit.compute(f"{work.label}/reduce", groups, landed.variables, sums.variables)
        partials = sums
    value = work.node.results[0]
    if places.depth == 1:
        result = _cast(work, partials)
    else:
        wished = result_mapping(work)
        wanted = partials_needed(partials.mapping, wished)
        (landed,) = emit.rearrange(f"{work.label}/reduce", [(partials, wanted)])
        result = _result(work, wished)
        groups = _adds(work, wanted, wished, partials.dtype, value.dtype)
        emit.compute(f"{work.label}/reduce", groups, landed.variables, result.variables)
    _rearranged_result(work, result)


def _cast(work: Work, partials: Tensor) -> Tensor:
    """Partials that are each a result, in the result's type."""
    value, places, lowering = work.node.results[0], work.places, work.lowering
    types = {"from_type": DTYPE_WORDS[partials.dtype], "to_type": DTYPE_WORDS[value.dtype]}
    if types["from_type"] == types["to_type"]:
        return partials.view(places.result, value.shape)
    result = _result(work, places.result)
    elements = places.partials.elements_per_tile(lowering.tiles)
    groups = vertex_groups("popops::Cast1D", {"num_elems": elements}, **types)
    lowering.emit.compute(f"{work.label}/cast", groups, partials.variables, result.variables)
    return result


def _result(work: Work, mapping: Mapping) -> Tensor:
    """The result, or what is still to be rearranged into it."""
    value = work.node.results[0]
    if "outputs" not in work.plan.transforms:
        return work.lowering.result(work.node, 0, mapping)
    return work.lowering.emit.tensor(f"{work.label}/unordered", value.shape, value.dtype, mapping, "temporary")


def _rearranged_result(work: Work, unordered: Tensor) -> None:
    if "outputs" not in work.plan.transforms:
        return
    result = work.lowering.result(work.node, 0, unordered.mapping)
    elements = unordered.elements_per_tile(work.lowering.tiles)
    groups = strided_copies(elements, work.plan.problem.out_type)
    work.lowering.emit.compute(f"{work.label}/rearrange", groups, unordered.variables, result.variables)


def _adds(work: Work, wanted: Placement, owned: Mapping, from_dtype: str, to_dtype: str) -> list[VertexGroup]:
    tiles = work.lowering.tiles
    results = owned.elements_per_tile(tiles)
    held = wanted.elements_per_tile(tiles)
    depth: IntArray = np.where(results > 0, -(-held // np.maximum(results, 1)), 0)
    types = {"partials_type": DTYPE_WORDS[from_dtype], "out_type": DTYPE_WORDS[to_dtype]}
    return vertex_groups("poplin::ReduceAdd", {"out_size": results, "partials": depth}, **types)


def partials_needed(partials: Mapping, results: Grid) -> Grid:
    """All partials, over (depth, outputs), of the results that each tile owns."""
    depth = partials.shape[0]
    shape = (depth, *results.dims)
    return grid_of_cuts(shape, [whole(depth), *results.axes], first_tile=results.first_tile)


def result_mapping(work: Work) -> Grid:
    """Where sums of partials go: where the readers wish them, if the partials can be seen cut like that."""
    wished = work.lowering.wish(work.node.results[0])
    return wished if isinstance(wished, Grid) and wished.is_owner else work.places.result
