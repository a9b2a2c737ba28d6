"""Scatter: rows written, added, multiplied or compared into an operand, in place, as PopLibs' multi-update.

Every part of the table sees all indices and its columns of all updates. Where the indices are cut (additions only),
each cut adds into a table of zeros, and the tables are added to the operand.
"""

from __future__ import annotations

import numpy as np

from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import Grid, Mapping, linear, reshape, transpose
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.ops.codelets import added_in_place
from workbench.engine.ops.free import fill_groups
from workbench.engine.ops.gather import assumed_of, linear_indices, lookups, per_part, planned_table
from workbench.engine.ops.reduce_tile import emit_reductions, tile_reduction
from workbench.engine.ops.rows import (
    Assumed,
    RowLayout,
    RowPlan,
    RowTable,
    grain_of,
    ordering,
    single_region,
    table_of,
    updated_by_worker,
)
from workbench.engine.program import VertexGroup
from workbench.engine.target import Target
from workbench.engine.vertices.popops import type_bytes

OPERATIONS = {
    "scatter": "",
    "scatter-add": "ADD",
    "scatter_add": "ADD",
    "scatter_sub": "ADD",
    "scatter-sub": "ADD",
    "scatter_mul": "MUL",
    "scatter-mul": "MUL",
    "scatter_min": "MIN",
    "scatter-min": "MIN",
    "scatter_max": "MAX",
    "scatter-max": "MAX",
}


class Scatter(Family):
    """Updates of slices of operand 0 at the places operand 1 gives."""

    name = "scatter"
    ops = frozenset(OPERATIONS)
    alone = True

    def claims(self, node: Node) -> bool:
        """A scatter with at least one index axis and something to write."""
        return bool(node.attr("scatter_dims_to_operand_dims")) and node.operands[2].elements > 0

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """The operand is updated where it is."""
        return ((0, 0),)

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """The operand where the plan updates it."""
        table, _, layout = _planned(node, lowering)
        return {0: table.unseen(layout.home)}

    def flops(self, node: Node, lowering: Lowering) -> int:
        """One per element that is added, multiplied or compared."""
        floating = DTYPE_WORDS[node.results[0].dtype] in ("float", "half")
        return node.operands[2].elements if OPERATIONS[node.op] and floating else 0

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """The parts of rows, columns and indices."""
        return str(_planned(node, lowering)[1])

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring indices and updates to the operand's parts and update them."""
        table, plan, layout = _planned(node, lowering)
        label = lowering.label(node)
        operand, indices, updates = lowering.operands(node)
        index = linear_indices(label, indices, lookups(node) * table.rows_per_index, lowering)
        given = updates.view(_updates_mapping(node, table, updates.mapping), layout.updates.shape)
        assumed = assumed_of(node.operands[0], lowering)
        partials = partials_dtype(operand.dtype, assumed) if plan.lookups > 1 else operand.dtype
        if partials != operand.dtype:
            given = cast(f"{label}/updates", given, partials, lowering)
        held = lowering.emit.rearrange(label, [(given, layout.updates), (index, layout.indices)])
        result = lowering.result(node, 0, table.unseen(layout.home))
        if result.variables != operand.variables:
            lowering.emit.move_into(f"{label}/copy", operand, result)
        reads = [name for tensor in held for name in tensor.variables]
        words = DTYPE_WORDS[partials]
        groups = update_groups(OPERATIONS[node.op], words, layout, table.rows, assumed, lowering.target)
        if plan.lookups == 1:
            lowering.emit.compute(label, groups, (*reads, *result.variables), result.variables)
            return
        total = _total_of_tables(label, lowering, groups, reads, partials, layout)
        _add_total(label, lowering, total, result, layout)


def partials_dtype(dtype: str, assumed: Assumed) -> str:
    """The type in which copies of a table of `dtype` are added up."""
    return "float32" if assumed.partials == "float" and DTYPE_WORDS[dtype] == "half" else dtype


def cast(name: str, source: Tensor, dtype: str, lowering: Lowering) -> Tensor:
    """The tensor in another type, where it lies, or evenly spread if no tile owns its elements."""
    emit, tiles = lowering.emit, lowering.tiles
    if not source.mapping.is_owner:
        (source,) = emit.rearrange(
            name, [(source, linear(source.shape, source.dtype, tiles, vector_bytes=lowering.target.data_path_bytes))]
        )
    result = emit.tensor(name, source.shape, dtype, source.mapping, "temporary")
    emit.compute(name, _casts(source, result, tiles), source.variables, result.variables)
    return result


def _casts(source: Tensor, result: Tensor, tiles: int) -> list[VertexGroup]:
    kinds = {"from_type": DTYPE_WORDS[source.dtype], "to_type": DTYPE_WORDS[result.dtype]}
    return vertex_groups("popops::Cast1D", {"num_elems": result.mapping.elements_per_tile(tiles)}, **kinds)


def _total_of_tables(
    label: str, lowering: Lowering, groups: list[VertexGroup], reads: list[int], dtype: str, layout: RowLayout
) -> Tensor:
    """Add into tables of zeros, one per cut of the indices; bring them together and add them."""
    emit, tiles = lowering.emit, lowering.tiles
    tables = emit.tensor(f"{label}/tables", layout.partials.shape, dtype, layout.partials, "temporary")
    emit.compute(
        f"{label}/zero",
        fill_groups(layout.partials.elements_per_tile(tiles), dtype, lowering.target.workers_per_tile),
        (),
        tables.variables,
    )
    emit.compute(f"{label}/tables", groups, (*reads, *tables.variables), tables.variables)
    (landed,) = emit.rearrange(f"{label}/reduce", [(tables, layout.gathered)])
    total = emit.tensor(f"{label}/total", layout.home.shape, dtype, layout.home, "temporary")
    owned = layout.home.elements_per_tile(tiles)
    depth = np.where(owned > 0, layout.partials.shape[0], 0)
    final = tile_reduction((dtype, dtype), owned, depth, "ADD", lowering.target.machine, inner=False)
    emit_reductions(emit, f"{label}/reduce", [final], landed.variables, total.variables)
    return total


def _add_total(label: str, lowering: Lowering, total: Tensor, result: Tensor, layout: RowLayout) -> None:
    """Add the total to the table; a narrower table is widened for it and brought back (DynamicSlice.cpp:4700-4724)."""
    emit, tiles = lowering.emit, lowering.tiles
    owned = layout.home.elements_per_tile(tiles)
    adds = added_in_place(owned, total.dtype)
    if total.dtype == result.dtype:
        emit.compute(label, adds, (*total.variables, *result.variables), result.variables)
        return
    wide = emit.tensor(f"{label}/wide", layout.home.shape, total.dtype, layout.home, "temporary")
    emit.compute(f"{label}/widen", _casts(result, wide, tiles), result.variables, wide.variables)
    emit.compute(label, adds, (*total.variables, *wide.variables), wide.variables)
    emit.compute(f"{label}/narrow", _casts(wide, result, tiles), wide.variables, result.variables)


def _planned(node: Node, lowering: Lowering) -> tuple[RowTable, RowPlan, RowLayout]:
    operand, updates = node.operands[0], node.operands[2]
    batching = tuple(node.attr("operand_batching_dims") or ())
    indexed = (*node.attr("scatter_dims_to_operand_dims"), *batching)
    dropped = (*node.attr("inserted_window_dims"), *batching)
    sizes = iter(updates.shape[axis] for axis in node.attr("update_window_dims"))
    slices = [1 if axis in dropped else next(sizes) for axis in range(len(operand.shape))]
    table = table_of(operand.shape, indexed, slices)
    adds = OPERATIONS[node.op] == "ADD"
    return planned_table(table, lookups(node) * table.rows_per_index, operand, lowering, split_indices=adds)


def _updates_mapping(node: Node, table: RowTable, mapping: Mapping) -> Mapping:
    """The updates as [indices and rows of each, columns]."""
    window_dims = tuple(node.attr("update_window_dims"))
    dropped = (*node.attr("inserted_window_dims"), *(node.attr("operand_batching_dims") or ()))
    kept = [axis for axis in range(len(table.shape)) if axis not in dropped]
    place = dict(zip(kept, window_dims, strict=True))
    order = [axis for axis in range(len(mapping.shape)) if axis not in window_dims]
    order += [place[axis] for axis in (*table.row_axes, *table.column_axes) if axis in place]
    return reshape(transpose(mapping, order), (mapping.size // max(1, table.columns), table.columns))


def update_groups(
    op: str, dtype: str, layout: RowLayout, rows: int, assumed: Assumed, target: Target
) -> list[VertexGroup]:
    """Multi-updates of the tiles of a plan: workers share the tile's rows and each sees every index."""
    where: Grid = layout.candidates
    offsets, columns, share = per_part(where, layout.row_lengths / max(1, rows))
    in_range = updated_by_worker(offsets, share, rows, assumed, target.workers_per_tile)
    order = ordering(int(offsets.max(initial=0)), rows, assumed)
    held = [np.zeros(target.tiles_per_ipu, np.int64) for _ in range(3)]
    for column, values in zip(held, (columns, offsets, in_range), strict=True):
        column[where.part_tiles()] = values
    arguments = {"region_size": held[0], "offsets": held[1], "offsets_in_range": held[2]}
    if not op:
        alone = single_region(layout.updates.shape[0], dtype, columns)
        return vertex_groups("popops::MultiUpdate", arguments, type=dtype, **order, **alone)
    grain = grain_of(type_bytes(dtype))
    odd = np.where(held[0] % grain != 0, held[0], 0)
    even = np.where(held[0] % grain == 0, held[0], 0)
    fixed = {"type": dtype, "op": op, **order}
    return [
        *vertex_groups("popops::MultiUpdateOp", arguments | {"region_size": even}, **fixed),
        *vertex_groups(
            "popops::MultiUpdateOp", arguments | {"region_size": odd}, sub_word_writes_required=True, **fixed
        ),
    ]


register(Scatter())
