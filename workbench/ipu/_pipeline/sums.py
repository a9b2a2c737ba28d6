"""How the gradients of a pipeline's micro-batches are added up, and what the optimizer is given of the sums.

Source: graphcore/tensorflow@b2127bba tensorflow/python/ipu/ops/pipelining_ops.py (`_acc_grad_scale`), op_util.py
(`accumulate_gradients`); the mean over the replicas optimizers/cross_replica_optimizer.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from workbench.engine.frontends.describe.replicas import mean
from workbench.engine.frontends.staging.vjp import Sums, plain_sum
from workbench.errors import InputError
from workbench.ipu._pipeline.asked import Asked
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod


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


__all__ = ["check_shared", "over_replicas", "sums_of"]
