"""The trace: a tree of the program's shape with the cost of one execution of every step, and a window query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from workbench.engine.cost import Cost
from workbench.engine.program import Leaf, Program, TileProgram
from workbench.engine.tileset import IntArray

Cause = Literal[
    "compute",
    "exchange",
    "sync",
    "host",
    "inter_ipu",
    "collective",
    "idle_fill",
    "idle_drain",
    "idle_wait_stage",
    "idle_wait_host",
]
CAUSES: tuple[Cause, ...] = (
    "compute",
    "exchange",
    "sync",
    "host",
    "inter_ipu",
    "collective",
    "idle_fill",
    "idle_drain",
    "idle_wait_stage",
    "idle_wait_host",
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepCost:
    """Cost of one execution of a step. `cycles_per_tile` is int64[tiles] without launch, sync or latency terms.

    `tile_balance` is the mean of the active tiles over the slowest; 1.0 without active tiles. `flops` counts all tiles.
    """

    step: Leaf
    cost: Cost
    cause: Cause
    cycles_per_tile: IntArray
    active_tiles: int
    tile_balance: float
    flops: int = 0

    @property
    def cycles(self) -> int:
        """The total of the terms."""
        return self.cost.value


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TraceNode:
    """A node of the program with the cycles of one execution of it (a `Repeat`: all its times).

    `children` are those of the program node; a call has none, its body is in `Trace.functions`. `ipus` are the IPUs
    its steps occupy, calls followed. `arm` is the dearest arm of an `If`.
    """

    program: Program
    cycles: int
    ipus: frozenset[int]
    children: tuple[TraceNode, ...] = ()
    arm: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Block:
    """One executed step on one IPU, or one stretch of waiting (`step` is -1). Cycles on the common clock.

    `iteration` is that of the innermost `Repeat`; `micro_batch` that of the innermost call that names one.
    """

    step: int
    ipu: int
    stage: int | None
    micro_batch: int | None
    iteration: int
    direction: str
    layer: str
    cycles_from: int
    cycles_to: int
    cause: Cause


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

    def window(
        self, ipu: int | None = None, cycles_from: int = 0, cycles_to: int | None = None, max_rows: int = 10_000
    ) -> list[Block]:
        """Blocks that touch cycles_from … cycles_to, in order of time then IPU, at most `max_rows`.

        Repeats are unrolled only inside the window; iterations outside it are skipped by arithmetic.
        """
        raise NotImplementedError
