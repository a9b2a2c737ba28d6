"""Gather: rows of a table chosen by indices (embeddings, take, take_along_axis), as PopLibs' planned multi-slice.

Every part of the table looks all indices up; where the rows are cut, a second stage chooses among what they found.
"""

from __future__ import annotations

from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, ceil_div
from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node, Value
from workbench.engine.mapping import Grid, Mapping, demand, grid_of_cuts, linear, reshape, rows_of, transpose
from workbench.engine.mapping.grid import whole
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.ops.rows import (
    Assumed,
    RowLayout,
    RowPlan,
    RowTable,
    chosen_by_worker,
    grain_of,
    layout_rows,
    plan_rows,
    single_region,
    table_of,
)
from workbench.engine.program import VertexGroup
from workbench.engine.target import Target
from workbench.errors import InputError

FloatArray: TypeAlias = npt.NDArray[np.float64]


class Gather(Family):
    """Slices of one operand at places given by another."""

    name = "gather"
    ops = frozenset({"gather"})
    alone = True

    def claims(self, node: Node) -> bool:
        """A gather with at least one index axis and something to gather."""
        return bool(node.attr("start_index_map")) and node.results[0].elements > 0

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """The table where the plan looks it up."""
        table, _, layout = _planned(node, lowering)
        return {0: table.unseen(layout.home)}

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """The parts of rows, columns and indices."""
        return str(_planned(node, lowering)[1])

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring table and indices, look up on every part, choose among candidates."""
        table, plan, layout = _planned(node, lowering)
        label = lowering.label(node)
        source, indices = lowering.operands(node)
        index = linear_indices(label, indices, lookups(node) * table.rows_per_index, lowering)
        held = lowering.emit.rearrange(label, [(table.view(source), layout.used), (index, layout.indices)])
        value = node.results[0]
        mapping = result_mapping(node, table, layout.chosen)
        dtype = DTYPE_WORDS[value.dtype]
        shares = layout.row_lengths / table.rows
        groups = slice_groups(dtype, layout.candidates, shares, assumed_of(value, lowering), lowering.target)
        reads = [name for tensor in held for name in tensor.variables]
        if plan.rows == 1:
            result = lowering.result(node, 0, mapping)
            lowering.emit.compute(label, groups, reads, result.variables)
            return
        candidates = lowering.emit.tensor(
            f"{label}/candidates", layout.candidates.shape, value.dtype, layout.candidates, "temporary"
        )
        lowering.emit.compute(f"{label}/candidates", groups, reads, candidates.variables)
        _choose(node, lowering, candidates, index, layout, mapping)


class KnownRows(Family):
    """Rows of a table whose numbers are known, each at most once: the table seen otherwise."""

    name = "known_rows"
    ops = frozenset({"known_rows"})
    before = ("repeated_rows",)
    pure_view = True
    light = True
    shareable = True

    def claims(self, node: Node) -> bool:
        """Rows that come once, so that what is seen of them can be overwritten."""
        return not node.attr("repeats")

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """The result is its operand."""
        return ((0, 0),)

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bind the result to a view of the operand."""
        source, value = lowering.get(node.operands[0]), node.results[0]
        lowering.bind(value, source.view(rows_of(source.mapping, _known_rows(node)), value.shape))


class RepeatedRows(Family):
    """Rows of a table whose numbers are known, some of them several times: copies of what is seen of the table.

    Source: poplibs@7eac0f26 lib/popops/DynamicSlice.cpp:3308-3420, multiSlice with constant offsets.
    """

    name = "repeated_rows"
    called = "gather"
    ops = frozenset({"known_rows"})
    shareable = True

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Copy the rows end to end."""
        source, value = lowering.get(node.operands[0]), node.results[0]
        there = lowering.destinations.get(value)
        mapping = there.mapping if there else lowering.wish(value) or lowering.default_mapping(value)
        seen = source.view(rows_of(source.mapping, _known_rows(node)), value.shape)
        lowering.emit.move_into(lowering.label(node), seen, lowering.result(node, 0, mapping))


def _known_rows(node: Node) -> IntArray:
    """Their numbers: `counts` neighbours from each of `firsts` on."""
    counts = np.array(node.attr("counts"), np.int64)
    ahead = np.array(node.attr("firsts"), np.int64) - np.append(0, np.cumsum(counts)[:-1])
    numbers: IntArray = np.arange(counts.sum(), dtype=np.int64) + np.repeat(ahead, counts)
    return numbers


def _choose(
    node: Node, lowering: Lowering, candidates: Tensor, index: Tensor, layout: RowLayout, mapping: Mapping
) -> None:
    """The second stage: each tile gets all candidates of its share of the indices and slices again."""
    label, chosen = lowering.label(node), layout.chosen
    parts = candidates.shape[0]
    gathered = grid_of_cuts(candidates.shape, [whole(parts), *chosen.axes], first_tile=chosen.first_tile)
    own = grid_of_cuts(index.shape, [chosen.axes[0]], first_tile=chosen.first_tile, replicas=chosen.axes[1].offset)
    arranged = lowering.emit.rearrange(f"{label}/choose", [(candidates, gathered), (index, own)])
    result = lowering.result(node, 0, mapping)
    as_parts = grid_of_cuts((1, *chosen.shape), [whole(1), *chosen.axes], first_tile=chosen.first_tile)
    assumed = assumed_of(node.results[0], lowering)
    groups = slice_groups(DTYPE_WORDS[result.dtype], as_parts, np.array([1 / parts]), assumed, lowering.target)
    reads = [name for tensor in arranged for name in tensor.variables]
    lowering.emit.compute(f"{label}/choose", groups, reads, result.variables)


def _planned(node: Node, lowering: Lowering) -> tuple[RowTable, RowPlan, RowLayout]:
    operand = node.operands[0]
    indexed = (*node.attr("start_index_map"), *(node.attr("operand_batching_dims") or ()))
    table = table_of(operand.shape, indexed, node.attr("slice_sizes"))
    plan = (
        None if lowering.options.get("optimizations.enable_gather_simplifier") else unplanned(table, operand, lowering)
    )
    return planned_table(table, lookups(node) * table.rows_per_index, operand, lowering, planned=plan)


def unplanned(table: RowTable, operand: Value, lowering: Lowering) -> RowPlan:
    """Without a plan the columns are spread over the tiles, all rows of a column on one, which looks all indices up.

    As a gather that is no embedding look-up is done (poplibs@7eac0f26 lib/popops/GatherInternal.cpp:72-128).
    """
    grains = ceil_div(table.columns, grain_of(operand.itemsize_bytes))
    return RowPlan(rows=1, columns=max(1, min(lowering.tiles, grains)), lookups=1)


def planned_table(
    table: RowTable,
    indices: int,
    operand: Value,
    lowering: Lowering,
    *,
    split_indices: bool = True,
    planned: RowPlan | None = None,
) -> tuple[RowTable, RowPlan, RowLayout]:
    """The plan of a table and where it puts things."""
    plan = planned or plan_rows(
        table.rows,
        table.columns,
        indices,
        DTYPE_WORDS[operand.dtype],
        lowering.tiles,
        assumed_of(operand, lowering),
        lowering.target.rates,
        split_indices=split_indices,
    )
    return table, plan, layout_rows(plan, table.rows, table.columns, indices, grain_of(operand.itemsize_bytes))


def assumed_of(table: Value, lowering: Lowering) -> Assumed:
    """What `slices.poplar_options` say of every look-up and update of a table of this type."""
    get, dtype = lowering.options.get, DTYPE_WORDS[table.dtype]
    partials = str(get("slices.poplar_options.partialType") or "")
    if partials == "half" and dtype == "float":
        raise InputError(
            "slices.poplar_options.partialType is 'half' and a table holds float32",
            expected="partials at least as wide as the table",
            todo="leave partialType out, or keep the table in float16",
        )
    share = float(get("slices.poplar_options.availableMemoryProportion"))
    return Assumed(
        budget_bytes=int(share * lowering.target.bytes_per_tile),
        one_point=get("slices.poplar_options.indicesDistribution") == "onePoint",
        in_order=bool(get("slices.poplar_options.indicesAreSorted")),
        partials=partials if dtype in ("float", "half") else "",
    )


def lookups(node: Node) -> int:
    """Index vectors of a gather or scatter: the last axis of the indices holds one vector."""
    return prod(node.operands[1].shape[:-1])


def linear_indices(label: str, indices: Tensor, count: int, lowering: Lowering) -> Tensor:
    """One row number per row that is looked up, computed where an index has several parts or stands for several."""
    if indices.elements == count:
        return indices.view(reshape(indices.mapping, (count,)), (count,))
    mapping = linear((count,), "int32", lowering.tiles, vector_bytes=lowering.target.data_path_bytes)
    parts = indices.shape[-1]
    vectors = indices.elements // max(1, parts)
    seen = indices.view(reshape(indices.mapping, (vectors, parts)), (vectors, parts))
    rows = count // max(1, vectors)
    tile, lo, hi = mapping.intervals()
    wanted = demand(seen.shape, tile, lo // rows * parts, ceil_div(hi, rows) * parts)
    (arranged,) = lowering.emit.rearrange(f"{label}/indices", [(seen, wanted)])
    result = lowering.emit.tensor(f"{label}/rows", (count,), "int32", mapping, "temporary")
    steps = (("MULTIPLY", "int"), ("ADD", "int")) * max(1, parts - 1 if rows == 1 else parts)
    groups = vertex_groups(
        "popops::MapExpression",
        {"n": mapping.elements_per_tile(lowering.tiles)},
        loads=("int",) * parts,
        stores=("int",),
        operations=steps,
    )
    lowering.emit.compute(f"{label}/rows", groups, arranged.variables, result.variables)
    return result


def slice_groups(
    dtype: str, candidates: Grid, shares: FloatArray, assumed: Assumed, target: Target
) -> list[VertexGroup]:
    """Multi-slices of the tiles that own candidates [row parts, indices, columns]; `shares` of the indices per part."""
    offsets, columns, share = per_part(candidates, shares)
    per_worker = ceil_div(offsets, target.workers_per_tile)
    in_range = chosen_by_worker(per_worker, share, assumed)
    held = [np.zeros(target.tiles_per_ipu, np.int64) for _ in range(3)]
    for column, values in zip(held, (per_worker, columns, in_range), strict=True):
        column[candidates.part_tiles()] = values
    return vertex_groups(
        "popops::MultiSlice",
        {"offsets": held[0], "region_size": held[1], "offsets_in_range": held[2]},
        type=dtype,
        **single_region(candidates.shape[1], dtype, columns),
    )


def per_part(candidates: Grid, shares: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Indices, columns and share of the indices of each part [row part, index part, column part]."""
    parts, indices, columns = (axis.lengths for axis in candidates.axes)
    share = np.repeat(shares[: len(parts)], len(indices) * len(columns))
    offsets = np.tile(np.repeat(indices, len(columns)), len(parts))
    return offsets, np.tile(columns, len(parts) * len(indices)), share


def result_mapping(node: Node, table: RowTable, chosen: Mapping) -> Mapping:
    """The mapping of the result, given that of [indices and rows of each, columns]."""
    offset_dims = tuple(node.attr("offset_dims"))
    dropped = (*node.attr("collapsed_slice_dims"), *(node.attr("operand_batching_dims") or ()))
    window = dict(zip(table.row_axes, table.window, strict=True))
    order = [axis for axis in (*table.row_axes, *table.column_axes) if axis not in dropped]
    sizes = [window.get(axis, table.shape[axis]) for axis in order]
    batch = node.operands[1].shape[:-1]
    seen = reshape(chosen, (*batch, *sizes))
    kept = [axis for axis in range(len(table.shape)) if axis not in dropped]
    permutation = []
    next_batch = iter(range(len(batch)))
    for axis in range(len(node.results[0].shape)):
        if axis in offset_dims:
            permutation.append(len(batch) + order.index(kept[offset_dims.index(axis)]))
        else:
            permutation.append(next(next_batch))
    return transpose(seen, permutation)


register(Gather())
register(KnownRows())
register(RepeatedRows())
