from __future__ import annotations

import jax
import jax.numpy as jnp

from tests.engine.small_graphs import Draft, all_ops, before_and_after
from workbench.engine.frontends.functions import trace_function
from workbench.engine.graph import Graph, Value
from workbench.engine.passes.canonicalise import canonicalise
from workbench.engine.passes.recognise import recognise
from workbench.engine.passes.rematerialise import rematerialise


def regions(graph: Graph) -> list[tuple[str, str, str]]:
    return [
        (str(node.attr("kind")), node.origin.layer, node.origin.direction)
        for node in graph.body.nodes
        if node.op == "region"
    ]


def batch_norm(d: Draft, x: Value, gamma: Value) -> tuple[Value, Value, Value]:
    """(x - mean) * rsqrt(var + eps) * gamma, its output, and what a backward pass keeps."""
    with d.at(layer="norm", layer_class="BatchNormalization"):
        size = d.constant(float(x.shape[0]))
        mean = d.point("div", d.reduce("reduce_sum", x, 0), size)
        apart = d.point("sub", x, d.broadcast(mean, x.shape, (1,)))
        variance = d.point("div", d.reduce("reduce_sum", d.point("square", apart), 0), size)
        inverse = d.point("rsqrt", d.point("add", variance, d.constant(1e-3)))
        scale = d.point("mul", inverse, gamma)
        return d.point("mul", apart, d.broadcast(scale, x.shape, (1,))), mean, inverse


def normalised(d: Draft) -> Graph:
    """A dense layer, its batch norm, and the gradient of the norm's input."""
    x, gamma = d.param("x", (32, 8)), d.weight("norm/gamma", (8,))
    with d.at(layer="dense", layer_class="Dense"):
        made = d.dot(x, d.weight("dense/kernel", (8, 8)))
    y, mean, inverse = batch_norm(d, made, gamma)
    with d.at(layer="next", layer_class="Dense"):
        out = d.point("tanh", y)
    with d.at(layer="norm", layer_class="BatchNormalization", direction="backward"):
        g = d.param("g", (32, 8))
        apart = d.point(
            "mul", d.point("sub", made, d.broadcast(mean, (32, 8), (1,))), d.broadcast(inverse, (32, 8), (1,))
        )
        slope = d.broadcast(d.reduce("reduce_sum", d.point("mul", g, apart), 0), (32, 8), (1,))
        back = d.point("mul", d.point("sub", g, d.point("mul", apart, slope)), d.broadcast(inverse, (32, 8), (1,)))
    return d.graph(out, back)


def test_a_batch_norm_is_one_region_forward_and_one_backward(golden: object) -> None:
    graph = normalised(Draft())
    found = recognise(graph)
    assert regions(found) == [("batch_norm", "norm", "forward"), ("batch_norm", "norm", "backward")]
    golden("passes/recognise.batch_norm.txt", before_and_after(graph, found))  # type: ignore[operator]


def test_a_function_called_batch_normalization_is_a_norm_and_what_follows_is_not_in_it() -> None:
    """As the driver has `tf.nn.batch_normalization`: one instruction, with which no neighbour is fused."""

    @jax.jit
    def batch_normalization(x: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
        return (x - mean) / jnp.sqrt(variance + 1e-3)

    def program(x: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
        return jnp.tanh(batch_normalization(x, mean, variance))

    channels = jax.ShapeDtypeStruct((8,), "float32")
    graph = trace_function(program, jax.ShapeDtypeStruct((32, 8), "float32"), channels, channels).graph
    found = recognise(canonicalise(graph))
    assert regions(found) == [("batch_norm", "", "forward")]
    (region,) = (node for node in found.body.nodes if node.op == "region")
    inside = {node.op for node in found.functions[region.calls[0]].nodes}
    assert {"sub", "sqrt", "div"} <= inside
    assert "tanh" not in inside


def test_every_node_is_kept_once() -> None:
    graph = rematerialise(canonicalise(normalised(Draft())))
    found = recognise(graph)
    inside = [node.op for function in found.functions.values() for node in function.nodes if node.op != "region"]
    free = {"constant", "broadcast_in_dim"}
    assert sorted(op for op in inside if op not in free) == sorted(op for op in all_ops(graph) if op not in free)


def softmax(d: Draft, x: Value, **origin: str) -> Value:
    with d.at(region="softmax", **origin):
        top = d.broadcast(d.reduce("reduce_max", x, 1), x.shape, (0,))
        power = d.point("exp", d.point("sub", x, top))
        return d.point("div", power, d.broadcast(d.reduce("reduce_sum", power, 1), x.shape, (0,)))


def test_a_softmax_function_is_one_region(golden: object) -> None:
    d = Draft()
    with d.at(layer="out", layer_class="Dense"):
        made = d.dot(d.param("x", (4, 8)), d.weight("out/kernel", (8, 8)))
    graph = d.graph(softmax(d, made, layer="out", layer_class="Dense"))
    found = recognise(graph)
    assert all_ops(found) == ["dot_general", "region"]
    golden("passes/recognise.softmax.txt", before_and_after(graph, found))  # type: ignore[operator]


def test_calls_of_a_shared_layer_are_regions_of_their_own() -> None:
    d = Draft()
    x = d.param("x", (4, 8))
    once = softmax(d, x, layer="s", layer_class="Softmax")
    with d.at(call=2):
        twice = softmax(d, once, layer="s", layer_class="Softmax")
    assert regions(recognise(d.graph(twice))) == [("softmax", "s", "forward")] * 2


def test_a_region_closes_before_a_reader_that_must_run_between_its_members() -> None:
    """Members move to the place of the last one; what is read before cannot move past its reader."""
    d = Draft()
    with d.at(layer="n", layer_class="LayerNormalization"):
        one = d.point("neg", d.point("exp", d.param("x", (4, 8))))
    with d.at(layer="between"):
        read = d.dot(one, d.weight("between/kernel", (8, 8)))
    with d.at(layer="n", layer_class="LayerNormalization"):
        two = d.point("neg", d.point("mul", one, read))
    found = recognise(d.graph(two))
    assert all_ops(found) == ["region", "dot_general", "region"]


def test_operators_of_their_own_and_updates_are_left_out() -> None:
    d = Draft()
    w, x = d.weight("n/gamma", (8, 8)), d.param("x", (4, 8))
    with d.at(layer="n", layer_class="LayerNormalization"):
        made = d.dot(d.point("neg", d.point("exp", x)), w)
    with d.at(layer="n", layer_class="LayerNormalization", direction="update"):
        new = d.point("sub", d.point("mul", w, d.constant(0.5)), w)
    found = recognise(d.graph(made, updates={"n/gamma": new}))
    assert all_ops(found) == ["region", "dot_general", "constant", "mul", "sub"]


def test_an_unknown_layer_stays_as_it_is() -> None:
    d = Draft()
    with d.at(layer="mine", layer_class="MyLayer"):
        out = d.point("neg", d.point("exp", d.param("x", (4,))))
    assert all_ops(recognise(d.graph(out))) == ["exp", "neg"]
