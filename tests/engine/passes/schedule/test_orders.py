"""The algorithms of `scheduling.algorithm`: any order they give is one that can run; each does what it is named for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.random_graphs import Drawing, graphs
from tests.engine.small_graphs import Draft
from workbench.engine.graph import Graph, verify_graph
from workbench.engine.options import Options
from workbench.engine.passes.schedule import schedule
from workbench.engine.passes.schedule.liveness import Instruction, live_bytes, live_sets, peak_bytes
from workbench.engine.passes.schedule.orders import clustering, look_ahead
from workbench.engine.passes.schedule.tasks import Tasks, peak_of, tasks_of

LARGE = 64 * 64 * 4
ALGORITHMS = ("POST_ORDER", "CLUSTERING", "SHORTEST_PATH", "LOOK_AHEAD", "CHOOSE_BEST")


def scheduled(graph: Graph, algorithm: str, **limits: int) -> Graph:
    named = {f"scheduling.maximum_scheduler_{name}": value for name, value in limits.items()}
    return schedule(graph, Options().with_values({"scheduling.algorithm": algorithm, **named}))


def ops_of(graph: Graph) -> list[str]:
    return [node.op for node in graph.body.nodes]


def tasks_from(graph: Graph) -> Tasks:
    made_by = {id(value): number for number, node in enumerate(graph.body.nodes) for value in node.results}
    needs = [{made_by[id(value)] for value in node.operands if id(value) in made_by} for node in graph.body.nodes]
    return tasks_of(graph, graph.body, needs)


def three_branches() -> Graph:
    """Three large values made one after another of an input of 256 B, each summed up afterwards; the sums meet."""
    d = Draft()
    x = d.param("x", (64,))
    large = [d.point(name, d.broadcast(d.point("exp", x), (64, 64), (1,))) for name in ("tanh", "log", "neg")]
    one, two, three = (d.reduce("reduce_sum", value, 0) for value in large)
    return d.graph(d.point("add", d.point("add", one, two), three))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=max(10, settings.default.max_examples // 5))
@given(drawing=graphs())
def test_every_order_can_run_and_has_every_node_once(algorithm: str, drawing: Drawing) -> None:
    graph = drawing.graph
    found = verify_graph(scheduled(graph, algorithm))
    assert sorted(map(id, found.body.nodes)) == sorted(map(id, graph.body.nodes))


@settings(max_examples=max(10, settings.default.max_examples // 5))
@given(drawing=graphs())
def test_the_best_is_no_worse_than_those_it_chooses_from(drawing: Drawing) -> None:
    graph = drawing.graph
    tasks = tasks_from(graph)
    number = {id(node): place for place, node in enumerate(graph.body.nodes)}

    def peak(algorithm: str) -> int:
        return peak_of(tasks, [number[id(node)] for node in scheduled(graph, algorithm).body.nodes])

    assert peak("CHOOSE_BEST") <= min(peak(name) for name in ("POST_ORDER", "CLUSTERING", "SHORTEST_PATH"))


def test_clustering_ends_a_chain_before_it_begins_another() -> None:
    graph = three_branches()
    tasks = tasks_from(graph)
    order = clustering(tasks)
    assert peak_of(tasks, range(tasks.count)) >= 3 * LARGE
    assert peak_of(tasks, order) < 2 * LARGE
    assert ops_of(scheduled(graph, "CLUSTERING")) == [graph.body.nodes[number].op for number in order]


def test_shortest_path_goes_where_the_end_is_nearest() -> None:
    d = Draft()
    x = d.param("x", (8,))
    far = d.point("tanh", d.point("neg", d.point("exp", x)))
    near = d.point("log", x)
    graph = d.graph(far, near)
    assert ops_of(graph) == ["exp", "neg", "tanh", "log"]
    assert ops_of(scheduled(graph, "SHORTEST_PATH")) == ["log", "exp", "neg", "tanh"]


def test_looking_ahead_finds_what_one_step_does_not_show() -> None:
    # After the first large value another or its sum can run: only the sum leaves less.
    graph = three_branches()
    tasks = tasks_from(graph)
    assert peak_of(tasks, look_ahead(tasks, 5, 64)) < 2 * LARGE
    assert look_ahead(tasks, 1, 1) == list(range(tasks.count))
    assert ops_of(scheduled(graph, "LOOK_AHEAD", lookahead_depth=1, search_space_size=1)) == ops_of(graph)


def by_plain_walk(order: Sequence[Instruction], results: Sequence[int], sizes: dict[object, int]) -> int:
    found = zip(live_sets(order, results), order, strict=True)
    return max(live_bytes(live, sizes) + sum(one.called_bytes) for live, one in found)


@given(
    st.lists(st.lists(st.integers(0, 6), max_size=3), min_size=1, max_size=7),
    st.lists(st.integers(1, 9), min_size=8),
)
def test_the_peak_is_the_most_of_the_live_sets(reads: list[list[int]], sizes: list[int]) -> None:
    order = [
        Instruction(reads=tuple({name for name in names if name < place}), makes=(place,), called_bytes=(place,))
        for place, names in enumerate(reads)
    ]
    known: dict[object, int] = dict(enumerate(sizes))
    results = [len(order) - 1]
    assert peak_bytes(order, results, known) == by_plain_walk(order, results, known)


def test_a_recomputation_waits_for_the_gradient_before_it() -> None:
    d = Draft()
    x = d.param("x", (64, 64))
    with d.at(layer="a"):
        y = d.dot(x, x)
    with d.at(layer="a", direction="backward"):
        g = d.dot(y, y)
    with d.at(layer="a", direction="recompute"):
        again = d.point("exp", x)
    with d.at(layer="a", direction="backward"):
        out = d.dot(g, again)
    graph = d.graph(out)
    for algorithm in ALGORITHMS:
        assert ops_of(scheduled(graph, algorithm)) == ["dot_general", "dot_general", "exp", "dot_general"]
