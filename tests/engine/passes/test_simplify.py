"""Rewriting rules: the same numbers from other operators, and only where the rule may act."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.evaluate import evaluate
from tests.engine.small_graphs import before_and_after
from workbench.engine.compile import compile_graph
from workbench.engine.graph import Graph, GraphBuilder, Input, Output, Value, verify_graph
from workbench.engine.graph.origin import Origin
from workbench.engine.options import options
from workbench.engine.passes.norm_moments import norm_moments
from workbench.engine.passes.simplify import simplify, told_of_vectors
from workbench.engine.target import target

F32 = "float32"


def graph_of(builder: GraphBuilder, result: Value) -> Graph:
    main = builder.function((result,))
    inputs = tuple(Input(name=f"in{number}", role="input") for number in range(len(main.params)))
    return verify_graph(Graph(functions={"main": main}, entry="main", inputs=inputs, outputs=(Output(name="out"),)))


def dot(left: tuple[int, ...], right: tuple[int, ...], contract: tuple[Any, Any], dtype: str = F32) -> Graph:
    builder = GraphBuilder("main")
    operands = (builder.param(left, dtype), builder.param(right, dtype))
    kept = [size for at, size in enumerate(left) if at not in contract[0]]
    kept += [size for at, size in enumerate(right) if at not in contract[1]]
    (out,) = builder.node(
        "dot_general",
        operands,
        ((tuple(kept), dtype),),
        lhs_contract=contract[0],
        rhs_contract=contract[1],
        lhs_batch=(),
        rhs_batch=(),
    )
    return graph_of(builder, out)


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.body.nodes]


def random(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(F32)


@pytest.mark.parametrize(
    ("left", "right", "contract"),
    [
        ((6, 5), (5,), ((1,), (0,))),
        ((5,), (5, 6), ((0,), (0,))),
        ((5,), (5,), ((0,), (0,))),
        ((1, 5), (5, 6), ((1,), (0,))),  # an axis of one element counts for nothing
        ((5, 6), (1, 5), ((0,), (1,))),
        ((2, 3, 4), (4, 2), ((2, 0), (0, 1))),  # two axes, in another order
    ],
)
def test_dot_strength_multiplies_with_a_vector_and_adds_up(left: Any, right: Any, contract: Any) -> None:
    before = dot(left, right, contract)
    after = verify_graph(simplify(before, options()))
    assert "dot_general" not in ops(after)
    assert ops(after).count("mul") == ops(after).count("reduce_sum") == 1
    values = [random(*left), random(*right)]
    np.testing.assert_allclose(evaluate(after, values)[0], evaluate(before, values)[0], rtol=1e-5)


def test_dot_strength_leaves_products_of_matrices_and_obeys_its_option() -> None:
    assert ops(simplify(dot((3, 5), (5, 6), ((1,), (0,))), options())) == ["dot_general"]
    off = options({"optimizations.math.dot_strength": False})
    assert ops(simplify(dot((3, 5), (5,), ((1,), (0,))), off)) == ["dot_general"]


def test_products_with_a_vector_are_told_while_they_are_made_sums() -> None:
    weak, strong = dot((1, 5), (5, 6), ((1,), (0,))), dot((3, 5), (5, 6), ((1,), (0,)))
    assert told_of_vectors(strong, options()) == ()
    assert told_of_vectors(weak, options({"optimizations.math.dot_strength": False})) == ()
    (told,) = compile_graph(weak, target("ipu2"), options()).graph.assumptions
    assert told.startswith("1 product with a vector")
    assert "optimizations.math.dot_strength = False" in told


def test_dot_strength_adds_halves_up_in_single_precision() -> None:
    after = simplify(dot((6, 5), (5,), ((1,), (0,)), "float16"), options())
    (total,) = [node for node in after.body.nodes if node.op == "reduce_sum"]
    assert (total.operands[0].dtype, after.body.results[0].dtype) == ("float32", "float16")


def quotient() -> Graph:
    """Rows divided by their sums."""
    builder = GraphBuilder("main")
    rows, sums = builder.param((4, 8), F32), builder.param((4,), F32)
    (many,) = builder.node("broadcast_in_dim", (sums,), (((4, 8), F32),), shape=(4, 8), broadcast_dimensions=(0,))
    return graph_of(builder, builder.node("div", (rows, many), (((4, 8), F32),))[0])


def test_fast_maths_divides_by_few_divisors_once() -> None:
    before = quotient()
    after = verify_graph(simplify(before, options({"optimizations.math.fast": True})))
    divisions = [node.results[0].shape for node in after.body.nodes if node.op == "div"]
    assert divisions == [(4,)]
    values = [random(4, 8), 1 + random(4) ** 2]
    np.testing.assert_allclose(evaluate(after, values)[0], evaluate(before, values)[0], rtol=1e-5)
    assert ops(simplify(before, options())) == ops(before)


def test_fast_maths_takes_roots_for_powers_of_a_half_and_zero_for_products_with_zero() -> None:
    fast = options({"optimizations.math.fast": True})
    for op, number, expected in (("pow", 0.5, "sqrt"), ("pow", -0.5, "rsqrt"), ("mul", 0.0, "broadcast_in_dim")):
        builder = GraphBuilder("main")
        given = builder.param((4,), F32)
        (constant,) = builder.node("constant", (), (((), F32),), value=number)
        graph = graph_of(builder, builder.node(op, (given, constant), (((4,), F32),))[0])
        assert ops(simplify(graph, fast))[-1] == expected
        assert ops(simplify(graph, options()))[-1] == op


@pytest.mark.parametrize(
    ("size", "replaced"), [((1, 6), True), ((8, 1), True), ((2, 6), False), ((1, 1), False), ((8, 6), False)]
)
def test_dynamic_slices_of_one_entry_along_one_axis_become_look_ups(size: tuple[int, int], replaced: bool) -> None:
    builder = GraphBuilder("main")
    table, *starts = builder.param((8, 6), F32), builder.param((), "int32"), builder.param((), "int32")
    (cut,) = builder.node("dynamic_slice", (table, *starts), ((size, F32),), slice_sizes=size)
    (new,) = builder.node("dynamic_update_slice", (table, cut, *starts), (((8, 6), F32),))
    found = simplify(graph_of(builder, new), options())
    expected = ["gather", "scatter"] if replaced else ["dynamic_slice", "dynamic_update_slice"]
    assert [op for op in ops(verify_graph(found)) if op != "reshape"] == expected


def variance(layer_class: str) -> Graph:
    """The mean of squared differences from the mean over the last axis, as a framework traces it."""
    builder, origin = GraphBuilder("main"), Origin(layer="norm", layer_class=layer_class)
    given = builder.param((3, 8), F32)

    def node(op: str, operands: tuple[Value, ...], shape: tuple[int, ...], **attributes: Any) -> Value:
        return builder.node(op, operands, ((shape, F32),), origin=origin, **attributes)[0]

    count = node("constant", (), (), value=8.0)

    def mean(of: Value) -> Value:
        seen = node("reshape", (node("reduce_sum", (of,), (3,), axes=(1,)),), (3, 1), new_sizes=(3, 1))
        return node("div", (seen, count), (3, 1))

    centred = node("sub", (given, mean(given)), (3, 8))
    return graph_of(builder, mean(node("square", (centred,), (3, 8))))


def test_statistics_of_a_norm_come_from_sums_of_squares_unless_they_are_to_be_stable() -> None:
    before = variance("LayerNormalization")
    after = verify_graph(norm_moments(before, options()))
    assert ops(after)[1:3] == ["reduce_sum", "reduce_square_sum"]  # side by side, so that they run together
    assert ops(after)[-1] == "sub"
    assert [node.results[0].shape for node in after.body.nodes if node.op == "sub"] == [(3, 1)]
    assert ops(norm_moments(before, options({"norms.use_stable_statistics": True}))) == ops(before)
    assert ops(norm_moments(variance("Dense"), options())) == ops(before)
    given = random(3, 8)
    np.testing.assert_allclose(evaluate(after, [given])[0][:, 0], given.var(1), rtol=1e-5)


def test_text_of_simplify(golden: Any) -> None:
    before = quotient()
    after = simplify(before, options({"optimizations.math.fast": True}))
    golden("passes/simplify.txt", before_and_after(before, after))


def test_text_of_norm_moments(golden: Any) -> None:
    before = variance("LayerNormalization")
    golden("passes/norm_moments.txt", before_and_after(before, norm_moments(before, options())))


def embedding(dtype: str) -> Graph:
    """The step of an embedding of halves: rows are looked up, their gradients added up for the table."""
    import keras

    from workbench.engine.frontends.keras import trace_keras

    inputs = keras.Input((8,), dtype="int32")
    outputs = keras.layers.Dense(4)(keras.layers.Embedding(100, 16, name="e")(inputs))
    more: dict[str, Any] = {"optimizer": keras.optimizers.SGD(0.1), "loss": "mean_squared_error"}
    return trace_keras(keras.Model(inputs, outputs), 2, "training", precision=dtype, **more).graph


def test_an_embedding_casts_its_rows_and_never_its_table() -> None:
    """As the SDK's Keras: the rows are looked up as floats and cast, their gradients cast and added up as floats."""
    mixed = verify_graph(simplify(embedding("mixed_float16"), options({})))
    casts = [node for node in mixed.body.nodes if node.origin.layer == "e" and node.op == "convert_element_type"]
    assert [(node.results[0].shape, node.results[0].dtype) for node in casts] == [
        ((2, 8, 16), "float16"),
        ((2, 8, 16), "float32"),
    ]
    (rows,) = (node for node in mixed.body.nodes if node.op == "gather")
    (added,) = (node for node in mixed.body.nodes if node.op == "scatter-add")
    assert rows.operands[0] is mixed.body.params[0]
    assert added.results[0].dtype == F32
    wide = embedding("float32")
    assert str(simplify(wide, options({}))) == str(wide)
