from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from tests.engine.frontends.keras_models import batch, furthest, mlp, residual
from tests.engine.frontends.staging.dense import stack
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.staging.stages import assign_stages
from workbench.engine.graph import Graph
from workbench.engine.run import Runner
from workbench.errors import InputError

TOLERANCE = 1e-5


def calls(graph: Graph) -> list[tuple[str, int, int]]:
    return [(node.calls[0], node.attr("stage"), node.times) for node in graph.body.nodes]


def trained(stages: Any, steps: int, make: Any = stack, shape: tuple[int, ...] = (6,)) -> tuple[Any, Any]:
    arguments = {"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]}
    ours, theirs = (make(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), **arguments) for _ in range(2))
    x, y = batch((4 * steps, *shape), 3)
    runner = Runner(trace_keras(ours, batch_size=4, stages=stages, gradient_accumulation_steps=steps))
    for _ in range(3):
        expected = theirs.train_on_batch(x, y, return_dict=True)
        assert runner.run(x, y) == pytest.approx(expected, abs=TOLERANCE)
    return ours, theirs


@pytest.mark.parametrize(
    "stages",
    [
        [0, 1, 1, 2],
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (None, [0, 0, 1, 1], ["dense_0", "dense_1", "dense_2"])
        ),
    ],
)
def test_stages_and_accumulation_train_as_one_large_batch(stages: Any) -> None:
    ours, theirs = trained(stages, 3)
    assert furthest(ours, theirs) < TOLERANCE


@pytest.mark.parametrize(
    "stages", [["norm"], *(pytest.param(each, marks=pytest.mark.slow) for each in (["relu", "twice"], ["drop"]))]
)
def test_a_cut_through_a_skip_trains_the_same(stages: list[str]) -> None:
    ours, theirs = trained(stages, 1, make=residual, shape=(6, 6, 2))
    assert furthest(ours, theirs) < TOLERANCE


def test_the_calls_of_a_pipeline_are_in_order() -> None:
    model = stack(optimizer="sgd", loss="sparse_categorical_crossentropy")
    graph = trace_keras(model, batch_size=4, stages=[0, 0, 1, 2], gradient_accumulation_steps=5).graph
    assert calls(graph) == [
        ("stage0_forward", 0, 5),
        ("stage1_forward", 1, 5),
        ("stage2_forward", 2, 5),
        ("stage2_backward", 2, 5),
        ("stage1_backward", 1, 5),
        ("stage0_backward", 0, 5),
        ("stage0_update", 0, 1),
        ("stage1_update", 1, 1),
        ("stage2_update", 2, 1),
    ]
    assert [node.attr("direction") for node in graph.body.nodes] == ["forward"] * 3 + ["backward"] * 3 + ["update"] * 3
    assert dict(graph.meta) == {"stages": 3, "gradient_accumulation_steps": 5}
    assert graph.batch_size == 4


def test_accumulation_without_stages_is_one_body_and_an_update() -> None:
    model = stack(optimizer="sgd", loss="sparse_categorical_crossentropy")
    graph = trace_keras(model, batch_size=4, gradient_accumulation_steps=5).graph
    assert calls(graph) == [("micro_batch", 0, 5), ("update", 0, 1)]
    directions = {node.origin.direction for node in graph.functions["micro_batch"].nodes}
    assert directions == {"forward", "backward"}


def test_every_parameter_has_one_accumulator_that_is_cleared() -> None:
    model = stack(optimizer="sgd", loss="sparse_categorical_crossentropy")
    graph = trace_keras(model, batch_size=4, stages=["dense_1"], gradient_accumulation_steps=2).graph
    parameters = [item for item in graph.inputs if item.role == "parameter"]
    buffers = [item for item in graph.inputs if item.name.endswith("/accumulator")]
    assert [item.name for item in buffers] == [f"{item.name}/accumulator" for item in parameters]
    assert [item.layer for item in buffers] == [item.layer for item in parameters]
    updated = {graph.inputs[output.updates].name for output in graph.outputs if output.updates is not None}
    assert {item.name for item in (*parameters, *buffers)} <= updated


def test_the_stash_is_what_the_backward_pass_reads_again() -> None:
    """Of a dense layer with ReLU: its input and the mask; never a parameter."""
    keras.utils.set_random_seed(4)
    layers = [keras.layers.Dense(8, activation="relu", name="a"), keras.layers.Dense(3, name="b")]
    model = keras.Sequential([keras.Input((6,)), *layers])
    graph = trace_keras(model, batch_size=4, mode="training", stages=["a"]).graph
    first, second, backward, *_ = graph.body.nodes
    sent = [value for value in first.results if value in second.operands]
    stash = [value for value in first.results if value not in sent]
    assert [(value.shape, value.dtype) for value in sent] == [((4, 8), "float32")]
    assert [(value.shape, value.dtype) for value in stash] == [((4, 8), "bool")]
    # b's kernel is read again by its backward pass, which is given the parameter itself.
    kernel = graph.body.params[
        [item.name for item in graph.inputs].index(
            next(item.name for item in graph.inputs if item.name.endswith("b/kernel"))
        )
    ]
    assert kernel in backward.operands


def test_the_loss_is_on_the_last_stage_and_layers_are_on_theirs() -> None:
    model = stack(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    graph = trace_keras(model, batch_size=4, stages=[0, 1, 1, 2], gradient_accumulation_steps=2).graph
    for name, function in graph.functions.items():
        if not name.endswith(("_forward", "_backward")):
            continue
        stage = int(name.removeprefix("stage").split("_")[0])
        allowed = {0: {"dense_0"}, 1: {"dense_1", "dense_2"}, 2: {"out", "loss", "metrics"}}[stage]
        assert {node.origin.layer for node in function.nodes if node.op != "constant"} <= allowed | {"loss"}
        wanted = {"forward"} if name.endswith("_forward") else {"backward"}
        assert {node.origin.direction for node in function.nodes if node.op != "constant"} == wanted


def test_inference_in_stages() -> None:
    model = residual()
    x, _ = batch((6, 6, 6, 2), 3)
    source: Source = trace_keras(model, batch_size=2, mode="inference", stages=["relu"], gradient_accumulation_steps=3)
    assert calls(source.graph) == [("stage0_forward", 0, 3), ("stage1_forward", 1, 3)]
    np.testing.assert_allclose(Runner(source).run(x), model.predict(x, verbose=0), atol=TOLERANCE)


def test_a_split_is_anything_that_has_stages() -> None:
    class Split:
        stages = (0, 1)

    assert assign_stages(mlp(), Split()) == {"hidden": 0, "out": 1}


def test_assignments_may_count_the_input_layers() -> None:
    model = residual()
    with_inputs = [0] * 4 + [1] * (len(model.layers) - 4)
    assert assign_stages(model, with_inputs) == assign_stages(model, with_inputs[1:])


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([], "stages is empty. Expected: at least one stage."),
        ([0, 1, 1], "stages has 3 entries for 2 layers. Expected: one stage for each of: hidden, out."),
        ([0, 2], "stages uses the numbers [0, 2]. Expected: 0, 1, 2… without a gap."),
        (["nowhere"], "there is no layer 'nowhere' to cut after. Expected: one of: hidden, out."),
        (["hidden", "hidden"], "stages names the layer 'hidden' twice. Expected: each layer to cut after once."),
        (["out"], "nothing follows the layer 'out'. Expected: cuts between layers."),
        ([0.5, 1], "stages is [0.5, 1]. Expected: whole numbers or layer names."),
    ],
)
def test_stages_that_cannot_be_are_an_error(stages: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        assign_stages(mlp(), stages)
    assert str(error.value).split(" To mend it")[0] == message


def test_stages_that_step_back_are_an_error() -> None:
    with pytest.raises(InputError) as error:
        trace_keras(mlp(), batch_size=2, mode="training", stages=[1, 0])
    assert str(error.value) == (
        "the layer 'out' is on stage 0 and uses what stage 1 computes. "
        "Expected: stages that never step back along the flow of data. "
        "To mend it: put 'out' on stage 1 or later."
    )


@pytest.mark.parametrize("steps", [0, -1, 1.5, True])
def test_accumulation_counts_are_positive(steps: Any) -> None:
    with pytest.raises(InputError) as error:
        trace_keras(mlp(), batch_size=2, mode="training", gradient_accumulation_steps=steps)
    assert str(error.value) == f"gradient_accumulation_steps is {steps!r}. Expected: a whole number of at least 1."


def test_sample_weights_in_stages() -> None:
    ours, theirs = (stack(optimizer="sgd", loss="sparse_categorical_crossentropy") for _ in range(2))
    x, y = batch((8, 6), 3)
    weights = np.linspace(0.0, 2.0, 8, dtype="float32")
    runner = Runner(trace_keras(ours, batch_size=4, stages=["dense_1"], gradient_accumulation_steps=2))
    expected = theirs.train_on_batch(x, y, sample_weight=weights, return_dict=True)
    assert runner.run(x, y, sample_weight=weights) == pytest.approx(expected, abs=TOLERANCE)
    assert furthest(ours, theirs) < TOLERANCE
