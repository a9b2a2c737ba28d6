"""Recomputation: what waits, what is made again, and numbers that stay."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import keras
import pytest

from tests.engine.frontends.keras_models import batch, furthest
from tests.engine.frontends.staging.four_stages import STEPS, TOLERANCE, skipping, source_of, stack, unpipelined
from workbench.engine.frontends.staging.recompute import Recomputation, mode_for
from workbench.engine.frontends.staging.staged_program import with_recomputation
from workbench.engine.graph import Function, Graph
from workbench.engine.run import Runner
from workbench.errors import InputError

THEN, INTERLEAVED = "RecomputeThenBackpropagate", "RecomputeAndBackpropagateInterleaved"
CASES = [("Grouped", THEN), ("Interleaved", THEN), ("Grouped", INTERLEAVED), ("Sequential", INTERLEAVED)]
MODELS = {"plain": stack, "skip": skipping}
SIX = [f"d{number}" for number in range(6)]


def deep(activation: str = "tanh") -> Any:
    """Six layers in two stages of three."""
    keras.utils.set_random_seed(4)
    layers = [keras.layers.Dense(8, activation=activation, name=name) for name in SIX]
    model = keras.Sequential([keras.Input((8,)), *layers])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mean_squared_error")
    return model


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize(("schedule", "mode"), CASES)
def test_recomputation_changes_no_number(schedule: str, mode: str, name: str) -> None:
    """Dropout included: its seed is kept as it was when the forward pass drew from it."""
    x, y = batch((4 * STEPS, 6), 3)
    source = with_recomputation(source_of(MODELS[name], ["a", "b", "c"], STEPS), Recomputation(mode=mode))
    runner = Runner(source, schedule=schedule)
    model, reports = unpipelined(name)
    for expected in reports:
        assert runner.run(x, y) == pytest.approx(expected, abs=TOLERANCE)
    assert furthest(source.model, model) < TOLERANCE


def calls(graph: Graph) -> list[str]:
    return [node.calls[0] for node in graph.body.nodes if "update" not in node.calls[0]]


def stashed(graph: Graph, stage: int) -> list[tuple[tuple[int, ...], str]]:
    """Results of the stage's forward pass that its later passes read."""
    nodes = {node.calls[0]: node for node in graph.body.nodes}
    later = [nodes[f"stage{stage}_{way}"] for way in ("recompute", "backward") if f"stage{stage}_{way}" in nodes]
    read = {id(value) for node in later for value in node.operands}
    return [(value.shape, value.dtype) for value in nodes[f"stage{stage}_forward"].results if id(value) in read]


def directions(graph: Graph, function: str) -> set[str]:
    return {node.origin.direction for node in graph.functions[function].nodes if node.op != "constant"}


def test_a_recomputing_stage_keeps_what_it_was_given_and_nothing_it_made() -> None:
    source = source_of(deep, ["d2"], 4)
    assert stashed(source.graph, 0) != []
    graph = with_recomputation(source, Recomputation(mode=THEN)).graph
    assert calls(graph) == [
        "stage0_forward",
        "stage1_forward",
        "stage1_backward",
        "stage0_recompute",
        "stage0_backward",
    ]
    assert stashed(graph, 0) == []  # its input is the model's
    assert stashed(graph, 1) == stashed(source.graph, 1)  # the last stage has its backward pass next
    assert directions(graph, "stage0_recompute") == {"recompute"}
    assert {node.origin.layer for node in graph.functions["stage0_recompute"].nodes} <= {"d0", "d1", "d2"}
    assert directions(graph, "stage0_backward") == {"backward"}


def test_functions_that_recomputation_leaves_alone_are_converted_once() -> None:
    """And what the forward passes become is the same under both modes."""
    source = source_of(deep, ["d2"], 4)
    plain = source.graph.functions
    then = with_recomputation(source, Recomputation(mode=THEN)).graph.functions
    merged = with_recomputation(source, Recomputation(mode=INTERLEAVED)).graph.functions

    def shared(one: Mapping[str, Function], other: Mapping[str, Function]) -> set[str]:
        return {name for name in one if one[name] is other.get(name)}

    last = {"stage1_forward", "stage1_backward", "stage0_update", "stage1_update"} & plain.keys()
    assert shared(then, plain) == last | {"stage0_backward"}
    assert shared(merged, plain) == last
    assert shared(merged, then) == last | {"stage0_forward"}


def test_a_seed_is_kept_as_it_was() -> None:
    graph = with_recomputation(source_of(stack, ["a", "c"], 4), Recomputation(mode=THEN)).graph
    assert stashed(graph, 1) == [((2,), "uint32")]


def test_between_checkpoints_only_one_part_is_made_again_at_a_time() -> None:
    """Checkpoints behind d1 and d3: d2 and d3 from the first, d0 and d1 from the input, each when its turn comes."""
    how = Recomputation(mode=INTERLEAVED, checkpoints=("d1", "d3"))
    graph = with_recomputation(source_of(deep, [0] * 6, 2), how).graph
    assert calls(graph) == ["stage0_forward", "stage0_backward"]
    order = [
        (node.origin.direction, node.origin.layer)
        for node in graph.functions["stage0_backward"].nodes
        if node.op == "tanh" or (node.op == "dot_general" and node.origin.direction == "backward")
    ]
    first = {key: order.index(key) for key in dict.fromkeys(order)}
    # behind the last checkpoint nothing is made again; before it, each part right before its backward pass
    assert [layer for way, layer in first if way == "recompute"] == ["d2", "d0"]
    assert first["backward", "d4"] < first["recompute", "d2"] < first["backward", "d2"] < first["recompute", "d0"]


def test_what_only_the_backward_pass_reads_is_made_again_too() -> None:
    """No checkpoint comes of the slopes of a GELU; those of d0 to d3 lie before one all the same."""
    how = Recomputation(mode=INTERLEAVED, checkpoints=("d1", "d3"))
    graph = with_recomputation(source_of(partial(deep, "gelu"), [0] * 6, 2), how).graph
    forward, backward = (node for node in graph.body.nodes if node.calls[0] in ("stage0_forward", "stage0_backward"))
    makers = {id(value): node for node in graph.functions["stage0_forward"].nodes for value in node.results}
    inner = dict(zip(map(id, forward.results), graph.functions["stage0_forward"].results, strict=True))
    kept = [makers[id(inner[id(value)])] for value in backward.operands if id(value) in inner]
    layers = [node.origin.layer for node in kept]
    assert [layers.count(name) for name in SIX[:4]] == [0, 1, 0, 1]
    assert {"d4", "d5"} < set(layers)  # behind the last checkpoint


def test_without_a_checkpoint_one_stage_makes_nothing_again() -> None:
    source = source_of(deep, [0] * 6, 2)
    assert with_recomputation(source, Recomputation(mode=INTERLEAVED)) is source


@pytest.mark.parametrize("marked", [True, False])
def test_checkpoints_marked_in_the_program_are_those_of_named_layers(marked: bool) -> None:
    import jax

    class Mark(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return jax.ad_checkpoint.checkpoint_name(x, "recomputation_checkpoint") if marked else x

    def make() -> Any:
        layers = [keras.layers.Dense(8, activation="tanh", name=name) for name in SIX]
        model = keras.Sequential([keras.Input((8,)), *layers[:4], Mark(name="mark"), *layers[4:]])
        model.compile(optimizer="sgd", loss="mean_squared_error")
        return model

    how = Recomputation(mode=INTERLEAVED, checkpoints=() if marked else ("d3",))
    graph = with_recomputation(source_of(make, [0] * 7, 2), how).graph
    again = {n.origin.layer for n in graph.functions["stage0_backward"].nodes if n.origin.direction == "recompute"}
    assert again == {"d0", "d1", "d2"}  # what d3 makes is kept


@pytest.mark.parametrize("schedule", ["Grouped", "Sequential"])
def test_checkpoints_change_no_number(schedule: str) -> None:
    x, y = batch((16, 8), 3)
    y = keras.utils.to_categorical(y, 8).astype("float32")
    plain = source_of(deep, None, 4)
    how = Recomputation(mode=INTERLEAVED, checkpoints=("d0", "d3", "d4"))
    source = with_recomputation(source_of(deep, ["d2"], 4), how)
    reference, runner = Runner(plain), Runner(source, schedule=schedule)
    for _ in range(2):
        assert runner.run(x, y) == pytest.approx(reference.run(x, y), abs=TOLERANCE)
    assert furthest(source.model, plain.model) < TOLERANCE


def test_modes_by_schedule() -> None:
    assert [mode_for("Auto", each) for each in ("Grouped", "Interleaved", "Sequential")] == [THEN, THEN, INTERLEAVED]
    for schedule, mode, expected in (("Interleaved", INTERLEAVED, THEN), ("Sequential", THEN, INTERLEAVED)):
        with pytest.raises(InputError) as caught:
            mode_for(mode, schedule)
        assert str(caught.value) == (
            f"the recomputation mode is {mode!r} under the {schedule} schedule. Expected: {expected!r} or 'Auto'."
        )
    with pytest.raises(InputError, match=r"^the recomputation mode is 'Twice'\. Expected: one of: Auto, Recompute"):
        mode_for("Twice", "Grouped")


def test_a_checkpoint_of_no_layer_is_an_error() -> None:
    with pytest.raises(InputError, match=r"^no layer is called 'nowhere' to keep the result of"):
        with_recomputation(source_of(deep, ["d2"], 4), Recomputation(mode=INTERLEAVED, checkpoints=("nowhere",)))
