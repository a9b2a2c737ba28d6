"""Gathers and scatters on four tiles, worked out by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.ops.lowered import F32, Case, compiled, single
from tests.engine.vertices.machine import RATES
from workbench.engine.graph import GraphBuilder
from workbench.engine.ops.rows import Assumed, RowPlan, layout_rows, plan_rows, table_of

I32 = "int32"
TAKE = {
    "offset_dims": (1,),
    "collapsed_slice_dims": (0,),
    "start_index_map": (0,),
    "slice_sizes": (1, 4),
    "operand_batching_dims": (),
    "start_indices_batching_dims": (),
}
PUT = {
    "update_window_dims": (1,),
    "inserted_window_dims": (0,),
    "scatter_dims_to_operand_dims": (0,),
    "operand_batching_dims": (),
    "scatter_indices_batching_dims": (),
}


def test_a_small_table_is_copied_to_the_tiles_that_share_the_indices() -> None:
    """8x4 floats, 6 indices: columns in 2, indices in 2 parts. A part's 8x2 floats are 64 B, at home on two tiles."""
    case = single("gather", [((8, 4), F32), ((6, 1), I32)], [((6, 4), F32)], **TAKE)
    assert case.lowered.operators[0].plan == "rows in 1, columns in 2, indices in 2 parts"
    assert case.variable("in0") == [32, 32, 32, 32]  # the wish of the plan is heard: each half of a part on one tile
    # The other half of the part: 32 B each; three of the six indices, 12 B each, which are on tile 1.
    assert case.received() == [32 + 12, 32, 32 + 12, 32 + 12]
    arguments, tiles, _ = case.vertex("popops::MultiSlice")
    # Three indices a tile over six workers: one each at most; two columns.
    assert (arguments["offsets"], arguments["offsets_in_range"], arguments["region_size"]) == (1, 1, 2)
    assert tiles == [0, 1, 2, 3]
    assert case.variable("gather") == [24, 24, 24, 24]


def test_cut_rows_are_chosen_from_in_a_second_stage() -> None:
    """A plan with the rows in two parts: each part looks all 4 indices up, then each tile chooses for two of them."""
    layout = layout_rows(RowPlan(rows=2, columns=2, lookups=1), 8, 4, 4, 1)
    assert layout.used.elements_per_tile(4).tolist() == [8, 8, 8, 8]  # 4 rows x 2 columns
    assert layout.candidates.elements_per_tile(4).tolist() == [8, 8, 8, 8]  # of one part: 4 indices x 2 columns
    assert layout.chosen.elements_per_tile(4).tolist() == [4, 4, 4, 4]  # 2 indices x 2 columns
    assert layout.chosen.tile_of_elements().reshape(4, 4).tolist() == [[0, 0, 1, 1]] * 2 + [[2, 2, 3, 3]] * 2


def test_additions_with_cut_indices_go_through_tables_of_zeros() -> None:
    case = single("scatter-add", [((8, 4), F32), ((6, 1), I32), ((6, 4), F32)], [((8, 4), F32)], **PUT)
    assert case.variable("tables") == [64, 64, 64, 64]  # a whole part each
    assert case.received("reduce/exchange") == [32, 32, 32, 32]  # the other table's 16 B rows 0-3 or 4-7, 2 columns
    arguments, _, _ = case.vertex("popops::MultiUpdateOp")
    # Every worker sees the tile's 3 indices; one sixth of the rows gets at most one.
    assert (arguments["op"], arguments["offsets"], arguments["offsets_in_range"]) == ("ADD", 3, 1)
    arguments, _, workers = case.vertex("popops::Reduce")
    # 8 elements of two tables: sums are cut by two vectors of 64 bits, so two of the six workers have four each.
    assert (arguments["num_outputs"], arguments["num_partials"], workers) == (4, 2, 2)
    assert case.lowered.operators[0].flops == 24


def test_what_does_not_add_keeps_the_indices_together() -> None:
    case = single("scatter", [((8, 4), F32), ((6, 1), I32), ((6, 4), F32)], [((8, 4), F32)], **PUT)
    assert case.lowered.operators[0].plan.endswith("indices in 1 parts")
    arguments, _, _ = case.vertex("popops::MultiUpdate")
    assert (arguments["offsets"], arguments["region_size"]) == (6, 1)
    assert case.lowered.operators[0].flops == 0


def _embedding_update() -> Case:
    """A table of which rows are looked up, and to which rows are added; the table is a parameter."""
    builder = GraphBuilder("main")
    table, index, rows = builder.param((64, 8), F32), builder.param((16, 1), I32), builder.param((16, 8), F32)
    (taken,) = builder.node("gather", (table, index), (((16, 8), F32),), **{**TAKE, "slice_sizes": (1, 8)})
    (added,) = builder.node("scatter-add", (table, index, rows), (((64, 8), F32),), **PUT)
    return compiled(builder, [taken, added], roles=["parameter"], updates={1: 0})


def test_a_table_is_updated_where_it_is_looked_up() -> None:
    case = _embedding_update()
    tables = [one for one in case.lowered.program.variables if one.shape == (64, 8) and one.always_live]
    assert len(tables) == 1
    copies = [one.name for one in case.lowered.program.variables if one.shape == (64, 8) and one.kind == "activation"]
    assert copies == []
    assert not any("write_back" in step.name for step in case.lowered.program.steps)


@given(
    rows=st.integers(2, 300), columns=st.integers(1, 40), indices=st.integers(1, 200), tiles=st.sampled_from([1, 4, 16])
)
def test_a_plan_uses_no_more_tiles_than_there_are_and_covers_the_table(
    rows: int, columns: int, indices: int, tiles: int
) -> None:
    plan = plan_rows(rows, columns, indices, "float", tiles, Assumed(budget_bytes=100_000), RATES)
    assert plan.rows * plan.columns * plan.lookups <= tiles
    layout = layout_rows(plan, rows, columns, indices, 1)
    assert layout.home.is_owner
    assert int(layout.home.elements_per_tile(tiles).sum()) == rows * columns
    assert int(layout.used.elements_per_tile(tiles).sum()) == rows * columns * len(layout.used.replicas)
    assert int(layout.chosen.elements_per_tile(tiles).sum()) == indices * columns
    covered = np.zeros(rows * columns, bool)
    for lo, hi in zip(*layout.used.intervals()[1:], strict=True):
        covered[lo:hi] = True
    assert covered.all()


def test_without_room_the_plan_has_the_smallest_temporaries() -> None:
    """Many indices of a small table: with room its copies share them, without room one copy answers all."""
    roomy = plan_rows(256, 16, 1024, "float", 16, Assumed(budget_bytes=10**9), RATES)
    tight = plan_rows(256, 16, 1024, "float", 16, Assumed(budget_bytes=0), RATES)
    assert roomy.lookups > 1
    assert tight.lookups == 1


def test_a_table_is_seen_and_unseen() -> None:
    """Rows along axis 1 of [3, 5, 2]: the table is [5, 6], and back."""
    from workbench.engine.mapping import grid

    table = table_of((3, 5, 2), (1,), (3, 1, 2))
    assert (table.rows, table.columns, table.rows_per_index) == (5, 6, 1)
    mapping = grid((3, 5, 2), (3, 1, 2))
    assert table.unseen(table.seen(mapping)).tile_of_elements().tolist() == mapping.tile_of_elements().tolist()
    partly = table_of((8, 4), (0,), (1, 3))  # three of four columns are read, so columns count as rows
    assert (partly.rows, partly.columns, partly.rows_per_index) == (32, 1, 3)
