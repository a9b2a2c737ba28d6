"""Dynamic slices and updates: each tile copies positions out of, or into, the columns it holds; updates are in place.

The axes that are sliced must be whole on a tile, as PopLibs asks of a sliceable tensor
(poplibs@7eac0f26 lib/popops/DynamicSlice.cpp, createSliceableTensor), so an operand that lies otherwise is moved first.
"""

from __future__ import annotations

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node, Value
from workbench.engine.mapping import Grid, Mapping, grid_of_cuts, linear, needed_by, reshape, slice_, transpose
from workbench.engine.mapping.axes import axes_of_shape
from workbench.engine.mapping.grid import whole
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.ops.rows import RowTable, table_of
from workbench.engine.program import VertexGroup

SLICE = "popops::DynamicSlice1D"
UPDATE = "popops::DynamicUpdateSlice1D"


class DynamicSlice(Family):
    """A slice of fixed size at a place that operands give."""

    name = "dynamic_slice"
    ops = frozenset({"dynamic_slice"})

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """The operand with its sliced axes whole on every tile."""
        table = table_of(node.operands[0].shape, (), node.attr("slice_sizes"))
        return {0: sliceable(table, node.operands[0].dtype, lowering)} if table.row_axes else {}

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring the operand if it must, broadcast the offsets, copy out."""
        source, *starts = lowering.operands(node)
        table = table_of(source.shape, (), node.attr("slice_sizes"))
        if not table.row_axes:
            lowering.bind(node.results[0], source)
            return
        label = lowering.label(node)
        home = home_of(table, source, lowering)
        held, *offsets = lowering.emit.rearrange(
            label, [(source, home), *((starts[axis], needed_by(home, (), ())) for axis in table.row_axes)]
        )
        result = lowering.result(node, 0, slice_mapping(table, home))
        lowering.emit.compute(
            label,
            slice_groups(SLICE, table, home, DTYPE_WORDS[source.dtype], lowering.tiles),
            [name for tensor in (held, *offsets) for name in tensor.variables],
            result.variables,
        )


class DynamicUpdate(Family):
    """A slice written at a place that operands give."""

    name = "dynamic_update"
    ops = frozenset({"dynamic_update_slice"})

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """The operand is updated where it is."""
        return ((0, 0),)

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """The operand with its updated axes whole on every tile, the update by the same columns."""
        table = table_of(node.operands[0].shape, (), node.operands[1].shape)
        if not table.row_axes:
            return {}
        home = sliceable(table, node.operands[0].dtype, lowering)
        return {0: home, 1: slice_mapping(table, home)}

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring the update and the offsets to the operand's columns and copy in."""
        operand, update, *starts = lowering.operands(node)
        table = table_of(operand.shape, (), update.shape)
        if not table.row_axes:
            lowering.bind(node.results[0], update)
            return
        label = lowering.label(node)
        home = home_of(table, operand, lowering)
        held = lowering.emit.rearrange(
            label,
            [
                (update, slice_mapping(table, home)),
                *((starts[axis], needed_by(home, (), ())) for axis in table.row_axes),
            ],
        )
        result = lowering.result(node, 0, home)
        if result.variables != operand.variables:
            lowering.emit.move_into(f"{label}/copy", operand, result)
        lowering.emit.compute(
            label,
            slice_groups(UPDATE, table, home, DTYPE_WORDS[operand.dtype], lowering.tiles),
            [name for tensor in (*held, result) for name in tensor.variables],
            result.variables,
        )


def sliceable(table: RowTable, dtype: str, lowering: Lowering) -> Mapping:
    """The columns of a table over all tiles, all rows of a column on one tile, however few bytes a row has there.

    Source: graphcore/tensorflow@b2127bba driver/tensor.cc, AddDynamicSliceTensor: a smallest grain of 0.
    """
    return spread_columns(
        table,
        linear(
            (table.columns,), dtype, lowering.tiles, min_bytes=1, grain=1, vector_bytes=lowering.target.data_path_bytes
        ),
    )


def spread_columns(table: RowTable, columns: Mapping) -> Mapping:
    """The operand's mapping that has all rows of a column where `columns` has it."""
    tile, lo, hi = columns.intervals()
    return table.unseen(grid_of_cuts((table.rows, table.columns), [whole(table.rows), (lo, hi, tile)]))


def home_of(table: RowTable, source: Tensor, lowering: Lowering) -> Mapping:
    """Where the operand is sliced: where it lies if its sliced axes are whole there, else spread by columns."""
    seen = table.seen(source.mapping)
    groups = axes_of_shape(seen) if isinstance(seen, Grid) and seen.is_owner else None
    if groups is not None and all(cut.is_whole for cut in groups[0]):
        return source.mapping
    return sliceable(table, source.dtype, lowering)


def slice_mapping(table: RowTable, home: Mapping) -> Mapping:
    """The mapping of a slice: every column where the operand has it."""
    rows = slice_(table.seen(home), (0, 0), (table.rows_per_index, table.columns))
    window = dict(zip(table.row_axes, table.window, strict=True))
    order = (*table.row_axes, *table.column_axes)
    back = [order.index(axis) for axis in range(len(order))]
    return transpose(reshape(rows, [window.get(axis, table.shape[axis]) for axis in order]), back)


def slice_groups(vertex: str, table: RowTable, home: Mapping, dtype: str, tiles: int) -> list[VertexGroup]:
    """The copying vertices of the tiles that hold columns."""
    columns: IntArray = np.asarray(home.elements_per_tile(tiles) // table.rows, np.int64)
    return vertex_groups(
        vertex,
        {"region_size": columns},
        type=dtype,
        num_sub_elements=table.rows_per_index,
        num_base_elements=table.rows,
    )


def first_axis_table(value: Value) -> RowTable:
    """The table of a stacked value of which one entry of the first axis is read or written at a time."""
    return RowTable(shape=value.shape, row_axes=(0,), window=(1,))


register(DynamicSlice())
register(DynamicUpdate())
