"""Options of a model in its configuration: what is saved, cloned or written as JSON has them again in a scope."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any

from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.ipu.keras._extensions.model_options import ModelOptions
from workbench.ipu.keras._extensions.options import Accumulation, ReplicatedMetricReductionMethod
from workbench.ipu.keras._extensions.pipelining import Pipelining

LOGGER = logging.getLogger("workbench.ipu.keras")

# The place in a model's configuration; Keras passes over it where no scope is open.
KEY = "ipu_options"


def written(options: ModelOptions, stages: Any, name: str) -> dict[str, Any] | None:
    """What of a model's options can be saved, as plain values; None where nobody set any."""
    accumulation, pipelining = options.accumulation, options.pipelining
    found = {
        "gradient_accumulation": _values(accumulation, ("steps", "normalize"), accumulation.method),
        "pipelining": _values(pipelining, ("steps", "devices", "accumulate_outfeed", "normalize"), pipelining.method),
        "replicated_metric_reduction_method": options.metrics.name,
        "asynchronous_callbacks": options.asynchronous,
        "infeed_queue": dict(options.infeed),
        "outfeed_queue": dict(options.outfeed),
        "pipeline_stage_assignment": None if stages is None else list(stages),
    }
    lost = [each for each in ("dtype", "offload", "shard") if getattr(accumulation, each) is not None]
    lost += list(pipelining.more or ())
    if lost:
        LOGGER.warning(
            "%s: keyword arguments of its accumulation and pipelining options are not saved: %s", name, ", ".join(lost)
        )
    return None if found == _NOTHING else found


def read(given: Mapping[str, Any]) -> tuple[ModelOptions, tuple[int, ...] | None]:
    """The options and stages that `written` wrote."""
    alone, pipelined = dict(given["gradient_accumulation"]), dict(given["pipelining"])
    method = GradientAccumulationReductionMethod.parse
    devices = pipelined.pop("devices")
    options = ModelOptions(
        accumulation=Accumulation(method=method(alone.pop("method")), **alone),
        pipelining=Pipelining(
            method=method(pipelined.pop("method")), devices=None if devices is None else tuple(devices), **pipelined
        ),
        metrics=ReplicatedMetricReductionMethod.parse(given["replicated_metric_reduction_method"]),
        asynchronous=bool(given["asynchronous_callbacks"]),
        infeed=tuple(sorted(given["infeed_queue"].items())),
        outfeed=tuple(sorted(given["outfeed_queue"].items())),
    )
    stages = given["pipeline_stage_assignment"]
    return options, None if stages is None else tuple(stages)


def _values(options: Any, names: tuple[str, ...], method: GradientAccumulationReductionMethod) -> dict[str, Any]:
    known = {field.name for field in dataclasses.fields(options)}
    values = {name: getattr(options, name) for name in names if name in known}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {**plain, "method": method.name}


_NOTHING: dict[str, Any] = {}
_NOTHING.update(written(ModelOptions(), None, "") or {})

__all__ = ["KEY", "read", "written"]
