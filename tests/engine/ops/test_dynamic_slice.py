"""Dynamic slices and updates on four tiles, worked out by hand."""

from __future__ import annotations

from tests.engine.ops.lowered import F32, compiled, single
from workbench.engine.graph import GraphBuilder

SCALARS = [((), "int32"), ((), "int32")]


def test_a_slice_copies_the_columns_each_tile_holds() -> None:
    """8 rows of 128 floats, 2 of them: 32 columns a tile; only the sliced offset is broadcast, from tile 1."""
    case = single("dynamic_slice", [((8, 128), F32), *SCALARS], [((2, 128), F32)], slice_sizes=(2, 128))
    assert case.variable("in0") == [8 * 32 * 4] * 4
    assert case.received() == [4, 0, 4, 4]
    arguments, tiles, _ = case.vertex("popops::DynamicSlice1D")
    assert arguments == {"type": "float", "region_size": 32, "num_sub_elements": 2, "num_base_elements": 8}
    assert tiles == [0, 1, 2, 3]
    assert case.variable("dynamic_slice") == [2 * 32 * 4] * 4
    # 32 columns over six workers are 6 each, 3 vectors of two: 6 * (39 + 2 * (24 + 2 * 3)) + 25, and the launch of 80.
    (step,) = [one for one in case.computes if one.name.endswith("dynamic_slice")]
    assert case.trace.steps[step.id].cycles == 14 + 6 * (39 + 2 * (24 + 2 * 3)) + 11 + 80


def test_a_slice_of_everything_is_the_operand() -> None:
    case = single("dynamic_slice", [((8, 128), F32), *SCALARS], [((8, 128), F32)], slice_sizes=(8, 128))
    assert case.vertices() == []


def test_an_update_of_what_nobody_reads_any_more_is_in_place() -> None:
    builder = GraphBuilder("main")
    source, update = builder.param((8, 128), F32), builder.param((2, 128), F32)
    start = builder.param((), "int32")
    (base,) = builder.node("exp", (source,), (((8, 128), F32),))
    (zero,) = builder.node("constant", (), (((), "int32"),), value=0)
    results = builder.node("dynamic_update_slice", (base, update, start, zero), (((8, 128), F32),))
    case = compiled(builder, results)
    assert [name for name in case.names() if "dynamic_update_slice" in name and "arranged" not in name] == []
    step = case.computes[-1]
    assert step.writes[0] in step.reads


def test_an_operand_that_is_read_again_is_copied_first() -> None:
    case = single("dynamic_update_slice", [((8, 128), F32), ((2, 128), F32), *SCALARS], [((8, 128), F32)])
    copies = [step for step in case.computes if step.name.endswith("dynamic_update_slice/copy/copy")]
    assert len(copies) == 1
    arguments, _, _ = case.vertex("popops::DynamicUpdateSlice1D")
    assert (arguments["region_size"], arguments["num_sub_elements"]) == (32, 2)
    assert case.received() == [4, 0, 4, 4]  # the update lies by the same columns, as the operator wishes
