"""Passes that treat every function by itself: the same as on a whole graph, and only for what has not been met."""

from __future__ import annotations

import functools

import pytest

from tests.engine.passes.staged_models import graph_of
from workbench.engine.graph import Graph
from workbench.engine.options import Options
from workbench.engine.passes import PIPELINE
from workbench.engine.passes.by_function import Remembered

OPTIONS = Options()


@functools.cache
def before_each_pass() -> dict[str, Graph]:
    """A staged model as each pass of the pipeline meets it."""
    graph, found = graph_of(("b",), 4), {}
    for graph_pass in PIPELINE:
        found[graph_pass.name] = graph
        graph = graph_pass.apply(graph, OPTIONS)
    return found


def test_what_looks_at_other_functions_says_so() -> None:
    assert {each.name for each in PIPELINE if not each.per_function} == {
        "shard",
        "rematerialise",
        "reuse",
        "norms_in_half",
        "merge",
        "schedule",
        "accumulate",
        "memory_proportions",
        "offload",
    }


@pytest.mark.parametrize("name", [each.name for each in PIPELINE if each.per_function])
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
