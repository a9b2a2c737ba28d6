"""Batch statistics shared by replicas: while a model is traced, its batch normalisations average them in a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import keras

from workbench.base.identity import each_once
from workbench.base.units import plural
from workbench.engine.frontends.describe.replicas import AXIS
from workbench.errors import InputError


def check_members(members: int, replicas: int, *, staged: bool) -> int:
    """Replicas that share statistics: a divisor of all of them, and not with stages or accumulation."""
    if members == 1:
        return members
    name = "norms.experimental.distributed_batch_norm_replica_group_size"
    if replicas % members:
        raise InputError(
            f"{name} is {members}, for {replicas} {plural(replicas, 'replica')}", expected="a divisor of the replicas"
        )
    if staged:
        raise InputError(
            f"{name} is {members} in a pipeline or with accumulated gradients",
            expected="a whole training step of one batch",
            todo=f"set {name} = 1",
        )
    return members


@contextmanager
def shared_statistics(layers: Sequence[Any], members: int, replicas: int) -> Iterator[None]:
    """Inside, batch normalisations take the statistics of `members` consecutive replicas together."""
    norms = [each for each in layers if isinstance(each, keras.layers.BatchNormalization)] if members > 1 else []
    chosen = each_once(norms)  # a layer that several share comes with each of them
    for layer in chosen:
        layer.__dict__["_moments"] = _averaged(layer._moments, members, replicas)
    try:
        yield
    finally:
        for layer in chosen:
            del layer.__dict__["_moments"]


def _averaged(moments: Callable[..., Any], members: int, replicas: int) -> Callable[..., Any]:
    """Mean and variance over the group, from the averages of means and of squares."""
    groups = None
    if members < replicas:
        groups = [list(range(first, first + members)) for first in range(0, replicas, members)]

    def average(value: Any) -> Any:
        return jax.lax.psum(value, AXIS, axis_index_groups=groups) / members

    def averaged(inputs: Any, mask: Any) -> tuple[Any, Any]:
        mean, variance = moments(inputs, mask)
        shared, squares = average(mean), average(variance + mean * mean)
        return shared, squares - shared * shared

    return averaged
