"""Shards by scope: forward and backward together, copies between, one IPU busy at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest

from tests.engine.sharding import ipu_shard
from tests.engine.small_graphs import Draft, before_and_after
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.frontends.functions import trace_function
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.graph import Graph, Node, verify_graph
from workbench.engine.options import options
from workbench.engine.passes.shard import shard, shards_of
from workbench.engine.program import GlobalExchange, Step
from workbench.engine.target import target
from workbench.errors import InputError


def copies(graph: Graph) -> list[tuple[int, int]]:
    return [(node.attr("source"), node.attr("to")) for node in graph.body.nodes if node.op == "inter_ipu_copy"]


def placed(graph: Graph, op: str) -> list[int]:
    return [node.origin.shard for node in graph.body.nodes if node.op == op]


def chain(*where: int) -> Graph:
    """x → neg → neg → …, each on an IPU; -1 in no scope."""
    draft = Draft()
    value = draft.param("x", (64,))
    for place in where:
        with draft.at(shard=place):
            value = draft.point("neg", value)
    return verify_graph(shard(draft.graph(value)))


def test_without_scopes_nothing_changes() -> None:
    draft = Draft()
    graph = draft.graph(draft.point("neg", draft.param("x", (8,))))
    assert shard(graph) is graph
    assert shards_of(graph) == 1


@pytest.mark.parametrize(
    ("where", "found", "crossed"),
    [
        ((0, 1, 2), [0, 1, 2], [(0, 1), (1, 2)]),
        ((0, -1, 1), [0, 0, 1], [(0, 1)]),  # with what it reads
        ((-1, 1), [1, 1], []),  # with its reader, and the input with it
        ((1, 0, 1), [1, 0, 1], [(1, 0), (0, 1)]),
        ((2, 2), [2, 2], []),
    ],
)
def test_nodes_go_where_scopes_say_or_where_their_data_is(
    where: tuple[int, ...], found: list[int], crossed: list[tuple[int, int]]
) -> None:
    graph = chain(*where)
    assert placed(graph, "neg") == found
    assert copies(graph) == crossed
    assert graph.meta["shards"] == max(where) + 1


def test_a_value_crosses_once_for_all_its_readers() -> None:
    draft = Draft()
    with draft.at(shard=0):
        made = draft.point("neg", draft.param("x", (64,)))
    with draft.at(shard=1):
        first, second = draft.point("exp", made), draft.point("tanh", made)
    assert copies(verify_graph(shard(draft.graph(first, second)))) == [(0, 1)]


def test_constants_are_made_where_they_are_read() -> None:
    draft = Draft()
    x, half = draft.param("x", (64,)), draft.constant(0.5)
    with draft.at(shard=0):
        first = draft.point("mul", x, draft.broadcast(half, (64,)))
    with draft.at(shard=1):
        second = draft.point("mul", first, draft.broadcast(half, (64,)))
    graph = verify_graph(shard(draft.graph(second)))
    assert copies(graph) == [(0, 1)]
    assert sorted(placed(graph, "constant")) == [0, 1]


def test_a_weight_of_two_ipus_is_an_error_that_names_it() -> None:
    draft = Draft()
    w, value = draft.weight("dense/w", (64,)), draft.param("x", (64,))
    for place in (0, 1):
        with draft.at(shard=place):
            value = draft.point("mul", value, w)
    with pytest.raises(InputError, match=r"'dense/w' of layer 'dense' is used on the IPUs \[0, 1\]"):
        shard(draft.graph(value))


def test_stages_and_scopes_do_not_mix() -> None:
    """The driver refuses it too. Layers and stage are named; where micro-batches accumulate, what does the same."""
    model = keras.Sequential([keras.Input((8,)), Scoped(8, 1), keras.layers.Dense(2, name="out")])
    model.compile(optimizer="sgd", loss="mse")
    graph = trace_keras(model, 4, "training", stages=[0, 1]).graph
    assert shards_of(graph) == 2
    with pytest.raises(InputError) as caught:
        shard(graph)
    assert str(caught.value) == (
        "the pipeline stage 0 has layers in scopes of ipu_shard: 'on_1/dense' on IPU 1. Expected: one IPU for each "
        "stage. To mend it: leave ipu_shard out; stages= and device_mapping= say where layers are."
    )
    with pytest.raises(InputError) as caught:
        shard(trace_keras(model, 4, "training", gradient_accumulation_steps=4).graph)
    assert str(caught.value).startswith(
        "micro-batches are accumulated over layers in scopes of ipu_shard: 'on_1/dense' on IPU 1. Expected: "
    )
    assert "pipeline_schedule='Sequential'" in str(caught.value)


class Scoped(keras.layers.Layer):
    """A dense layer that puts itself on an IPU."""

    def __init__(self, units: int, place: int) -> None:
        super().__init__(name=f"on_{place}")
        self.dense = keras.layers.Dense(units, activation="relu", name="dense")
        self.place = place

    def build(self, shape: Any) -> None:
        self.dense.build(shape)

    def call(self, x: Any) -> Any:
        with ipu_shard(self.place):
            return self.dense(x)


def model(places: tuple[int, ...]) -> Any:
    keras.utils.set_random_seed(0)
    made = keras.Sequential([keras.Input((32,)), *(Scoped(32, place) for place in places), keras.layers.Dense(4)])
    made.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
    return made


def compiled(graph: Graph) -> Compiled:
    return compile_graph(graph, target("ipu2", tiles_per_ipu=8), options(), ipus=shards_of(graph))


def test_a_training_step_over_three_ipus() -> None:
    result = compiled(trace_keras(model((0, 1, 2)), 8, "training").graph)
    crossings = [(step.ipu, step.to_ipu) for step in result.program.steps if isinstance(step, GlobalExchange)]
    large = [each for each in crossings if each in ((0, 1), (1, 2), (2, 1), (1, 0))]
    assert large[:2] == [(0, 1), (1, 2)]
    assert (2, 1) in large
    assert (1, 0) in large
    homes = {each.name: each.ipu for each in result.program.variables if each.kind in ("parameter", "optimizer")}
    for place in range(3):
        mine = [ipu for name, ipu in homes.items() if f"on_{place}" in name]
        assert len(mine) == 6  # kernel, bias, and two slots of each
        assert set(mine) == {place}


def test_backward_runs_where_forward_ran() -> None:
    graph = trace_keras(model((0, 1)), 8, "training").graph
    by_layer: dict[tuple[str, str], set[int]] = {}
    for node in verify_graph(shard(graph)).body.nodes:
        if node.op == "dot_general":
            by_layer.setdefault((node.origin.layer, node.origin.direction), set()).add(node.origin.shard)
    for place in (0, 1):
        assert by_layer[f"on_{place}/dense", "forward"] == {place}
        assert by_layer[f"on_{place}/dense", "backward"] == {place}


def test_one_ipu_is_busy_at_a_time_and_the_others_say_why_they_wait() -> None:
    result = compiled(trace_keras(model((0, 1, 2)), 8, "training").graph)
    for spent in result.trace.cycle_breakdown:
        assert sum(spent.values()) == result.trace.total_cycles
        assert spent["idle_wait_stage"] > 0
    once = sum(cost.cycles * result.trace.executions[number] for number, cost in result.trace.steps.items())
    assert result.trace.total_cycles == once  # no two steps at the same time


def test_steps_use_variables_of_their_own_ipu() -> None:
    result = compiled(trace_keras(model((1, 0)), 8, "training").graph)
    for step in result.program.steps:
        assert isinstance(step, Step)
        for number in (*step.reads, *step.writes):
            assert result.program.variables[number].ipu in step.ipus


def test_gradients_of_a_function_follow_its_scopes() -> None:
    def step(first: Any, second: Any, x: Any) -> Any:
        def loss(weights: Any) -> Any:
            with ipu_shard(0):
                hidden = jnp.tanh(x @ weights[0])
            with ipu_shard(1):
                return jnp.sum(hidden @ weights[1])

        return jax.grad(loss)((first, second))

    square = jax.ShapeDtypeStruct((16, 16), "float32")
    graph = shard(trace_function(step, square, square, np.zeros((4, 16), "float32")).graph)
    assert copies(graph) == [(0, 1), (1, 0)]
    assert isinstance(graph.body.nodes[0], Node)


def looped(times: Any, x: Any, first: Any, second: Any) -> Any:
    """A loop with one product on each of two IPUs; `times` as a number is known, as an array is not."""

    def turn(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        state, total = carry
        with ipu_shard(0):
            hidden, state = jnp.tanh(state @ first), state * 0.5
        with ipu_shard(1):
            out = hidden @ second
            return state, total + jnp.sum(out * out)

    return jax.lax.fori_loop(0, times, turn, (x, jnp.float32(0)))


@pytest.mark.parametrize("known", [True, False])
def test_a_loop_that_carries_spans_ipus(known: bool) -> None:
    """Each turn: `hidden` crosses; `state` stays on IPU 0 and `total` on IPU 1, so nothing crosses back."""
    square, x = jax.ShapeDtypeStruct((16, 16), "float32"), np.zeros((4, 16), "float32")
    body = (lambda *given: looped(5, *given)) if known else looped
    given = (x, square, square) if known else (np.int32(5), x, square, square)
    graph = verify_graph(shard(trace_function(body, *given).graph))
    inside = [function for name, function in graph.functions.items() if "/shards" in name]
    found = [copies(replace(graph, entry=function.name)) for function in inside]
    assert [(0, 1)] in found
    assert all(each in ([], [(0, 1)]) for each in found)
    result = compiled(trace_function(body, *given).graph)
    for step in result.program.steps:
        assert isinstance(step, Step)
        assert all(result.program.variables[number].ipu in step.ipus for number in (*step.reads, *step.writes))
    (crossing,) = [step.id for step in result.program.steps if isinstance(step, GlobalExchange)]
    assert result.trace.executions[crossing] == (5 if known else 1)
    multiplied = {step.ipu for step in result.program.steps if "matmul" in step.name}
    assert multiplied == {0, 1}


def test_a_loop_inside_a_loop_spans_ipus() -> None:
    def nested(x: Any, first: Any, second: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, carry: looped(2, carry[0], first, second), (x, jnp.float32(0)))

    square, x = jax.ShapeDtypeStruct((16, 16), "float32"), np.zeros((4, 16), "float32")
    result = compiled(trace_function(nested, x, square, square).graph)
    (crossing,) = [step.id for step in result.program.steps if isinstance(step, GlobalExchange)]
    assert result.trace.executions[crossing] == 6


def test_a_loop_over_slices_stays_on_one_ipu() -> None:
    def sliced(xs: Any, w: Any) -> Any:
        def turn(total: Any, x: Any) -> tuple[Any, Any]:
            with ipu_shard(0):
                y = x @ w
            with ipu_shard(1):
                return total + jnp.sum(y), y

        return jax.lax.scan(turn, jnp.float32(0), xs)

    given = (np.zeros((3, 4, 16), "float32"), jax.ShapeDtypeStruct((16, 16), "float32"))
    with pytest.raises(
        InputError, match=r"spans the shards \[0, 1\]. Expected: branches, and loops over slices, on one"
    ):
        shard(trace_function(sliced, *given).graph)


def test_text(golden: Any) -> None:
    draft = Draft()
    value = draft.param("x", (64,))
    for place in (0, -1, 1):
        with draft.at(shard=place):
            value = draft.point("neg", value)
    before = draft.graph(value)
    golden("passes/shard.txt", before_and_after(before, shard(before)))
