"""A stage that is computed again runs its forward body again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import keras
import pytest

from tests.engine.evaluate import assert_same_meaning
from tests.engine.passes.staged_models import BATCH, CLASSES, FEATURES, WIDTH, model
from tests.engine.small_graphs import functions_before_and_after
from tests.engine.unrolled import unrolled
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.staging.recompute import Recomputation
from workbench.engine.frontends.staging.staged_program import with_recomputation
from workbench.engine.graph import Graph, Node, verify_graph
from workbench.engine.options import Options
from workbench.engine.passes.canonicalise import canonicalise
from workbench.engine.passes.rematerialise import rematerialise
from workbench.engine.passes.reuse import reuse
from workbench.engine.program import Call, OnTileExecute, children, leaves
from workbench.engine.target import target
from workbench.profiler.collect import collect

STEPS = 12


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Three stages, of which the first two are computed again; before any pass."""
    found = trace_keras(
        model(False),
        BATCH,
        "training",
        stages=["a", "b"],
        gradient_accumulation_steps=STEPS,
        optimizer=keras.optimizers.SGD(0.1),
    )
    return with_recomputation(found, Recomputation(mode="RecomputeThenBackpropagate")).graph


@pytest.fixture(scope="module")
def compiled(graph: Graph) -> Compiled:
    return compile_graph(graph, target("ipu2", tiles_per_ipu=8), Options(), ipus=3)


def call(graph: Graph, stage: int, direction: str) -> Node:
    return next(node for node in graph.body.nodes if (node.attr("stage"), node.attr("direction")) == (stage, direction))


def test_both_passes_call_one_body_that_makes_everything_once(graph: Graph) -> None:
    before, after = graph, verify_graph(reuse(graph))
    for stage in (0, 1):
        forward, again = call(after, stage, "forward"), call(after, stage, "recompute")
        assert forward.calls == again.calls == (f"stage{stage}_forward",)
        assert f"stage{stage}_recompute" not in after.functions
        body = after.functions[forward.calls[0]]
        made = Counter(node.op for node in body.nodes)
        alone = Counter(node.op for node in before.functions[forward.calls[0]].nodes)
        assert made["dot_general"] == alone["dot_general"] == 1
        assert {node.origin.direction for node in body.nodes} == {"forward"}
        # What the backward pass reads is what it read, and so is what the next stage gets.
        assert set(call(before, stage, "recompute").results) <= set(again.results)
        assert set(call(before, stage, "forward").results) <= set(forward.results)
        assert call(after, stage, "backward").operands == call(before, stage, "backward").operands


def test_what_is_computed_again_from_something_else_keeps_a_body_of_its_own(graph: Graph) -> None:
    before = graph
    again = call(before, 0, "recompute")
    other = next(value for value in before.body.params if value.shape == again.operands[0].shape)
    body = before.functions[again.calls[0]]
    extra = replace(other)  # a value that the forward call does not get
    changed = replace(again, operands=(extra, *again.operands[1:]))
    nodes = tuple(changed if node is again else node for node in before.body.nodes)
    entry = replace(before.body, params=(*before.body.params, extra), nodes=nodes)
    described = (*before.inputs, replace(before.inputs[before.body.params.index(other)], name="other"))
    found = reuse(replace(before, functions=before.functions | {entry.name: entry}, inputs=described))
    assert call(found, 0, "recompute") is changed
    assert found.functions[changed.calls[0]] is body
    assert call(found, 1, "recompute").calls == ("stage1_forward",)


def test_what_the_first_body_makes_twice_is_one_for_the_second() -> None:
    """Halves are cast to floats and back, once for a product and once for the sum behind it; the gradient of what
    follows the sum reads it by the first cast. Both bodies' products, and the sum, are there once.
    """
    more = {"optimizer": "sgd", "loss": "mean_absolute_error", "precision": "float16"}
    found = trace_keras(halves(), BATCH, "training", stages=["sum"], gradient_accumulation_steps=4, **more)
    staged = with_recomputation(found, Recomputation(mode="RecomputeThenBackpropagate")).graph
    after = verify_graph(reuse(staged))
    alone, body = (Counter(node.op for node in each.functions["stage0_forward"].nodes) for each in (staged, after))
    assert call(after, 0, "recompute").calls == ("stage0_forward",)
    assert body == alone + Counter({"gt": 2})  # the masks of both ReLUs, which the gradient reads
    assert_same_meaning(staged, after)
    assert_same_meaning(staged, verify_graph(rematerialise(after)))


def halves() -> Any:
    """A dense layer added to what it was given, a second one behind, and a third on a stage of its own."""
    inputs = keras.Input((FEATURES,))
    first = keras.layers.Dense(FEATURES, activation="relu")(inputs)
    second = keras.layers.Dense(FEATURES, activation="relu")(keras.layers.Add()([inputs, first]))
    whole = keras.layers.Add(name="sum")([inputs, second])
    return keras.Model(inputs, keras.layers.Dense(CLASSES)(whole))


def test_the_code_is_there_once_and_runs_in_both_passes(compiled: Compiled) -> None:
    program = compiled.program
    for stage in (0, 1):
        for name in (f"stage{stage}_forward_pass", f"stage{stage}_recompute"):
            inside = [child for child in children(program.functions[name]) if isinstance(child, Call)]
            assert [child.function for child in inside] == [f"stage{stage}_forward"]
            kinds = {step.kind for step in leaves(program.functions[name])}
            assert "OnTileExecute" in kinds  # copies in
            assert not any(
                "matmul" in step.name for step in leaves(program.functions[name]) if isinstance(step, OnTileExecute)
            )
        rows = unrolled(compiled.trace, stage)
        body = {step.id for step in leaves(program.functions[f"stage{stage}_forward"])}
        ran = Counter((row.direction, row.micro_batch) for row in rows if row.step == min(body))
        assert ran == {(direction, number): 1 for direction in ("forward", "recompute") for number in range(STEPS)}


def test_what_the_body_reads_is_copied_into_places_of_its_own(compiled: Compiled) -> None:
    """Stage 0 reads its input (a float a feature and sample) and stage 1 what stage 0 makes; weights are read there."""
    found = [each for each in compiled.program.variables if each.name.endswith("/read")]
    assert [(each.ipu, each.function, each.size_bytes) for each in found] == [
        (0, "stage0_forward", BATCH * FEATURES * 4),
        (1, "stage1_forward", BATCH * WIDTH * 4),
    ]


def test_a_layer_says_what_it_costs_to_compute_again(compiled: Compiled) -> None:
    """Summed over the blocks of the trace, in which a step says in which pass it ran."""
    rows = unrolled(compiled.trace)
    origin = {step.id: step.origin for body in compiled.program.functions.values() for step in leaves(body)}
    spent: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row.step in origin and row.direction in ("forward", "recompute"):
            spent[origin[row.step].layer, row.direction] += row.cycles_to - row.cycles_from
    layers = collect(compiled).operations.layers.set_index("layer")
    for layer in ("a", "b"):
        assert layers.loc[layer, "recompute_cycles"] == spent[layer, "recompute"] > 0


def test_text(graph: Graph, golden: Any) -> None:
    before = canonicalise(graph)
    golden("passes/reuse.txt", functions_before_and_after(before, reuse(before)))
