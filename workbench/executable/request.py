"""What is asked of a compile: the arguments of `wb.compile`, checked and frozen."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.base.collection import paused_collection
from workbench.engine.options import Options
from workbench.engine.target import Target
from workbench.engine.target import target as find_target
from workbench.errors import InputError
from workbench.executable.pipelines import recomputation_options
from workbench.ipu.config import current_options
from workbench.ipu.config.config import in_force

MODES = (None, "training", "inference")
ACCUMULATION = "pipeline.gradient_accumulation_steps"
EXECUTION = "profile.execution"
NORM_MEMBERS = "norms.experimental.distributed_batch_norm_replica_group_size"
READ_BY_TRACES = (ACCUMULATION, NORM_MEMBERS)


def _equal(left: Request, right: Request, name: str) -> bool:
    """Whether a plain field is equal; anything else (models, arrays) is the same only when it is the same object."""
    pair = (getattr(left, name), getattr(right, name))
    return all(isinstance(each, int | str | bool) for each in pair) and pair[0] == pair[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for; `replace` makes the same request with something changed, as diagnosis and sweeps do."""

    source: Any
    inputs: tuple[Any, ...] = ()
    options: Options = field(default_factory=Options)
    target: Target
    mode: str | None = None
    batch_size: int | None = None
    optimizer: Any = None
    loss: Any = None
    precision: str | None = None
    stages: Any = None
    replicas: int = 1
    trip_counts: Mapping[str, int] | None = None
    configured: bool = False  # by an IPUConfig, given or in force: numbers are an IPU's own where it has others

    @property
    def gradient_accumulation_steps(self) -> int:
        """Micro-batches of a weight update, as the options say."""
        return int(self.options.get(ACCUMULATION))

    def replace(
        self,
        *,
        options: Options | Mapping[str, Any] | None = None,
        gradient_accumulation_steps: int | None = None,
        **changes: Any,
    ) -> Request:
        """The request with some fields changed; `options` may be a table of option values to set."""
        if not isinstance(options, Options):
            options = self.options if options is None else self.options.with_values(options)
        if gradient_accumulation_steps is not None:
            options = options.with_values({ACCUMULATION: gradient_accumulation_steps})
        return dataclasses.replace(self, options=options, **changes)

    def same_trace(self, other: Request) -> bool:
        """Whether both requests trace to the same graph: they differ in the target and options that no trace reads."""
        left = dataclasses.replace(other, options=self.options, target=self.target)
        again = [bool(each.options.get("allow_recompute")) for each in (self, other)]
        if self.stages is None and again[0] != again[1]:  # a stage of its own, or none
            return False
        if any(self.options.get(name) != other.options.get(name) for name in READ_BY_TRACES):
            return False
        return all(
            getattr(self, each.name) is getattr(left, each.name) or _equal(self, left, each.name)
            for each in dataclasses.fields(self)
        )


@paused_collection()
def make_request(
    source: Any,
    *inputs: Any,
    config: Any = None,
    target: str | Target | None = None,
    mode: str | None = None,
    batch_size: int | None = None,
    pipeline_schedule: Any = None,
    device_mapping: Sequence[int] | None = None,
    gradient_accumulation_steps: int | None = None,
    recomputation: Any = None,
    recomputation_checkpoints: Sequence[str] = (),
    offload: tuple[str, ...] = (),
    execution_profile: Any = None,
    **more: Any,
) -> Request:
    """Check the arguments of `wb.compile` and freeze them."""
    if mode not in MODES:
        raise InputError(f"mode is {mode!r}", expected="'training', 'inference' or None")
    if batch_size is not None and (isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1):
        raise InputError(f"batch_size is {batch_size!r}", expected="a whole number of at least 1")
    options = current_options() if config is None else config.freeze()
    if pipeline_schedule is not None:
        options = options.with_values({"pipeline.schedule": getattr(pipeline_schedule, "name", pipeline_schedule)})
    if device_mapping is not None:
        options = options.with_values({"pipeline.device_mapping": tuple(device_mapping)})
    if gradient_accumulation_steps is not None:
        options = options.with_values({ACCUMULATION: gradient_accumulation_steps})
    options = options.with_values(_offloaded(offload))
    if execution_profile is not None:
        options = options.with_values({EXECUTION: getattr(execution_profile, "name", execution_profile)})
    if recomputation is not None:
        options = options.with_values(recomputation_options(recomputation))
    if recomputation_checkpoints:
        options = options.with_values({"pipeline.recomputation_checkpoints": tuple(recomputation_checkpoints)})
    return Request(
        source=source,
        inputs=inputs,
        options=options,
        target=resolve_target(target, options, source),
        mode=mode,
        batch_size=batch_size,
        configured=config is not None or in_force() is not None,
        **more,
    )


OFFLOAD = {
    "weights": "pipeline.offload_weights",
    "activations": "pipeline.offload_activations",
    "optimizer_state": "pipeline.offload_weight_update_variables",
    "gradient_accumulation_buffers": "pipeline.offload_gradient_accumulation_buffers",
    "optimizer_state_to_replicas": "pipeline.optimizer_state_sharding",
}


def _offloaded(offload: Sequence[str]) -> dict[str, bool]:
    """The options that `offload` sets."""
    wanted = (offload,) if isinstance(offload, str) else tuple(offload)
    for each in wanted:
        if each not in OFFLOAD:
            raise InputError(f"offload names {each!r}", expected=f"any of: {', '.join(OFFLOAD)}")
    return {OFFLOAD[each]: True for each in wanted}


def resolve_target(wanted: str | Target | None, options: Options, source: Any = None) -> Target:
    """The target asked for, else the one of a hand-made program, else the one the options describe."""
    if isinstance(wanted, Target):
        return wanted
    own = getattr(source, "target", None)
    if wanted is None and isinstance(own, Target):
        return own
    tiles = int(options.get("ipu_model.tiles_per_ipu"))
    return find_target(wanted or str(options.get("ipu_model.version")), tiles_per_ipu=tiles)


__all__ = ["EXECUTION", "NORM_MEMBERS", "Request", "make_request", "resolve_target"]
