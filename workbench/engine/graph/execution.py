"""A program that the host runs again and again, taking batches from a queue and giving results to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from workbench.engine.graph.graph import Graph

Said: TypeAlias = "str | int | float | bool"
_UPDATES = "updates_per_execution"
CALLS = "calls_per_update"  # of a program whose optimizer adds gradients of so many calls up before it updates
SAMPLES = "samples_per_call"
RETURNED = "returned_argument_bytes"  # of arguments that come back in the same shapes with every call
"""In the meta of a graph: samples of one call over all replicas, where they do not follow from its batch size."""


def of_updates(calls: int) -> dict[str, Said]:
    """What a graph says of so many calls to a weight update: nothing of one."""
    return {CALLS: calls} if calls > 1 else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One side's queue: elements it has room for, and whole host packets rather than copies.

    Stages have their data copied between host and tiles by the pipeline, which reads this; elsewhere the nodes that
    take and give elements say it themselves.
    """

    depth: int = 0
    in_packets: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What the host starts once: so many passes of the pipeline with an update each, between these queues."""

    updates: int = 1
    infeed: Queue = Queue()
    outfeed: Queue = Queue()

    def meta(self) -> dict[str, Said]:
        """What a graph says of it."""
        sides = (("infeed", self.infeed), ("outfeed", self.outfeed))
        found: dict[str, Said] = {_UPDATES: self.updates}
        for side, queue in sides:
            found |= {f"{side}_depth": queue.depth, f"{side}_in_packets": queue.in_packets}
        return found


def is_execution(graph: Graph) -> bool:
    """Whether the host starts the program once for several batches and is told of its end."""
    return _UPDATES in graph.meta


def execution_of(graph: Graph) -> Execution:
    """The execution a graph is; of any other, one update between no queues."""
    said: Mapping[str, object] = graph.meta
    queues = {
        side: Queue(depth=int(str(said.get(f"{side}_depth", 0))), in_packets=bool(said.get(f"{side}_in_packets")))
        for side in ("infeed", "outfeed")
    }
    return Execution(updates=int(str(said.get(_UPDATES, 1))), **queues)


__all__ = ["CALLS", "RETURNED", "SAMPLES", "Execution", "Queue", "execution_of", "is_execution", "of_updates"]
