"""Recomputation in a step of one program: what is made again, from what, how often, and what it is good for."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import jax
import keras
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.evaluate import assert_same_meaning
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.staging.recompute import Recomputation
from workbench.engine.frontends.staging.staged_program import with_recomputation
from workbench.engine.frontends.staging.whole_step import recomputed_step
from workbench.engine.graph import Graph, Node, verify_graph
from workbench.engine.graph.primitives import Kind, kind
from workbench.engine.options import Options
from workbench.engine.target import target
from workbench.errors import InputError

layers = keras.layers
SIX = [f"d{number}" for number in range(6)]


def deep(activation: str = "tanh", count: int = 6, residual: bool = False) -> Any:
    """Dense layers one behind another, or each added to what it was given."""
    keras.utils.set_random_seed(4)
    inputs = x = keras.Input((16,))
    for number in range(count):
        y = layers.Dense(16, activation=activation, name=f"d{number}")(x)
        x = layers.Add(name=f"a{number}")([x, y]) if residual else y
    return keras.Model(inputs, x)


def convolutions(norm: Any = layers.BatchNormalization) -> Any:
    """Two convolutions with norms and ReLUs, a pool behind them and a third without a norm."""
    keras.utils.set_random_seed(4)
    inputs = x = keras.Input((8, 8, 4))
    for number in range(2):
        x = layers.Conv2D(16, 3, padding="same", use_bias=False, name=f"c{number}")(x)
        x = layers.ReLU(name=f"r{number}")(norm(name=f"n{number}")(x))
    x = layers.Conv2D(16, 3, padding="same", name="c2")(layers.MaxPooling2D(name="p")(x))
    return keras.Model(inputs, layers.Dense(4, name="out")(layers.GlobalAveragePooling2D()(x)))


def traced(build: Any, batch: int = 8, steps: int = 1, precision: str | None = None) -> Source:
    more: dict[str, Any] = {"optimizer": keras.optimizers.SGD(0.1), "loss": "mean_absolute_error"}
    return trace_keras(build, batch, "training", gradient_accumulation_steps=steps, precision=precision, **more)


def directions(graph: Graph, function: str = "main") -> list[tuple[str, str]]:
    return [(n.origin.direction, n.origin.layer) for n in graph.functions[function].nodes if is_product(n)]


def is_product(node: Node) -> bool:
    return kind(node) is Kind.PRODUCT


def test_what_lies_before_the_last_checkpoint_is_made_again_a_part_at_a_time() -> None:
    """Behind d1 and d3 the results are kept: d2 is made again from the one, d0 from the input, each when the weights'
    gradient of the layer behind reads it. The slopes of d1 and d3 come of the results that are kept.
    """
    graph = verify_graph(recomputed_step(traced(deep).graph, ("d1", "d3")))
    order = list(dict.fromkeys(directions(graph)))
    again = [layer for way, layer in order if way == "recompute"]
    assert again == ["d2", "d0"]
    assert order.index(("backward", "d4")) < order.index(("recompute", "d2")) < order.index(("backward", "d3"))
    assert order.index(("backward", "d2")) < order.index(("recompute", "d0")) < order.index(("backward", "d1"))
    assert graph.assumptions == traced(deep).graph.assumptions


@settings(max_examples=20)
@given(
    checkpoints=st.sets(st.sampled_from(range(6)), min_size=1),
    residual=st.booleans(),
    activation=st.sampled_from(("tanh", "relu")),
    precision=st.sampled_from((None, "mixed_float16", "float16")),
)
def test_each_forward_product_runs_twice_at_most_and_the_numbers_stay(
    checkpoints: set[int], residual: bool, activation: str, precision: str | None
) -> None:
    before = step_graph(residual, activation, precision)
    names = tuple(f"{'a' if residual else 'd'}{number}" for number in sorted(checkpoints))
    after = verify_graph(recomputed_step(before, names))
    plain, again = (Counter(directions(graph)) for graph in (before, after))
    for (way, layer), count in plain.items():
        assert again[way, layer] == count
        assert way != "forward" or again["recompute", layer] <= count
    assert_same_meaning(before, after)


@functools.cache
def step_graph(residual: bool, activation: str, precision: str | None) -> Graph:
    return traced(functools.partial(deep, activation, 6, residual), precision=precision).graph


@pytest.mark.parametrize("norm", [layers.BatchNormalization, functools.partial(layers.GroupNormalization, 4)])
def test_convolutions_before_norms_are_done_again_where_nothing_is_named(norm: Any) -> None:
    """Those in front of norms alone, from what they read; what the pool and the next convolution read is kept."""
    before = traced(functools.partial(convolutions, norm)).graph
    after = verify_graph(recomputed_step(before, ()))
    assert [layer for way, layer in directions(after) if way == "recompute"] == ["c1", "c0"]
    again = {node.origin.layer for node in after.body.nodes if node.origin.direction == "recompute"}
    assert again == {"c0", "n0", "r0", "c1", "n1", "r1"}  # of a ReLU the mask
    assert "convolutions before norms are done again" in after.assumptions[-1]


def test_where_nothing_is_named_and_no_convolution_has_a_norm_it_says_what_to_name() -> None:
    """Of six layers behind which one float goes on, two, with even bytes between them."""
    before = traced(deep).graph
    after = recomputed_step(before, ())
    assert after.functions == before.functions
    assert after.assumptions[-1] == (
        "recomputation: nothing is computed again; name layers in recomputation_checkpoints, such as ('d1', 'd3'), "
        "whose results alone would be kept"
    )
    forward = trace_keras(deep, 8, "inference").graph
    assert recomputed_step(forward, ()) is forward


def test_casts_of_weights_are_done_again() -> None:
    """The halves of kernels for the gradients of what the layers were given, and those of the model's input for the
    gradient of the first kernel.
    """
    after = recomputed_step(traced(deep, precision="mixed_float16").graph, ())
    again = [node for node in after.body.nodes if node.origin.direction == "recompute"]
    assert [node.origin.layer for node in again] == ["d5", "d4", "d3", "d2", "d1", "d0"]
    assert all(node.op == "convert_element_type" and node.operands[0] in after.body.params for node in again)
    assert "nothing but casts of weights is computed again" in after.assumptions[-1]


def test_layers_inside_a_residual_connection_are_not_worth_naming() -> None:
    after = recomputed_step(traced(functools.partial(deep, "tanh", 6, True)).graph, ())
    assert "('a1', 'a3')" in after.assumptions[-1]


def test_a_micro_batch_of_several_is_made_again_too() -> None:
    source = with_recomputation(traced(deep, steps=4), Recomputation(mode="Auto", checkpoints=("d2",)))
    assert [layer for way, layer in directions(source.graph, "micro_batch") if way == "recompute"] == ["d0", "d1"]


@pytest.mark.parametrize("steps", [1, 4])
def test_a_sum_of_gradients_hides_no_word_of_it(steps: int) -> None:
    """Of one micro-batch or several: nothing is done without names, it says so, and unknown names are refused."""
    graph = traced(deep, steps=steps).graph
    said = recomputed_step(graph, ()).assumptions[len(graph.assumptions) :]
    assert [text.partition(" is computed again")[0] for text in said] == ["recomputation: nothing"]
    assert "('d1', 'd3')" in said[0]
    with pytest.raises(InputError, match=r"^no layer is called 'nowhere' to keep the result of"):
        recomputed_step(graph, ("nowhere",))


def test_marked_values_are_kept() -> None:
    class Mark(layers.Layer):
        def call(self, x: Any) -> Any:
            return jax.ad_checkpoint.checkpoint_name(x, "recomputation_checkpoint")

    def build() -> Any:
        dense = [layers.Dense(16, activation="tanh", name=name) for name in SIX]
        return keras.Sequential([keras.Input((16,)), *dense[:4], Mark(), *dense[4:]])

    after = recomputed_step(traced(build).graph, ())
    assert [layer for way, layer in directions(after) if way == "recompute"] == ["d0", "d1", "d2"]


def test_a_loop_and_a_dropout_are_made_again_with_their_numbers() -> None:
    def build() -> Any:
        keras.utils.set_random_seed(4)
        inputs = keras.Input((6, 8))
        x = layers.Dropout(0.5, seed=3)(layers.LSTM(8, return_sequences=True, name="rnn")(inputs))
        x = layers.Dense(8, activation="tanh", name="d0")(x)
        return keras.Model(inputs, layers.Dense(4)(layers.Dense(8, activation="tanh", name="d1")(x)))

    found = with_recomputation(traced(build), Recomputation(mode="Auto", checkpoints=("d1",)))
    again = {node.origin.layer for node in found.graph.body.nodes if node.origin.direction == "recompute"}
    assert {"rnn", "d0"} <= again
    assert compile_graph(found.graph, target("ipu2", tiles_per_ipu=8), Options()).trace.total_cycles > 0


def peak(graph: Graph) -> Compiled:
    return compile_graph(graph, target("ipu2", tiles_per_ipu=16), Options())


def test_what_it_says_to_name_lowers_the_peak() -> None:
    wide = traced(functools.partial(deep, "gelu", 9), batch=256).graph
    said = recomputed_step(wide, ()).assumptions[-1]
    names = tuple(name for name in (f"d{number}" for number in range(9)) if f"'{name}'" in said)
    assert len(names) == 3
    plain, again = peak(wide), peak(recomputed_step(wide, names))
    assert again.trace.total_cycles > plain.trace.total_cycles
    assert again.liveness.peak_bytes(0).max() < 0.8 * plain.liveness.peak_bytes(0).max()


def test_a_checkpoint_of_no_layer_is_an_error() -> None:
    with pytest.raises(InputError, match=r"^no layer is called 'nowhere' to keep the result of"):
        recomputed_step(traced(deep).graph, ("nowhere",))
