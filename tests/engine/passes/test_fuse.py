from __future__ import annotations

from tests.engine.small_graphs import Draft, all_ops, before_and_after
from workbench.engine.graph import Graph, verify_graph
from workbench.engine.passes.fuse import fuse


def chains(graph: Graph) -> list[list[str]]:
    """The ops of each fused body, in the order of the entry."""
    return [all_ops(graph, node.calls[0]) for node in graph.body.nodes if node.op == "fused"]


def test_chains_merge_and_bring_their_broadcasts(golden: object) -> None:
    d = Draft()
    x, y = d.param("x", (4, 8)), d.param("y", (4, 8))
    bias, half = d.weight("bias", (8,)), d.constant(0.5)
    seen = d.broadcast(d.reshape(bias, 1, 8), (4, 8), (0, 1))
    left = d.point("add", x, seen)
    right = d.point("mul", d.point("exp", y), half)
    out = d.point("add", left, right)
    other = d.reduce("reduce_sum", seen, 0)
    graph = d.graph(out, other)
    found = fuse(graph)
    assert all_ops(found) == ["reshape", "fused", "broadcast_in_dim", "reduce_sum"]
    golden("passes/fuse.txt", before_and_after(graph, found))  # type: ignore[operator]


def test_unit_axes_change_inside_a_chain() -> None:
    d = Draft()
    x = d.point("neg", d.param("x", (4, 8)))
    out = d.point("exp", d.reshape(x, 4, 1, 8))
    assert chains(fuse(d.graph(out))) == [["neg", "reshape", "exp"]]


def test_a_view_at_the_end_of_a_chain_stays_outside() -> None:
    d = Draft()
    x = d.point("exp", d.point("neg", d.param("x", (4, 8))))
    found = fuse(d.graph(d.reshape(x, 4, 1, 8)))
    assert all_ops(found) == ["fused", "reshape"]


def test_a_chain_does_not_move_past_an_earlier_reader() -> None:
    d = Draft()
    x = d.point("neg", d.param("x", (8, 8)))
    read = d.dot(x, x)
    out = d.point("add", x, read)
    found = fuse(d.graph(out))
    assert all_ops(found) == ["fused", "dot_general", "fused"]
    assert chains(found) == [["neg"], ["add"]]


def test_what_is_read_later_is_a_result_of_the_chain() -> None:
    d = Draft()
    x = d.point("neg", d.param("x", (8, 8)))
    y = d.point("exp", x)
    found = fuse(d.graph(d.dot(x, y)))
    (node, _) = found.body.nodes
    assert node.results == (x, y)


def test_layers_and_directions_do_not_merge() -> None:
    d = Draft()
    value = d.param("x", (8,))
    for origin in ({"layer": "a"}, {"layer": "b"}, {"layer": "b", "direction": "backward"}):
        with d.at(**origin):
            value = d.point("neg", d.point("exp", value))
    assert chains(fuse(d.graph(value))) == [["exp", "neg"]] * 3


def test_chains_of_other_shapes_stay_apart() -> None:
    d = Draft()
    x = d.point("neg", d.param("x", (8, 4)))
    y = d.point("exp", d.reduce("reduce_sum", x, 1))
    assert chains(fuse(d.graph(y))) == [["neg"], ["exp"]]


def test_a_chain_has_at_most_64_operations() -> None:
    d = Draft()
    value = d.param("x", (8,))
    for _ in range(100):
        value = d.point("neg", value)
    assert [len(chain) for chain in chains(fuse(d.graph(value)))] == [64, 36]


def test_empty_values_are_not_fused() -> None:
    d = Draft()
    x = d.point("neg", d.point("exp", d.param("x", (0, 8))))
    assert all_ops(fuse(d.graph(x))) == ["exp", "neg"]


def test_a_view_that_is_read_through_a_broadcast_stays_inside() -> None:
    """exp(x) seen as a scalar divides exp(x): the view depends on the chain, and the chain on the view."""
    d = Draft()
    power = d.point("exp", d.param("x", (1,)))
    total = d.broadcast(d.reshape(power), (1,))
    found = verify_graph(fuse(d.graph(d.point("div", power, total))))
    assert all_ops(found) == ["fused"]


def test_what_the_caller_reads_through_a_broadcast_is_a_result_of_the_chain() -> None:
    d = Draft()
    x = d.point("neg", d.param("x", ()))
    y = d.point("exp", x)
    found = verify_graph(fuse(d.graph(d.broadcast(x, (4,), ()), y)))
    assert chains(found) == [["neg", "exp"]]
    assert found.body.nodes[0].results == (x, y)
