from __future__ import annotations

from tests.engine.small_graphs import Draft, all_ops, before_and_after
from workbench.engine.graph import Graph
from workbench.engine.options import Options
from workbench.engine.passes.schedule import schedule

POST_ORDER = Options().with_values({"scheduling.algorithm": "POST_ORDER"})


def two_layers() -> Graph:
    """Gradients of two layers, then both updates, as autodiff and an optimizer leave them."""
    d = Draft()
    one, two = d.weight("one/kernel", (8, 8)), d.weight("two/kernel", (8, 8))
    with d.at(layer="one"):
        x = d.dot(d.param("x", (8, 8)), one)
    with d.at(layer="two"):
        y = d.dot(x, two)
    with d.at(layer="two", direction="backward"):
        g_two = d.dot(x, y, (0, 0))
        g_x = d.dot(y, two, (1, 1))
    with d.at(layer="one", direction="backward"):
        g_one = d.dot(g_x, x, (0, 0))
    with d.at(layer="one", direction="update"):
        new_one = d.point("sub", one, g_one)
    with d.at(layer="two", direction="update"):
        new_two = d.point("sub", two, g_two)
    return d.graph(y, updates={"one/kernel": new_one, "two/kernel": new_two})


def test_an_update_runs_when_its_gradient_is_there_and_its_weight_is_read_no_more(golden: object) -> None:
    graph = two_layers()
    found = schedule(graph, POST_ORDER)
    names = [(node.origin.layer, node.origin.direction) for node in found.body.nodes]
    # two's update waits for the input gradient, which reads two's kernel, and comes before one's gradient
    assert names[2:] == [
        ("two", "backward"),
        ("two", "backward"),
        ("two", "update"),
        ("one", "backward"),
        ("one", "update"),
    ]
    golden("passes/schedule.txt", before_and_after(graph, found))  # type: ignore[operator]


def test_every_node_stays() -> None:
    graph = two_layers()
    found = schedule(graph)
    assert {id(node) for node in found.body.nodes} == {id(node) for node in graph.body.nodes}
    assert len(found.body.nodes) == len(graph.body.nodes)


def test_the_model_keeps_its_order() -> None:
    d = Draft()
    x = d.param("x", (4,))
    late = d.point("exp", x)
    out = d.point("neg", x)
    assert all_ops(schedule(d.graph(out, late), POST_ORDER)) == ["exp", "neg"]


def test_an_update_waits_for_readers_of_a_view_of_its_weight() -> None:
    d = Draft()
    w, x = d.weight("w", (8, 8)), d.param("x", (8, 8))
    seen = d.transpose(w, 1, 0)
    first = d.dot(x, w)
    late = d.dot(first, seen)
    with d.at(direction="update"):
        new = d.point("sub", w, first)
    assert all_ops(schedule(d.graph(late, updates={"w": new}), POST_ORDER))[1:] == ["dot_general", "dot_general", "sub"]


def test_what_updates_share_does_not_keep_gradients_waiting() -> None:
    """As Adam's corrected rate: made from the step count alone, after the whole backward pass in the trace."""
    d = Draft()
    one, two, step = d.weight("one", (8, 8)), d.weight("two", (8, 8)), d.weight("step", (8, 8))
    x = d.param("x", (8, 8))
    with d.at(direction="backward"):
        g_two = d.dot(x, x)
        g_one = d.dot(g_two, x)
    with d.at(direction="update"):
        rate = d.point("exp", step)
        new_one = d.point("sub", one, d.point("mul", g_one, rate))
        new_two = d.point("sub", two, d.point("mul", g_two, rate))
        new_step = d.point("neg", step)
    graph = d.graph(g_one, updates={"one": new_one, "two": new_two, "step": new_step})
    # The rate comes just before its first reader; two's update comes before the gradient of one.
    ordered = ["dot_general", "exp", "mul", "sub", "dot_general", "mul", "sub", "neg"]
    assert all_ops(schedule(graph, POST_ORDER)) == ordered
