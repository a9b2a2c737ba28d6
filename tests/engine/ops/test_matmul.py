"""Products of matrices become exchanges, vertices and reductions that agree with their plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.ops.planned import lowered
from tests.engine.planner.cases import dot_node, dots, graph_of
from workbench.engine.graph import Node
from workbench.engine.lower import lower
from workbench.engine.lower.in_place import find_in_place
from workbench.engine.options import options
from workbench.engine.program import OnTileExecute, Repeat, leaves
from workbench.engine.target import target

FOUR = target("ipu2", tiles_per_ipu=4)
WHOLE = target("ipu2")


def test_a_product_on_four_tiles_shares_one_operand_and_computes_once() -> None:
    case = lowered(dot_node((64, 32), (32, 64), ((1,), (0,)), dtype="float16"), FOUR, partialsType="half")
    # Each tile makes a quarter of the result. A quarter of one operand lies on it; of the other, 64 x 32 halves, it
    # needs all 4,096 B and owns a quarter: 3,072 B arrive, the same on both tiles of a pair, at 8 B a cycle.
    (exchange,) = case.exchanges()
    assert exchange.exchange.received_bytes.tolist() == [3072] * 4
    assert case.vertices() == {"poplar::Memcpy", "poplin::ConvPartial1x1Out"}
    (compute,) = case.computes("/compute")
    (group,) = compute.compute_set.groups
    assert dict(group.arguments)["positions"] == 64
    assert len(group.tiles) == 4
    # The plan charges the exchange, the vertex and, whether or not they are sent, a quarter of the 64 x 64 sums.
    assert case.plan.total_cycles == 3072 // 8 + 1077 + 2048 // 4
    # Exchange, the vertex, the copy of the own quarter, and what two launches and one exchange begin with.
    assert case.cycles() == 3072 // 8 + 1077 + 277 + 283


def test_a_small_product_is_shared_as_its_plan_charges_no_phases() -> None:
    case = lowered(dot_node((32, 16), (16, 32), ((1,), (0,)), dtype="float16"), FOUR, partialsType="half")
    (exchange,) = case.exchanges()  # half of both operands' 512 B
    assert exchange.exchange.received_bytes.tolist() == [512] * 4
    assert len(case.computes("/compute")[0].compute_set.groups[0].tiles) == 4


def test_operator_row_says_flops_and_plan() -> None:
    case = lowered(dot_node((32, 16), (16, 32), ((1,), (0,))), FOUR)
    (row,) = case.lowered.operators
    assert row.flops == 2 * 32 * 16 * 32
    assert row.plan == str(case.plan)
    assert row.plan_cycles == case.plan.total_cycles
    assert case.lowered.unmodelled == ()


def test_half_operands_with_float_partials_are_cast_at_the_end() -> None:
    case = lowered(dot_node((32, 32), (32, 32), ((1,), (0,)), dtype="float16"), FOUR)
    assert "popops::Cast1D" in case.vertices()
    assert case.plan.method.partials_type == "float"


def test_what_one_block_of_channels_holds_is_written_in_half_at_once() -> None:
    deep = lowered(dot_node((32, 16), (16, 32), ((1,), (0,)), dtype="float16"), FOUR)
    assert (deep.plan.method.vertex, deep.plan.method.partials_type, deep.plan.method.units) == ("amp", "half", 16)
    assert "popops::Cast1D" not in deep.vertices()
    # Four rows a tile are one vector, its eight columns two a worker; the matrix unit takes longer.
    outer = lowered(dot_node((8, 1), (1, 16), ((1,), (0,)), dtype="float16"), FOUR)
    assert (outer.plan.method.vertex, outer.plan.method.partials_type) == ("outer_product", "half")
    assert [term.value for term in outer.plan.cost.terms if term.name == "compute"] == [6 * (25 + 10 + 2 * 20)]
    assert "popops::Cast1D" not in outer.vertices()


def test_deep_products_reduce_over_tiles() -> None:
    case = lowered(dot_node((4, 4096), (4096, 4), ((1,), (0,)), dtype="float16"), WHOLE, partialsType="half")
    assert "poplin::ReduceAdd" in case.vertices()
    assert len(case.computes("/reduce")) == 1 + len(case.plan.stages)
    # Every partial of every result is added: sums x depth over all tiles of the last step is results x partials left.
    last = case.computes("/reduce")[-1].compute_set.groups
    added = sum(dict(g.arguments)["out_size"] * dict(g.arguments)["partials"] * len(g.tiles) for g in last)
    left = case.plan.stages[-1] if case.plan.stages else case.plan.parts("c0")
    assert added == 16 * left


def test_little_memory_makes_a_loop_over_slices() -> None:
    node = dot_node((256, 512), (512, 256), ((1,), (0,)), dtype="float16")
    case = lowered(node, FOUR, availableMemoryProportion=0.05)
    assert case.plan.serial_in * case.plan.serial_out > 1
    (loop,) = [child for child in case.lowered.program.entry.children if isinstance(child, Repeat)]
    assert loop.times == case.plan.serial_in * case.plan.serial_out
    names = {step.name.rsplit("/", 1)[-1] for step in leaves(loop)}
    assert {"slice", "compute"} <= names
    assert case.temporary_bytes() < lowered(node, FOUR).temporary_bytes()


@given(dots(), st.integers(1, 16))
def test_any_product_lowers_to_a_valid_program(node: Node, tiles: int) -> None:
    case = lowered(node, target("ipu2", tiles_per_ipu=tiles))
    assert case.lowered.unmodelled == ()
    for step in case.exchanges():
        assert step.exchange.multicast_extra_bytes >= 0
    assert case.computes("/compute")


SHAPES = [
    (1024, 1024, 256, "float16"),
    (1024, 1024, 1024, "float32"),
    (512, 768, 3072, "float16"),
    (8, 2048, 1000, "float32"),
]


@pytest.mark.parametrize(("rows", "depth", "columns", "dtype"), SHAPES)
def test_steps_cost_and_hold_what_was_planned(rows: int, depth: int, columns: int, dtype: str) -> None:
    node = dot_node((rows, depth), (depth, columns), ((1,), (0,)), dtype=dtype)
    case = lowered(node, WHOLE, partialsType="half")
    # A plan charges what its steps take but for the barriers and launches that they begin with.
    begun = len(case.exchanges()) * (WHOLE.internal_sync_cycles + WHOLE.exchange_latency_cycles)
    begun += len(case.computes()) * WHOLE.launch_cycles
    assert 0.8 < (case.cycles() - begun) / case.plan.total_cycles < 1.4
    # Operands that only one tile needs are used where they lie; the plan counts a copy of them, as PopLibs does.
    (multiply,) = case.computes("/compute")
    read = [case.lowered.program.variables[name] for name in multiply.reads]
    in_place_bytes = sum(int(each.bytes_per_tile.max()) for each in read if each.kind == "parameter")
    assert 0.95 < case.temporary_bytes(during=multiply) / (case.plan.temporary_bytes - in_place_bytes) < 1.05
    # With operands in place the most may be live while partials are added up, but no more than was planned.
    assert case.temporary_bytes() <= 1.05 * case.plan.temporary_bytes


def test_a_product_of_nothing_is_zeros() -> None:
    node = dot_node((5, 0), (0, 3), ((1,), (0,)))
    graph = graph_of(node)
    found = lower(graph, FOUR, options({}), find_in_place(graph))
    (row,) = found.operators
    assert (row.flops, row.plan) == (0, "nothing to multiply")
    (fill,) = [step for step in leaves(found.program.entry) if isinstance(step, OnTileExecute)]
    assert {group.vertex for group in fill.compute_set.groups} == {"popops::Fill"}


def test_weights_lie_with_the_tiles_that_multiply_them() -> None:
    case = lowered(dot_node((64, 256), (256, 256), ((1,), (0,)), dtype="float16"), target("ipu2", tiles_per_ipu=16))
    weights = case.lowered.program.variables[1].bytes_per_tile
    assert weights.sum() == 256 * 256 * 2
    assert np.count_nonzero(weights) == case.plan.tiles
    assert weights.max() <= 2 * weights[weights > 0].min()
