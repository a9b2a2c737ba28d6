from __future__ import annotations

import pytest

from tests.engine.small_graphs import Draft, all_ops, before_and_after
from workbench.engine.passes.canonicalise import canonicalise


def test_equal_work_is_done_once(golden: object) -> None:
    d = Draft()
    x = d.param("x", (4, 8))
    with d.at(layer="dense"):
        one = d.point("exp", x)
        same = d.point("exp", d.reshape(x, 4, 8))
        total = d.point("add", one, same)
        flat = d.reduce("reduce_sum", d.reshape(total, 4, 8, 1), 2)
        seen = d.broadcast(flat, (4, 1, 8), (0, 2))
        out = d.point("stop_gradient", d.cast(seen, "float32"))
    graph = d.graph(out)
    golden("passes/canonicalise.txt", before_and_after(graph, canonicalise(graph)))  # type: ignore[operator]


def test_layers_calls_and_directions_stay_apart() -> None:
    d = Draft()
    x = d.param("x", (4,))
    made = []
    for origin in ({"layer": "a"}, {"layer": "b"}, {"layer": "a", "call": 2}, {"layer": "a", "direction": "backward"}):
        with d.at(**origin):
            made.append(d.point("exp", x))
    assert all_ops(canonicalise(d.graph(*made))) == ["exp"] * 4


def test_equal_constants_are_one_wherever_they_stand_but_not_of_two_types() -> None:
    d = Draft()
    x, h = d.param("x", (4,)), d.param("h", (4,), dtype="float16")
    with d.at(layer="a"):
        one = d.point("add", x, d.constant(1.0))
    with d.at(layer="b"):
        two = d.point("mul", x, d.constant(1.0))
        half = d.point("mul", h, d.constant(1.0, "float16"))
    assert all_ops(canonicalise(d.graph(one, two, half))).count("constant") == 2


@pytest.mark.parametrize(("op", "count"), [("random_bits", 2), ("exp", 1)])
def test_draws_are_never_shared(op: str, count: int) -> None:
    d = Draft()
    x = d.param("x", (4,))
    drawn = [d.node(op, (x,), (4,), "float32") for _ in range(2)]
    assert all_ops(canonicalise(d.graph(*drawn))) == [op] * count


def test_a_cast_to_another_type_stays() -> None:
    d = Draft()
    x = d.param("x", (4,))
    assert all_ops(canonicalise(d.graph(d.cast(x, "float16")))) == ["convert_element_type"]


def test_results_follow_what_stands_for_them() -> None:
    d = Draft()
    x = d.param("x", (4,))
    graph = canonicalise(d.graph(d.reshape(x, 4)))
    assert graph.body.results == (x,)
    assert graph.body.nodes == ()


def test_two_results_that_are_zero_are_filled_apart() -> None:
    """An accumulator and its neighbour are set to zero each where it lies."""
    d = Draft()
    zero = d.constant(0.0)
    graph = canonicalise(d.graph(d.broadcast(zero, (4,)), d.broadcast(zero, (4,))))
    assert all_ops(graph) == ["constant", "broadcast_in_dim", "broadcast_in_dim"]
    assert graph.body.results[0] is not graph.body.results[1]
