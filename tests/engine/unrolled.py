"""What a program executes, block by block, from nothing but the cost of its steps: the plain way, to check others by.

It knows neither the tree of durations nor the counting of `execute`, nor the timeline of profiles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from workbench.base.causes import IDLE_BY_PHASE, Cause, idle_beside
from workbench.engine.graph.origin import NOWHERE
from workbench.engine.program import Call, If, Overlap, Program, Repeat, Sequence, Step, children
from workbench.engine.time.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """One executed step on one IPU, or one stretch of waiting (`step` is -1). Cycles on the common clock.

    `iteration` is that of the innermost `Repeat`; `micro_batch` that of the innermost call that names one.
    """

    step: int
    ipu: int
    stage: int | None = None
    micro_batch: int | None = None
    iteration: int = 0
    direction: str = ""
    layer: str = ""
    cycles_from: int
    cycles_to: int
    cause: Cause


class _Around(NamedTuple):
    """What the nodes above a step say of it; `lexical` is the iteration of the `Repeat` in the same body."""

    iteration: int = 0
    lexical: int = 0
    stage: int | None = None
    micro_batch: int | None = None
    direction: str = ""
    layer: str = ""


def unrolled(trace: Trace, ipu: int | None = None) -> list[Executed]:
    """All blocks in order of time then IPU; neighbouring waits of one cause are one."""
    found: list[Executed] = []
    for each in range(trace.program.ipus) if ipu is None else (ipu,):
        walk = _Walk(trace, each)
        walk.node(trace.program.entry, 0, _Around())
        for (waiting, _), run in groupby(walk.blocks, key=lambda block: (block.step < 0, block.cause)):
            blocks = list(run)
            found += [replace(blocks[0], cycles_to=blocks[-1].cycles_to)] if waiting else blocks
    return sorted(found, key=lambda block: (block.cycles_from, block.ipu))


class _Walk:
    def __init__(self, trace: Trace, ipu: int) -> None:
        self.trace, self.ipu = trace, ipu
        self.blocks: list[Executed] = []

    def node(self, node: Program, start: int, around: _Around) -> int:
        """Add what a node executes; the cycle at which it has ended."""
        if isinstance(node, Step):
            return self._step(node, start, around)
        if isinstance(node, Call):
            return self.node(self.trace.program.functions[node.function], start, _called(node, around))
        if isinstance(node, Repeat):
            for turn in range(node.times):
                start = self.node(node.body, start, around._replace(iteration=turn, lexical=turn))
            return start
        if isinstance(node, Overlap):
            return self._overlap(node, start, around)
        if isinstance(node, If):
            return self.node(max(node.arms, key=self.length), start, around) if node.arms else start
        for child in node.children:
            start = self.node(child, start, around)
        return start

    def length(self, node: Program) -> int:
        """Cycles of one execution."""
        if isinstance(node, Step):
            return self.trace.steps[node.id].cycles
        if isinstance(node, Call):
            return self.length(self.trace.program.functions[node.function])
        below = [self.length(child) for child in children(node)]
        if isinstance(node, Repeat):
            return node.times * below[0]
        return sum(below) if isinstance(node, Sequence) else max(below, default=0)

    def works_in(self, node: Program) -> bool:
        """Whether the IPU occupies a step of a node, calls followed."""
        if isinstance(node, Call):
            return self.works_in(self.trace.program.functions[node.function])
        if isinstance(node, Step):
            return self.ipu in node.ipus
        return any(map(self.works_in, children(node)))

    def _overlap(self, node: Overlap, start: int, around: _Around) -> int:
        end = start + self.length(node)
        done = start
        for branch in filter(self.works_in, node.branches):
            done = self.node(branch, start, around)
        self._add(-1, done, end, IDLE_BY_PHASE[node.phase], _Around())
        return end

    def _step(self, step: Step, start: int, around: _Around) -> int:
        cost = self.trace.steps[step.id]
        end = start + cost.cycles
        if self.ipu not in step.ipus:
            self._add(-1, start, end, idle_beside(cost.cause), _Around())
            return end
        inside = around._replace(
            stage=around.stage if step.stage is None else step.stage,
            direction=_direction(step, around),
            layer=around.layer or step.origin.layer,
        )
        self._add(step.id, start, end, cost.cause, inside)
        return end

    def _add(self, step: int, start: int, end: int, cause: Cause, around: _Around) -> None:
        if start < end:
            named = {name: value for name, value in around._asdict().items() if name != "lexical"}
            self.blocks.append(
                Executed(step=step, ipu=self.ipu, cycles_from=start, cycles_to=end, cause=cause, **named)
            )


def _direction(step: Step, around: _Around) -> str:
    """A step's own where nothing stands around it; what is computed again says so inside a backward pass too, and in
    the body that the forward pass runs as well."""
    if around.direction == "recompute":
        return around.direction
    told = step.origin is NOWHERE or around.layer
    return around.direction if told and step.origin.direction != "recompute" else step.origin.direction


def _called(call: Call, around: _Around) -> _Around:
    """An outlined body has the direction of the layer it stands for, unless the layer is computed again."""
    outlined = call.origin.layer and around.direction != "recompute"
    return _Around(
        iteration=around.iteration,
        stage=around.stage if call.stage is None else call.stage,
        micro_batch=around.micro_batch if call.micro_batch is None else call.micro_batch + around.lexical,
        direction=call.direction or (call.origin.direction if outlined else around.direction),
        layer=call.origin.layer or around.layer,
    )
