"""All that a model made in a strategy's scope was told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.engine.graph.execution import Queue
from workbench.ipu._feeds import DEFAULT_DEPTH
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

    @property
    def infeed_queue(self) -> Queue:
        """The queue of batches."""
        return _queue(dict(self.infeed), "prefetch_depth")

    @property
    def outfeed_queue(self) -> Queue:
        """The queue of results."""
        return _queue(dict(self.outfeed), "buffer_depth")


def _queue(given: dict[str, Any], depth: str) -> Queue:
    found = given.get(depth)
    return Queue(depth=DEFAULT_DEPTH if found is None else found, in_packets=bool(given.get("optimise_latency")))


__all__ = ["ModelOptions"]
