"""What a model made in a strategy's scope is told by its `set_…_options`, each kind checked and frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import jax
import numpy as np

from workbench.base.text import meant, short
from workbench.errors import InputError, KindError
from workbench.ipu._feeds import check_depth
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.tf._graph.dtypes import as_dtype, given_type

SUM = GradientAccumulationReductionMethod.SUM


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulation:
    """How gradients of batches become an update: `set_gradient_accumulation_options`.

    `normalize`: gradients are divided by the number of those that are added up, over replicas too. `dtype`: of the
    sums, a type or a function of none; None is that of each variable. `offload`, `shard`: where the optimizer's
    state lives; None leaves it to the configuration.
    """

    steps: int = 1
    method: GradientAccumulationReductionMethod = SUM
    normalize: bool = False
    dtype: Any = None
    offload: bool | None = None
    shard: bool | None = None

    def dtype_of(self, variable_dtype: str) -> str:
        """The type of the sums of a variable's gradients."""
        return variable_dtype if self.dtype is None else str(as_dtype(self.dtype))

    @property
    def written(self) -> dict[str, bool]:
        """The options of a compile that these write."""
        found = {
            "pipeline.offload_weight_update_variables": self.offload,
            "pipeline.replicated_optimizer_state_sharding": self.shard or None,
        }
        return {name: value for name, value in found.items() if value is not None}


class ReplicatedMetricReductionMethod(Enum):
    """What is reported of a metric that every replica has: NONE that of the last, LIST all of them, SUM and MEAN."""

    NONE = "NONE"
    LIST = "LIST"
    SUM = "SUM"
    MEAN = "MEAN"

    @classmethod
    def parse(cls, method: ReplicatedMetricReductionMethod | str) -> ReplicatedMetricReductionMethod:
        """A member from itself or its name in any case; a `ValueError` for anything else."""
        if isinstance(method, cls):
            return method
        name = method.upper() if isinstance(method, str) else ""
        if name in cls.__members__:
            return cls[name]
        raise InputError(
            f"replicated_metric_reduction_method is {short(method)}", expected=f"{', '.join(cls.__members__)}"
        )

    def reduced(self, values: Any) -> Any:
        """What is reported of values that all replicas have along a first axis, in any tree."""
        kind = type(self)
        ways: dict[ReplicatedMetricReductionMethod, Callable[[Any], Any]] = {
            kind.NONE: lambda each: each[-1],
            kind.LIST: lambda each: list(np.asarray(each)),
            kind.SUM: lambda each: np.sum(each, axis=0),
            kind.MEAN: lambda each: np.mean(each, axis=0),
        }
        return jax.tree_util.tree_map(ways[self], values)


_EXPLICIT = ("gradient_accumulation_steps_per_replica", "gradient_accumulation_reduction_method")
_OF_THE_OPTIMIZER = ("offload_weight_update_variables", "replicated_optimizer_state_sharding", "dtype", "name")
_SET_BY_KERAS = {"opt": "it is the optimizer the model is compiled with", "num_mini_batches": f"it is {_EXPLICIT[0]}"}


def accumulation_of(steps: Any, normalize: Any, method: Any, more: Any) -> Accumulation:
    """The arguments of `set_gradient_accumulation_options`, read. Errors: `InputError`, a `ValueError`; `TypeError`."""
    found = steps_of(steps)
    check_whether("experimental_normalize_gradients", normalize)
    if not isinstance(more, Mapping):
        raise KindError(
            f"gradient_accumulation_optimizer_kwargs is a {type(more).__name__}, but it must be a dictionary."
        )
    for name in more:
        if name in _SET_BY_KERAS:
            raise InputError(f"{short(name)} is set automatically: {_SET_BY_KERAS[name]}", todo=f"leave {name} out")
        if name not in _OF_THE_OPTIMIZER:
            raise InputError(
                f"set_gradient_accumulation_options has no argument {short(name)}",
                expected=f"any of: {', '.join((*_EXPLICIT, *_OF_THE_OPTIMIZER))}",
                todo=meant(name, (*_EXPLICIT, *_OF_THE_OPTIMIZER)),
            )
    for name in ("offload_weight_update_variables", "replicated_optimizer_state_sharding"):
        check_whether(name, more.get(name))
    dtype = more.get("dtype")
    if dtype is not None:
        given_type(dtype, "dtype")
    return Accumulation(
        steps=found or 1,
        method=GradientAccumulationReductionMethod.parse(method),
        normalize=bool(normalize),
        dtype=dtype,
        offload=more.get("offload_weight_update_variables"),
        shard=more.get("replicated_optimizer_state_sharding"),
    )


def check_whether(name: str, given: Any) -> None:
    """Refuse what is no yes or no, and not left open."""
    if given is not None and not isinstance(given, bool):
        raise InputError(f"{name} is {short(given)}", expected="True, False or None")


def steps_of(steps: Any) -> int | None:
    """A number of accumulation steps, None where none is given."""
    if steps is None:
        return None
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps < 2**31:
        raise InputError(
            f"gradient_accumulation_steps_per_replica is {short(steps)}",
            expected="a whole number from 1 to what 31 bits count, or None",
        )
    return steps


_INFEED = ("prefetch_depth", "optimise_latency")
_INFEED_BY_KERAS = ("dataset", "infeed_spec", "element_spec")
_OUTFEED = ("buffer_depth", "optimise_latency")
_OUTFEED_BY_KERAS = ("outfeed_mode", "device_ordinal")


def infeed_options(given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The arguments of `set_infeed_queue_options`."""
    return _queue_options("set_infeed_queue_options", given, _INFEED, _INFEED_BY_KERAS)


def outfeed_options(given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The arguments of `set_outfeed_queue_options`."""
    return _queue_options("set_outfeed_queue_options", given, _OUTFEED, _OUTFEED_BY_KERAS)


def _queue_options(
    call: str, given: Mapping[str, Any], known: tuple[str, ...], by_keras: tuple[str, ...]
) -> tuple[tuple[str, Any], ...]:
    for name in given:
        if name in by_keras:
            raise InputError(f"{call} was given {short(name)}, which Keras sets", todo=f"leave {name} out")
        if name not in known:
            expected = f"any of: {', '.join(known)}"
            raise InputError(f"{call} has no argument {short(name)}", expected=expected, todo=meant(name, known))
    for name in ("prefetch_depth", "buffer_depth"):
        if given.get(name) is not None:
            check_depth(name, given[name])
    check_whether("optimise_latency", given.get("optimise_latency"))
    return tuple(sorted(given.items()))


__all__ = [
    "SUM",
    "Accumulation",
    "ReplicatedMetricReductionMethod",
    "accumulation_of",
    "check_whether",
    "infeed_options",
    "outfeed_options",
    "steps_of",
]
