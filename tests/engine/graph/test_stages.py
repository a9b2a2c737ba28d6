"""Which call of an entry is which: by its attributes, whatever functions are called."""

from __future__ import annotations

from dataclasses import replace

from tests.engine.passes.staged_models import graph_of
from workbench.engine.graph import Graph, Node
from workbench.engine.graph.origin import Origin
from workbench.engine.graph.stages import body_name, direction_of, stage_calls, stage_pairs


def three(training: bool = True) -> Graph:
    return graph_of(("a", "b"), 12, "training" if training else "inference", True)


def renamed(graph: Graph) -> Graph:
    """The same graph with functions whose names say nothing."""
    names = {name: f"f{place}" for place, name in enumerate(graph.functions) if name != graph.entry}
    functions = {
        names.get(name, name): replace(
            body,
            name=names.get(name, name),
            nodes=tuple(replace(node, calls=tuple(names[each] for each in node.calls)) for node in body.nodes),
        )
        for name, body in graph.functions.items()
    }
    return replace(graph, functions=functions)


def test_a_call_is_told_by_its_stage_and_direction_not_by_the_name_of_what_it_calls() -> None:
    graph = three()
    expected = [(0, "forward"), (1, "forward"), (2, "forward"), (2, "backward"), (1, "backward"), (0, "backward")]
    expected += [(0, "update"), (1, "update"), (2, "update")]
    for each in (graph, renamed(graph)):
        calls = stage_calls(each)
        assert [(call.number, call.direction) for call in calls] == expected
        assert [call.repeated for call in calls] == [True] * 6 + [False] * 3
        assert [call.node for call in calls] == list(each.body.nodes)
        assert [call.function for call in calls] == [each.functions[node.calls[0]] for node in each.body.nodes]
    assert [call.function.name for call in stage_calls(graph)] == [body_name(*place) for place in expected]


def test_pairs_are_those_of_one_stage_in_the_order_of_the_second() -> None:
    graph = three()
    pairs = stage_pairs(graph)
    assert [(first.direction, first.number, second.number) for first, second in pairs] == [
        ("forward", 2, 2),
        ("forward", 1, 1),
        ("forward", 0, 0),
    ]
    assert stage_pairs(graph, first=("recompute", "forward")) != []
    assert [call.direction for call, _ in stage_pairs(graph, first=("recompute", "update"), second="forward")] == [
        "update",
        "update",
        "update",
    ]
    assert stage_pairs(three(training=False)) == []
    assert stage_pairs(graph, second="recompute") == []


def test_a_call_that_says_no_direction_has_that_of_its_origin() -> None:
    plain = Node("call", (), (), origin=Origin(direction="backward"))
    assert direction_of(plain) == "backward"
    assert direction_of(replace(plain, attrs=(("direction", "after"),))) == "after"


def test_accumulators_name_what_they_add_up() -> None:
    graph = three()
    sums = {item.of: item for item in graph.inputs if item.role == "accumulator"}
    weights = {item.name: item for item in graph.inputs if item.role == "parameter"}
    assert sums.keys() == weights.keys()
    assert all(sums[name].layer == weights[name].layer for name in sums)
