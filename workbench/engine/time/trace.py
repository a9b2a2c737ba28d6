"""The trace: a tree of the program's shape with the cost of one execution of every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from workbench.base.arrays import IntArray, NarrowArray
from workbench.base.causes import Cause
from workbench.engine.cost import Cost
from workbench.engine.program import Program, TileProgram


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepCost:
    """Cost of one execution of a step, the same object for steps that do the same. `narrow_cycles` are the cycles per
    tile, kept in as few bytes as hold them.

    `tile_balance` is the mean of the active tiles over the slowest; 1.0 without active tiles. `flops` counts all tiles.
    """

    cost: Cost
    cause: Cause
    narrow_cycles: NarrowArray
    active_tiles: int
    tile_balance: float
    flops: int = 0

    @property
    def cycles(self) -> int:
        """The total of the terms."""
        return self.cost.value

    @property
    def cycles_per_tile(self) -> IntArray:
        """Cycles of each tile without launch, sync or latency terms, int64[tiles]."""
        return self.narrow_cycles.astype(np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class TraceNode:
    """A node of the program with the cycles of one execution of it (a `Repeat`: all its times).

    `ipus` are the IPUs its steps occupy, calls followed. `inside` makes the nodes below it when they are asked for: few
    look at every step.
    """

    program: Program
    cycles: int
    ipus: frozenset[int]
    inside: Callable[[], tuple[TraceNode, ...]] = field(default=tuple, repr=False)

    @cached_property
    def children(self) -> tuple[TraceNode, ...]:
        """Those of the program node; a call has none, its body is in `Trace.functions`."""
        return self.inside()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Trace:
    """Costs of every static step by id, the tree of durations, and where each IPU's cycles go.

    `cycle_breakdown[ipu][cause]` sums to `total_cycles` for every IPU; it comes from a pass of its own.
    """

    program: TileProgram
    steps: Mapping[int, StepCost]
    entry: TraceNode
    functions: Mapping[str, TraceNode]
    cycle_breakdown: tuple[Mapping[Cause, int], ...]
    executions: Mapping[int, int]  # times each step runs in one run of the program

    @property
    def total_cycles(self) -> int:
        """Cycles of one run of the program."""
        return self.entry.cycles
