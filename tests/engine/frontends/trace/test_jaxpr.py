from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from workbench.engine.frontends.functions import trace_function
from workbench.engine.graph import Graph, Node, walk
from workbench.errors import InputError

X = jax.ShapeDtypeStruct((2, 3), "float32")


def graph_of(fn: Any, *inputs: Any) -> Graph:
    return trace_function(fn, *inputs, name="f").graph


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.body.nodes]


def only(graph: Graph, op: str) -> Node:
    (node,) = [node for _, node in walk(graph) if node.op == op]
    return node


def test_calls_are_inlined_and_literals_are_constants_once() -> None:
    graph = graph_of(lambda x: jax.jit(lambda a: a * 2.0 + 2.0)(x) * 2.0, X)
    assert str(graph).splitlines()[1:] == [
        "@main(%0:float32[2,3]) {",
        "  %1:float32[] = constant() value=2.0  ; -:forward",
        "  %2:float32[2,3] = mul(%0, %1)  ; -:forward",
        "  %3:float32[2,3] = add(%2, %1)  ; -:forward",
        "  %4:float32[2,3] = mul(%3, %1)  ; -:forward",
        "  return %4",
        "}",
    ]


def test_what_nothing_needs_is_dropped() -> None:
    def fn(x: Any) -> Any:
        jax.debug.print("{}", x)
        _ = jnp.exp(x)
        return jnp.sin(x)

    assert ops(graph_of(fn, X)) == ["sin"]


def test_identities_are_dropped() -> None:
    assert ops(graph_of(lambda x: jax.lax.stop_gradient(jnp.copy(x)).astype("float32"), X)) == []


def test_a_closed_over_array_is_a_constant_parameter() -> None:
    table = jnp.asarray(np.arange(3, dtype="float32"))
    graph = graph_of(lambda x: x + table, X)
    assert [(item.name, item.role) for item in graph.inputs] == [("args[0]", "input"), ("constant_0", "constant")]
    assert graph.body.params[1].shape == (3,)


def test_a_closed_over_array_that_is_not_used_is_no_parameter() -> None:
    table = jnp.asarray(np.arange(3, dtype="float32"))
    assert len(graph_of(lambda x: (x + table, x)[1] * 1.5, X).inputs) == 1


def test_scalars_known_while_tracing_are_folded() -> None:
    def fn(x: Any) -> Any:
        return jnp.var(x)

    assert "select_n" not in ops(graph_of(fn, X))
    assert "gt" not in ops(graph_of(fn, X))


def test_dot_general_has_named_dimension_numbers() -> None:
    stack = jax.ShapeDtypeStruct((4, 2, 3), "float32")
    node = only(graph_of(lambda a, b: jnp.einsum("bij,bkj->bik", a, b), stack, stack), "dot_general")
    assert dict(node.attrs) == {"lhs_contract": (2,), "rhs_contract": (2,), "lhs_batch": (0,), "rhs_batch": (0,)}
    assert node.origin.layer == ""  # the subscripts are no layer


def test_convolution_has_flat_specs() -> None:
    image, kernel = jax.ShapeDtypeStruct((1, 8, 8, 2), "float32"), jax.ShapeDtypeStruct((3, 3, 2, 4), "float32")

    def fn(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    node = only(graph_of(fn, image, kernel), "conv_general_dilated")
    assert dict(node.attrs) == {
        "lhs_spec": (0, 3, 1, 2),
        "rhs_spec": (3, 2, 0, 1),
        "out_spec": (0, 3, 1, 2),
        "window_strides": (2, 2),
        "padding": ((0, 1), (0, 1)),
        "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1),
        "feature_group_count": 1,
        "batch_group_count": 1,
    }


def test_padding_is_three_tuples() -> None:
    node = only(graph_of(lambda x: jnp.pad(x, ((0, 1), (2, 3))), X), "pad")
    assert dict(node.attrs) == {"low": (0, 2), "high": (1, 3), "interior": (0, 0)}


def test_a_scan_is_a_body_called_length_times() -> None:
    def fn(w: Any, xs: Any) -> Any:
        return jax.lax.scan(lambda c, x: (c * w + x, None), jnp.zeros(3), xs)[0]

    graph = graph_of(fn, jax.ShapeDtypeStruct((3,), "float32"), jax.ShapeDtypeStruct((7, 3), "float32"))
    node = only(graph, "scan")
    assert (node.calls, node.times) == (("scan_body",), 7)
    assert dict(node.attrs) == {"num_consts": 1, "num_carry": 1, "reverse": False}
    assert [inner.op for inner in graph.functions["scan_body"].nodes] == ["mul", "add"]


def test_an_array_a_body_closes_over_reaches_it_as_an_operand() -> None:
    table = jnp.asarray(np.arange(3, dtype="float32"))
    graph = graph_of(
        lambda xs: jax.lax.scan(lambda c, x: (c + table * x, None), jnp.zeros(3), xs)[0],
        jax.ShapeDtypeStruct((7, 3), "float32"),
    )
    node = only(graph, "scan")
    assert len(node.operands) == len(graph.functions["scan_body"].params)
    assert node.attr("num_consts") == 1


@pytest.mark.parametrize(("start", "stop", "step", "times"), [(0, 5, 1, 5), (2, 9, 3, 3)])
def test_the_trip_count_of_a_counting_loop_is_found(start: int, stop: int, step: int, times: int) -> None:
    def fn(x: Any) -> Any:
        return jax.lax.while_loop(lambda c: c[0] < stop, lambda c: (c[0] + step, c[1] * 2.0), (start, x))[1]

    node = only(graph_of(fn, X), "while")
    assert (node.times, node.attr("unknown_trip_count")) == (times, None)


def test_a_loop_nobody_can_count_runs_once_and_says_so() -> None:
    def fn(x: Any) -> Any:
        return jax.lax.while_loop(lambda c: jnp.sum(c) < 10.0, lambda c: c * 2.0, x)

    node = only(graph_of(fn, X), "while")
    assert (node.times, node.attr("unknown_trip_count")) == (1, True)
    assert node.calls == ("while_cond", "while_body")


def test_branches_share_their_captures() -> None:
    table = jnp.asarray(np.arange(3, dtype="float32"))

    def fn(which: Any, x: Any) -> Any:
        return jax.lax.cond(which, lambda a: a + table, lambda a: a * 2.0, x)

    graph = graph_of(fn, jax.ShapeDtypeStruct((), "bool"), X)
    node = only(graph, "cond")
    assert len(node.calls) == 2
    for name in node.calls:
        assert len(graph.functions[name].params) == len(node.operands) - 1


def test_a_checkpoint_is_recomputed_in_the_backward_pass() -> None:
    @jax.checkpoint
    def block(x: Any) -> Any:
        with jax.named_scope("block"):
            return jnp.sin(jnp.tanh(x))

    graph = graph_of(jax.grad(lambda x: jnp.sum(block(x) ** 2)), X)
    found = {(node.op, node.origin.direction) for _, node in walk(graph) if node.origin.layer == "block"}
    assert ("tanh", "forward") in found
    assert ("tanh", "recompute") in found
    assert {"mul"} <= {op for op, direction in found if direction == "backward"}


def test_named_functions_are_regions_in_both_directions() -> None:
    graph = graph_of(jax.value_and_grad(lambda x: jnp.sum(jax.nn.softmax(x) * jax.nn.gelu(x))), X)
    regions = {(node.origin.region, node.origin.direction) for _, node in walk(graph)}
    assert {("softmax", "forward"), ("softmax", "backward"), ("gelu", "forward"), ("gelu", "backward")} <= regions


def test_an_operation_knows_the_users_line() -> None:
    node = only(graph_of(lambda x: jnp.tanh(x), X), "tanh")  # this line
    line = test_an_operation_knows_the_users_line.__code__.co_firstlineno + 1
    assert node.origin.source == f"test_jaxpr.py:{line}"


def test_complex_values_inside_a_model_are_an_error() -> None:
    line = test_complex_values_inside_a_model_are_an_error.__code__.co_firstlineno + 3
    with pytest.raises(InputError) as error:
        graph_of(lambda x: jnp.abs(jnp.fft.fft(x)), X)
    assert str(error.value) == (
        "the model computes with complex64 values, which the IPU does not have: convert_element_type makes them, at "
        f"test_jaxpr.py:{line}. Expected: float32, float16, bfloat16, integers or booleans. To mend it: express "
        "the operation in real numbers (a Fourier transform as products with the matrices of its cosines and sines), "
        "or keep it on the host."
    )


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jnp.cumsum(x, 1),
        lambda x: jnp.sort(x),
        lambda x: x[:, jnp.array([0, 2])],
        lambda x: x.at[0].add(1.0),
        lambda x: jnp.argmax(x, 1),
        lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2), (1, 1), "VALID"),
    ],
)
def test_attributes_are_plain_for_every_primitive(fn: Any) -> None:
    for _, node in walk(graph_of(fn, X)):
        hash(node.attrs)
        assert list(node.attrs) == sorted(node.attrs, key=lambda pair: pair[0])
        assert not node.calls


def test_mutable_arrays_of_a_program_are_passed_along() -> None:
    """`jax.new_ref`, written in the program, in loops and in calls; a scalar of one replica stays a scalar."""

    def fn(x: Any) -> Any:
        held = jax.new_ref(x)
        held[0] = 2.0

        def turn(carry: Any, entry: Any) -> Any:
            held[1] += entry
            return carry + held[1], entry * 2

        carry, stack = jax.lax.scan(turn, 0.0, x)
        total = jax.jit(lambda value: (held.__setitem__(2, value), held[...].sum())[1])(carry)
        return held[...], stack, total

    x = np.arange(1, 5, dtype="float32")
    source = trace_function(fn, x)
    names = {node.op for _, node in walk(source.graph)}
    assert names.isdisjoint({"new_ref", "get", "swap", "addupdate", "closed_call"})
    found, reference = source.pack(source.compute([x])), fn(x)
    for one, other in zip(found, reference, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other)


def test_a_function_of_the_host_is_an_assumption() -> None:
    """Its copies are modelled; how long the host takes is not, and the profile says so."""

    def on_host(x: Any) -> Any:
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    x = np.ones(8, "float32")
    (said,) = trace_function(lambda x: on_host(on_host(x)), x).graph.assumptions
    assert said.startswith("host: 2 functions of the host")
    assert trace_function(jnp.sin, x).graph.assumptions == ()
