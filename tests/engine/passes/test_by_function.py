"""Passes that treat every function by itself: the same as on a whole graph, and only for what has not been met."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.engine.passes.staged_models import graph_of
from workbench.engine.graph import Graph
from workbench.engine.options import Options
from workbench.engine.passes import PIPELINE
from workbench.engine.passes.by_function import BY_FUNCTION, Remembered

OPTIONS = Options()


@functools.cache
def before_each_pass() -> dict[str, Graph]:
    """A staged model as each pass of the pipeline meets it."""
    graph, found = graph_of(("b",), 4), {}
    for graph_pass in PIPELINE:
        found[graph_pass.name] = graph
        graph = graph_pass.apply(graph, OPTIONS)
    return found


def test_they_are_passes_of_the_pipeline() -> None:
    assert {graph_pass.name for graph_pass in PIPELINE} >= BY_FUNCTION


@pytest.mark.parametrize("name", sorted(BY_FUNCTION))
def test_a_function_becomes_the_same_in_every_graph(name: str) -> None:
    graph = before_each_pass()[name]
    (graph_pass,) = (each for each in PIPELINE if each.name == name)
    whole = graph_pass.apply(graph, OPTIONS)
    apart = Remembered().apply(name, functools.partial(graph_pass.apply, options=OPTIONS), graph)
    assert str(apart) == str(whole)
    assert list(apart.functions) == list(whole.functions)


def test_what_has_been_met_is_not_passed_again_and_what_is_not_met_again_is_forgotten() -> None:
    graph = before_each_pass()["canonicalise"]
    some = Graph(dict(list(graph.functions.items())[:2]), graph.entry, graph.inputs, graph.outputs)
    passed: list[str] = []

    def run(one: Graph) -> Graph:
        passed.extend(one.functions)
        return one

    first = Remembered()
    first.apply("fuse", run, graph)
    later = Remembered(earlier=first.made)
    assert later.apply("fuse", run, some).functions == some.functions
    assert passed == list(graph.functions)
    assert len(later.made) == 2


def test_other_passes_see_the_whole_graph() -> None:
    graph, seen = before_each_pass()["schedule"], list[Any]()
    assert Remembered().apply("schedule", lambda one: seen.append(one) or one, graph) is graph
    assert seen == [graph]
