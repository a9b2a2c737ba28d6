"""`tensorflow.python.ipu.pipelining_ops`: functions of tensors as the stages of a pipeline over several IPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import Any

import jax
from jax.ad_checkpoint import checkpoint_name

from workbench.base.text import short
from workbench.engine.frontends.describe.name_stack import CHECKPOINT
from workbench.errors import KindError, OperandError
from workbench.ipu._pipeline.asked import Asked, checked
from workbench.ipu._pipeline.program import source_of
from workbench.ipu._pipeline.recorded import record_pipeline
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.tf import _graph
from workbench.tf._graph import Operation
from workbench.tf._graph.convert import check_depth, is_symbolic
from workbench.tf._ops.control import as_tensor
from workbench.tf._ops.gradients import Optimizer


class PipelineSchedule(IntEnum):
    """The order of forward and backward passes.

    Grouped: all IPUs run forward passes together, then backward passes. Interleaved: they run side by side, with half
    the stashes. Sequential: one stage at a time, as a sharded model.
    """

    Grouped = 0
    Interleaved = 1
    Sequential = 2


class RecomputationMode(Enum):
    """How activations are made again where the configuration allows recomputation."""

    Auto = "Auto"
    RecomputeThenBackpropagate = "RecomputeThenBackpropagate"
    RecomputeAndBackpropagateInterleaved = "RecomputeAndBackpropagateInterleaved"


class OptimizerFunctionOutput:
    """What an `optimizer_function` returns: an optimizer of `tf.train` and the loss, a scalar tensor.

    The arguments of `compute_gradients` follow the loss, those of `apply_gradients` the gradients. Errors:
    `TypeError` for anything else.
    """

    def __init__(
        self,
        opt: Any,
        loss: Any,
        compute_gradients_args: tuple[Any, ...] | None = None,
        compute_gradients_kwargs: Mapping[str, Any] | None = None,
        apply_gradients_args: tuple[Any, ...] | None = None,
        apply_gradients_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(opt, Optimizer):
            raise KindError(f"OptimizerFunctionOutput.opt is {short(opt)}, but it must be an optimizer of tf.train.")
        if not is_symbolic(loss):
            raise KindError(
                f"OptimizerFunctionOutput.loss is {short(loss)}, but it must be a tensor of the last stage."
            )
        self.opt, self.loss = opt, loss
        self.compute_gradients_args = _tuple("compute_gradients_args", compute_gradients_args)
        self.compute_gradients_kwargs = _dict("compute_gradients_kwargs", compute_gradients_kwargs)
        self.apply_gradients_args = _tuple("apply_gradients_args", apply_gradients_args)
        self.apply_gradients_kwargs = _dict("apply_gradients_kwargs", apply_gradients_kwargs)


def _tuple(name: str, value: Any) -> tuple[Any, ...]:
    if value is not None and not isinstance(value, tuple):
        raise KindError(f"OptimizerFunctionOutput.{name} is {short(value)}, but it must be a tuple.")
    return value or ()


def _dict(name: str, value: Any) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise KindError(f"OptimizerFunctionOutput.{name} is {short(value)}, but it must be a dict.")
    return value or {}


class PipelineStageOptions:
    """Poplar options of the convolutions, products and slices of one stage; they win over the configuration's."""

    def __init__(
        self,
        convolution_options: Mapping[str, Any] | None = None,
        matmul_options: Mapping[str, Any] | None = None,
        slice_options: Mapping[str, Any] | None = None,
    ) -> None:
        given = {
            "convolution_options": convolution_options,
            "matmul_options": matmul_options,
            "slice_options": slice_options,
        }
        for name, value in given.items():
            if value is not None and not isinstance(value, dict):
                raise KindError(f"PipelineStageOptions.{name} is {short(value)}, but it must be a dictionary.")
        self.convolution_options = dict(convolution_options or {})
        self.matmul_options = dict(matmul_options or {})
        self.slice_options = dict(slice_options or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PipelineStageOptions) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def default_schedule(wanted: Any, serialised: Any) -> Any:
    """The schedule asked for, or the default: serialised batches run under one schedule only."""
    if wanted is not None:
        return wanted
    return PipelineSchedule.Sequential if isinstance(serialised, int) and serialised > 1 else PipelineSchedule.Grouped


def pipeline(
    computational_stages: Sequence[Callable[..., Any]],
    gradient_accumulation_count: Any = None,
    gradient_accumulation_dtype: Any = None,
    repeat_count: int = 1,
    batch_serialization_iterations: int = 1,
    inputs: Any = None,
    infeed_queue: Any = None,
    outfeed_queue: Any = None,
    optimizer_function: Callable[..., OptimizerFunctionOutput] | None = None,
    device_mapping: Sequence[int] | None = None,
    pipeline_schedule: PipelineSchedule | str | None = None,
    recomputation_mode: RecomputationMode | str | None = None,
    forward_propagation_stages_poplar_options: Sequence[PipelineStageOptions] | None = None,
    backward_propagation_stages_poplar_options: Sequence[PipelineStageOptions] | None = None,
    weight_update_poplar_options: PipelineStageOptions | None = None,
    offload_weight_update_variables: bool | None = None,
    replicated_optimizer_state_sharding: bool = False,
    offload_activations: bool | None = None,
    offload_gradient_accumulation_buffers: bool | None = None,
    replicated_weight_sharding: bool | None = None,
    offload_weights: bool | None = None,
    continuous_weight_updates: bool = False,
    outfeed_loss: bool = False,
    accumulate_outfeed: bool = False,
    accumulate_outfeed_dtype: Any = None,
    outfeed_mask: Sequence[bool] | None = None,
    reduction_method: GradientAccumulationReductionMethod | str = GradientAccumulationReductionMethod.SUM,
    name: str | None = None,
) -> Operation:
    """Functions as the stages of a pipeline, each given what the one before returned; an operation that runs it.

    The first stage takes `inputs` and an element of `infeed_queue`; what the last returns goes to `outfeed_queue`.
    What a stage returns as it was given it passes through that stage: it lies there for a turn and crosses every link
    on its way, unless an earlier stage on the reader's IPU keeps it.
    `optimizer_function` of those values makes it train: gradients of `gradient_accumulation_count` micro-batches are
    reduced by `reduction_method`, then applied. All of it runs `repeat_count` times. `device_mapping`: the IPU of
    each stage, by number. `outfeed_loss`: the loss alone goes to the outfeed; `outfeed_mask`: true for outputs that
    do not; `accumulate_outfeed`: the sum over the micro-batches, added up on the IPU in `accumulate_outfeed_dtype` (a
    function gives that of a tensor), goes there once. Offloading and sharding: None leaves them to the configuration.
    `batch_serialization_iterations`: elements that each pass of a stage runs over in a loop, with what other passes
    read in buffers; Sequential, all stages on one IPU, which are the defaults then, and with the method SUM.
    Without an `optimizer_function` what acts on gradients, updates or activations that wait is refused; as in the SDK,
    `offload_gradient_accumulation_buffers`, `replicated_optimizer_state_sharding` and `reduction_method` have no
    effect then.
    Other work in the compiled function runs once on the IPU of the first stage: before all micro-batches what was
    asked for before the pipeline, after its updates the rest.
    A device with several times the pipeline's IPUs runs so many replicas: micro-batch by micro-batch each takes the
    next element, and the update is given the mean over the replicas of what each has accumulated. Elements need no
    batch dimension.
    Members of `PipelineSchedule`, `RecomputationMode` and of the reduction methods may be given by name.
    Errors: `TypeError` and `ValueError` for arguments that do not fit, each naming the argument; `NotImplementedError`
    for what the SDK has not either.
    """
    # False, the default, leaves it to the configuration.
    sharded = None if replicated_optimizer_state_sharding is False else replicated_optimizer_state_sharding
    asked = checked(
        Asked(
            stages=computational_stages,
            count=gradient_accumulation_count,
            sums=gradient_accumulation_dtype,
            repeats=repeat_count,
            serial=batch_serialization_iterations,
            inputs=inputs,
            infeed=infeed_queue,
            outfeed=outfeed_queue,
            optimize=optimizer_function,
            devices=device_mapping,
            schedule=default_schedule(pipeline_schedule, batch_serialization_iterations),
            recomputation=RecomputationMode.Auto if recomputation_mode is None else recomputation_mode,
            forward_options=forward_propagation_stages_poplar_options,
            backward_options=backward_propagation_stages_poplar_options,
            update_options=weight_update_poplar_options,
            offload={
                "pipeline.offload_weight_update_variables": offload_weight_update_variables,
                "pipeline.offload_activations": offload_activations,
                "pipeline.offload_gradient_accumulation_buffers": offload_gradient_accumulation_buffers,
                "pipeline.offload_weights": offload_weights,
                "pipeline.replicated_weight_sharding": replicated_weight_sharding,
                "pipeline.replicated_optimizer_state_sharding": sharded,
            },
            continuous=continuous_weight_updates,
            loss_out=outfeed_loss,
            accumulate=accumulate_outfeed,
            accumulate_type=accumulate_outfeed_dtype,
            mask=outfeed_mask,
            reduction=reduction_method,
            name="pipeline" if name is None else name,
        ),
        PipelineSchedule,
        RecomputationMode,
        PipelineStageOptions,
    )
    made = record_pipeline(asked)
    made.traced_by = source_of
    return made


def recomputation_checkpoint(tensors: Any, name: str | None = None) -> Any:
    """The tensors, kept in memory where activations are computed again; in the structure they were given in."""

    def kept(tensor: Any) -> Any:
        return _graph.record(
            "RecomputationCheckpoint", lambda value: checkpoint_name(value, CHECKPOINT), as_tensor(tensor), name=name
        )

    if name is not None and not isinstance(name, str):
        raise OperandError(f"name is {short(name)}", expected="a text, or None")
    try:
        check_depth(tensors)
        return jax.tree_util.tree_map(kept, tensors, is_leaf=lambda each: each is None)
    except (TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise OperandError(f"tensors are {short(tensors)}: {error}", expected="tensors in lists or dicts") from error


__all__ = [
    "OptimizerFunctionOutput",
    "PipelineSchedule",
    "PipelineStageOptions",
    "RecomputationMode",
    "pipeline",
    "recomputation_checkpoint",
]
