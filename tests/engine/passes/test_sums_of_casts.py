"""Sums of halves that are cast only to be added up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.ops.lowered import lowered_graph
from tests.engine.small_graphs import before_and_after
from workbench.engine.graph import Graph, GraphBuilder, Input, Output, verify_graph
from workbench.engine.passes.sums_of_casts import sums_of_casts

HALVES = ((32, 8), "float16")


def cast_and_reduced(op: str, *, read_again: bool) -> Graph:
    builder = GraphBuilder("main")
    source = builder.param(*HALVES)
    (wide,) = builder.node("convert_element_type", (source,), ((HALVES[0], "float32"),), new_dtype="float32")
    (total,) = builder.node(op, (wide,), (((32,), "float32"),), axes=(1,))
    results: list[Any] = [total]
    if read_again:
        results += builder.node("exp", (wide,), ((HALVES[0], "float32"),))
    outputs = tuple(Output(name=f"out{number}") for number in range(len(results)))
    main = builder.function(tuple(results))
    inputs = (Input(name="x", role="input"),)
    return verify_graph(Graph(functions={"main": main}, entry="main", inputs=inputs, outputs=outputs))


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_prod"])
def test_a_reduction_reads_the_halves_and_writes_floats(op: str) -> None:
    graph = verify_graph(sums_of_casts(cast_and_reduced(op, read_again=False)))
    (node,) = graph.body.nodes
    assert (node.op, node.operands[0].dtype, node.results[0].dtype) == (op, "float16", "float32")


def test_a_cast_that_somebody_else_reads_stays() -> None:
    before = cast_and_reduced("reduce_sum", read_again=True)
    assert sums_of_casts(before).body.nodes == before.body.nodes


def test_a_largest_element_is_not_widened() -> None:
    before = cast_and_reduced("reduce_max", read_again=False)
    assert sums_of_casts(before).body.nodes == before.body.nodes


def test_the_vertex_is_told_both_types() -> None:
    """On four tiles a row's eight halves lie together: one compute set, from half to float."""
    case = lowered_graph(sums_of_casts(cast_and_reduced("reduce_sum", read_again=False)))
    types = [
        (given["type"], given.get("out_type")) for name, given, _, _ in case.vertices() if name == "popops::Reduce"
    ]
    assert types == [("half", "float")]


def test_half_sums_over_tiles_travel_as_floats() -> None:
    """32 rows over four tiles, added up: 8 partials of 4 B from each tile."""
    builder = GraphBuilder("main")
    (total,) = builder.node("reduce_sum", (builder.param(*HALVES),), (((8,), "float16"),), axes=(0,))
    graph = Graph(
        functions={"main": builder.function((total,))},
        entry="main",
        inputs=(Input(name="x", role="input"),),
        outputs=(Output(name="out"),),
    )
    case = lowered_graph(verify_graph(graph))
    types = [
        (given["type"], given.get("out_type")) for name, given, _, _ in case.vertices() if name == "popops::Reduce"
    ]
    assert types == [("half", "float"), ("float", "half")]
    assert case.variable("partials") == [32, 32, 32, 32]


def test_text(golden: Any) -> None:
    before = cast_and_reduced("reduce_sum", read_again=False)
    golden("passes/sums_of_casts.txt", before_and_after(before, sums_of_casts(before)))
