"""Two graphs have one content exactly when they differ in nothing but where their lines lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.random_graphs import Drawing, graphs
from workbench.engine.graph import Function, Graph, Node
from workbench.engine.graph.content import content_of
from workbench.engine.graph.origin import Origin


def changed(graph: Graph, change: Callable[[int, Node], Node]) -> Graph:
    """The graph with a change of each node, which knows the number of the node."""
    count = iter(range(10**9))
    functions = {
        name: replace(function, nodes=tuple(change(next(count), node) for node in function.nodes))
        for name, function in graph.functions.items()
    }
    return replace(graph, functions=functions)


def at(lines: list[str]) -> Callable[[int, Node], Node]:
    return lambda number, node: replace(node, origin=replace(node.origin, source=lines[number % len(lines)]))


LINES = st.lists(st.sampled_from(["", "a.py:1", "a.py:2", "b.py:1"]), min_size=1, max_size=5)


@given(drawn=graphs(), lines=LINES, other=LINES)
def test_lines_are_numbered_by_first_use(drawn: Drawing, lines: list[str], other: list[str]) -> None:
    found, again = (content_of(changed(drawn.graph, at(each))) for each in (lines, other))
    count = sum(len(function.nodes) for function in drawn.graph.functions.values())
    pairs = {(lines[place % len(lines)], other[place % len(other)]) for place in range(count)}
    to, back = ({pair[side] for pair in pairs} for side in (0, 1))
    alike = len(pairs) == len(to) == len(back) and all((a == "") == (b == "") for a, b in pairs)
    assert (found.text == again.text) == alike
    if alike:
        assert dict(zip(found.positions, again.positions, strict=True)) == {a: b for a, b in pairs if a}


WITH_NODES = graphs().filter(lambda drawn: bool(drawn.graph.body.nodes))
OTHER: dict[str, Any] = {
    "layer": "other",
    "layer_class": "Other",
    "call": 7,
    "direction": "recompute",
    "region": "other",
    "shard": 3,
}


def test_every_field_of_an_origin_is_tried() -> None:
    assert {*OTHER, "source"} == {each.name for each in fields(Origin)}


@pytest.mark.parametrize("name", OTHER)
@given(drawn=WITH_NODES)
def test_all_else_of_an_origin_is_content(name: str, drawn: Drawing) -> None:
    def first(number: int, node: Node) -> Node:
        return replace(node, origin=replace(node.origin, **{name: OTHER[name]})) if number == 0 else node

    assert content_of(changed(drawn.graph, first)).text != content_of(drawn.graph).text


@pytest.mark.parametrize(
    "change",
    [
        {"op": "other"},
        {"attrs": (("of_mine", 1),)},
        {"calls": ("other",)},
        {"times": 3},
    ],
    ids=lambda change: next(iter(change)),
)
@given(drawn=WITH_NODES)
def test_all_of_a_node_is_content(change: dict[str, Any], drawn: Drawing) -> None:
    other = changed(drawn.graph, lambda number, node: replace(node, **change) if number == 0 else node)
    assert content_of(other).text != content_of(drawn.graph).text


def test_names_cannot_pass_for_structure() -> None:
    def graph(*layers: str) -> Graph:
        nodes = tuple(Node("neg", (), (), (), Origin(layer=layer)) for layer in layers)
        return Graph({"main": Function("main", (), (), nodes)}, "main", (), ())

    texts = [
        content_of(each).text
        for each in (graph("a"), graph("a:forward"), graph("a\n = neg()  ; b"), graph("a", "b"), graph("a', 'b"))
    ]
    assert len(set(texts)) == len(texts)
