"""Pipeline: stages that were traced apart become bodies on their IPUs, run column by column over the micro-batches.

Residuals of a stage wait in FIFOs for its backward pass; activations and their gradients cross to the neighbouring
stage at the end of each column. In a column an IPU runs its backward passes first, then its forward passes, then turns
its FIFOs, then computes again what the backward passes of the next column need: a residual that was made at one turn
leaves a FIFO of depth d at the end of the d-th turn after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from workbench.engine.graph import Function, Node, Value
from workbench.engine.graph.execution import execution_of
from workbench.engine.graph.flow import carried
from workbench.engine.graph.stages import stage_calls
from workbench.engine.lower.driver import Driver
from workbench.engine.lower.in_place import flat_nodes
from workbench.engine.lower.layout import Wishes, hand_across
from workbench.engine.lower.pipeline.buffers import Buffers
from workbench.engine.lower.pipeline.columns import Columns, call_of
from workbench.engine.lower.pipeline.reuse import compute_again, forward_pass, own_inputs
from workbench.engine.lower.pipeline.stages import Stage, check_one_place, emitted, stages_of
from workbench.engine.lower.replay.bodies import StageBodies
from workbench.engine.lower.synthetic import left_out
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops.host import in_packets
from workbench.engine.pipeline_schedule import check_count, stretches
from workbench.engine.program import Call, Overlap, Program, Repeat
from workbench.engine.program import Sequence as ProgramSequence


def lower_pipeline(
    lowering: Driver, schedule: str, bodies: StageBodies, devices: Sequence[int] = ()
) -> dict[str, int | str]:
    """Lower a staged entry; returns what the program says of its pipeline. `devices` is the IPU of each stage."""
    return _PipelineLowering(lowering, schedule, bodies, devices).run()


class _PipelineLowering:
    def __init__(self, lowering: Driver, schedule: str, bodies: StageBodies, devices: Sequence[int]) -> None:
        self.lowering = lowering
        self.bodies = bodies
        self.emit = lowering.emit
        self.graph = lowering.graph
        self.execution = execution_of(lowering.graph)
        self.stages = stages_of(stage_calls(self.graph), devices)
        self.schedule = schedule if len(self.stages) > 1 else "Sequential"
        self.devices = tuple(stage.ipu for stage in self.stages)
        self.count = max(stage.forward.times for stage in self.stages)
        self.training = self.stages[0].backward is not None
        self.carries = carried(self.graph)
        described = zip(self.graph.body.params, self.graph.inputs, strict=True)
        self.buffers = Buffers(lowering, schedule, self.stages, dict(described))

    def run(self) -> dict[str, int | str]:
        overlapped = bool(self.lowering.options.get("io_tiles.place_ops_on_io_tiles"))
        check_count(
            schedule=self.schedule,
            stages=len(self.stages),
            count=self.count,
            training=self.training,
            devices=self.devices,
            overlapped_io=overlapped,
        )
        check_one_place(self.graph, self.stages)
        first = self.stages[0]
        if first.before is not None:
            self._body(first, first.before, {})
        for stage in self.stages:
            self._forward(stage)
        for stage in reversed(self.stages):
            self._backward(stage)
        for stage in self.stages:
            self._update(stage)
        if first.after is not None:
            self._body(first, first.after, {})
        again = [stage.number for stage in self.stages if stage.recompute is not None]
        columns = Columns(self.lowering, self.schedule, self.stages, self.count)
        plan = stretches(
            self.schedule,
            len(self.stages),
            self.count,
            training=self.training,
            devices=self.devices,
            recomputed=again,
            overlapped_io=overlapped,
        )
        self._load_arguments()
        self._beside(first.before)
        with self.emit.body() as collected:
            for stretch in plan:
                columns.stretch(stretch)
            columns.side_by_side("update", self._updates())
        self._repeated(collected)
        self._beside(first.after)
        said: dict[str, int | str] = {
            "schedule": self.schedule,
            "stages": len(self.stages),
            "micro_batches": self.count,
        }
        if self.execution.updates > 1:
            said["updates"] = self.execution.updates
        if self.devices != tuple(range(len(self.stages))):
            said["device_mapping"] = ", ".join(map(str, self.devices))
        if again:
            said["recomputed_stages"] = ", ".join(map(str, again))
        return said

    def _repeated(self, collected: list[Program]) -> None:
        """All micro-batches and the update of their sums, as often as an execution has updates."""
        times = self.execution.updates
        if times > 1:
            body = ProgramSequence(children=tuple(collected), name="update")
            self.emit.add(Repeat(times=times, body=body, name="updates"))
            return
        for program in collected:
            self.emit.add(program)

    def _load_arguments(self) -> None:
        """Copy what the host gives a whole run, once, to each IPU that reads it."""
        arriving = [] if self._left_out("to_device") else self.buffers.arguments
        loads: list[Program] = []
        for ipu in dict.fromkeys(tensor.ipu for _, tensor in arriving):
            name = f"ipu{ipu}_arguments"
            with self.emit.inside(ipu=ipu, function=name), self.emit.body() as collected:
                self.emit.sync("external")
                for value, tensor in arriving:
                    if tensor.ipu == ipu:
                        self.emit.stream(f"{self.buffers.inputs[value].name}/from_host", tensor, "to_device")
            self.emit.functions[name] = ProgramSequence(children=tuple(collected), name=name)
            loads.append(Call(function=name, name=name, ipu=ipu))
        if loads:
            self.emit.add(loads[0] if len(loads) == 1 else Overlap(branches=tuple(loads), name="arguments"))

    def _beside(self, node: Node | None) -> None:
        """What runs once around the micro-batches is work of the first stage's IPU, of no stage."""
        if node is not None:
            self.emit.add(Call(function=node.calls[0], name=node.calls[0], ipu=self.stages[0].ipu))

    def _updates(self) -> list[Program]:
        """The weight updates, those of one IPU behind each other."""
        calls: dict[int, list[Program]] = {}
        for stage in self.stages:
            if stage.update is not None:
                calls.setdefault(stage.ipu, []).append(call_of(stage, stage.update))
        several = (ProgramSequence(children=tuple(found), name=f"ipu {ipu}") for ipu, found in calls.items())
        return [body.children[0] if len(body.children) == 1 else body for body in several]

    # -- bodies ------------------------------------------------------------------------------------------

    def _body(self, stage: Stage, node: Node, stashed: dict[tuple[int, ...], Tensor]) -> None:
        """Lower the function a call names, with its operands where they are on this IPU.

        Data arrives from the host with the first call that reads it. `stashed` is read instead of what waited.
        """
        function, buffers = self.graph.functions[node.calls[0]], self.buffers
        with emitted(self.emit, stage, function.name):
            for value, param in zip(node.operands, function.params, strict=True):
                new = buffers.place(stage, value) not in buffers.placed
                tensor = buffers.operand(stage, value, param)
                left = stashed.get(tensor.variables)
                self.lowering.bind(param, replace(tensor, variables=left.variables) if left else tensor)
                if new and buffers.is_data(value) and value.elements and not self._left_out("to_device"):
                    self._arrive(value, tensor)
            before = self._before(function)
            self._hand_wishes(function)
            self._set_destinations(function)
            self.bodies.lower(self.lowering, function)
            self._write_back(function)
            self._send_out(node, function)
        carries = self.carries.get(function.name, {})
        for number, (value, result) in enumerate(zip(node.results, function.results, strict=True)):
            held = function.params[carries[number]] if number in carries else result
            tensor = before.get(number) or self.lowering.get(held)
            buffers.made[value] = (stage.number, tensor)

    def _twice(self, stage: Stage) -> None:
        """Lower a body that computing again runs too, then the forward pass: that body with copies around it."""
        lowering, function = self.lowering, self.graph.functions[stage.forward.calls[0]]
        carries = self.carries.get(function.name, {})
        with emitted(self.emit, stage, function.name):
            real, arriving = own_inputs(lowering, self.buffers, stage, set(carries.values()))
            self._hand_wishes(function)
            self._set_destinations(function)
            self.bodies.lower(lowering, function)
        with emitted(self.emit, stage, stage.program(stage.forward)):
            for value, tensor in () if self._left_out("to_device") else arriving:
                self._arrive(value, tensor)
            forward_pass(lowering, self.buffers, stage, real, carries)
            self._send_out(stage.forward, function)

    def _before(self, function: Function) -> dict[int, Tensor]:
        """Result number → a copy of a parameter that is returned as it was, though the body overwrites it."""
        carries = self.carries.get(function.name, {})
        overwritten = {function.params[param] for param in carries.values()}
        copies: dict[int, Tensor] = {}
        for number, value in enumerate(function.results):
            if number not in carries and value in overwritten and value.elements:
                old = self.lowering.get(value)
                name = f"{self.emit.variables[old.variables[0]].name}/before"
                copies[number] = self.emit.tensor(name, value.shape, value.dtype, old.mapping, "activation")
                self.emit.move_into(name, old, copies[number])
        return copies

    def _hand_wishes(self, function: Function) -> None:
        """A gradient wants to be where its accumulator is."""
        accumulators = {
            function.results[result]: function.params[param]
            for result, param in self.carries.get(function.name, {}).items()
        }
        for node in function.nodes:
            for value in node.results:
                target = accumulators.get(value)
                if target is None:
                    continue
                mapping = self.lowering.get(target).mapping
                for operand in node.operands:
                    if operand.shape == target.shape and operand is not target:
                        self.lowering.wishes[operand] = mapping  # type: ignore[index]

    def _set_destinations(self, function: Function) -> None:
        """What is made last from nothing (accumulators set back to zero) is made where it belongs."""
        made_last = {value for node in function.nodes if node.op == "broadcast_in_dim" for value in node.results}
        for result, param in self.carries.get(function.name, {}).items():
            value = function.results[result]
            if value in made_last:
                self.lowering.destinations[value] = self.lowering.get(function.params[param])

    def _write_back(self, function: Function) -> None:
        for result, param in self.carries.get(function.name, {}).items():
            new, old = self.lowering.get(function.results[result]), self.lowering.get(function.params[param])
            if new.variables != old.variables:
                self.emit.move_into(f"{function.name}/write_back", new, old)

    def _send_out(self, node: Node, function: Function) -> None:
        """Losses, metrics and outputs leave for the host with each micro-batch."""
        leaving = {
            value: output.name
            for output, value in zip(self.graph.outputs, self.graph.body.results, strict=True)
            if output.updates is None
        }
        for value, result in zip(node.results, function.results, strict=True):
            if value in leaving and value.elements and not self._left_out("to_host"):
                self._leave(leaving[value], self.lowering.get(result))

    def _arrive(self, value: Value, tensor: Tensor) -> None:
        """Copy data of a micro-batch from the host's queue."""
        name, queue = self.buffers.inputs[value].name, self.execution.infeed
        packed = in_packets(f"{name}/packets", tensor, self.lowering) if queue.in_packets else tensor
        self.emit.stream(f"{name}/from_host", packed, "to_device", ahead=queue.depth)
        if packed is not tensor:
            self.emit.move_into(f"{name}/packets", packed, tensor)

    def _leave(self, name: str, tensor: Tensor) -> None:
        """Copy a result of a micro-batch to the host's queue."""
        queue = self.execution.outfeed
        packed = in_packets(f"{name}/packets", tensor, self.lowering) if queue.in_packets else tensor
        if packed is not tensor:
            self.emit.move_into(f"{name}/packets", tensor, packed)
        self.emit.stream(f"{name}/to_host", packed, "to_host", ahead=queue.depth)

    def _left_out(self, direction: Literal["to_device", "to_host"]) -> bool:
        return left_out(self.graph, self.lowering.options, direction)

    def _forward(self, stage: Stage) -> None:
        if stage.reuses:
            self._twice(stage)
        else:
            self._body(stage, stage.forward, {})
        for reader in (stage.recompute, stage.backward):
            if reader is not None:
                self.buffers.stash(stage, reader)

    def _backward(self, stage: Stage) -> None:
        for node in (stage.recompute, stage.backward):
            if node is stage.recompute and stage.reuses:
                compute_again(self.lowering, self.buffers, stage)
            elif node is not None:
                self._body(stage, node, stage.stashed)

    def _update(self, stage: Stage) -> None:
        """Optimizer slots that nothing has placed yet come to lie as the weights and sums they meet."""
        if stage.update is None:
            return
        function = self.graph.functions[stage.update.calls[0]]
        wishes: Wishes = self.lowering.wishes  # type: ignore[assignment]
        for value, param in zip(stage.update.operands, function.params, strict=True):
            home, made = self.buffers.made.get(value, (-1, None))  # sums of gradients; LAMB's slots meet no weights
            placed = made if home == stage.number else self.buffers.placed.get(self.buffers.place(stage, value))
            if placed is not None:
                wishes[param] = placed.mapping
        for node in flat_nodes(self.graph, function):
            hand_across(node, wishes)
        self._body(stage, stage.update, {})
