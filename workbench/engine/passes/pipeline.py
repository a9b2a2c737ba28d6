"""Pipeline: stages that were traced apart become bodies on their IPUs, run column by column over the micro-batches.

Residuals of a stage wait in FIFOs for its backward pass; activations and their gradients cross to the neighbouring IPU
at the end of each column. In a column an IPU runs its backward first, then its forward, then turns its FIFOs: a
residual that was made in column t leaves a FIFO of depth d at the end of column t + d.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.engine.graph import RESIDENT_ROLES, Function, Node, Value
from workbench.engine.lowering import Lowering
from workbench.engine.origin import Origin
from workbench.engine.passes.carries import ACCUMULATOR, carried
from workbench.engine.passes.roles import KIND_OF_ROLE
from workbench.engine.program import Call, GlobalExchange, Overlap, Program, Repeat
from workbench.engine.program import Sequence as ProgramSequence
from workbench.engine.schedule import Column, Stretch, Work, stash_depth, stretches
from workbench.engine.tensor import Tensor
from workbench.engine.tileset import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class _Stage:
    """The calls of one stage and what travels between them."""

    number: int
    forward: Node
    backward: Node | None = None
    update: Node | None = None
    received: dict[int, Tensor] = field(default_factory=dict)  # id(value made elsewhere) → buffer here
    fifo: list[tuple[Tensor, int, Tensor]] = field(default_factory=list)  # residual, stash variable, what left it


def lower_pipeline(lowering: Lowering, schedule: str) -> dict[str, int | str]:
    """Lower a staged entry; returns what the program says of its pipeline."""
    return _PipelineLowering(lowering, schedule).run()


class _PipelineLowering:
    def __init__(self, lowering: Lowering, schedule: str) -> None:
        self.lowering = lowering
        self.emit = lowering.emit
        self.graph = lowering.graph
        self.schedule = schedule
        self.stages = _stages(self.graph.body.nodes)
        self.count = max(stage.forward.times for stage in self.stages)
        self.training = self.stages[0].backward is not None
        self.carries = carried(self.graph)
        self.inputs = {
            id(value): described for value, described in zip(self.graph.body.params, self.graph.inputs, strict=True)
        }
        self.placed: dict[tuple[int, int], Tensor] = {}
        self.made: dict[int, tuple[int, Tensor]] = {}  # id(entry value) → (stage, tensor)
        self.by_name: dict[tuple[str, int], Tensor] = {}

    def run(self) -> dict[str, int | str]:
        plan = stretches(self.schedule, len(self.stages), self.count, training=self.training)
        for stage in self.stages:
            self._forward(stage)
        for stage in reversed(self.stages):
            self._backward(stage)
        for stage in self.stages:
            self._update(stage)
        for stage in self.stages:
            self._turn(stage)
        for stretch in plan:
            self._stretch(stretch)
        self._branches("update", [self._call(s, s.update) for s in self.stages if s.update is not None])
        return {"schedule": self.schedule, "stages": len(self.stages), "micro_batches": self.count}

    # -- where values are --------------------------------------------------------------------------------

    @contextmanager
    def _at(self, stage: _Stage, function: str) -> Iterator[list[Program]]:
        emit = self.emit
        before = (emit.ipu, emit.stage, emit.function)
        emit.ipu, emit.stage, emit.function = stage.number, stage.number, function
        try:
            with emit.body() as collected:
                yield collected
        finally:
            emit.ipu, emit.stage, emit.function = before
        emit.functions[function] = ProgramSequence(children=tuple(collected), name=function)

    def _outside(self, name: str, value: Value, mapping: Any, kind: Any, *, always_live: bool = False) -> Tensor:
        """A variable of the pipeline itself, not of the body being lowered."""
        function, self.emit.function = self.emit.function, ""
        try:
            return self.emit.tensor(name, value.shape, value.dtype, mapping, kind, always_live=always_live)
        finally:
            self.emit.function = function

    def _operand(self, stage: _Stage, value: Value, param: Value) -> Tensor:
        """The tensor on the stage's IPU that a call reads for an entry value."""
        described = self.inputs.get(id(value))
        if described is not None:
            return self._param(stage, value, param)
        home, tensor = self.made[id(value)]
        if home == stage.number:
            return tensor
        if id(value) not in stage.received:
            mapping = self.lowering.wish(param) or self.lowering.default_mapping(param)
            name = f"stage{home}/to_stage{stage.number}"
            stage.received[id(value)] = self._outside(name, value, mapping, "activation")
        return stage.received[id(value)]

    def _param(self, stage: _Stage, value: Value, param: Value) -> Tensor:
        key = (id(value), stage.number)
        if key in self.placed:
            return self.placed[key]
        described = self.inputs[id(value)]
        resident = described.role in RESIDENT_ROLES
        owner = self.by_name.get((described.name.removesuffix(ACCUMULATOR), stage.number))
        follows = owner is not None and described.name.endswith(ACCUMULATOR)
        mapping = owner.mapping if follows and owner is not None else self.lowering.wish(param)
        origin, self.emit.origin = self.emit.origin, Origin(layer=described.layer)
        tensor = self._outside(
            described.name,
            value,
            mapping or self.lowering.default_mapping(param),
            KIND_OF_ROLE[described.role],
            always_live=resident,
        )
        self.emit.origin = origin
        self.placed[key] = tensor
        self.by_name[described.name, stage.number] = tensor
        return tensor

    # -- bodies ------------------------------------------------------------------------------------------

    def _body(self, stage: _Stage, node: Node, overrides: dict[int, Tensor]) -> None:
        """Lower the function a call names, with its operands where they are on this IPU."""
        function = self.graph.functions[node.calls[0]]
        with self._at(stage, function.name):
            for value, param in zip(node.operands, function.params, strict=True):
                tensor = overrides.get(id(value)) or self._operand(stage, value, param)
                self.lowering.bind(param, tensor)
                described = self.inputs.get(id(value))
                if described is not None and described.role not in RESIDENT_ROLES and value.elements:
                    self.emit.stream(f"{described.name}/from_host", tensor, "to_device")
            self._hand_wishes(function)
            self._set_destinations(function)
            self.lowering.lower_function(function)
            self._write_back(function)
            self._send_out(node, function)
        for value, result in zip(node.results, function.results, strict=True):
            tensor = self.lowering.get(result)
            self._outlive(tensor)
            self.made[id(value)] = (stage.number, tensor)

    def _hand_wishes(self, function: Function) -> None:
        """A gradient wants to be where its accumulator is."""
        accumulators = {
            id(function.results[result]): function.params[param]
            for result, param in self.carries.get(function.name, {}).items()
        }
        for node in function.nodes:
            for value in node.results:
                target = accumulators.get(id(value))
                if target is None:
                    continue
                mapping = self.lowering.get(target).mapping
                for operand in node.operands:
                    if operand.shape == target.shape and operand is not target:
                        self.lowering.wishes[id(operand)] = mapping  # type: ignore[index]

    def _set_destinations(self, function: Function) -> None:
        """What is made last from nothing (accumulators set back to zero) is made where it belongs."""
        made_last = {id(value) for node in function.nodes if node.op == "broadcast_in_dim" for value in node.results}
        for result, param in self.carries.get(function.name, {}).items():
            value = function.results[result]
            if id(value) in made_last:
                self.lowering.destinations[id(value)] = self.lowering.get(function.params[param])

    def _write_back(self, function: Function) -> None:
        for result, param in self.carries.get(function.name, {}).items():
            new, old = self.lowering.get(function.results[result]), self.lowering.get(function.params[param])
            if new.variables != old.variables:
                self.emit.move_into(f"{function.name}/write_back", new, old)

    def _send_out(self, node: Node, function: Function) -> None:
        """Losses, metrics and outputs leave for the host with each micro-batch."""
        leaving = {
            id(value): output.name
            for output, value in zip(self.graph.outputs, self.graph.body.results, strict=True)
            if output.updates is None
        }
        for value, result in zip(node.results, function.results, strict=True):
            if id(value) in leaving and value.elements:
                self.emit.stream(f"{leaving[id(value)]}/to_host", self.lowering.get(result), "to_host")

    def _outlive(self, tensor: Tensor) -> None:
        """What a body returns is alive after the call: its variables belong to the pipeline."""
        for name in tensor.variables:
            variable = self.emit.variables[name]
            if variable.function:
                self.emit.variables[name] = replace(variable, function="")

    def _forward(self, stage: _Stage) -> None:
        self._body(stage, stage.forward, {})
        if stage.backward is not None:
            self._stash(stage, stage.backward)

    def _stash(self, stage: _Stage, backward: Node) -> None:
        depth = stash_depth(self.schedule, len(self.stages), stage.number)
        made = {id(value): value for value in stage.forward.results}
        kept: dict[tuple[int, ...], None] = {}
        waiting = [made[id(value)] for value in backward.operands if id(value) in made]
        waiting += [v for v in backward.operands if id(v) in self.inputs and self._is_data(v)]
        for value in waiting:
            tensor = self.made[id(value)][1] if id(value) in self.made else self.placed[id(value), stage.number]
            if depth == 0 or tensor.variables in kept or self.emit.variables[tensor.variables[0]].always_live:
                continue
            kept[tensor.variables] = None
            with self._stamped(stage):
                name = self.emit.variables[tensor.variables[0]].name
                stash = self.emit.new(
                    f"{name}/stash", value.shape, value.dtype, tensor.mapping, "stash", copies=depth
                )
                left = self.emit.tensor(f"{name}/unstashed", value.shape, value.dtype, tensor.mapping, "stash")
            stage.fifo.append((tensor, stash, left))

    def _is_data(self, value: Value) -> bool:
        return self.inputs[id(value)].role not in RESIDENT_ROLES

    @contextmanager
    def _stamped(self, stage: _Stage) -> Iterator[None]:
        before = (self.emit.ipu, self.emit.stage)
        self.emit.ipu, self.emit.stage = stage.number, stage.number
        try:
            yield
        finally:
            self.emit.ipu, self.emit.stage = before

    def _backward(self, stage: _Stage) -> None:
        if stage.backward is None:
            return
        left = {tensor.variables: out for tensor, _, out in stage.fifo}
        overrides: dict[int, Tensor] = {}
        for value in stage.backward.operands:
            tensor = self.made[id(value)][1] if id(value) in self.made else self.placed.get((id(value), stage.number))
            if tensor is not None and tensor.variables in left and tensor.ipu == stage.number:
                overrides[id(value)] = replace(tensor, variables=left[tensor.variables].variables)
        self._body(stage, stage.backward, overrides)

    def _update(self, stage: _Stage) -> None:
        if stage.update is not None:
            self._body(stage, stage.update, {})

    # -- columns -----------------------------------------------------------------------------------------

    def _call(self, stage: _Stage, node: Node | None, micro_batch: int | None = None) -> Program:
        if node is None:
            return ProgramSequence(children=())
        direction = str(node.attr("direction", node.origin.direction))
        return Call(
            function=node.calls[0],
            name=node.calls[0],
            ipu=stage.number,
            stage=stage.number,
            direction=direction,
            micro_batch=micro_batch,
        )

    def _branches(self, name: str, branches: Sequence[Program], phase: Any = "steady") -> None:
        if branches:
            self.emit.add(Overlap(branches=tuple(branches), name=name, phase=phase))

    def _turn(self, stage: _Stage) -> None:
        """The body that turns a stage's FIFOs: the oldest slot leaves, the newest residual takes its place."""
        if not stage.fifo:
            return
        with self._at(stage, f"stage{stage.number}_fifo"):
            parts = [t.mapping.bytes_per_tile(t.itemsize_bytes, self.lowering.tiles) for t, _, _ in stage.fifo]
            copied = frozen(np.sum(parts, axis=0))
            stashes = [stash for _, stash, _ in stage.fifo]
            out = [name for _, _, left in stage.fifo for name in left.variables]
            current = [name for tensor, _, _ in stage.fifo for name in tensor.variables]
            self.emit.compute("fifo/pop", self.emit.copy_groups(copied), stashes, out)
            self.emit.compute("fifo/push", self.emit.copy_groups(copied), (*current, *stashes), stashes)

    def _stretch(self, stretch: Stretch) -> None:
        with self.emit.body() as collected:
            for column in stretch.columns:
                self._column(column)
        body = ProgramSequence(children=tuple(collected), name=stretch.columns[0].phase)
        self.emit.add(body if stretch.times == 1 else Repeat(times=stretch.times, body=body, name="columns"))

    def _column(self, column: Column) -> None:
        branches = [self._cell(self.stages[i], work) for i, work in enumerate(column.work) if work]
        work = [item for cell in column.work for item in cell]
        self._branches(" ".join(map(str, work)), branches, column.phase)
        self._cross(work)

    def _cell(self, stage: _Stage, work: tuple[Work, ...]) -> Program:
        calls = [
            self._call(stage, stage.forward if item.direction == "forward" else stage.backward, item.micro_batch)
            for item in work
        ]
        if stage.fifo:
            calls.append(Call(function=f"stage{stage.number}_fifo", ipu=stage.number, stage=stage.number))
        return ProgramSequence(children=tuple(calls), name=f"stage {stage.number}")

    def _cross(self, work: list[Work]) -> None:
        """Send what this column made to the neighbours; pairs of IPUs that share none cross at the same time."""
        for step in (1, -1):
            for parity in (0, 1):
                branches = [
                    crossing
                    for item in work
                    if (1 if item.direction == "forward" else -1) == step and item.stage % 2 == parity
                    for crossing in self._crossing(item.stage, item.stage + step)
                ]
                self._branches("between IPUs", branches)

    def _crossing(self, source: int, destination: int) -> list[Program]:
        if not 0 <= destination < len(self.stages):
            return []
        buffers = self.stages[destination].received
        moved = [(self.made[name][1], buffer) for name, buffer in buffers.items() if self.made[name][0] == source]
        if not moved:
            return []
        self.emit.next_step += 1
        size_bytes = sum(tensor.elements * tensor.itemsize_bytes for tensor, _ in moved)
        return [
            GlobalExchange(
                id=self.emit.next_step - 1,
                name=f"stage{source}/to_stage{destination}",
                ipu=source,
                to_ipu=destination,
                stage=source,
                reads=tuple(name for tensor, _ in moved for name in tensor.variables),
                writes=tuple(name for _, buffer in moved for name in buffer.variables),
                size_bytes=size_bytes,
            )
        ]


def _stages(nodes: Sequence[Node]) -> list[_Stage]:
    found: dict[int, _Stage] = {}
    for node in nodes:
        number = int(node.attr("stage", 0))
        direction = str(node.attr("direction", node.origin.direction))
        if direction == "forward":
            found[number] = _Stage(number=number, forward=node)
        elif direction == "backward":
            found[number].backward = node
        else:
            found[number].update = node
    return [found[number] for number in sorted(found)]
