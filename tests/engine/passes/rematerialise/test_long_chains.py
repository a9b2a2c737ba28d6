"""Chains of many operations: what moves is the same as in short ones, and the work grows as the chain does."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from tests.engine.small_graphs import Draft
from workbench.engine.graph import Graph
from workbench.engine.passes.rematerialise import rematerialise


def kept(length: int) -> Graph:
    """A chain of which the backward pass reads every value, the last one first."""
    d = Draft()
    values = [d.point("exp", d.param("x", (8, 8)))]
    for _ in range(length):
        values.append(d.point("neg", values[-1]))
    with d.at(direction="backward"):
        slope = d.param("g", (8, 8))
        for value in reversed(values):
            slope = d.point("mul", value, slope)
    return d.graph(slope)


def calls_in(graph: Graph) -> int:
    """Calls of functions while the pass rewrites a graph."""
    found = Counter[str]()

    def count(frame: Any, event: str, argument: Any) -> None:
        found[event] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        rematerialise(graph)
    finally:
        sys.setprofile(before)
    return found["call"]


def test_a_chain_twice_as_long_takes_twice_the_work() -> None:
    # A round moves the last of the chain, which alone no operation reads that goes forward: as many rounds as
    # operations. Were every round to look at all of them, it would be four times the work.
    assert calls_in(kept(400)) < 2.5 * calls_in(kept(200))


def test_each_operation_is_done_right_before_the_first_that_reads_it_going_backward() -> None:
    nodes = rematerialise(kept(400)).body.nodes
    assert [node.op for node in nodes] == ["exp", *["neg"] * 400, *["mul"] * 401]
    assert [node.origin.direction for node in nodes] == ["forward", *["backward"] * 801]


def test_what_a_thousand_operations_make_is_kept_where_nothing_before_is() -> None:
    """The search for a way to make it again ends after the most operations that may be done again."""
    d = Draft()
    with d.at(layer="a"):
        y = d.point("exp", d.param("x", (8, 8)))
        for _ in range(1500):
            y = d.point("neg", y)
    with d.at(layer="a", direction="backward"):
        out = d.point("mul", d.param("g", (8, 8)), y)
    graph = d.graph(out)
    assert rematerialise(graph).body is graph.body
