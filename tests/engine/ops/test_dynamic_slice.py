"""Dynamic slices and updates on four tiles, worked out by hand."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from tests.engine.ops.lowered import F32, compiled, single
from workbench.engine.compile import compile_graph
from workbench.engine.emit.context import LEAST_BYTES
from workbench.engine.frontends.functions import trace_function
from workbench.engine.graph import GraphBuilder
from workbench.engine.options import Options
from workbench.engine.target import target

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


def test_axes_are_sliced_one_after_another_the_one_that_leaves_least_first() -> None:
    """A quarter of 16 rows and half of 32 columns: 8 columns a tile, then 4 rows a tile's 32 columns, a row each."""
    case = single("dynamic_slice", [((16, 32), F32), *SCALARS], [((4, 16), F32)], slice_sizes=(4, 16))
    assert case.variable("in0") == [16 * 8 * 4] * 4
    assert [arguments for _, arguments, _, _ in case.vertices("dynamic_slice")] == [
        {"type": "float", "region_size": 8, "num_sub_elements": 4, "num_base_elements": 16},
        {"type": "float", "region_size": 1, "num_sub_elements": 16, "num_base_elements": 32},
    ]
    # Of the 4 rows of 8 columns a tile has then it needs one whole row: 24 elements come. Both offsets are on tile 1.
    assert [[int(each) for each in step.exchange.received_bytes] for step in case.exchanges] == [
        [4, 0, 4, 4],
        [24 * 4 + 4, 24 * 4, 24 * 4 + 4, 24 * 4 + 4],
    ]
    assert case.variable("dynamic_slice") == [16 * 4] * 4


def test_an_array_of_one_axis_comes_to_one_tile_to_be_sliced_and_lies_on_all() -> None:
    """512 floats on four tiles, 200 of them sliced on the tile of the first and spread again."""
    case = single("dynamic_slice", [((512,), F32), SCALARS[0]], [((200,), F32)], slice_sizes=(200,))
    assert case.variable("in0") == [128 * 4] * 4
    arguments, tiles, _ = case.vertex("popops::DynamicSlice1D")
    assert arguments == {"type": "float", "region_size": 1, "num_sub_elements": 200, "num_base_elements": 512}
    assert tiles == [0]
    assert [[int(each) for each in step.exchange.received_bytes] for step in case.exchanges] == [
        [384 * 4 + 4, 0, 0, 0],
        [0, 50 * 4, 50 * 4, 50 * 4],
    ]
    assert case.variable("/dynamic_slice") == [50 * 4] * 4


def test_an_update_along_two_axes_slices_down_and_writes_back_in_place() -> None:
    builder = GraphBuilder("main")
    source, update = builder.param((16, 32), F32), builder.param((4, 16), F32)
    starts = [builder.param((), "int32") for _ in range(2)]
    (base,) = builder.node("exp", (source,), (((16, 32), F32),))
    case = compiled(builder, builder.node("dynamic_update_slice", (base, update, *starts), (((16, 32), F32),)))
    assert [
        (name, arguments["num_sub_elements"], arguments["num_base_elements"])
        for name, arguments, _, _ in case.vertices("dynamic_update_slice")
    ] == [
        ("popops::DynamicSlice1D", 4, 16),
        ("popops::DynamicUpdateSlice1D", 16, 32),
        ("popops::DynamicUpdateSlice1D", 4, 16),
    ]
    assert case.computes[-1].writes[0] in case.computes[-1].reads
    assert [name for name in case.names() if name.endswith("/copy")] == []


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=3),
    st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
    st.booleans(),
    st.sampled_from([4, 64]),
)
def test_what_is_sliced_and_what_comes_of_it_lie_on_all_tiles(
    shape: list[int], shares: list[float], is_update: bool, tiles: int
) -> None:
    """Of what is computed; only while an axis is sliced may a tile have more."""
    sizes = tuple(max(1, int(size * share)) for size, share in zip(shape, shares, strict=False))

    def program(x: Any, update: Any, *starts: Any) -> Any:
        if is_update:
            return jnp.tanh(lax.dynamic_update_slice(jnp.sin(x), jnp.sin(update), starts))
        return jnp.tanh(lax.dynamic_slice(jnp.sin(x), starts, sizes))

    scalars = [jax.ShapeDtypeStruct((), "int32")] * len(shape)
    specs = [jax.ShapeDtypeStruct(each, "float32") for each in (tuple(shape), sizes)]
    # A slice of one entry along one axis is a look-up of a row, planned elsewhere.
    options = Options().with_values({"optimizations.enable_dynamic_slice_replacement": False})
    graph = trace_function(program, *specs, *scalars, name="f").graph
    made = compile_graph(graph, target("ipu2", tiles_per_ipu=tiles), options)
    for one in made.program.variables:
        if "arranged" not in one.name and "/d" not in one.name.removesuffix("/dynamic_slice"):
            mean = one.size_bytes / tiles
            # Columns over at least as many tiles: some have one, some two.
            assert max(one.bytes_per_tile) <= 2 * mean + 2 * LEAST_BYTES, one.name
