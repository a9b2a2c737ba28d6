"""What a pipeline adds up over its micro-batches: gradients for the optimizer, and outputs that leave once.

Outputs are added up (`accumulate_outfeed`) on the last stage's IPU and leave with the weight update. Source: graphcore/
tensorflow@b2127bba tensorflow/python/ipu/ops/pipelining_ops.py (`_acc_grad_scale`, `_enqueue_or_accumulate`),
op_util.py (`accumulate_gradients`); the mean over the replicas optimizers/cross_replica_optimizer.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp

from workbench.engine.frontends.describe.name_stack import UPDATE_SCOPE
from workbench.engine.frontends.describe.replicas import axes, mean
from workbench.engine.frontends.staging.vjp import Sums, accumulator, plain_sum
from workbench.engine.frontends.trace.staged_calls import StagedCall
from workbench.engine.graph.stages import body_name
from workbench.errors import InputError
from workbench.ipu._pipeline.asked import Asked
from workbench.ipu._pipeline.recorded import Recorded
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.tf._graph import known_shape
from workbench.tf._graph.dtypes import given_type
from workbench.tf._graph.marks import stage_scope


def sums_of(asked: Asked, types: Mapping[str, str]) -> Sums:
    """How gradients are added up in buffers of these types."""
    if asked.reduction is GradientAccumulationReductionMethod.MEAN:
        share = 1 / int(asked.count)
        return Sums(types=types, add=lambda held, found, number, first: plain_sum(held, found * share, number, first))
    if asked.reduction is GradientAccumulationReductionMethod.RUNNING_MEAN:
        return Sums(types=types, add=_running_mean, counted=int(asked.count))
    return Sums(types=types)


def _running_mean(buffer: Any, gradient: Any, number: Any, first: bool) -> Any:
    """The mean of `number` gradients becomes that of one more; only a micro-batch's first one scales what is there."""
    count = number.astype(jnp.float32)
    share = 1 / (count + 1)
    if first:
        buffer = buffer * (count * share).astype(buffer.dtype)
    return plain_sum(buffer, gradient * share.astype(gradient.dtype), number, first)


def check_shared(asked: Asked, readers: Mapping[str, Sequence[int]]) -> None:
    """A running mean of several stages' gradients needs all of them before the next micro-batch's."""
    if asked.reduction is not GradientAccumulationReductionMethod.RUNNING_MEAN or asked.schedule.name == "Sequential":
        return
    for name, stages in readers.items():
        if len(stages) > 1:
            raise InputError(
                f"a running mean of the gradients of {name!r}, which the stages {list(stages)} use",
                expected="variables of one stage each under the Grouped and Interleaved schedules, where gradients of "
                "several micro-batches arrive in turn",
                todo="use GradientAccumulationReductionMethod.MEAN or PipelineSchedule.Sequential",
            )


def over_replicas(sums: Sequence[Any], replicas: int) -> list[Any]:
    """What the optimizer is given: with several replicas the mean of what each has."""
    return mean(sums, replicas)


def outfeed_names(recorded: Recorded) -> list[str]:
    """What each array of an element of the outfeed is called."""
    return [f"outfeed/{place}" for place in range(len(recorded.enqueued))]


def outsums(recorded: Recorded) -> dict[str, jax.ShapeDtypeStruct]:
    """The buffers outputs are added up in, with their types; none where each micro-batch's leave by themselves."""
    if not recorded.asked.accumulate:
        return {}
    wanted = recorded.asked.accumulate_type
    by_tensor = callable(wanted) and not hasattr(wanted, "as_numpy_dtype")
    found = {}
    for name, tensor in zip(outfeed_names(recorded), recorded.enqueued, strict=True):
        kind = wanted(tensor) if by_tensor else wanted
        dtype = str(tensor._dtype if kind is None else given_type(kind, "accumulate_outfeed_dtype"))
        found[accumulator(name)] = jax.ShapeDtypeStruct(known_shape(tensor), dtype)
    return found


def drained(
    calls: Sequence[StagedCall], recorded: Recorded, types: Mapping[str, Any], replicas: int
) -> list[StagedCall]:
    """The calls with the sums given out and cleared in the update of the last stage, or in one for them alone."""
    names = list(outsums(recorded))
    if not names:
        return list(calls)
    last = len(recorded.asked.stages) - 1
    before = [call for call in calls if call.updates and call.stage == last]
    own = before[0] if before else None
    run = jax.extend.core.jaxpr_as_fun(own.closed) if own is not None else lambda *values: []
    taken = own.operands if own is not None else ()

    def update(*values: Any) -> list[Any]:
        sums = values[len(taken) :]
        with jax.named_scope(UPDATE_SCOPE):
            cleared = [jnp.zeros(value.shape, value.dtype) for value in sums]
        return [*run(*values[: len(taken)]), *sums, *cleared]

    closed = jax.make_jaxpr(update, axis_env=axes(replicas))(*(types[name] for name in (*taken, *names)))
    results = (*outfeed_names(recorded), *names)
    made = StagedCall(
        name=body_name(last, "update"),
        closed=closed,
        operands=(*taken, *names),
        results=(*(own.results if own is not None else ()), *results),
        owners=(*(own.owners if own is not None else ()), *(stage_scope(last),) * len(results)),
        stage=last,
        direction="update",
        repeated=False,
    )
    return [*(call for call in calls if call is not own), made]


__all__ = ["check_shared", "drained", "outfeed_names", "outsums", "over_replicas", "sums_of"]
