"""Sums that may wait run together, up to a number of bytes and never past their first reader."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.small_graphs import Draft, before_and_after
from workbench.engine.graph import Graph, verify_graph
from workbench.engine.options import options
from workbench.engine.passes.merge import merge

LIMIT = "optimizations.maximum_cross_replica_sum_buffer_size"


def five_sums(replicas: int = 2) -> Graph:
    """Four sums of 400 B, then one reader of the first, then a fifth sum, which the fourth may wait for."""
    draft = Draft()
    values = [draft.param(f"in{number}", (100,)) for number in range(5)]
    with draft.at(direction="update"):
        sums = [draft.node("psum", (value,), (100,), "float32") for value in values[:4]]
        read = draft.point("neg", sums[0])
        last = draft.node("psum", (values[4],), (100,), "float32")
    return draft.graph(read, *sums[1:], last, meta={"replicas": replicas})


def sizes(graph: Graph) -> list[int]:
    """Operands of each sum, in order."""
    return [len(node.operands) for node in graph.body.nodes if node.op == "psum"]


@pytest.mark.parametrize(
    ("limit_bytes", "expected"),
    [(0, [1] * 5), (399, [1] * 5), (800, [2, 2, 1]), (1200, [3, 2]), (10**6, [4, 1])],
)
def test_as_many_wait_as_bytes_allow(limit_bytes: int, expected: list[int]) -> None:
    assert sizes(verify_graph(merge(five_sums(), options({LIMIT: limit_bytes})))) == expected


def test_without_replicas_nothing_changes() -> None:
    graph = five_sums(replicas=0)
    assert merge(graph, options({LIMIT: 10**6})).functions == graph.functions


def test_sums_over_different_groups_stay_apart() -> None:
    draft = Draft()
    values = [draft.param(f"in{number}", (8,)) for number in range(2)]
    whole = draft.node("psum", (values[0],), (8,), "float32")
    half = draft.node("psum", (values[1],), (8,), "float32", axis_index_groups=((0,), (1,)))
    graph = draft.graph(whole, half, meta={"replicas": 2})
    assert sizes(merge(graph, options({LIMIT: 10**6}))) == [1, 1]


def test_text(golden: Any) -> None:
    before = five_sums()
    golden("passes/merge.txt", before_and_after(before, merge(before, options({LIMIT: 800}))))
