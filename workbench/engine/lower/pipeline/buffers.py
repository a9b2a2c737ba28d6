"""Where the values of a pipeline are: parameters on their IPU, arrivals from other stages, FIFOs in between."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from workbench.base.categories import VariableKind
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import RESIDENT_ROLES, Input, Node, Value
from workbench.engine.graph.origin import Origin
from workbench.engine.graph.stages import stage_name
from workbench.engine.lower.pipeline.fifos import is_offloaded, settle
from workbench.engine.lower.pipeline.stages import Arrival, Fifo, Stage
from workbench.engine.lower.roles import KIND_OF_ROLE
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.pipeline_schedule import stash_depth


@dataclass(slots=True)
class Buffers:
    """The tensors that live across the calls of a pipeline."""

    lowering: Lowering
    schedule: str
    stages: list[Stage]
    inputs: dict[Value, Input]  # entry parameter → what it is
    placed: dict[tuple[Value, str], Tensor] = field(default_factory=dict)
    made: dict[Value, tuple[int, Tensor]] = field(default_factory=dict)  # entry value → (stage, tensor)
    by_name: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    arguments: list[tuple[Value, Tensor]] = field(default_factory=list)  # of the whole run, to be loaded before it

    def stamped(self, stage: Stage, origin: Origin) -> AbstractContextManager[None]:
        """What is made inside belongs to the stage, not to the body being lowered."""
        return self.lowering.emit.inside(ipu=stage.ipu, stage=stage.number, function="", origin=origin)

    def is_data(self, value: Value) -> bool:
        """Whether the host delivers a value for every micro-batch."""
        return self._from_host(value) and not self.is_argument(value)

    def is_argument(self, value: Value) -> bool:
        """Whether the host delivers a value once, for all micro-batches."""
        return self._from_host(value) and self.inputs[value].role == "argument"

    def _from_host(self, value: Value) -> bool:
        described = self.inputs.get(value)
        return described is not None and described.role not in RESIDENT_ROLES

    def place(self, stage: Stage, value: Value) -> tuple[Value, str]:
        """The key of an entry parameter: one of an IPU; data are of a stage, which has its own micro-batch."""
        return (value, f"stage {stage.number}" if self.is_data(value) else f"ipu {stage.ipu}")

    def operand(self, stage: Stage, value: Value, param: Value) -> Tensor:
        """The tensor on the stage's IPU that a call reads for an entry value."""
        if value in self.inputs:
            return self._param(stage, value, param)
        home, tensor = self.made[value]
        if home == stage.number or (self._is_constant(tensor) and self.stages[home].ipu == stage.ipu):
            return tensor
        return self._receive(stage, value, self.lowering.wish(param) or self.lowering.default_mapping(param))

    def _receive(self, stage: Stage, value: Value, mapping: Any) -> Tensor:
        """The buffer for a value made elsewhere; stages on its way hand it on a column later each."""
        if value in stage.received:
            return stage.received[value].buffer
        home, source = self.made[value]
        earlier = self._on_same_ipu(stage, home)
        if earlier is not None:
            return self._across(stage, earlier, value, mapping)
        neighbour = stage.number + (1 if home > stage.number else -1)
        relay = self.stages[neighbour]
        if neighbour != home:
            back = home > stage.number
            source = self.kept(relay, value, self._receive(relay, value, mapping), 0, "relay", back=back)
        if relay.ipu == stage.ipu:
            if self.schedule != "Grouped":  # nobody overwrites it before its readers have run
                return source
            mapping = source.mapping
        emit = self.lowering.emit
        held = emit.variables[source.variables[0]]
        kind: VariableKind = "gradient" if held.origin.direction == "backward" else "activation"
        with self.stamped(stage, held.origin):
            name = f"{stage_name(home)}/to_{stage_name(stage.number)}"
            buffer = emit.tensor(name, value.shape, value.dtype, mapping, kind)
        stage.received[value] = Arrival(buffer, neighbour, source)
        return buffer

    def _on_same_ipu(self, stage: Stage, home: int) -> Stage | None:
        """An earlier stage on the reader's IPU that has what passes through the stages between, on other IPUs.

        Forward values alone, and not under the Interleaved schedule. Source: graphcore/tensorflow@b2127bba tensorflow/
        compiler/plugin/poplar/driver/passes/pipeline_communication_optimizer.cc, tools/pipeline_util.cc
        (`FindPassthroughPipelinePaths`).
        """
        if self.schedule == "Interleaved":
            return None
        for number in range(stage.number - 1, home - 1, -1):
            if self.stages[number].ipu == stage.ipu:
                near = number == stage.number - 1
                if not near:
                    return self.stages[number]
                if self.schedule == "Grouped":
                    return None
        return None

    def _across(self, stage: Stage, earlier: Stage, value: Value, mapping: Any) -> Tensor:
        """What an earlier stage of the same IPU has, as many turns later as there are stages between."""
        if value in stage.across:
            return stage.across[value]
        home, made = self.made[value]
        held = made if home == earlier.number else self._receive(earlier, value, mapping)
        if self.schedule == "Grouped":
            held = self.kept(earlier, value, held, stage.number - earlier.number - 1, "pass")
        stage.across[value] = held
        return held

    def kept(self, stage: Stage, value: Value, current: Tensor, slots: int, name: str, *, back: bool = False) -> Tensor:
        """A FIFO behind a tensor; returns what leaves it. `back`: it turns with the backward pass."""
        emit = self.lowering.emit
        held = emit.variables[current.variables[0]]
        stash: int | None = None
        kind = held.kind if name == "relay" else "stash"
        with self.stamped(stage, held.origin):
            if slots:
                stash = emit.new(
                    f"{held.name}/{name}",
                    value.shape,
                    value.dtype,
                    current.mapping,
                    "stash",
                    copies=slots,
                    behind=True,
                )
                if is_offloaded(value.size_bytes, self.lowering.options):
                    settle(emit, stash)
            label = f"{held.name}/un{name}ed" if slots else f"{held.name}/{name}"
            left = emit.tensor(label, value.shape, value.dtype, current.mapping, kind, behind=True)
        (stage.fifos_back if back else stage.fifos).append(Fifo(current, left, stash))
        return left

    def _param(self, stage: Stage, value: Value, param: Value) -> Tensor:
        key = self.place(stage, value)
        if key in self.placed:
            return self.placed[key]
        described = self.inputs[value]
        resident = described.role in RESIDENT_ROLES
        owner = self.by_name.get((described.of, stage.ipu)) if described.role == "accumulator" else None
        mapping = self.lowering.wish(param) if owner is None else owner.mapping
        with self.stamped(stage, Origin(layer=described.layer)):
            tensor = self.lowering.emit.tensor(
                described.name,
                value.shape,
                value.dtype,
                mapping or self.lowering.default_mapping(param),
                KIND_OF_ROLE[described.role],
                always_live=resident,
            )
        self.placed[key] = tensor
        if self.is_argument(value) and value.elements:
            self.arguments.append((value, tensor))
        self.by_name[described.name, stage.ipu] = tensor
        return tensor

    def stash(self, stage: Stage, reader: Node) -> None:
        """Keep what a later pass over a micro-batch reads while later ones go forward.

        A buffer that a neighbour fills is overwritten at the end of the column, so under the Grouped schedule it is
        kept even by the last stage, whose backward pass is a column later.
        """
        slots = stash_depth(self.schedule, len(self.stages), stage.number)
        params = self.lowering.graph.functions[reader.calls[0]].params
        for value, param in zip(reader.operands, params, strict=True):
            if value in self.made:
                tensor = self.operand(stage, value, param)
            elif self.is_data(value) and self.place(stage, value) in self.placed:
                tensor = self.placed[self.place(stage, value)]
            else:
                continue
            arriving = [*(arrival.buffer for arrival in stage.received.values()), *stage.across.values()]
            arrived = any(buffer.variables == tensor.variables for buffer in arriving)
            waits = slots > 0 or (arrived and self.schedule == "Grouped")
            if not waits or tensor.variables in stage.stashed or self._is_constant(tensor):
                continue
            stage.stashed[tensor.variables] = self.kept(stage, value, tensor, slots, "stash")

    def _is_constant(self, tensor: Tensor) -> bool:
        return self.lowering.emit.variables[tensor.variables[0]].always_live
