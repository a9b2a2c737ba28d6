"""What a tile program's cycles are, in the words of Poplar's profile summary; and the machine that summary models."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tests.engine.vertices.machine import MACHINE
from tests.fidelity.compiling import config
from workbench import api
from workbench.engine import vertices
from workbench.engine.program import OnTileExecute, StreamCopy
from workbench.engine.target import Target, target
from workbench.engine.time.trace import Trace
from workbench.tiles import Step

COUNTER_CYCLES = 45  # of reading the cycle counter before and after a measured step, tessellate-ipu@3ab241f3


def ipu_model(name: str, **changed: int) -> Target:
    """The IPU Model of a target: a compute set takes what its vertices' estimates say and no more.

    Source: the halo exchange of thorbenlouw/lbm-graphcore@df670f6b, 20 compute sets of 600 cycles in 12,000.
    """
    return target(name).replace(launch_cycles=0, **changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Cycles of one run; all but `total` and `host` are means over the tiles.

    `idle_included`: from the start of a compute set to the end of a tile's slowest worker; `idle_excluded`: worker
    slots that issue, of six; `between`: sending to or receiving from other tiles, `delivered`: the same with the
    host; `sync`: everything else, waiting included.
    """

    total: float
    idle_included: float
    idle_excluded: float
    between: float
    delivered: float
    host: float

    @property
    def exchange(self) -> float:
        """All exchange on the chip."""
        return self.between + self.delivered

    @property
    def sync(self) -> float:
        """What no other part accounts for."""
        return self.total - self.idle_included - self.exchange - self.host


def run_times(program: Step, *, prefetched: bool = True) -> Times:
    """Compile a program by hand and add its steps up; `prefetched`: nobody waits until the host has its data ready."""
    options = config()
    options.optimizations.prefetch_data_streams = prefetched
    trace = api.compile(program, config=options).compiled.trace
    tiles = trace.program.target.tiles_per_ipu
    incl = excl = between = delivered = host = 0.0
    for step in trace.program.steps:
        cost, times = trace.steps[step.id], trace.executions.get(step.id, 0)
        mean = float(cost.cycles_per_tile.mean()) * times
        if isinstance(step, OnTileExecute):
            incl += mean
            excl += times * sum(each for _, _, each in issued(step)) / tiles
        elif cost.cause == "exchange":
            between += mean
        elif isinstance(step, StreamCopy):
            host += times * cost.cost.terms[0].value
            delivered += mean
    return Times(
        total=trace.total_cycles,
        idle_included=incl,
        idle_excluded=excl,
        between=between,
        delivered=delivered,
        host=host,
    )


def issued(step: OnTileExecute) -> list[tuple[str, int, int]]:
    """(vertex, instances, cycles of all of them) by class of a compute set's vertices."""
    found: Counter[str] = Counter()
    cycles: Counter[str] = Counter()
    for group in step.compute_set.groups:
        count = group.count * len(group.tiles)
        found[group.vertex] += count
        cycles[group.vertex] += count * vertices.cycles(MACHINE, group.vertex, **dict(group.arguments))
    return [(name, found[name], cycles[name]) for name in found]


def counted(program: Step) -> list[int]:
    """Cycles between two readings of the counter around a program without exchange, on each tile that works."""
    trace: Trace = api.compile(program).compiled.trace
    per_tile = np.zeros(trace.program.target.tiles_per_ipu, np.int64)
    launches = 0
    for step in trace.program.steps:
        per_tile += trace.steps[step.id].cycles_per_tile
        launches += trace.program.target.launch_cycles
    return [int(cycles) + launches + COUNTER_CYCLES for cycles in per_tile[per_tile > 0]]
