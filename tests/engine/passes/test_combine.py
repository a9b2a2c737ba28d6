"""Combining and merging: the same numbers from fewer operators, and nothing that waits for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.evaluate import evaluate
from tests.engine.small_graphs import before_and_after
from workbench.engine.graph import Graph, GraphBuilder, Input, Output, Value, verify_graph
from workbench.engine.options import options
from workbench.engine.passes.combine import combine
from workbench.engine.passes.merge import merge

F32 = "float32"
MATMULS = options({"optimizations.combine_matmuls": True})


def graph_of(builder: GraphBuilder, *results: Value) -> Graph:
    main = builder.function(results)
    inputs = tuple(Input(name=f"in{number}", role="input") for number in range(len(main.params)))
    outputs = tuple(Output(name=f"out{number}") for number in range(len(results)))
    return verify_graph(Graph(functions={"main": main}, entry="main", inputs=inputs, outputs=outputs))


def product(builder: GraphBuilder, left: Value, right: Value) -> Value:
    shape = (left.shape[0], right.shape[1])
    return builder.node(
        "dot_general", (left, right), ((shape, F32),), lhs_contract=(1,), rhs_contract=(0,), lhs_batch=(), rhs_batch=()
    )[0]


def unary(builder: GraphBuilder, op: str, value: Value) -> Value:
    return builder.node(op, (value,), ((value.shape, F32),))[0]


def count(graph: Graph, op: str) -> int:
    return sum(node.op == op for node in graph.body.nodes)


def random(*shapes: tuple[int, ...]) -> list[Any]:
    generator = np.random.default_rng(0)
    return [generator.normal(size=shape).astype(F32) for shape in shapes]


@pytest.mark.parametrize("shared", ["left", "right"])
def test_matmuls_that_share_an_operand_become_one(shared: str) -> None:
    """What the second needs is made before the first, what reads the first comes after both."""
    shapes = [(3, 4), (4, 5), (4, 6)] if shared == "left" else [(4, 5), (3, 4), (2, 4)]
    builder = GraphBuilder("main")
    common, first, second = (builder.param(shape, F32) for shape in shapes)

    def times(other: Value) -> Value:
        return product(builder, common, other) if shared == "left" else product(builder, other, common)

    one = unary(builder, "tanh", times(first))
    before = graph_of(builder, one, times(unary(builder, "neg", second)))
    after = verify_graph(combine(before, MATMULS))
    assert (count(before, "dot_general"), count(after, "dot_general")) == (2, 1)
    values = random(*shapes)
    for found, expected in zip(evaluate(after, values), evaluate(before, values), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_matmuls_one_of_which_needs_the_other_stay_apart() -> None:
    builder = GraphBuilder("main")
    rows, kernel = builder.param((4, 4), F32), builder.param((4, 4), F32)
    once = product(builder, rows, kernel)
    before = graph_of(builder, product(builder, unary(builder, "tanh", once), kernel))
    assert count(combine(before, MATMULS), "dot_general") == 2


def test_without_the_options_nothing_is_combined() -> None:
    builder = GraphBuilder("main")
    rows, kernel, other = builder.param((4, 4), F32), builder.param((4, 4), F32), builder.param((4, 4), F32)
    graph = graph_of(builder, product(builder, rows, kernel), product(builder, rows, other))
    assert count(combine(graph, options()), "dot_general") == 2
    assert merge(graph, options()).body.nodes == graph.body.nodes


def test_look_ups_in_one_table_become_one_with_all_indices() -> None:
    """2 x 3 and 5 indices are 11 rows, given back as 2 x 3 and 5."""
    builder = GraphBuilder("main")
    table = builder.param((16, 8), F32)
    found = [
        builder.node(
            "gather",
            (table, builder.param((*shape, 1), "int32")),
            (((*shape, 8), F32),),
            offset_dims=(len(shape),),
            operand_batching_dims=(),
            collapsed_slice_dims=(0,),
            start_index_map=(0,),
            slice_sizes=(1, 8),
            mode="clip",
        )[0]
        for shape in ((2, 3), (5,))
    ]
    graph = graph_of(builder, *found)
    after = verify_graph(combine(graph, options({"optimizations.combine_embedding_lookups": True})))
    (lookup,) = [node for node in after.body.nodes if node.op == "gather"]
    assert lookup.operands[1].shape == (11, 1)
    assert (lookup.results[0].shape, lookup.attr("offset_dims")) == ((11, 8), (1,))
    assert [value.shape for value in after.body.results] == [(2, 3, 8), (5, 8)]


@pytest.mark.parametrize(("limit_bytes", "together"), [(0, []), (79, []), (80, [2]), (128, [2, 2]), (192, [3])])
def test_reductions_wait_up_to_a_number_of_bytes(limit_bytes: int, together: list[int]) -> None:
    """Three sums of 64 bytes each; that of 16 bytes cannot wait with the first, which it reads."""
    builder = GraphBuilder("main")
    sums = [builder.node("reduce_sum", (builder.param((4, 4), F32),), (((4,), F32),), axes=(0,))[0] for _ in range(3)]
    (last,) = builder.node("reduce_sum", (sums[0],), (((), F32),), axes=(0,))
    before = graph_of(builder, last, *sums)
    after = verify_graph(merge(before, options({"optimizations.maximum_reduce_many_buffer_size": limit_bytes})))
    regions = [node for node in after.body.nodes if node.op == "region"]
    assert [len(node.results) for node in regions] == together
    values = random((4, 4), (4, 4), (4, 4))
    for found, expected in zip(evaluate(after, values), evaluate(before, values), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_text(golden: Any) -> None:
    builder = GraphBuilder("main")
    common, first, second = (builder.param(shape, F32) for shape in [(3, 4), (4, 5), (4, 6)])
    before = graph_of(builder, product(builder, common, first), product(builder, common, second))
    golden("passes/combine.txt", before_and_after(before, combine(before, MATMULS)))
