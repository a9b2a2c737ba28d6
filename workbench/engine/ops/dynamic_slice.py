"""Dynamic slices and updates: each tile copies positions out of, or into, the columns it holds; updates are in place.

One axis after another, the one that leaves least first (poplibs@7eac0f26 lib/popops/DynamicSlice.cpp:1575-1600,
:2489-2497, :2589-2615: `bestSliceOrder`, `dynamicSliceImpl`, `dynamicUpdate`). An axis must be whole on a tile while it
is sliced, as PopLibs asks of a sliceable tensor (`createSliceableTensor`, there), so an operand that lies otherwise is
moved first. One row of a single column has all its elements on one tile (`generateVertices`, :559-702, builds vertices
where the first element lies): an array of one axis comes there whole to be sliced, and lies on all tiles otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node, Value
from workbench.engine.mapping import Grid, Mapping, grid_of_cuts, linear, needed_by, reshape, slice_, transpose
from workbench.engine.mapping.axes import axes_of_shape
from workbench.engine.mapping.grid import on_tile, whole
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
        home = _residence(node.operands[0], node.attr("slice_sizes"), lowering)
        return {} if home is None else {0: home}

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Along each axis bring the operand if it must, broadcast the offset, copy out."""
        source, *starts = lowering.operands(node)
        sizes = node.attr("slice_sizes")
        axes = slice_order(source.shape, sizes)
        if not axes:
            lowering.bind(node.results[0], source)
            return
        cuts = _Cuts(lowering, lowering.label(node), starts)
        for axis in axes[:-1]:
            source = cuts.sliced(source, axis, sizes[axis])
        last, value = axes[-1], node.results[0]
        table, home = cuts.place(source, last, sizes[last])
        mapping = slice_mapping(table, home)
        if source.mapping == home or not _crowds(table, mapping, value.dtype, lowering):
            cuts.sliced(source, last, sizes[last], lowering.result(node, 0, mapping))
            return
        found = cuts.sliced(source, last, sizes[last])
        result = lowering.result(node, 0, lowering.wish(value) or lowering.default_mapping(value))
        lowering.emit.move_into(f"{cuts.label}/spread", found, result)


class DynamicUpdate(Family):
    """A slice written at a place that operands give."""

    name = "dynamic_update"
    ops = frozenset({"dynamic_update_slice"})

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """The operand is updated where it is."""
        return ((0, 0),)

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """The operand with its updated axes whole on every tile, the update by the same columns."""
        operand, update = node.operands[:2]
        home = _residence(operand, update.shape, lowering)
        if home is None:
            return {}
        table = first_table(operand.shape, update.shape)
        alone = len(table.row_axes) == len(slice_order(operand.shape, update.shape))
        return {0: home} | ({1: slice_mapping(table, home)} if alone else {})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Slice down to the last axis, bring the update there and copy it in, and so back to the operand."""
        operand, update, *starts = lowering.operands(node)
        axes = slice_order(operand.shape, update.shape)
        if not axes:
            lowering.bind(node.results[0], update)
            return
        cuts = _Cuts(lowering, lowering.label(node), starts)
        bases = [operand]
        for axis in axes[:-1]:
            bases.append(cuts.sliced(bases[-1], axis, update.shape[axis]))
        for axis, base in reversed(list(zip(axes[1:], bases[1:], strict=True))):
            update = cuts.updated(base, update, axis)
        table, home = cuts.place(operand, axes[0], update.shape[axes[0]])
        if home != operand.mapping and _crowds(table, home, operand.dtype, lowering):
            home = operand.mapping if lowering.is_model(operand) else lowering.default_mapping(node.results[0])
        result = lowering.result(node, 0, home)
        if result.variables != operand.variables:
            lowering.emit.move_into(f"{cuts.label}/copy", operand, result)
        written = cuts.updated(result, update, axes[0])
        if written.variables != result.variables:
            lowering.emit.move_into(f"{cuts.label}/spread", written, result)


@dataclass(frozen=True, slots=True)
class _Cuts:
    """The steps of one slice or update at `starts`, an axis at a time."""

    lowering: Lowering
    label: str
    starts: Sequence[Tensor]

    def place(self, source: Tensor, axis: int, size: int) -> tuple[RowTable, Mapping]:
        """The table of an axis, and where it is sliced."""
        table = RowTable(shape=source.shape, row_axes=(axis,), window=(size,))
        return table, home_of(table, source, self.lowering)

    def sliced(self, source: Tensor, axis: int, size: int, result: Tensor | None = None) -> Tensor:
        """A slice along one axis, in new memory where no result is given."""
        table, home = self.place(source, axis, size)
        emit, mapping = self.lowering.emit, slice_mapping(table, home)
        held, offset = emit.rearrange(self.label, [(source, home), (self.starts[axis], needed_by(home, (), ()))])
        if result is None:
            result = emit.tensor(f"{self.label}/d{axis}", mapping.shape, source.dtype, mapping, "temporary")
        self._copy(SLICE, table, home, (*held.variables, *offset.variables), result)
        return result

    def updated(self, base: Tensor, update: Tensor, axis: int) -> Tensor:
        """The base with an update along one axis: over itself where that is whole on its tiles, else a copy."""
        table, home = self.place(base, axis, update.shape[axis])
        emit = self.lowering.emit
        base, update, offset = emit.rearrange(
            self.label,
            [
                (base, home),
                (update, slice_mapping(table, home)),
                (self.starts[axis], needed_by(home, (), ())),
            ],
        )
        self._copy(UPDATE, table, home, (*update.variables, *offset.variables, *base.variables), base)
        return base

    def _copy(self, vertex: str, table: RowTable, home: Mapping, reads: Sequence[int], written: Tensor) -> None:
        groups = slice_groups(vertex, table, home, DTYPE_WORDS[written.dtype], self.lowering.tiles)
        self.lowering.emit.compute(self.label, groups, reads, written.variables)


def slice_order(shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """The axes that are sliced, the one that leaves the smallest share first."""
    partly = [axis for axis, (size, whole) in enumerate(zip(sizes, shape, strict=True)) if size != whole]
    return sorted(partly, key=lambda axis: sizes[axis] / shape[axis])


def _residence(operand: Value, sizes: Sequence[int], lowering: Lowering) -> Mapping | None:
    """Where what is sliced lies, None where as any other tensor.

    Source: graphcore/tensorflow@b2127bba driver/tensor.cc:362-391, :640-735: `createSliceableTensor`, but where all
    axes are sliced the first of them whole, and of a single one a linear mapping. That is asked of a program's inputs
    (driver/passes/allocation_finder.cc); what is computed lies as what it was computed of, so that here it follows
    the wish where that is even.
    """
    table = first_table(operand.shape, sizes)
    if not table.row_axes:
        return None
    home = sliceable(table, operand.dtype, lowering)
    asked = operand in lowering.graph.body.params and table.columns > 1
    return None if _crowds(table, home, operand.dtype, lowering) and not asked else home


def _crowds(table: RowTable, mapping: Mapping, dtype: str, lowering: Lowering) -> bool:
    """Whether columns, fewer than tiles, fill some with more than their share."""
    return table.columns < lowering.tiles and not lowering.is_even(mapping, dtype)


def first_table(shape: Sequence[int], sizes: Sequence[int]) -> RowTable:
    """The table of the axes that are whole on a tile between slices."""
    table = table_of(tuple(shape), (), sizes)
    if len(table.row_axes) < 2 or table.columns > 1:
        return table
    first = slice_order(shape, sizes)[0]
    return RowTable(shape=tuple(shape), row_axes=(first,), window=(int(sizes[first]),))


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
    if table.columns == 1 and source.mapping.is_owner:
        return on_tile(table.shape, int(source.mapping.intervals()[0][0]))
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
