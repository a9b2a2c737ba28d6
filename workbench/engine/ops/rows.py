"""Rows: a tensor seen as a table whose rows an index chooses, and the plan PopLibs' multi-slice makes for the table.

Gather and scatter share the plan, so that an embedding and the update of its gradient find the table where they need
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from workbench.base.arrays import IntArray, ceil_div, frozen
from workbench.engine import vertices
from workbench.engine.mapping import Grid, Mapping, even_cuts, grid_of_cuts, reshape, transpose
from workbench.engine.mapping.grid import whole
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops.windows import distinct_parts
from workbench.engine.remembered import remembered
from workbench.engine.target import Rates
from workbench.engine.vertices.popops import type_bytes

Shape = tuple[int, ...]
INDEX_BYTES = 4
STORE_BYTES = 4  # the least that a codelet stores at once, poplibs@7eac0f26 lib/popops/DynamicSlice.cpp


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTable:
    """An operand of `shape` as rows and columns: `row_axes` are those an index chooses along, or is not whole along.

    An index stands for `window` elements along each row axis.
    """

    shape: Shape
    row_axes: Shape
    window: Shape

    @property
    def column_axes(self) -> Shape:
        """The other axes."""
        return tuple(axis for axis in range(len(self.shape)) if axis not in self.row_axes)

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return prod(self.shape[axis] for axis in self.row_axes)

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return prod(self.shape[axis] for axis in self.column_axes)

    @property
    def rows_per_index(self) -> int:
        """Rows one index stands for."""
        return prod(self.window)

    def seen(self, mapping: Mapping) -> Mapping:
        """A mapping of the operand as one of the table, [rows, columns]."""
        turned = transpose(mapping, (*self.row_axes, *self.column_axes))
        return reshape(turned, (self.rows, self.columns))

    def unseen(self, mapping: Mapping) -> Mapping:
        """A mapping of the table as one of the operand."""
        order = (*self.row_axes, *self.column_axes)
        back = [order.index(axis) for axis in range(len(order))]
        return transpose(reshape(mapping, [self.shape[axis] for axis in order]), back)

    def view(self, tensor: Tensor) -> Tensor:
        """The operand as a table."""
        return tensor.view(self.seen(tensor.mapping), (self.rows, self.columns))


def table_of(shape: Shape, indexed: Sequence[int], slice_sizes: Sequence[int]) -> RowTable:
    """The table of an operand of which an index chooses along `indexed`, `slice_sizes` elements along each axis."""
    partly = [axis for axis, size in enumerate(shape) if axis in indexed or slice_sizes[axis] != size]
    return RowTable(shape=shape, row_axes=tuple(partly), window=tuple(int(slice_sizes[axis]) for axis in partly))


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What a plan is told of its use: memory for temporaries on a tile, and how the indices come.

    `one_point`: all of them name one row, else they are spread evenly. `in_order`: those of an update rise, so that a
    worker searches for the first that falls into its rows. `partials`: the word of the type in which copies of a
    table are added up; empty for the table's own.
    """

    budget_bytes: int
    one_point: bool = False
    in_order: bool = False
    partials: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """Parts of the rows, columns and lookups of a table; `lookups` > 1 keeps copies of the table's parts."""

    rows: int
    columns: int
    lookups: int

    def __str__(self) -> str:
        return f"rows in {self.rows}, columns in {self.columns}, indices in {self.lookups} parts"


@remembered(512)
def plan_rows(
    rows: int,
    columns: int,
    indices: int,
    dtype: str,
    tiles: int,
    assumed: Assumed,
    rates: Rates,
    *,
    split_indices: bool = True,
) -> RowPlan:
    """The cheapest plan whose temporaries stay within the budget on a tile; the smallest if none does.

    As PopLibs plans an embedding that is both looked up and updated (poplibs@7eac0f26 lib/popops/DynamicSlice.cpp:
    4124-4780): every index goes to every part of the rows, indices fall into a part as they are assumed to, a second
    stage chooses among the parts' candidates. Row and lookup splits are swept in powers of two. Only updates that
    add can split the indices.
    """
    itemsize = type_bytes(dtype)
    grains = ceil_div(columns, grain_of(itemsize))
    candidates = [
        RowPlan(rows=row_parts, columns=column_parts, lookups=lookup_parts)
        for column_parts in distinct_parts(grains, tiles)
        for lookup_parts in _powers(min(indices, tiles // column_parts) if split_indices else 1)
        for row_parts in _powers(min(tiles // (column_parts * lookup_parts), max(1, rows // 2)))
    ]

    def cost(plan: RowPlan) -> tuple[bool, int, int]:
        part = _Part(
            rows=ceil_div(rows, plan.rows),
            columns=min(columns, grain_of(itemsize) * ceil_div(grains, plan.columns)),
            indices=ceil_div(indices, plan.lookups),
            all_indices=indices,
            plan=plan,
            even_bytes=ceil_div(rows * columns * itemsize, tiles),
            dtype=dtype,
            assumed=assumed,
            rates=rates,
        )
        cycles, temporary_bytes = part.cycles(rows), part.temporary_bytes()
        over = temporary_bytes > assumed.budget_bytes
        return over, temporary_bytes if over else cycles, cycles

    return min(candidates, key=cost)


def grain_of(itemsize_bytes: int) -> int:
    """Elements of a row that stay together: a store of four bytes."""
    return max(1, STORE_BYTES // itemsize_bytes)


def _powers(most: int) -> list[int]:
    """1, 2, 4, … and `most`."""
    return sorted({1 << bit for bit in range(most.bit_length())} | {most}) if most > 0 else []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What the busiest tile of a plan holds and does."""

    rows: int
    columns: int
    indices: int
    all_indices: int
    plan: RowPlan
    even_bytes: int
    dtype: str
    assumed: Assumed
    rates: Rates

    @property
    def row_bytes(self) -> int:
        return self.columns * type_bytes(self.dtype)

    @property
    def table_bytes(self) -> int:
        return self.rows * self.row_bytes

    @property
    def chosen(self) -> int:
        """Indices of the second stage."""
        return ceil_div(self.indices, self.plan.rows)

    @property
    def second_stage_bytes(self) -> int:
        return 0 if self.plan.rows == 1 else self.plan.rows * self.chosen * self.row_bytes

    @property
    def candidates_bytes(self) -> int:
        return 0 if self.plan.rows == 1 else self.indices * self.row_bytes

    @property
    def partials_bytes(self) -> int:
        """The tile's table of additions, where the indices are split."""
        bytes_each = type_bytes(self.assumed.partials or self.dtype)
        return self.rows * self.columns * bytes_each if self.plan.lookups > 1 else 0

    @property
    def moved_table_bytes(self) -> int:
        """A copy of the part if the indices are split, else what the tile holds beyond an even spread."""
        return max(self.table_bytes if self.plan.lookups > 1 else 0, self.table_bytes - self.even_bytes)

    def cycles(self, rows: int) -> int:
        """Lookup and update of all indices."""
        machine = self.rates.machine
        received = self.moved_table_bytes + self.second_stage_bytes + self.candidates_bytes
        compute = vertices.cycles(
            machine, "popops::MultiSlice", **self._slice_arguments(self.indices, self.rows / rows)
        )
        if self.plan.rows > 1:
            second = self._slice_arguments(self.chosen, 1 / self.plan.rows)
            compute += vertices.cycles(machine, "popops::MultiSlice", **second)
        compute += vertices.cycles(machine, "popops::MultiUpdateOp", **self._update_arguments(rows))
        if self.plan.lookups > 1:
            received += self.partials_bytes
            compute += self.partials_bytes // machine.data_path_bytes
        return (received + 2 * self.indices * INDEX_BYTES) // self.rates.exchange_bytes_per_cycle + compute

    def _slice_arguments(self, indices: int, share: float) -> dict[str, Any]:
        offsets = ceil_div(indices, self.rates.machine.workers)
        return {
            "type": self.dtype,
            "region_size": self.columns,
            "offsets": offsets,
            "offsets_in_range": int(chosen_by_worker(offsets, share, self.assumed)),
            **single_region(self.all_indices, self.dtype, self.columns),
        }

    def _update_arguments(self, rows: int) -> dict[str, Any]:
        dtype = (self.assumed.partials or self.dtype) if self.plan.lookups > 1 else self.dtype
        return {
            "type": dtype,
            "op": "ADD",
            "region_size": self.columns,
            "offsets": self.indices,
            "offsets_in_range": int(
                updated_by_worker(self.indices, self.rows / rows, rows, self.assumed, self.rates.machine.workers)
            ),
            "sub_word_writes_required": self.columns % grain_of(type_bytes(dtype)) != 0,
            **ordering(self.indices, rows, self.assumed),
        }

    def temporary_bytes(self) -> int:
        """Copies, partial tables, candidates and indices."""
        moved = self.moved_table_bytes + self.partials_bytes + self.indices * INDEX_BYTES
        return moved + self.candidates_bytes + self.second_stage_bytes


def chosen_by_worker(offsets: Any, share: Any, assumed: Assumed) -> Any:
    """Of the `offsets` a worker looks up, those that fall into `share` of the rows; numbers or arrays."""
    return offsets if assumed.one_point else np.minimum(offsets, np.ceil(offsets * share).astype(np.int64))


def updated_by_worker(offsets: Any, share: Any, rows: int, assumed: Assumed, workers: int) -> Any:
    """Of all `offsets`, those that fall into one worker's part of `share` of the rows; numbers or arrays.

    Offsets in order are known to be spread as evenly as they can be; others meet the rows at random
    (poplibs@7eac0f26 lib/popops/DynamicSlice.cpp:4625-4646).
    """
    if assumed.one_point:
        return offsets
    rows_of_worker = np.ceil(np.ceil(rows * share) / workers)
    found = rows_of_worker * offsets / max(1, rows) if assumed.in_order else offsets * share / workers
    return np.minimum(offsets, np.ceil(found).astype(np.int64))


def single_region(indices: int, dtype: str, columns: Any) -> dict[str, bool]:
    """The argument of a slice of one row, whose words are shared by the workers (DynamicSlice.cpp:4150, 4415-4420)."""
    words = not np.any(np.asarray(columns) * type_bytes(dtype) % STORE_BYTES)
    return {"split_single_region": True} if indices == 1 and words else {}


def ordering(indices: int, rows: int, assumed: Assumed) -> dict[str, Any]:
    """Arguments of an update whose vertices search for their first index, and how many name one row."""
    if not assumed.in_order:
        return {}
    repeats = indices if assumed.one_point else ceil_div(indices, max(1, rows))
    return {"indices_are_sorted": True, "offsets_per_entry": repeats}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """Where a plan puts things.

    The table's `home` and where it is `used`; `indices`; `candidates` [row parts, indices, columns] of a lookup and
    the `chosen` ones; `updates` of a scatter, partial tables [index parts, rows, columns] and where they are gathered.
    `row_lengths`: rows of each row part.
    """

    home: Grid
    used: Grid
    indices: Grid
    candidates: Grid
    chosen: Grid
    updates: Grid
    partials: Grid
    gathered: Grid
    row_lengths: IntArray


@remembered(512)
def layout_rows(plan: RowPlan, rows: int, columns: int, indices: int, grain: int) -> RowLayout:
    """Tile (row part, column part, lookup part) is number (row part · column parts + column part) · lookup parts + …"""
    parts = plan.lookups
    row = even_cuts(rows, plan.rows, ceil=True)
    column = even_cuts(columns, plan.columns, grain, ceil=True)
    index = even_cuts(indices, parts, ceil=True)
    row_at = np.arange(plan.rows, dtype=np.int64) * plan.columns * parts
    column_at = np.arange(plan.columns, dtype=np.int64) * parts
    lookup_at = np.arange(parts, dtype=np.int64)
    rows_cut, columns_cut = (row[:-1], row[1:], row_at), (column[:-1], column[1:], column_at)
    lookups_cut = (index[:-1], index[1:], lookup_at)
    whole_tiles = (row_at[:, None] + column_at).reshape(-1)
    one = np.arange(plan.rows, dtype=np.int64)
    home_rows = _cut_again(row, row_at, np.arange(parts))
    return RowLayout(
        home=grid_of_cuts((rows, columns), [home_rows, columns_cut]),
        used=grid_of_cuts((rows, columns), [rows_cut, columns_cut], replicas=lookup_at),
        indices=grid_of_cuts((indices,), [lookups_cut], replicas=whole_tiles),
        candidates=grid_of_cuts((plan.rows, indices, columns), [(one, one + 1, row_at), lookups_cut, columns_cut]),
        chosen=grid_of_cuts((indices, columns), [_cut_again(index, lookup_at, row_at), columns_cut]),
        updates=grid_of_cuts((indices, columns), [lookups_cut, columns_cut], replicas=row_at),
        partials=grid_of_cuts((parts, rows, columns), [(lookup_at, lookup_at + 1, lookup_at), rows_cut, columns_cut]),
        gathered=grid_of_cuts((parts, rows, columns), [whole(parts), home_rows, columns_cut]),
        row_lengths=frozen(np.diff(row)),
    )


def _cut_again(bounds: IntArray, offset: IntArray, steps: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Every interval cut evenly in as many parts as there are `steps` between their tiles."""
    lo: list[IntArray] = []
    hi: list[IntArray] = []
    for first, last in pairwise(bounds):
        inner = even_cuts(int(last - first), len(steps), ceil=True) + first
        lo.append(inner[:-1])
        hi.append(inner[1:])
    return np.concatenate(lo), np.concatenate(hi), (offset[:, None] + steps).reshape(-1)
