"""The scheduled program on the host: the functions of the stages in the order of the columns, through real FIFOs.

What a pass reads is where the tile program has it: parameters on their IPU, what another stage made in a buffer that
is filled at the end of a column, what waits for the backward pass in a FIFO of the stated depth. A wrong depth gives
wrong numbers, as it would on the device.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp

from workbench.engine.frontends.trace.staged_calls import Program, StagedCall, compiled_body, joined, micro_batch_of
from workbench.engine.pipeline_schedule import Column, StageWork, stash_depth, stretches

Values = dict[str, Any]
Compiled = Mapping[str, Callable[..., Any]]


@dataclass(slots=True)
class HostFifo:
    """`depth` slots: what is turned in comes out `depth` turns later; before that, what they were filled with."""

    depth: int
    filling: Any = None
    slots: deque[Any] = field(default_factory=deque)

    def turn(self, value: Any) -> Any:
        """The newest value in, the oldest out; a FIFO without slots hands on what it is given."""
        while len(self.slots) < self.depth:
            self.slots.append(self.filling)
        self.slots.append(value)
        return self.slots.popleft()


@dataclass(slots=True)
class _Stage:
    """A stage on the host: its calls, what it made, what arrived, and what left its FIFOs."""

    number: int
    calls: dict[str, StagedCall] = field(default_factory=dict)
    made: Values = field(default_factory=dict)
    arrived: Values = field(default_factory=dict)
    left: Values = field(default_factory=dict)
    fifos: dict[str, HostFifo] = field(default_factory=dict)
    relayed: dict[bool, Values] = field(default_factory=lambda: {False: {}, True: {}})  # by: with the backward pass

    def reads(self, *directions: str) -> list[str]:
        """Operands of some of the stage's calls."""
        return [name for way in directions if way in self.calls for name in self.calls[way].operands]


class ScheduledProgram:
    """Runs a program of stages under a schedule; `depth` gives the slots of a stage's FIFOs."""

    def __init__(
        self,
        program: Program,
        schedule: str,
        devices: Sequence[int] = (),
        depth: Callable[[str, int, int], int] = stash_depth,
    ) -> None:
        self.program = program
        self.stages = self._stages_of(program)
        count = len(self.stages)
        self.schedule = schedule if count > 1 else "Sequential"
        self.depths = [depth(self.schedule, count, number) for number in range(count)]
        training = "backward" in self.stages[0].calls
        again = [stage.number for stage in self.stages if "recompute" in stage.calls]
        self.plan = stretches(
            self.schedule, count, program.micro_batches, training=training, devices=devices or None, recomputed=again
        )
        self.compiled: Compiled = {call.name: compiled_body(call.closed) for call in program.calls}
        self.data = frozenset(item.name for item in program.inputs if item.role in ("input", "target"))
        self.resident = (frozenset(item.name for item in program.inputs) - self.data) | program.prepared
        self.home = {
            name: stage.number
            for stage in self.stages
            for call in stage.calls.values()
            for name in call.results
            if name not in self.resident
        }

    @staticmethod
    def _stages_of(program: Program) -> list[_Stage]:
        found: dict[int, _Stage] = {}
        for call in program.calls:
            if call.repeated:
                found.setdefault(call.stage, _Stage(call.stage)).calls[call.direction] = call
        return [found[number] for number in sorted(found)]

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Values of the entry parameters to values of the results, as `host_function`."""
        env = {item.name: value for item, value in zip(self.program.inputs, values, strict=True)}
        self._start()
        self._once("before", env)
        outputs: dict[str, list[Any]] = {name: [] for name in self.program.per_micro_batch}
        for column in self._columns():
            self._column(column, env, outputs)
        return self._finish(env, outputs)

    def _finish(self, env: Values, outputs: dict[str, list[Any]]) -> list[Any]:
        """The weight updates, all of which read what was there before any of them; then the results."""
        before = dict(env)
        for call in self.program.calls:
            if call.updates:
                updated = self.compiled[call.name](*(before[name] for name in call.operands))
                env.update(zip(call.results, updated, strict=True))
        self._once("after", env)
        return [
            joined(output, outputs[name]) if name in outputs else env[name] for output, name in self.program.outputs
        ]

    def _once(self, turn: str, env: Values) -> None:
        """The calls around the micro-batches."""
        for call in self.program.of_turn(turn):
            made = self.compiled[call.name](*(env[name] for name in call.operands))
            env.update(zip(call.results, made, strict=True))

    def _start(self) -> None:
        for stage in self.stages:
            stage.made, stage.arrived, stage.left, stage.fifos = {}, {}, {}, {}
            stage.relayed = {False: {}, True: {}}
            for name in dict.fromkeys(stage.reads("recompute", "backward")):
                if self._waits(stage, name):
                    stage.fifos[name] = HostFifo(self.depths[stage.number])

    def _waits(self, stage: _Stage, name: str) -> bool:
        """Whether a value goes through a FIFO before a later pass of the stage reads it."""
        if name in self.resident or name in self._made_again(stage):
            return False
        own = self.home.get(name) == stage.number or name in self.data
        earlier = not own and self.home[name] < stage.number
        return (own or earlier) and (self.depths[stage.number] > 0 or (earlier and self.schedule == "Grouped"))

    @staticmethod
    def _made_again(stage: _Stage) -> frozenset[str]:
        return frozenset(stage.calls["recompute"].results) if "recompute" in stage.calls else frozenset()

    def _columns(self) -> Iterator[Column]:
        """Every column, with the micro-batches it has."""
        for stretch in self.plan:
            for repetition in range(stretch.times):
                later = repetition * stretch.stride
                for column in stretch.columns:
                    yield column.later(later)

    def _column(self, column: Column, env: Values, outputs: dict[str, list[Any]]) -> None:
        for cell in column.work:
            for work in cell:
                if work.direction != "recompute":
                    self._run(work, env, outputs)
        turns = sorted(column.turns, reverse=True)
        for element, _ in turns:
            self._turn(element)
        for cell in column.work:
            for work in cell:
                if work.direction == "recompute":
                    self._run(work, env, outputs)
        for cell in column.work:
            for work in cell:
                self._hand_on(work)

    def _run(self, work: StageWork, env: Values, outputs: dict[str, list[Any]]) -> None:
        stage = self.stages[work.stage]
        call = stage.calls[work.direction]
        if work.direction == "forward":
            wanted = [name for name in stage.reads(*stage.calls) if name in self.data]
            stage.made.update((name, self._micro_batch(env, name, work.micro_batch)) for name in wanted)
        held = (self._operand(stage, name, work.direction, env) for name in call.operands)
        operands = [
            jnp.zeros(aval.shape, aval.dtype) if value is None else value  # what a FIFO is filled with at first
            for value, aval in zip(held, call.closed.in_avals, strict=True)
        ]
        for name, value in zip(call.results, self.compiled[call.name](*operands), strict=True):
            (env if name in self.resident else stage.made)[name] = value
            if name in outputs:
                outputs[name].append(value)

    def _micro_batch(self, env: Values, name: str, number: int) -> Any:
        return micro_batch_of(env[name], self.program.types[name].shape, number)

    def _operand(self, stage: _Stage, name: str, direction: str, env: Values) -> Any:
        if name in self.resident:
            return env[name]
        if direction != "forward" and name in stage.fifos:
            return stage.left[name]
        if name in stage.made and (name in self.data or self.home[name] == stage.number):
            return stage.made[name]
        return stage.arrived[name]

    def _turn(self, element: int) -> None:
        back = element >= len(self.stages)
        stage = self.stages[2 * len(self.stages) - 1 - element if back else element]
        if not back:
            for name, fifo in stage.fifos.items():
                stage.left[name] = fifo.turn({**stage.made, **stage.arrived}.get(name))
        ways = {name: value for name, value in stage.arrived.items() if (self.home[name] > stage.number) == back}
        stage.relayed[back] = ways

    def _hand_on(self, work: StageWork) -> None:
        """To the neighbour: what this pass made, and what came to it on its way further."""
        if work.direction == "recompute":
            return
        source, back = self.stages[work.stage], work.direction == "backward"
        number = work.stage + (-1 if back else 1)
        if not 0 <= number < len(self.stages):
            return
        made = {name: source.made[name] for name in source.calls[work.direction].results if name in source.made}
        self.stages[number].arrived.update({**source.relayed[back], **made})
