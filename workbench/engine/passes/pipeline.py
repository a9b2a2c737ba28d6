"""Pipeline: stages that were traced apart become bodies on their IPUs, run column by column over the micro-batches.

Residuals of a stage wait in FIFOs for its backward pass; activations and their gradients cross to the neighbouring IPU
at the end of each column. In a column an IPU runs its backward first, then its forward, then turns its FIFOs: a
residual that was made in column t leaves a FIFO of depth d at the end of column t + d.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.engine.graph import RESIDENT_ROLES, Function, Node, Value
from workbench.engine.lowering import Lowering
from workbench.engine.origin import NOWHERE, Origin
from workbench.engine.passes.carries import ACCUMULATOR, carried
from workbench.engine.passes.in_place import flat_nodes
from workbench.engine.passes.layout import Wishes, hand_across
from workbench.engine.passes.pipeline_stages import Arrival, Fifo, Stage, stages_of
from workbench.engine.passes.roles import KIND_OF_ROLE
from workbench.engine.program import Call, Exchange, GlobalExchange, Overlap, Program, Repeat, VariableKind
from workbench.engine.program import Sequence as ProgramSequence
from workbench.engine.schedule import Column, Stretch, Work, stash_depth, stretches
from workbench.engine.tensor import Tensor
from workbench.engine.tileset import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator


def lower_pipeline(lowering: Lowering, schedule: str) -> dict[str, int | str]:
    """Lower a staged entry; returns what the program says of its pipeline."""
    return _PipelineLowering(lowering, schedule).run()


class _PipelineLowering:
    def __init__(self, lowering: Lowering, schedule: str) -> None:
        self.lowering = lowering
        self.emit = lowering.emit
        self.graph = lowering.graph
        self.schedule = schedule
        self.stages = stages_of(self.graph.body.nodes)
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
    def _at(self, stage: Stage, function: str) -> Iterator[list[Program]]:
        emit = self.emit
        before = (emit.ipu, emit.stage, emit.function)
        emit.ipu, emit.stage, emit.function = stage.number, stage.number, function
        try:
            with emit.body() as collected:
                yield collected
        finally:
            emit.ipu, emit.stage, emit.function = before
        emit.functions[function] = ProgramSequence(children=tuple(collected), name=function)

    def _operand(self, stage: Stage, value: Value, param: Value) -> Tensor:
        """The tensor on the stage's IPU that a call reads for an entry value."""
        described = self.inputs.get(id(value))
        if described is not None:
            return self._param(stage, value, param)
        home, tensor = self.made[id(value)]
        if home == stage.number:
            return tensor
        return self._receive(stage, value, self.lowering.wish(param) or self.lowering.default_mapping(param))

    def _receive(self, stage: Stage, value: Value, mapping: Any) -> Tensor:
        """The buffer for a value made elsewhere; stages on its way hand it on a column later each."""
        if id(value) in stage.received:
            return stage.received[id(value)].buffer
        home, source = self.made[id(value)]
        neighbour = stage.number + (1 if home > stage.number else -1)
        if neighbour != home:
            relay = self.stages[neighbour]
            source = self._kept(relay, value, self._receive(relay, value, mapping), 0, "relay")
        made = self.emit.variables[source.variables[0]]
        kind: VariableKind = "gradient" if made.origin.direction == "backward" else "activation"
        with self._stamped(stage, made.origin):
            name = f"stage{home}/to_stage{stage.number}"
            buffer = self.emit.tensor(name, value.shape, value.dtype, mapping, kind)
        stage.received[id(value)] = Arrival(buffer, neighbour, source)
        return buffer

    def _kept(self, stage: Stage, value: Value, current: Tensor, slots: int, name: str) -> Tensor:
        """A FIFO behind a tensor; returns what leaves it."""
        held = self.emit.variables[current.variables[0]]
        stash: int | None = None
        kind = held.kind if name == "relay" else "stash"
        with self._stamped(stage, held.origin):
            if slots:
                stash = self.emit.new(
                    f"{held.name}/{name}", value.shape, value.dtype, current.mapping, "stash", copies=slots
                )
            label = f"{held.name}/un{name}ed" if slots else f"{held.name}/{name}"
            left = self.emit.tensor(label, value.shape, value.dtype, current.mapping, kind)
        stage.fifos.append(Fifo(current, left, stash))
        return left

    def _param(self, stage: Stage, value: Value, param: Value) -> Tensor:
        key = (id(value), stage.number)
        if key in self.placed:
            return self.placed[key]
        described = self.inputs[id(value)]
        resident = described.role in RESIDENT_ROLES
        owner = self.by_name.get((described.name.removesuffix(ACCUMULATOR), stage.number))
        follows = owner is not None and described.name.endswith(ACCUMULATOR)
        mapping = owner.mapping if follows and owner is not None else self.lowering.wish(param)
        with self._stamped(stage, Origin(layer=described.layer)):
            tensor = self.emit.tensor(
                described.name,
                value.shape,
                value.dtype,
                mapping or self.lowering.default_mapping(param),
                KIND_OF_ROLE[described.role],
                always_live=resident,
            )
        self.placed[key] = tensor
        self.by_name[described.name, stage.number] = tensor
        return tensor

    # -- bodies ------------------------------------------------------------------------------------------

    def _body(self, stage: Stage, node: Node, stashed: dict[tuple[int, ...], Tensor]) -> None:
        """Lower the function a call names, with its operands where they are on this IPU.

        Data arrives from the host with the first call that reads it. `stashed` is read instead of what waited.
        """
        function = self.graph.functions[node.calls[0]]
        with self._at(stage, function.name):
            for value, param in zip(node.operands, function.params, strict=True):
                arrives = self._is_data(value) and (id(value), stage.number) not in self.placed and value.elements
                tensor = self._operand(stage, value, param)
                left = stashed.get(tensor.variables)
                self.lowering.bind(param, replace(tensor, variables=left.variables) if left else tensor)
                if arrives:
                    self.emit.stream(f"{self.inputs[id(value)].name}/from_host", tensor, "to_device")
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

    def _forward(self, stage: Stage) -> None:
        self._body(stage, stage.forward, {})
        if stage.backward is not None:
            self._stash(stage, stage.backward)

    def _stash(self, stage: Stage, backward: Node) -> None:
        """Keep what the backward pass of a micro-batch reads while later ones go forward.

        A buffer that a neighbour fills is overwritten at the end of the column, so it is kept even by the last stage.
        """
        slots = stash_depth(self.schedule, len(self.stages), stage.number)
        overlapping = stash_depth(self.schedule, len(self.stages), 0) > 0
        for value, param in zip(backward.operands, self.graph.functions[backward.calls[0]].params, strict=True):
            if id(value) in self.made:
                tensor = self._operand(stage, value, param)
            elif self._is_data(value) and (id(value), stage.number) in self.placed:
                tensor = self.placed[id(value), stage.number]
            else:
                continue
            arrived = any(arrival.buffer.variables == tensor.variables for arrival in stage.received.values())
            waits = slots > 0 or (arrived and overlapping)
            if not waits or tensor.variables in stage.stashed or self._is_constant(tensor):
                continue
            stage.stashed[tensor.variables] = self._kept(stage, value, tensor, slots, "stash")

    def _is_data(self, value: Value) -> bool:
        described = self.inputs.get(id(value))
        return described is not None and described.role not in RESIDENT_ROLES

    def _is_constant(self, tensor: Tensor) -> bool:
        return self.emit.variables[tensor.variables[0]].always_live

    @contextmanager
    def _stamped(self, stage: Stage, origin: Origin = NOWHERE) -> Iterator[None]:
        """What is made inside belongs to the stage, not to the body being lowered."""
        emit = self.emit
        before = (emit.ipu, emit.stage, emit.function, emit.origin)
        emit.ipu, emit.stage, emit.function, emit.origin = stage.number, stage.number, "", origin
        try:
            yield
        finally:
            emit.ipu, emit.stage, emit.function, emit.origin = before

    def _backward(self, stage: Stage) -> None:
        if stage.backward is not None:
            self._body(stage, stage.backward, stage.stashed)

    def _update(self, stage: Stage) -> None:
        """Optimizer slots that nothing has placed yet come to lie as the weights and sums they meet."""
        if stage.update is None:
            return
        function = self.graph.functions[stage.update.calls[0]]
        wishes: Wishes = self.lowering.wishes  # type: ignore[assignment]
        for value, param in zip(stage.update.operands, function.params, strict=True):
            placed = self.placed.get((id(value), stage.number))
            if placed is not None:
                wishes[id(param)] = placed.mapping
        for node in flat_nodes(self.graph, function):
            hand_across(node, wishes)
        self._body(stage, stage.update, {})

    # -- columns -----------------------------------------------------------------------------------------

    def _call(self, stage: Stage, node: Node | None, micro_batch: int | None = None) -> Program:
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

    def _turn(self, stage: Stage) -> None:
        """The body that turns a stage's FIFOs: the oldest slot leaves, the newest value takes its place."""
        if not stage.fifos:
            return
        with self._at(stage, f"stage{stage.number}_fifo"):
            deep = [fifo for fifo in stage.fifos if fifo.stash is not None]
            flat = [fifo for fifo in stage.fifos if fifo.stash is None]
            stashes = [fifo.stash for fifo in deep if fifo.stash is not None]
            self._copy("fifo/pop", deep, stashes, _variables(fifo.left for fifo in deep))
            self._copy("fifo/push", deep, [*_variables(fifo.current for fifo in deep), *stashes], stashes)
            current, left = _variables(fifo.current for fifo in flat), _variables(fifo.left for fifo in flat)
            self._copy("fifo/keep", flat, current, left)

    def _copy(self, name: str, fifos: Sequence[Fifo], reads: Sequence[int], writes: Sequence[int]) -> None:
        if fifos:
            tensors = [fifo.current for fifo in fifos]
            parts = [t.mapping.bytes_per_tile(t.itemsize_bytes, self.lowering.tiles) for t in tensors]
            self.emit.compute(name, self.emit.copy_groups(frozen(np.sum(parts, axis=0))), reads, writes)

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
        self._cross(work, column.phase)

    def _cell(self, stage: Stage, work: tuple[Work, ...]) -> Program:
        calls = [
            self._call(stage, stage.forward if item.direction == "forward" else stage.backward, item.micro_batch)
            for item in work
        ]
        if stage.fifos:
            calls.append(Call(function=f"stage{stage.number}_fifo", ipu=stage.number, stage=stage.number))
        return ProgramSequence(children=tuple(calls), name=f"stage {stage.number}")

    def _cross(self, work: list[Work], phase: Any) -> None:
        """Send what this column made to the neighbours; pairs of IPUs that share none cross at the same time."""
        for step in (1, -1):
            for parity in (0, 1):
                branches = [
                    crossing
                    for item in work
                    if (1 if item.direction == "forward" else -1) == step and item.stage % 2 == parity
                    for crossing in self._crossing(item.stage, item.stage + step)
                ]
                self._branches("between IPUs", branches, phase)

    def _crossing(self, source: int, destination: int) -> list[Program]:
        if not 0 <= destination < len(self.stages):
            return []
        arrivals = self.stages[destination].received.values()
        moved = [(arrival.source, arrival.buffer) for arrival in arrivals if arrival.neighbour == source]
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
                sent=self._end(f"stage{source}/sent", [tensor for tensor, _ in moved], leaving=True),
                received=self._end(f"stage{destination}/received", [buffer for _, buffer in moved], leaving=False),
            )
        ]

    def _end(self, name: str, tensors: list[Tensor], *, leaving: bool) -> Exchange:
        """What the tiles of one end of a copy between IPUs send or receive."""
        parts = [t.mapping.bytes_per_tile(t.itemsize_bytes, self.lowering.tiles) for t in tensors]
        moved, nothing = frozen(np.sum(parts, axis=0)), frozen(np.zeros(self.lowering.tiles, np.int64))
        return Exchange(
            name=name,
            sent_bytes=moved if leaving else nothing,
            received_bytes=nothing if leaving else moved,
            fragments=frozen(moved > 0),
        )


def _variables(tensors: Iterable[Tensor]) -> list[int]:
    return [name for tensor in tensors for name in tensor.variables]
