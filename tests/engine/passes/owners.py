"""Runs a pipeline with micro-batch numbers instead of values: does every pass read what belongs to it?"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

from workbench.engine.pipeline_schedule import stash_depth
from workbench.engine.program import Call, Overlap, Program, Repeat, Step, TileProgram, children


class Owners:
    """Runs a program with, instead of numbers, the micro-batch each variable holds the value of."""

    def __init__(self, program: TileProgram) -> None:
        self.program = program
        self.always = {v.id for v in program.variables if v.always_live}
        self.of: dict[int, int] = {}
        self.slots: dict[int, deque[int | None]] = defaultdict(deque)
        self.depths = {
            stash: self.depth(step.stage, program.variables[stash].name)
            for body in program.functions.values()
            for step in self.steps(body)
            if step.name == "fifo/pop" and step.stage is not None
            for stash in step.reads
        }

    def depth(self, stage: int, name: str) -> int:
        """Of the FIFOs of a stage; of what passes to a later stage on its IPU, the stages between."""
        said = self.program.pipeline
        if name.endswith("/pass"):
            devices = [int(each) for each in str(said["device_mapping"]).split(",")]
            return devices.index(devices[stage], stage + 1) - stage - 1
        return stash_depth(str(said["schedule"]), int(said["stages"]), stage)

    def run(self, node: Program, repetition: int = 0) -> None:
        if isinstance(node, Call):
            self.call(node, repetition)
        elif isinstance(node, Repeat):
            for number in range(node.times):
                self.run(node.body, repetition + number)
        elif isinstance(node, Overlap) and "update" in node.name:
            return
        else:
            for child in children(node):
                self.run(child, repetition)

    def call(self, node: Call, repetition: int) -> None:
        steps = list(self.steps(self.program.functions[node.function]))
        if node.function.endswith(("_fifo", "_fifo_back", "_fifo_drained")):
            self.turn(steps, drained=node.function.endswith("_drained"))
            return
        if "_to_stage" in node.function:
            self.cross(steps)
            return
        assert node.micro_batch is not None
        number = node.micro_batch + repetition
        written: set[int] = set()
        for step in steps:
            for name in set(step.reads) - written - self.always:
                if self.program.variables[name].kind != "constant":
                    held = self.of.get(name)
                    assert held == number, f"{node.function} of {number} reads {name} of {held}: {step.name}"
            written.update(step.writes)
        self.of.update(dict.fromkeys(written, number))

    def steps(self, node: Program) -> Iterator[Step]:
        if isinstance(node, Call):
            yield from self.steps(self.program.functions[node.function])
        elif isinstance(node, Step):
            yield node
        else:
            for child in children(node):
                yield from self.steps(child)

    def cross(self, steps: list[Step]) -> None:
        for step in steps:
            for source, destination in zip(step.reads, step.writes, strict=True):
                self.of[destination] = self.of.get(source, -1)

    def turn(self, steps: list[Step], *, drained: bool) -> None:
        """Turn the FIFOs of a stage; a drained one goes on with slots that hold the value of no micro-batch."""
        for step in steps:
            if step.name == "fifo/pop":
                for stash, left in zip(step.reads, step.writes, strict=True):
                    slots = self.slots[stash]
                    self.of[left] = slots.popleft() if len(slots) == self.depths[stash] else -1  # type: ignore[assignment]
                    if drained:
                        slots.append(-1)
            elif step.name == "fifo/push":
                for current, stash in zip(step.reads[: len(step.writes)], step.writes, strict=True):
                    self.slots[stash].append(self.of.get(current, -1))
            else:
                for current, left in zip(step.reads, step.writes, strict=True):
                    self.of[left] = self.of.get(current, -1)
