"""Equal planned operators are one body: less code, the same work, and copies that are counted."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import keras
import pytest

from tests.engine import reconcile
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.frontends.functions import trace_function
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.options import options
from workbench.engine.program import Call, OnTileExecute, leaves
from workbench.engine.target import target

LAYERS = 4


def _compiled(*, outlining: bool) -> Compiled:
    def stack(x: jax.Array, weights: jax.Array) -> jax.Array:
        for layer in range(LAYERS):
            x = jnp.tanh(x @ weights[layer])
        return x

    source = trace_function(
        stack, jax.ShapeDtypeStruct((16, 32), "float32"), jax.ShapeDtypeStruct((LAYERS, 32, 32), "float32")
    )
    values = {"optimizations.enable_graph_outlining": outlining}
    return compile_graph(source.graph, target("ipu2", tiles_per_ipu=16), options(values))


@pytest.fixture(scope="module")
def pair() -> tuple[Compiled, Compiled]:
    return _compiled(outlining=True), _compiled(outlining=False)


def test_four_equal_matmuls_are_one_body(pair: tuple[Compiled, Compiled]) -> None:
    shared, plain = pair
    assert list(shared.program.functions) == ["shared0_matmul"]
    assert not plain.program.functions
    text = str(shared.program)
    assert text.count("Call @shared0_matmul") == LAYERS


def test_two_equal_products_are_one_body_and_a_third_of_another_shape_stands_alone() -> None:
    def pair(x: jax.Array, one: jax.Array, two: jax.Array, last: jax.Array) -> jax.Array:
        return jnp.tanh(jnp.tanh(x @ one) @ two) @ last

    square = jax.ShapeDtypeStruct((32, 32), "float32")
    inputs = (jax.ShapeDtypeStruct((16, 32), "float32"), square, square, jax.ShapeDtypeStruct((32, 8), "float32"))
    program = compile_graph(trace_function(pair, *inputs).graph, target("ipu2", tiles_per_ipu=16), options({})).program
    assert str(program).count("Call @shared0_matmul") == 2
    assert list(program.functions) == ["shared0_matmul"]


def test_vertices_and_exchange_code_are_kept_once(pair: tuple[Compiled, Compiled]) -> None:
    shared, plain = pair
    for category in ("vertex_instance_state", "internal_exchange_code"):
        assert shared.footprint.categories[category].sum() < plain.footprint.categories[category].sum()


def test_the_work_is_the_same_and_the_copies_are_counted(pair: tuple[Compiled, Compiled]) -> None:
    shared, plain = pair

    def matmul_cycles(compiled: Compiled, body: str) -> int:
        steps = leaves(compiled.program.functions[body]) if body else compiled.program.steps
        chosen = [step for step in steps if isinstance(step, OnTileExecute) and step.name.endswith("/compute")]
        return sum(compiled.trace.steps[step.id].cycles for step in chosen)

    assert LAYERS * matmul_cycles(shared, "shared0_matmul") == matmul_cycles(plain, "")
    assert shared.trace.total_cycles > plain.trace.total_cycles


def test_executed_blocks_carry_the_layer_of_their_call() -> None:
    compiled = _compiled(outlining=True)
    calls = [child for child in compiled.program.entry.children if isinstance(child, Call)]  # type: ignore[union-attr]
    assert len(calls) == LAYERS
    assert all(call.origin.direction == "forward" for call in calls)


def test_operators_share_the_cycles_of_the_body() -> None:
    from workbench.profiler.collect import collect

    profile = collect(_compiled(outlining=True))
    rows = profile.operators[profile.operators["op"] == "matmul"]
    assert len(rows) == LAYERS
    inside = profile.steps[profile.steps["parent"] == "shared0_matmul"]
    parts = inside.groupby("operator")["total_cycles"].sum()
    assert sorted(parts.index) == sorted(rows["name"])
    assert parts.nunique() == 1
    owned = profile.steps[profile.steps["operator"] != ""]["total_cycles"].sum()
    assert int(profile.operators["cycles"].sum()) == int(owned)


def test_a_part_of_an_operand_that_a_shared_body_overwrites_is_no_view_of_all_of_it() -> None:
    """Three layers multiply three images by weights in their place and add these up, in the place of the first."""
    turned = [keras.layers.RandomRotation(0.1), keras.layers.RandomZoom(0.1), keras.layers.RandomTranslation(0.1, 0.1)]
    model = keras.Sequential([keras.Input((10, 10, 3)), *turned, keras.layers.Flatten(), keras.layers.Dense(1)])
    source = trace_keras(model, 2, "training")
    reconcile.reconciles(compile_graph(source.graph, target("ipu2"), options({})))
