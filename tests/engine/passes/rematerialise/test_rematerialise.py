from __future__ import annotations

from tests.engine.small_graphs import Draft, before_and_after
from workbench.engine.graph import Graph, Value
from workbench.engine.passes.rematerialise import rematerialise


def directions(graph: Graph) -> dict[str, str]:
    """op → direction, for ops that stand once."""
    return {node.op: node.origin.direction for node in graph.body.nodes}


def relu(d: Draft) -> tuple[Value, Value]:
    """max(x, 0), and the mask that autodiff saves."""
    with d.at(layer="relu"):
        x, zero = d.point("exp", d.param("x", (8, 8))), d.constant(0.0)
        return d.point("max", x, zero), d.point("gt", x, zero)


def masked(d: Draft, mask: Value, gradient: Value) -> Value:
    with d.at(layer="relu", direction="backward"):
        return d.point("select_n", mask, d.broadcast(d.constant(0.0), (8, 8)), gradient)


def test_a_mask_is_made_from_the_output_that_is_kept(golden: object) -> None:
    d = Draft()
    y, mask = relu(d)
    with d.at(layer="next"):
        loss = d.dot(y, d.weight("next/kernel", (8, 8)))
    with d.at(layer="next", direction="backward"):
        slope = d.dot(loss, y)
    graph = d.graph(masked(d, mask, slope))
    golden("passes/rematerialise.mask.txt", before_and_after(graph, rematerialise(graph)))  # type: ignore[operator]


def test_a_mask_stays_when_nothing_else_is_kept() -> None:
    d = Draft()
    y, mask = relu(d)
    with d.at(direction="backward", layer="next"):
        slope = d.point("neg", d.param("g", (8, 8)))
    graph = rematerialise(d.graph(y, masked(d, mask, slope)))
    assert directions(graph)["gt"] == "forward"


def centred(d: Draft, *, kept: bool) -> Graph:
    """x - mean(x), read going backward; with `kept` x is read there too."""
    with d.at(layer="norm"):
        x = d.point("exp", d.param("x", (32, 4)))
        mean = d.broadcast(d.reduce("reduce_sum", x, 0), (32, 4), (1,))
        apart = d.point("sub", x, mean)
        out = d.reduce("reduce_max", apart, 0)
    with d.at(layer="norm", direction="backward"):
        slope = d.point("mul", apart, d.param("g", (32, 4)))
        other = d.point("neg", x if kept else slope)
    return d.graph(out, slope, other)


def test_centred_activations_are_made_again_from_the_activations(golden: object) -> None:
    d = Draft()
    with d.at(layer="norm"):
        x = d.point("exp", d.param("x", (32, 4)))
        mean = d.broadcast(d.reduce("reduce_sum", x, 0), (32, 4), (1,))
        apart = d.point("sub", x, mean)
    with d.at(layer="norm", direction="backward"):
        slope = d.point("mul", apart, d.param("g", (32, 4)))
        other = d.point("mul", x, slope)
    graph = d.graph(slope, other)
    golden("passes/rematerialise.centred.txt", before_and_after(graph, rematerialise(graph)))  # type: ignore[operator]


def test_what_is_computed_again_for_the_backward_pass_is_not_kept_for_it_either() -> None:
    d = Draft()
    with d.at(layer="norm", direction="recompute"):
        x = d.point("exp", d.param("x", (32, 4)))
        mean = d.broadcast(d.reduce("reduce_sum", x, 0), (32, 4), (1,))
        apart, cosine = d.point("sub", x, mean), d.point("cos", x)
    with d.at(layer="norm", direction="backward"):
        slope = d.point("mul", apart, d.point("mul", cosine, d.param("g", (32, 4))))
    graph = rematerialise(d.graph(slope))
    made = directions(graph)
    assert (made["exp"], made["reduce_sum"], made["sub"], made["cos"]) == ("recompute",) * 2 + ("backward",) * 2


def test_what_the_forward_pass_reads_too_is_made_twice_if_its_root_is_kept() -> None:
    def subtractions(kept: bool) -> list[str]:
        nodes = rematerialise(centred(Draft(), kept=kept)).body.nodes
        return [node.origin.direction for node in nodes if node.op == "sub"]

    assert subtractions(kept=True) == ["forward", "backward"]
    assert subtractions(kept=False) == ["forward"]


def gelu_like(d: Draft) -> Graph:
    """Three residuals of one activation, none of them the activation itself, which two products read forward."""
    with d.at(layer="act"):
        x = d.dot(d.param("x", (8, 8)), d.weight("kernel", (8, 8)))
        first, second, third = d.point("exp", x), d.point("tanh", x), d.point("neg", x)
        out = d.point("mul", first, d.point("mul", second, third))
    with d.at(layer="act", direction="backward"):
        gradient = d.param("g", (8, 8))
        slope = d.point("mul", first, d.point("mul", second, d.point("mul", third, gradient)))
    return d.graph(out, slope)


def test_several_residuals_are_given_up_for_their_root() -> None:
    # Kept before: three of 8x8 floats. Kept after: the product they are made of, which nothing kept before.
    nodes = rematerialise(gelu_like(Draft())).body.nodes
    again = [node.op for node in nodes if node.origin.direction == "backward" and node.op in ("exp", "tanh", "neg")]
    assert sorted(again) == ["exp", "neg", "tanh"]
    made = {id(value): node for node in nodes for value in node.results}
    crossing = {
        made[id(value)].op
        for node in nodes
        if node.origin.direction == "backward"
        for value in node.operands
        if id(value) in made and made[id(value)].origin.direction == "forward"
    }
    assert crossing == {"dot_general"}


def test_what_is_returned_is_not_moved() -> None:
    d = Draft()
    with d.at(layer="a"):
        x = d.point("exp", d.param("x", (8, 8)))
        y = d.point("neg", x)
    with d.at(layer="a", direction="backward"):
        out = d.point("mul", x, y)
    assert directions(rematerialise(d.graph(y, out)))["neg"] == "forward"
    assert directions(rematerialise(d.graph(out)))["neg"] == "backward"


def test_a_long_recipe_is_not_done_again() -> None:
    def moved(length: int) -> bool:
        d = Draft()
        with d.at(layer="a"):
            x = d.point("exp", d.param("x", (8, 8)))
            y = x
            for _ in range(length):
                y = d.point("neg", y)
        with d.at(layer="a", direction="backward"):
            out = d.point("mul", x, y)
        return all(node.origin.direction == "backward" for node in rematerialise(d.graph(out)).body.nodes[1:])

    assert moved(12)
    assert not moved(13)


def test_what_only_moved_work_still_reads_moves_too() -> None:
    d = Draft()
    with d.at(layer="a"):
        x = d.point("exp", d.param("x", (8, 8)))
        y = d.point("neg", x)
        z = d.point("tanh", y)
    with d.at(layer="a", direction="backward"):
        out = d.point("mul", z, d.point("mul", y, x))
    found = directions(rematerialise(d.graph(out)))
    assert (found["exp"], found["neg"], found["tanh"]) == ("forward", "backward", "backward")


def test_nothing_dead_is_left_behind() -> None:
    """The operations on the way to what moved are done going backward only."""
    d = Draft()
    with d.at(layer="a"):
        x = d.point("exp", d.param("x", (8, 8)))
        y = d.point("tanh", d.point("neg", x))
    with d.at(layer="a", direction="backward"):
        out = d.point("mul", x, y)
    found = rematerialise(d.graph(out))
    assert [(node.op, node.origin.direction) for node in found.body.nodes] == [
        ("exp", "forward"),
        ("neg", "backward"),
        ("tanh", "backward"),
        ("mul", "backward"),
    ]
