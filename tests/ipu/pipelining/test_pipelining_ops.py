"""`pipelining_ops.pipeline`: numbers are those of one large batch, the profile is that of stages under a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.graphs import compiled, configure
from tests.ipu.pipelining.pipelines import COUNT, DATA, Ran, close, expected, first, second
from workbench import tf
from workbench.errors import InputError
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.ipu.ipu_infeed_queue import IPUInfeedQueue
from workbench.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue
from workbench.ipu.ops.pipelining_ops import (
    OptimizerFunctionOutput,
    PipelineSchedule,
    PipelineStageOptions,
    RecomputationMode,
    pipeline,
    recomputation_checkpoint,
)
from workbench.ipu.utils import load_executable


@pytest.mark.parametrize(
    "schedule",
    [PipelineSchedule.Grouped, *(pytest.param(each, marks=pytest.mark.slow) for each in list(PipelineSchedule)[1:])],
)
def test_numbers_are_those_of_accumulated_gradients(schedule: PipelineSchedule) -> None:
    configure(ipus=2)
    ran = Ran(pipeline_schedule=schedule, repeat_count=2)
    losses, weights = expected(repeats=2)
    assert close(ran.out, [np.full(8, 0.5), losses])
    assert close(ran.weights, weights)
    blocks = ran.profile.blocks(max_rows=10**6)
    assert set(blocks["stage"]) >= {0, 1}
    assert set(blocks["direction"]) >= {"forward", "backward", "update"}
    assert ran.profile.meta["config"]["pipeline.schedule"] == schedule.name
    assert any("one of its 2 equal repetitions" in each for each in ran.profile.meta["assumptions"])


@pytest.mark.parametrize(("devices", "loaded_on"), [([0, 1], [0, 1]), ([0, 0], [0])])
def test_an_argument_arrives_once_for_all_micro_batches(devices: list[int], loaded_on: list[int]) -> None:
    """The rate is one float of the whole run: on each IPU that reads it, while data come with every micro-batch."""
    configure(ipus=len(loaded_on))
    ran = Ran(device_mapping=devices, pipeline_schedule=PipelineSchedule.Sequential)
    assert close(ran.weights, expected()[1])
    arriving = ran.profile.steps.query("kind == 'StreamCopy' and bytes_received > 0")
    rates = arriving[arriving["name"].str.startswith("Placeholder")]
    assert sorted(rates["ipu"]) == loaded_on
    assert set(zip(rates["times"], rates["bytes_received"], strict=True)) == {(1, 4)}
    assert set(arriving.drop(rates.index)["times"]) == {COUNT}


@pytest.mark.slow
def test_a_mean_of_gradients_and_sums_of_another_type() -> None:
    configure(ipus=2)
    ran = Ran(reduction_method=GradientAccumulationReductionMethod.MEAN, gradient_accumulation_dtype=tf.float32)
    assert close(ran.weights, expected(divided=COUNT)[1])
    table = ran.profile.variables
    assert set(table[table["name"].str.endswith("accumulator")]["dtype"]) == {"float32"}


@pytest.mark.slow
def test_sums_in_half() -> None:
    configure(ipus=2)
    ran = Ran(gradient_accumulation_dtype=lambda variable: tf.float16)
    table = ran.profile.variables
    assert set(table[table["name"].str.endswith("accumulator")]["dtype"]) == {"float16"}
    assert all(np.allclose(a, b, atol=2e-2) for a, b in zip(ran.weights, expected()[1], strict=True))


@pytest.mark.slow
def test_what_goes_to_the_outfeed() -> None:
    configure(ipus=2)
    losses = expected()[0]
    assert np.allclose(Ran(outfeed_loss=True).out, losses, rtol=2e-5)


@pytest.mark.parametrize(
    ("arguments", "reduced"),
    [({"outfeed_mask": [True, False]}, lambda losses: losses), ({"accumulate_outfeed": True}, None)],
)
@pytest.mark.slow
def test_masks_and_sums(arguments: dict[str, Any], reduced: Any) -> None:
    configure(ipus=2)
    losses, out = expected()[0], Ran(**arguments).out
    if reduced is None:
        assert close(out, [[COUNT * 0.5], [losses.sum()]])
    else:
        assert close(out, [losses])


@pytest.mark.slow
def test_the_last_element_alone() -> None:
    configure(ipus=2)
    ran = Ran(mode=IPUOutfeedMode.LAST)
    assert close(ran.out, [0.5, expected()[0][-1]])


@pytest.mark.slow
def test_stages_share_an_ipu() -> None:
    configure(ipus=1)
    ran = Ran(device_mapping=[0, 0], pipeline_schedule=PipelineSchedule.Sequential)
    assert ran.profile.ipus == 1
    assert close(ran.weights, expected()[1])


def test_a_variable_of_two_ipus() -> None:
    def again(rate: Any, hidden: Any, y: Any) -> Any:
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            w = tf.get_variable("first", [6, 8])
        return rate, tf.reduce_mean(tf.matmul(hidden, tf.transpose(w)))

    configure(ipus=2)
    with pytest.raises(InputError, match=r"stages 0 and 1 both use the variable 'first', and they are on IPUs 0 and 1"):
        Ran([first, again])
    configure(ipus=1)
    tf.reset_default_graph()
    assert Ran([first, again], device_mapping=[0, 0]).profile.ipus == 1


def test_a_rate_that_changes_is_no_input() -> None:
    def falling(rate: Any, hidden: Any, y: Any) -> Any:
        return rate * tf.reduce_mean(hidden), second(rate, hidden, y)[1]

    configure(ipus=2)
    with pytest.raises(InputError, match="which a stage computes in every micro-batch"):
        Ran([first, falling])


@pytest.mark.slow
def test_momentum_lives_with_its_stage() -> None:
    def optimize(rate: Any, loss: Any) -> Any:
        return OptimizerFunctionOutput(tf.train.MomentumOptimizer(rate, 0.9), loss)

    configure(ipus=2)
    ran = Ran(optimizer_function=optimize)
    table = ran.profile.variables
    slots = table[table["name"].str.endswith("/momentum") & (table["kind"] == "optimizer")]
    assert dict(zip(slots["name"], slots["ipu"], strict=True)) == {
        "first/Momentum/momentum": 0,
        "second/Momentum/momentum": 1,
    }
    assert close(ran.weights[:2], expected()[1])  # the first step of momentum is the gradient


@pytest.mark.slow
def test_recomputation_and_a_checkpoint() -> None:
    """Between checkpoints activations are made again; a checkpoint is kept, so what leads to it is not."""

    def made(checkpoint: bool, **options: Any) -> Any:
        def deep(rate: Any, x: Any, y: Any) -> Any:
            rate, hidden, y = first(rate, x, y)
            for turn in range(3):
                hidden = tf.tanh(hidden + 1.0)
                hidden = recomputation_checkpoint(hidden) if checkpoint and turn == 1 else hidden
            return rate, hidden, y

        tf.reset_default_graph()
        configure(ipus=2, **options)
        return Ran([deep, second], recomputation_mode=RecomputationMode.RecomputeAndBackpropagateInterleaved)

    plain, recomputed, kept = made(False), made(False, allow_recompute=True), made(True, allow_recompute=True)
    assert close(recomputed.weights, plain.weights)
    assert close(kept.weights, plain.weights)
    forwards = [ran.executable.graph.functions["stage0_forward"] for ran in (recomputed, kept)]
    assert [len(forward.results) for forward in forwards] == [3, 4]  # hidden, rate, labels; the checkpoint
    passes = [set(ran.profile.blocks(max_rows=10**6)["direction"]) for ran in (plain, recomputed, kept)]
    assert ["recompute" in each for each in passes] == [False, True, True]


@pytest.mark.slow
def test_a_stage_has_options_of_its_own() -> None:
    configure(ipus=2)
    own = PipelineStageOptions(matmul_options={"partialsType": "half", "availableMemoryProportion": "0.2"})
    graph = Ran(forward_propagation_stages_poplar_options=[PipelineStageOptions(), own]).executable.graph
    found = {
        name: (node.attr("partials_type"), node.attr("available_memory_proportion"))
        for name in ("stage0_forward", "stage1_forward", "stage1_backward")
        for node in graph.functions[name].nodes
        if node.op == "dot_general"
    }
    assert found == {"stage0_forward": (None, None), "stage1_forward": ("half", 0.2), "stage1_backward": (None, None)}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"matmul_options": {"tileset": 1}}, "stage0_forward set 'tileset'"),
        (
            {"matmul_options": {"availableMemoryProportion": "-1"}},
            "availableMemoryProportion of stage0_forward is '-1'",
        ),
        ({"convolution_options": {"partialsType": "double"}}, "partialsType of stage0_forward is 'double'"),
        ({"slice_options": {"availableMemoryProportion": 0.1}}, "expected|Expected"),
    ],
)
@pytest.mark.slow
def test_options_a_stage_does_not_have(options: dict[str, Any], text: str) -> None:
    configure(ipus=2)
    with pytest.raises(InputError, match=text):
        Ran(forward_propagation_stages_poplar_options=[PipelineStageOptions(**options), PipelineStageOptions()])


@pytest.mark.slow
def test_a_saved_pipeline_takes_no_elements_and_keeps_no_numbers(tmp_path: Path) -> None:
    configure(ipus=2, serialization_output_folder=str(tmp_path))
    ran = Ran()
    assert close(ran.out, [np.full(COUNT, 0.5), expected()[0]])  # from the first element on
    (saved,) = tmp_path.iterdir()
    loaded = load_executable(saved)
    assert loaded.profile.total_cycles == ran.profile.total_cycles
    with pytest.raises(InputError, match="saved without its numbers"):
        loaded.run(np.float32(0.5), feeds=DATA)


def test_keras_layers_in_inference() -> None:
    """The example of the document this API comes from, smaller."""
    configure(ipus=2)
    layers = [keras.layers.Dense(5, activation="relu"), keras.layers.Dense(3)]
    infeed, outfeed = IPUInfeedQueue([x for x, _ in DATA]), IPUOutfeedQueue()

    def stage1(image: Any) -> Any:
        return layers[0](image)

    def stage2(partial: Any) -> Any:
        logits = layers[1](partial)
        return tf.nn.softmax(logits), tf.argmax(logits, axis=1)

    def build() -> Any:
        return pipeline(
            [stage1, stage2],
            gradient_accumulation_count=6,
            repeat_count=2,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            device_mapping=[1, 0],
        )

    operation = compiled(build)
    taken = outfeed.dequeue()
    with tf.Session() as session:
        session.run([infeed.initializer, tf.global_variables_initializer()])
        session.run(operation)
        chances, classes = session.run(taken)
        profile = session.profile
    wanted = [np.asarray(keras.ops.softmax(layers[1](layers[0](x)))) for x, _ in DATA[:12]]
    assert np.allclose(chances, np.stack(wanted), rtol=2e-5)
    assert classes.tolist() == np.stack(wanted).argmax(axis=-1).tolist()
    assert set(profile.blocks(max_rows=10**6)["direction"]) == {"forward"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"gradient_accumulation_dtype": tf.float32}, "without an optimizer_function"),
        ({"backward_propagation_stages_poplar_options": [PipelineStageOptions()] * 2}, "without an optimizer_function"),
        ({"weight_update_poplar_options": PipelineStageOptions()}, "without an optimizer_function"),
        ({"offload_weight_update_variables": True}, "without an optimizer_function"),
        ({"offload_activations": True}, "without an optimizer_function"),
        ({"accumulate_outfeed_dtype": tf.float32}, "without accumulate_outfeed"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_what_has_nothing_to_act_on_is_refused(given: dict[str, Any], told: str) -> None:
    (name,) = given
    with pytest.raises(InputError, match=f"^{name} is (set|tf.float32) {told}.*leave {name} out"):
        pipeline([lambda x: x, lambda x: x], 4, inputs=[tf.constant(1.0)], outfeed_queue=IPUOutfeedQueue(), **given)


def test_what_the_sdk_says_does_nothing_in_inference_is_taken() -> None:
    pipeline(
        [lambda x: x, lambda x: x],
        4,
        inputs=[tf.constant(1.0)],
        outfeed_queue=IPUOutfeedQueue(),
        offload_gradient_accumulation_buffers=True,
        replicated_optimizer_state_sharding=True,
        reduction_method="mean",
        offload_activations=False,
    )


@pytest.mark.parametrize("schedule", PipelineSchedule)
def test_schedules_are_taken_by_name(schedule: PipelineSchedule) -> None:
    named = Ran(pipeline_schedule=schedule.name, recomputation_mode="Auto", reduction_method="mean")
    tf.reset_default_graph()
    ran = Ran(pipeline_schedule=schedule, reduction_method=GradientAccumulationReductionMethod.MEAN)
    assert named.profile.total_cycles == ran.profile.total_cycles
    assert close(named.weights, ran.weights)


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        (
            {"pipeline_schedule": "grouped"},
            TypeError,
            "pipeline_schedule is 'grouped'. Expected: a member of PipelineSchedule, or its name: "
            "Grouped, Interleaved, Sequential. To mend it: write pipeline_schedule='Grouped', or another of them.",
        ),
        (
            {"recomputation_mode": 3},
            TypeError,
            "recomputation_mode is 3. Expected: a member of RecomputationMode, or its name: "
            "Auto, RecomputeThenBackpropagate, RecomputeAndBackpropagateInterleaved. "
            "To mend it: write recomputation_mode='Auto', or another of them.",
        ),
        (
            {"reduction_method": "average"},
            ValueError,
            "reduction_method is 'average'. Expected: one of SUM, MEAN, RUNNING_MEAN. "
            'To mend it: give a member of GradientAccumulationReductionMethod, or its name, such as "mean".',
        ),
    ],
)
def test_members_that_are_none_are_told_which_there_are(
    given: dict[str, Any], kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind) as raised:
        Ran(**given)
    assert str(raised.value) == told


def marking(rate: Any, x: Any, y: Any) -> Any:
    seen = tf.get_variable("seen", [2], initializer=tf.constant_initializer([5.0, 5.0]), trainable=False)
    with tf.control_dependencies([tf.assign(seen, tf.zeros([2]))]):
        return first(rate, x, y)


def test_a_constant_is_written_to_the_variable_of_a_stage() -> None:
    configure(ipus=2)
    ran = Ran(stages=(marking, second))
    assert [each.tolist() for each in ran.weights if each.shape == (2,)] == [[0.0, 0.0]]
    assert close([each for each in ran.weights if each.shape != (2,)], expected()[1])


def test_a_count_that_fills_no_round_is_told_under_the_name_it_was_given_by() -> None:
    """Two stages that train under Grouped have 2 x 2 micro-batches a round."""
    configure(ipus=2)
    with pytest.raises(InputError) as raised:
        Ran(gradient_accumulation_count=3)
    assert str(raised.value) == (
        "gradient_accumulation_count is 3, for 2 stages under the Grouped schedule. Expected: a multiple of 4. "
        "To mend it: set gradient_accumulation_count=4."
    )


def test_activations_that_never_wait_cannot_be_offloaded() -> None:
    configure(ipus=2)
    with pytest.raises(InputError, match=r"^offload_activations is True, and under the Sequential schedule no activ"):
        Ran(offload_activations=True, pipeline_schedule="Sequential")
    Ran(offload_activations=False, pipeline_schedule="Sequential")
