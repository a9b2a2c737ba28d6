"""Which codelet a chain becomes, where it runs and what it reads, on four tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.ops.lowered import F32, Case, Kind, compiled, lowered_graph, single
from tests.engine.vertices.machine import MACHINE
from workbench.engine.graph import Function, GraphBuilder, Node
from workbench.engine.graph.origin import Origin
from workbench.engine.ops.codelets import expression_groups
from workbench.engine.ops.expressions import Expression, expression_of
from workbench.engine.passes.fuse import fuse

ROW, MATRIX, SCALAR = ((8,), F32), ((4, 8), F32), ((), F32)
FOUR = np.array([8, 8, 8, 8], np.int64)


def chain(
    params: list[Kind], *operations: tuple[Any, ...], region: str = "", direction: Any = "forward"
) -> tuple[Node, Function]:
    """A chain of (op, operand numbers, type, attributes) as one fused node; numbers count params, then nodes."""
    builder = GraphBuilder("main")
    values = [builder.param(shape, dtype) for shape, dtype in params]
    origin = Origin(layer="layer", region=region, direction=direction)
    for op, numbers, kind, *rest in operations:
        more = rest[0] if rest else {}
        values += builder.node(op, tuple(values[number] for number in numbers), (kind,), origin=origin, **more)
    made = builder.nodes
    node = Node("fused", tuple(builder.params), made[-1].results, (), origin, ("chain",))
    return node, Function("chain", tuple(builder.params), made[-1].results, tuple(made))


def vertex_of(expression: Expression, *needed: int, in_place: int | None = None) -> tuple[str, dict[str, Any]]:
    groups = expression_groups(
        expression, FOUR, [np.full(4, count, np.int64) for count in needed], machine=MACHINE, in_place=in_place
    )
    (name,) = {group.vertex for group in groups}
    return name, dict(groups[0].arguments)


@pytest.mark.parametrize(
    ("operations", "form", "vertex"),
    [
        ([("neg", (0,), ROW)], "neg(a)", "popops::UnaryOp1D"),
        ([("add", (0, 1), ROW)], "add(a,b)", "popops::BinaryOp1D"),
        ([("mul", (0, 2), ROW)], "mul(a,s)", "popops::BroadcastScalar1D"),
        ([("div", (2, 0), ROW)], "div(s,a)", "popops::MapExpression"),  # no codelet with the scalar on the left
        ([("tanh", (0,), ROW)], "tanh(a)", "popnn::NonLinearity1D"),
        ([("constant", (), SCALAR, {"value": 0.0}), ("max", (0, 3), ROW)], "max(a,0.0)", "popnn::NonLinearity1D"),
        ([("constant", (), SCALAR, {"value": 2.0}), ("max", (0, 3), ROW)], "max(a,2.0)", "popops::BroadcastScalar1D"),
        ([("exp", (0,), ROW), ("add", (3, 1), ROW)], "add(exp(a),b)", "popops::MapExpression"),
        ([("convert_element_type", (0,), ((8,), "float16"))], "convert_element_type(a)", "popops::Cast1D"),
    ],
)
def test_codelet_of_a_chain(operations: list[Any], form: str, vertex: str) -> None:
    node, inside = chain([ROW, ROW, SCALAR], *operations)
    expression = expression_of(node, inside)
    assert str(expression.form) == form
    assert vertex_of(expression, *(1 for _ in expression.broadcast))[0] == vertex


def test_updates_of_the_first_operand_are_scaled_additions() -> None:
    """w - lr g where w lies; anywhere else it is a generated codelet."""
    node, inside = chain([ROW, ROW, SCALAR], ("mul", (1, 2), ROW), ("sub", (0, 3), ROW))
    expression = expression_of(node, inside)
    assert str(expression.form) == "sub(a,mul(b,s))"
    assert [value.id for value in expression.full] == [0, 1]
    name, arguments = vertex_of(expression, 1, in_place=0)
    assert name == "popops::ScaledSubtractSupervisor"
    assert (arguments["n"], arguments["a_type"], arguments["scale_type"]) == (8, "float", "float")
    assert vertex_of(expression, 1)[0] == "popops::MapExpression"


def test_a_momentum_is_two_scaled_operands() -> None:
    operations = [("mul", (0, 2), ROW), ("mul", (1, 3), ROW), ("sub", (4, 5), ROW)]
    node, inside = chain([ROW, ROW, SCALAR, SCALAR], *operations)
    assert vertex_of(expression_of(node, inside), 1, 1, in_place=0)[0] == "popops::aXMinusbYSupervisor"


@pytest.mark.parametrize(
    ("region", "operation", "expected"),
    [("gelu", "erf", "GELU_ERF"), ("gelu", "tanh", "GELU"), ("silu", "logistic", "SWISH")],
)
def test_named_functions_are_non_linearities(region: str, operation: str, expected: str) -> None:
    node, inside = chain([ROW], (operation, (0,), ROW), ("mul", (0, 1), ROW), region=region)
    name, arguments = vertex_of(expression_of(node, inside))
    assert (name, arguments["op"]) == ("popnn::NonLinearity1D", expected)


def test_a_vector_along_rows_is_inner_and_along_columns_outer() -> None:
    """A tile's 8 elements: 4 divisors used on 2 rows, or 2 factors on 4 columns each."""
    node, inside = chain([MATRIX, ((1, 8), F32)], ("div", (0, 1), MATRIX))
    name, arguments = vertex_of(expression_of(node, inside), 4)
    assert name == "popops::BroadcastVectorInner1D"
    assert (arguments["b_slice_len"], arguments["b_broadcast_factor"]) == (4, 2)
    node, inside = chain([MATRIX, ((4, 1), F32)], ("mul", (0, 1), MATRIX))
    name, arguments = vertex_of(expression_of(node, inside), 2)
    assert name == "popops::BroadcastVectorOuterByRow1D"
    assert (arguments["rows"], arguments["columns"], arguments["allow_misaligned"]) == (2, 4, False)
    # Three elements of a vector cannot be whole rows of eight.
    assert vertex_of(expression_of(node, inside), 3)[0] == "popops::MapExpression"


def test_workers_take_a_short_row_each_and_share_a_long_one() -> None:
    """Six workers take two floats at a time: a row of 12 gives all of them work, one of 11 does not. Popops asks how
    long the rows of a tile are, and not how many (poplibs@7eac0f26 lib/popops/ElementWise.cpp:1132-1139), and whether
    they are whole vectors of two (there, 1157).
    """
    node, inside = chain([((8, 12), F32), ((8, 1), F32)], ("mul", (0, 1), ((8, 12), F32)))
    rows, columns = np.array([8, 8, 2, 2], np.int64), np.array([12, 11, 12, 10], np.int64)
    groups = expression_groups(expression_of(node, inside), rows * columns, [rows], machine=MACHINE)
    by_tile = {int(group.tiles.tiles[0]): (group.vertex.split("By")[1], dict(group.arguments)) for group in groups}
    assert [by_tile[tile][0] for tile in range(4)] == ["Column1D", "Row1D", "Column1D", "Row1D"]
    assert [by_tile[tile][1]["allow_misaligned"] for tile in range(4)] == [False, True, False, False]
    assert all(by_tile[tile][1]["columns"] == columns[tile] for tile in range(4))


def test_broadcasts_and_unit_axes_inside_a_chain_are_seen_through() -> None:
    """[8] → [1, 8] → [4, 8], and a reshape between [4, 8] and [4, 1, 8]."""
    wide = ((4, 1, 8), F32)
    node, inside = chain(
        [MATRIX, ROW],
        ("broadcast_in_dim", (1,), ((1, 8), F32), {"broadcast_dimensions": (1,)}),
        ("add", (0, 2), MATRIX),
        ("reshape", (3,), wide),
        ("exp", (4,), wide),
    )
    expression = expression_of(node, inside)
    assert str(expression.form) == "exp(add(a,i))"
    assert [(value.id, axes) for value, axes in expression.broadcast] == [(1, (2,))]
    assert expression.shape == (4, 1, 8)


def test_operands_that_repeat_bring_only_their_own_elements() -> None:
    """A row of 8 floats on tile 1 for a 16x8 matrix spread over four tiles: 32 B to each of the others."""
    case = single("add", [((16, 8), F32), ((1, 8), F32)], [((16, 8), F32)])
    assert case.received() == [32, 0, 32, 32]
    # A tile repeats the row four times, 128 B, and adds 32 elements: popops does not use its vector codelet for floats.
    groups = case.computes[-1].compute_set.groups
    (copy,) = [group for group in groups if group.vertex == "poplar::Memcpy"]
    assert (dict(copy.arguments), list(copy.tiles.tiles)) == ({"bytes": 128}, [0, 1, 2, 3])
    assert case.vertex("popops::BinaryOp1D")[0]["n"] == 32
    assert case.lowered.operators[0].flops == 128


def _update(read_again: bool) -> Case:
    builder = GraphBuilder("main")
    weight, gradient = builder.param((64,), F32), builder.param((64,), F32)
    (rate,) = builder.node("constant", (), (SCALAR,), value=0.1)
    (scaled,) = builder.node("mul", (gradient, rate), (((64,), F32),))
    (made,) = builder.node("sub", (weight, scaled), (((64,), F32),))
    results = [made]
    if read_again:
        results += builder.node("exp", (weight,), (((64,), F32),))
    case = compiled(builder, results, roles=["parameter"], updates={0: 0})
    return lowered_graph(fuse(case.graph))


def test_a_weight_is_updated_where_it_lies() -> None:
    case = _update(read_again=False)
    assert [vertex for vertex, *_ in case.vertices()] == ["popops::ScaledSubtractSupervisor"]
    assert [one.name for one in case.lowered.program.variables if one.always_live] == ["in0"]


def test_a_weight_that_is_read_afterwards_is_copied_back() -> None:
    case = _update(read_again=True)
    names = [step.name for step in case.lowered.program.steps]
    assert any("write_back" in name for name in names)


def test_selections_of_three_tensors_are_shared_by_the_workers() -> None:
    case = single("select_n", [((32,), "bool"), ((32,), F32), ((32,), F32)], [((32,), F32)])
    arguments, tiles, count = case.vertex("popops::Select")
    assert (arguments["n"], count, len(tiles)) == (6, 6, 1)  # 32 elements of one tile over six workers


def test_a_border_lies_as_any_tensor_from_the_next_tile_on() -> None:
    """Two rows of 64 floats on four tiles, a scalar on tile 0; a third row of 256 bytes on the next two tiles."""
    types = [((2, 64), F32), SCALAR]
    case = single("pad", types, [((3, 64), F32)], low=(0, 0), high=(1, 0), interior=(0, 0))
    assert case.variable("border") == [0, 128, 128, 0]
    arguments, tiles, count = case.vertex("popops::Fill")
    assert (arguments["n"], tiles, count) == (6, [1, 2], 6)
    assert case.received() == []
    assert case.streamed() == [3 * 64 * 4]


def test_a_wide_border_is_on_all_tiles() -> None:
    case = single("pad", [((1, 64), F32), SCALAR], [((8, 64), F32)], low=(0, 0), high=(7, 0), interior=(0, 0))
    assert case.variable("border") == [448] * 4


def test_what_stands_between_elements_lies_behind_them() -> None:
    """64 rows of two floats, 128 B a tile, on four tiles; a row between any two: 16 on a tile, 15 on the last."""
    case = single("pad", [((64, 2), F32), SCALAR], [((127, 2), F32)], low=(0, 0), high=(0, 0), interior=(1, 0))
    assert case.variable("border") == [128, 128, 128, 120]


def test_what_stands_between_few_elements_is_spread() -> None:
    """Two rows of 128 floats and six between them would lie on the two tiles of the first: 1,792 B on each."""
    case = single("pad", [((2, 128), F32), SCALAR], [((8, 128), F32)], low=(0, 0), high=(0, 0), interior=(6, 0))
    assert case.variable("border") == [768] * 4


def test_what_is_made_of_a_slice_does_not_crowd_on_its_tiles() -> None:
    """Of 1,024 floats on four tiles the first 256 are on tile 0; their negatives are on all."""
    builder = GraphBuilder("main")
    source = builder.param((1024,), F32)
    (part,) = builder.node("slice", (source,), (((256,), F32),), start_indices=(0,), limit_indices=(256,), strides=())
    (whole,) = builder.node("neg", (part,), (((256,), F32),))
    assert compiled(builder, (whole, source)).variable("neg") == [256] * 4
