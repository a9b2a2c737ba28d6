"""All that a model made in a strategy's scope was told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.ipu.keras._extensions.options import Accumulation, ReplicatedMetricReductionMethod
from workbench.ipu.keras._extensions.pipelining import Pipelining


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """The arguments of each `set_…_options`; queues' are pairs of name and value."""

    accumulation: Accumulation = field(default_factory=Accumulation)
    pipelining: Pipelining = field(default_factory=Pipelining)
    metrics: ReplicatedMetricReductionMethod = ReplicatedMetricReductionMethod.NONE
    asynchronous: bool = False
    infeed: tuple[tuple[str, Any], ...] = ()
    outfeed: tuple[tuple[str, Any], ...] = ()


__all__ = ["ModelOptions"]
