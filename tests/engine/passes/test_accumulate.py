"""Gradients meet their sums at once: the order changes, nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.passes.staged_models import BATCH, graph_of, model
from tests.engine.small_graphs import functions_before_and_after
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.graph import Function, Graph, verify_graph
from workbench.engine.graph.flow import carried
from workbench.engine.passes.accumulate import accumulate
from workbench.engine.passes.canonicalise import canonicalise
from workbench.engine.passes.fuse import fuse


def micro_batches() -> Graph:
    return trace_keras(model(False), BATCH, "training", optimizer="sgd", gradient_accumulation_steps=4).graph


def bodies(graph: Graph) -> list[tuple[Function, list[int]]]:
    """Functions that add to accumulators, each with the numbers of those results."""
    named = zip(graph.body.params, graph.inputs, strict=True)
    buffers = {id(value) for value, item in named if item.role == "accumulator"}
    found = []
    for node in graph.body.nodes:
        pairs = carried(graph)[node.calls[0]].items()
        sums = [result for result, place in pairs if id(node.operands[place]) in buffers]
        if sums and node.attr("direction") != "update":
            found.append((graph.functions[node.calls[0]], sums))
    return found


def lives(graph: Graph) -> list[int]:
    """Of each gradient, nodes between the product that makes it and its sum."""
    found = []
    for function, sums in bodies(graph):
        place = {id(value): number for number, node in enumerate(function.nodes) for value in node.results}
        for result in sums:
            last = place[id(function.results[result])]
            front, heavy = [last], -1
            while front and heavy < 0:
                node = function.nodes[front.pop(0)]
                if node.op in ("dot_general", "reduce_sum"):
                    heavy = place[id(node.results[0])]
                front += [place[id(value)] for value in node.operands if id(value) in place]
            if heavy >= 0:
                found.append(last - heavy)
    return found


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("make", [micro_batches, lambda: graph_of(("b",), 4)])
def test_a_sum_runs_right_behind_its_gradient(make: object, fused: bool) -> None:
    graph = canonicalise(make())  # type: ignore[operator]
    graph = fuse(graph) if fused else graph
    before, after = lives(graph), lives(verify_graph(accumulate(graph)))
    assert len(before) == len(after) == 8  # four kernels and four biases
    assert max(after) <= 3
    assert max(before) > 10


def test_the_nodes_are_the_same_in_an_order_of_their_own() -> None:
    graph = fuse(canonicalise(micro_batches()))
    changed = accumulate(graph)
    for name, function in graph.functions.items():
        assert {id(node) for node in function.nodes} == {id(node) for node in changed.functions[name].nodes}
        assert changed.functions[name].results == function.results
    orders = [each.functions["micro_batch"].nodes for each in (graph, changed)]
    heavy = [[node for node in nodes if node.op == "dot_general"] for nodes in orders]
    assert heavy[0] == heavy[1]


def test_without_accumulators_nothing_changes() -> None:
    graph = trace_keras(model(False), BATCH, "training", optimizer="sgd").graph
    assert accumulate(graph) is graph


def test_text(golden: Any) -> None:
    before = fuse(canonicalise(micro_batches()))
    golden("passes/accumulate.txt", functions_before_and_after(before, accumulate(before), bodies(before)[0][0].name))
