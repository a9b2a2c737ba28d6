"""Pipelines of `pipelining_ops`, each made wrong in the way a published raise site of it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fidelity.family_config import heard
from workbench import ipu, tf
from workbench.ipu.ipu_infeed_queue import IPUInfeedQueue
from workbench.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue
from workbench.ipu.ops.pipelining_ops import OptimizerFunctionOutput, PipelineSchedule, PipelineStageOptions, pipeline

Call = Callable[[], str]


def _first(x: Any) -> Any:
    return tf.matmul(x, tf.get_variable("first", [3, 3]))


def _second(x: Any) -> Any:
    return tf.reduce_mean(tf.matmul(x, tf.get_variable("second", [3, 1])))


def _descending(loss: Any) -> Any:
    return OptimizerFunctionOutput(tf.train.GradientDescentOptimizer(0.1), loss)


def piped(stages: Any = (_first, _second), **changed: Any) -> Call:
    """What a pipeline of two stages raises when some of its arguments are others; `True` trains it."""

    def build() -> Any:
        given = {
            "gradient_accumulation_count": 4,
            "infeed_queue": IPUInfeedQueue([np.zeros((2, 3), np.float32)] * 4),
            "outfeed_queue": IPUOutfeedQueue(),
            "optimizer_function": _descending,
            **changed,
        }
        return pipeline(stages, **given)

    def call() -> str:
        with tf.Graph().as_default(), ipu.scopes.ipu_scope("/device:IPU:0"):
            return heard(build)

    return call


def _output(**arguments: Any) -> Call:
    """What an output of an optimizer function raises."""

    def call() -> str:
        with tf.Graph().as_default():
            given = {"opt": tf.train.GradientDescentOptimizer(0.1), "loss": tf.constant(1.0), **arguments}
            return heard(lambda: OptimizerFunctionOutput(**given))

    return call


def _options(**arguments: Any) -> Call:
    return lambda: heard(lambda: PipelineStageOptions(**arguments))


_ONE = PipelineStageOptions()
_MEAN = ipu.gradient_accumulation.GradientAccumulationReductionMethod.MEAN
PIPELINING: dict[tuple[str, str], Call] = {
    ("pipeline", "gradient_accumulation_count is None"): piped(gradient_accumulation_count=None),
    ("pipeline", "gradient_accumulation_count < 0"): piped(gradient_accumulation_count=-1),
    ("pipeline", "gradient_accumulation_count >"): piped(gradient_accumulation_count=1 << 31),
    ("pipeline", "reduction_method != ga."): piped(reduction_method=_MEAN, batch_serialization_iterations=2),
    ("pipeline", "continuous_weight_updates"): piped(continuous_weight_updates=True),
    ("pipeline", "isinstance(pipeline_schedule"): piped(pipeline_schedule=0),
    ("pipeline", "batch_serialization_iterations > 1"): piped(
        batch_serialization_iterations=2, pipeline_schedule=PipelineSchedule.Grouped
    ),
    ("pipeline", "isinstance(recomputation_mode"): piped(recomputation_mode="auto"),
    ("pipeline", "isinstance(computational_stages"): piped(stages=_first),
    ("pipeline", "isinstance(infeed_queue"): piped(infeed_queue=[1.0]),
    ("pipeline", "isinstance(outfeed_queue"): piped(outfeed_queue=[1.0]),
    ("pipeline", "len(computational_stages) < 2"): piped(stages=[_first]),
    ("pipeline", "isinstance(device_mapping"): piped(device_mapping=0),
    ("pipeline", "len(device_mapping)"): piped(device_mapping=[0, 1, 2]),
    ("pipeline", "len(flat_device_mapping)"): piped(
        device_mapping=[0, 0], pipeline_schedule=PipelineSchedule.Interleaved
    ),
    ("pipeline", "isinstance(weight_update_poplar_options"): piped(weight_update_poplar_options={}),
    ("pipeline", "outfeed_mask and (not optimizer_function)"): piped(outfeed_mask=[True], optimizer_function=None),
    ("pipeline", "outfeed_loss and (not optimizer_function)"): piped(outfeed_loss=True, optimizer_function=None),
    ("pipeline", "outfeed_loss and outfeed_mask"): piped(outfeed_loss=True, outfeed_mask=[True]),
    ("pipeline", "not outfeed_queue AND accumulate_outfeed"): piped(outfeed_queue=None, accumulate_outfeed=True),
    ("pipeline", "feed_mode"): piped(outfeed_queue=IPUOutfeedQueue(IPUOutfeedMode.LAST), accumulate_outfeed=True),
    ("pipeline.validate_stage_options_and_populate_proto", "isinstance(stages_poplar_options"): piped(
        forward_propagation_stages_poplar_options=_ONE
    ),
    ("pipeline.validate_stage_options_and_populate_proto", "len(stages_poplar_options)"): piped(
        backward_propagation_stages_poplar_options=[_ONE]
    ),
    ("pipeline.validate_stage_options_and_populate_proto", "isinstance(stage_options"): piped(
        forward_propagation_stages_poplar_options=[_ONE, {}]
    ),
    ("pipeline._pipeline", "outfeed_loss AND training"): piped(outfeed_queue=None, outfeed_loss=True),
    ("pipeline._pipeline", "len(outputs) != len(local_mask)"): piped(outfeed_mask=[True, False]),
    ("pipeline._pipeline", "unmasked_outputs"): piped(outfeed_queue=None),
    ("pipeline._pipeline", "not isinstance(outputs, ops.Operation)"): piped(
        outfeed_queue=None, optimizer_function=None
    ),
    ("pipeline._pipeline._acc_grad_scale", "reduction_method"): piped(reduction_method="most"),
    ("OptimizerFunctionOutput.opt", ""): _output(opt="SGD"),
    ("OptimizerFunctionOutput.loss", ""): _output(loss=1.0),
    ("OptimizerFunctionOutput.compute_gradients_args", "isinstance(value, tuple)"): _output(compute_gradients_args=[1]),
    ("OptimizerFunctionOutput.compute_gradients_kwargs", "isinstance(value, dict)"): _output(
        compute_gradients_kwargs=[1]
    ),
    ("OptimizerFunctionOutput.apply_gradients_args", "isinstance(value, tuple)"): _output(apply_gradients_args=[1]),
    ("OptimizerFunctionOutput.apply_gradients_kwargs", "isinstance(value, dict)"): _output(apply_gradients_kwargs=[1]),
    ("PipelineStageOptions.__init__", "convolution_options"): _options(convolution_options=[1]),
    ("PipelineStageOptions.__init__", "matmul_options"): _options(matmul_options=[1]),
    ("PipelineStageOptions.__init__", "slice_options"): _options(slice_options=[1]),
}
