"""The trace: a tree of the program's shape with the cost of one execution of every step, and a window query."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from workbench.base.arrays import IntArray
from workbench.base.causes import IDLE_BY_PHASE, Cause, idle_beside
from workbench.engine.cost import Cost
from workbench.engine.graph.origin import NOWHERE
from workbench.engine.program import Call, If, Leaf, Overlap, Program, Repeat, Step, TileProgram
from workbench.errors import InputError


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
    its steps occupy, calls followed; `mixed` tells whether an IPU outside waits for several causes (host copies or
    columns are below). `arm` is the dearest arm of an `If`.
    """

    program: Program
    cycles: int
    ipus: frozenset[int]
    mixed: bool = False
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
        if ipu is not None and not 0 <= ipu < self.program.ipus:
            raise InputError(f"no IPU {ipu!r}", expected=f"0 to {self.program.ipus - 1}")
        window = _Window(self, cycles_from, self.total_cycles if cycles_to is None else cycles_to)
        chosen = range(self.program.ipus) if ipu is None else (ipu,)
        rows = heapq.merge(*(window.blocks(one) for one in chosen), key=lambda block: (block.cycles_from, block.ipu))
        return list(islice(rows, max(0, max_rows)))


@dataclass(frozen=True, slots=True)
class _Where:
    """What the nodes above a step say of it; `lexical` is the iteration of the `Repeat` in the same body."""

    ipu: int
    iteration: int = 0
    lexical: int = 0
    stage: int | None = None
    micro_batch: int | None = None
    direction: str = ""
    layer: str = ""


class _Window:
    """Unrolls one window of a trace for one IPU at a time."""

    def __init__(self, trace: Trace, cycles_from: int, cycles_to: int) -> None:
        self.trace = trace
        self.cycles_from = cycles_from
        self.cycles_to = cycles_to

    def blocks(self, ipu: int) -> Iterator[Block]:
        """Blocks of one IPU in order, neighbouring waits of one cause joined."""
        last: Block | None = None
        for block in self._node(self.trace.entry, 0, _Where(ipu)):
            if last is None:
                last = block
            elif last.step < 0 and block.step < 0 and last.cause == block.cause and last.cycles_to == block.cycles_from:
                last = replace(last, cycles_to=block.cycles_to)
            else:
                yield last
                last = block
        if last is not None:
            yield last

    def _touches(self, start: int, end: int) -> bool:
        return start < end and start < self.cycles_to and end > self.cycles_from

    def _node(self, node: TraceNode, start: int, where: _Where) -> Iterator[Block]:
        if not self._touches(start, start + node.cycles):
            return
        program = node.program
        if where.ipu not in node.ipus and not node.mixed:
            yield self._wait(start, start + node.cycles, where, "idle_wait_stage")
        elif isinstance(program, Step):
            yield self._step(program, start, start + node.cycles, where)
        elif isinstance(program, Call):
            yield from self._node(self.trace.functions[program.function], start, _called(program, where))
        elif isinstance(program, Repeat):
            yield from self._repeat(program, node.children[0], start, where)
        elif isinstance(program, Overlap):
            yield from self._overlap(program, node, start, where)
        elif isinstance(program, If):
            yield from self._node(node.children[node.arm], start, where)
        else:
            for child in node.children:
                yield from self._node(child, start, where)
                start += child.cycles

    def _repeat(self, program: Repeat, body: TraceNode, start: int, where: _Where) -> Iterator[Block]:
        first = max(0, (self.cycles_from - start) // body.cycles)
        last = min(program.times, -((start - self.cycles_to) // body.cycles))
        for iteration in range(first, last):
            inside = replace(where, iteration=iteration, lexical=iteration)
            yield from self._node(body, start + iteration * body.cycles, inside)

    def _overlap(self, program: Overlap, node: TraceNode, start: int, where: _Where) -> Iterator[Block]:
        done = start
        for branch in node.children:
            if where.ipu in branch.ipus:
                yield from self._node(branch, start, where)
                done = start + branch.cycles
        end = start + node.cycles
        if self._touches(done, end):
            yield self._wait(done, end, where, IDLE_BY_PHASE[program.phase])

    def _step(self, step: Step, start: int, end: int, where: _Where) -> Block:
        cost = self.trace.steps[step.id]
        if where.ipu not in step.ipus:
            return self._wait(start, end, where, idle_beside(cost.cause))
        return Block(
            step=step.id,
            ipu=where.ipu,
            stage=where.stage if step.stage is None else step.stage,
            micro_batch=where.micro_batch,
            iteration=where.iteration,
            direction=_direction(step, where),
            layer=where.layer or step.origin.layer,
            cycles_from=start,
            cycles_to=end,
            cause=cost.cause,
        )

    def _wait(self, start: int, end: int, where: _Where, cause: Cause) -> Block:
        return Block(
            step=-1,
            ipu=where.ipu,
            stage=None,
            micro_batch=None,
            iteration=0,
            direction="",
            layer="",
            cycles_from=start,
            cycles_to=end,
            cause=cause,
        )


def _direction(step: Step, where: _Where) -> str:
    """A step's own where nothing stands around it; what is computed again says so inside a backward pass too, and in
    the body that the forward pass runs as well."""
    if where.direction == "recompute":
        return where.direction
    around = step.origin is NOWHERE or where.layer
    return where.direction if around and step.origin.direction != "recompute" else step.origin.direction


def _direction_inside(call: Call, where: _Where) -> str:
    """That of the layer an outlined body stands for, unless the layer is computed again."""
    outlined = call.origin.layer and where.direction != "recompute"
    return call.origin.direction if outlined else where.direction


def _called(call: Call, where: _Where) -> _Where:
    return replace(
        where,
        lexical=0,
        stage=where.stage if call.stage is None else call.stage,
        micro_batch=where.micro_batch if call.micro_batch is None else call.micro_batch + where.lexical,
        direction=call.direction or _direction_inside(call, where),
        layer=call.origin.layer or where.layer,
    )
