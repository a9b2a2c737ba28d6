"""What a pipelined model was told: `set_pipelining_options`, read into what every pipeline is asked with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from workbench.base.text import meant, short
from workbench.errors import InputError, KindError
from workbench.ipu._pipeline.asked import Asked, checked, member
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.ipu.keras._extensions.options import SUM, Accumulation, check_whether, steps_of
from workbench.ipu.ops.pipelining_ops import PipelineSchedule, PipelineStageOptions, RecomputationMode, default_schedule

# Arguments of `pipeline` that have another name here, that Keras sets, and that do not fit a Keras model.
_NAMED = {
    "gradient_accumulation_count": "gradient_accumulation_steps_per_replica",
    "device_mapping": "device_mapping",
    "accumulate_outfeed": "accumulate_outfeed",
    "reduction_method": "gradient_accumulation_reduction_method",
}
_SET = ("computational_stages", "inputs", "infeed_queue", "outfeed_queue", "optimizer_function", "repeat_count", "name")
_UNFIT = ("outfeed_loss", "outfeed_mask", "accumulate_outfeed_dtype")
_OFFLOADS = (
    "offload_weight_update_variables",
    "offload_activations",
    "offload_gradient_accumulation_buffers",
    "offload_weights",
    "replicated_weight_sharding",
    "replicated_optimizer_state_sharding",
)
_MORE = (
    "gradient_accumulation_dtype",
    "batch_serialization_iterations",
    "pipeline_schedule",
    "recomputation_mode",
    "forward_propagation_stages_poplar_options",
    "backward_propagation_stages_poplar_options",
    "weight_update_poplar_options",
    "continuous_weight_updates",
    *_OFFLOADS,
)
_KNOWN = (
    "gradient_accumulation_steps_per_replica",
    "device_mapping",
    "accumulate_outfeed",
    "experimental_normalize_gradients",
    "gradient_accumulation_reduction_method",
    *_MORE,
)
_MEMBERS: Mapping[str, type[Enum]] = {"pipeline_schedule": PipelineSchedule, "recomputation_mode": RecomputationMode}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pipelining:
    """The arguments of `set_pipelining_options`; `more` are those of `pipeline`."""

    steps: int | None = None
    devices: tuple[int, ...] | None = None
    accumulate_outfeed: bool = False
    normalize: bool = False
    method: GradientAccumulationReductionMethod = SUM
    more: Mapping[str, Any] | None = None

    @property
    def serial(self) -> int:
        """Batches that each pass of a stage runs over."""
        return int((self.more or {}).get("batch_serialization_iterations", 1))

    @property
    def accumulation(self) -> Accumulation:
        """How gradients of batches become an update."""
        dtype = (self.more or {}).get("gradient_accumulation_dtype")
        return Accumulation(
            steps=(self.steps or 1) * self.serial, method=self.method, normalize=self.normalize, dtype=dtype
        )

    def asked(self, stages: int, micro_batches: int, *, training: bool) -> Asked:
        """The arguments of a pipeline of so many stages. Errors: as `pipelining_ops.pipeline` has them."""
        more = dict(self.more or {})
        serial = more.get("batch_serialization_iterations", 1) if training else 1
        wanted = Asked(
            stages=[_stage] * stages,
            count=micro_batches,
            sums=more.get("gradient_accumulation_dtype"),
            repeats=1,
            serial=serial,
            inputs=None,
            infeed=None,
            outfeed=None,
            optimize=_stage if training else None,
            devices=None if self.devices is None else list(self.devices),
            schedule=default_schedule(more.get("pipeline_schedule"), serial),
            recomputation=more.get("recomputation_mode") or RecomputationMode.Auto,
            forward_options=more.get("forward_propagation_stages_poplar_options"),
            backward_options=more.get("backward_propagation_stages_poplar_options") if training else None,
            update_options=more.get("weight_update_poplar_options") if training else None,
            offload={f"pipeline.{name}": more.get(name) for name in _OFFLOADS},
            continuous=bool(more.get("continuous_weight_updates")),
            loss_out=False,
            accumulate=False,
            accumulate_type=None,
            mask=None,
            reduction=self.method,
            name="pipeline",
        )
        return checked(wanted, PipelineSchedule, RecomputationMode, PipelineStageOptions)

    def devices_of(self, stages: int) -> tuple[int, ...]:
        """The IPU of each stage."""
        if self.devices is not None:
            return self.devices
        return (0,) * stages if self.serial > 1 else tuple(range(stages))


def _stage(*values: Any) -> Any:
    """Stands for a stage, which is cut out of the model's program."""
    return values


def pipelining_of(
    steps: Any, devices: Any, accumulate_outfeed: Any, normalize: Any, method: Any, more: Any
) -> Pipelining:
    """The arguments of `set_pipelining_options`, read. Errors: `ValueError`, `TypeError`."""
    if devices is not None and (not isinstance(devices, list) or not all(type(each) is int for each in devices)):
        raise InputError(
            f"device_mapping is {short(devices)}", expected="a list of whole numbers, an IPU for each stage"
        )
    for name, value in (("accumulate_outfeed", accumulate_outfeed), ("experimental_normalize_gradients", normalize)):
        check_whether(name, value)
    if not isinstance(more, Mapping):
        raise KindError(f"pipelining_kwargs is a {type(more).__name__}, but it must be a dictionary.")
    _check_names(tuple(more))
    return Pipelining(
        steps=steps_of(steps),
        devices=None if devices is None else tuple(devices),
        accumulate_outfeed=bool(accumulate_outfeed),
        normalize=bool(normalize),
        method=GradientAccumulationReductionMethod.parse(method),
        more={name: _read(name, value) for name, value in more.items()},
    )


def _read(name: str, value: Any) -> Any:
    """A member of an enumeration for its name; what it is to be is known before there are stages."""
    kind = _MEMBERS.get(name)
    return value if kind is None or value is None else member(name, value, kind)


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if name in _NAMED:
            raise InputError(f"set_pipelining_options was given {short(name)}", todo=f"set {_NAMED[name]}")
        if name in _SET:
            raise InputError(
                f"set_pipelining_options was given {short(name)}, which Keras sets", todo=f"leave {name} out"
            )
        if name in _UNFIT:
            raise InputError(f"set_pipelining_options was given {short(name)}, which does not fit a Keras model")
        if name not in _MORE:
            raise InputError(
                f"set_pipelining_options has no argument {short(name)}",
                expected=f"any of: {', '.join(_KNOWN)}",
                todo=meant(name, _KNOWN),
            )


__all__ = ["Pipelining", "pipelining_of"]
