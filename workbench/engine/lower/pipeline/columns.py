"""The columns of a pipeline as a program: calls side by side, then FIFOs, then what crosses to other stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.base.arrays import frozen
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.graph.origin import Origin
from workbench.engine.graph.stages import body_name, direction_of, stage_name
from workbench.engine.lower.pipeline.fifos import Fifos, bytes_of, variables_of
from workbench.engine.lower.pipeline.stages import Stage, emitted
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.pipeline_schedule import Column, StageWork, Stretch
from workbench.engine.program import Call, Exchange, GlobalExchange, Overlap, Program, Repeat
from workbench.engine.program import Sequence as ProgramSequence


def call_of(stage: Stage, node: Node | None, micro_batch: int | None = None) -> Program:
    """The call of one of a stage's bodies."""
    if node is None:
        return ProgramSequence(children=())
    return Call(
        function=stage.program(node),
        name=stage.label(node),
        ipu=stage.ipu,
        stage=stage.number,
        direction=direction_of(node),
        micro_batch=micro_batch,
    )


class Columns:
    """Emits columns; `count` is the number of micro-batches."""

    def __init__(self, lowering: Lowering, schedule: str, stages: list[Stage], count: int) -> None:
        self.lowering = lowering
        self.emit = lowering.emit
        self.stages = stages
        self.fifos = Fifos(lowering.emit, schedule, stages, count)

    # -- columns -----------------------------------------------------------------------------------------

    def stretch(self, stretch: Stretch) -> None:
        """Emit columns; a stretch in which several micro-batches enter each time is written out, because a loop
        counts them one by one."""
        times, rounds = (stretch.times, 1) if stretch.stride == 1 else (1, stretch.times)
        with self.emit.body() as collected:
            for number in range(rounds):
                for column in stretch.columns:
                    self._column(column, number * stretch.stride)
        body = ProgramSequence(children=tuple(collected), name=stretch.columns[0].phase)
        self.emit.add(body if times == 1 else Repeat(times=times, body=body, name="columns"))

    def side_by_side(self, name: str, branches: Sequence[Program], phase: Any = "steady") -> None:
        """Branches on different IPUs at the same time."""
        if branches:
            self.emit.add(Overlap(branches=tuple(branches), name=name, phase=phase))

    def _column(self, column: Column, later: int) -> None:
        turns = self.fifos.turns(column, later)
        cells = [self._cell(ipu, work, turns.get(ipu, []), later) for ipu, work in enumerate(column.work)]
        ran = [item for cell in column.work for item in cell]
        branches = [cell for cell in cells if cell.children]
        self.side_by_side(" ".join(map(str, ran)) or "FIFOs", branches, column.phase)
        self._cross(ran, column.phase, later)

    def _cell(self, ipu: int, work: tuple[StageWork, ...], turns: Sequence[Program], later: int) -> ProgramSequence:
        def calls(again: bool) -> list[Program]:
            chosen = [item for item in work if (item.direction == "recompute") == again]
            return [
                call_of(stage, stage.call(item.direction), item.micro_batch + later)
                for item in chosen
                for stage in (self.stages[item.stage],)
            ]

        here = [self._handing_on(item) for item in work]
        parts = [
            *calls(False),
            *turns,
            *(step for steps in here for step in steps),
            *calls(True),
        ]
        stages = list(dict.fromkeys(item.stage for item in work)) or [ipu]
        return ProgramSequence(children=tuple(parts), name=" ".join(f"stage {number}" for number in stages))

    # -- what crosses ------------------------------------------------------------------------------------

    def _moved(self, item: StageWork) -> tuple[Stage | None, list[tuple[Tensor, Tensor]]]:
        """The neighbour a pass hands its results to, and what it hands on: pairs of tensor and buffer."""
        number = item.stage + {"forward": 1, "backward": -1, "recompute": len(self.stages)}[item.direction]
        if not 0 <= number < len(self.stages):
            return None, []
        arrivals = self.stages[number].received.values()
        return self.stages[number], [(a.source, a.buffer) for a in arrivals if a.neighbour == item.stage]

    @staticmethod
    def _crossing_name(source: Stage, destination: Stage) -> str:
        return f"{stage_name(source.number)}/to_{stage_name(destination.number)}"

    def _handing_on(self, item: StageWork) -> list[Program]:
        """To a stage on the same IPU: copies inside its tiles."""
        source, (destination, moved) = self.stages[item.stage], self._moved(item)
        if destination is None or destination.ipu != source.ipu or not moved:
            return []
        name = body_name(source.number, f"to_{stage_name(destination.number)}")
        if name not in self.emit.functions:
            with emitted(self.emit, source, name, empty=False):
                groups = self.emit.copy_groups(bytes_of(self.emit, [tensor for tensor, _ in moved]))
                reads, writes = variables_of(tensor for tensor, _ in moved), variables_of(buffer for _, buffer in moved)
                with self.emit.inside(origin=Origin(direction=item.direction)):
                    self.emit.compute(self._crossing_name(source, destination), groups, reads, writes)
        return [Call(function=name, ipu=source.ipu)]

    def _cross(self, ran: Sequence[StageWork], phase: Any, later: int) -> None:
        """Send what this column made to the neighbours; pairs of IPUs that share none cross at the same time."""
        for step in ("forward", "backward"):
            for parity in (0, 1):
                waiting = [
                    crossing
                    for item in ran
                    if item.direction == step and item.stage % 2 == parity
                    for crossing in self._crossing(item, later)
                ]
                while waiting:
                    together = _apart(waiting)
                    waiting = [crossing for crossing in waiting if crossing not in together]
                    self.side_by_side("between IPUs", [call for _, call in together], phase)

    def _crossing(self, item: StageWork, later: int) -> list[tuple[frozenset[int], Call]]:
        """The call that copies to a stage on another IPU, with both IPUs."""
        source, (destination, moved) = self.stages[item.stage], self._moved(item)
        if destination is None or destination.ipu == source.ipu or not moved:
            return []
        name = body_name(source.number, f"to_{stage_name(destination.number)}")
        if name not in self.emit.functions:
            with emitted(self.emit, source, name, empty=False):
                self.emit.add(self._link(item, destination, moved))
        micro_batch = item.micro_batch + later
        call = Call(function=name, stage=source.number, direction=item.direction, micro_batch=micro_batch)
        return [(frozenset((source.ipu, destination.ipu)), call)]

    def _link(self, item: StageWork, destination: Stage, moved: Sequence[tuple[Tensor, Tensor]]) -> GlobalExchange:
        source = self.stages[item.stage]
        self.emit.next_step += 1
        sources, buffers = [tensor for tensor, _ in moved], [buffer for _, buffer in moved]
        return GlobalExchange(
            id=self.emit.next_step - 1,
            name=self._crossing_name(source, destination),
            ipu=source.ipu,
            to_ipu=destination.ipu,
            origin=Origin(direction=item.direction),
            stage=source.number,
            reads=tuple(variables_of(sources)),
            writes=tuple(variables_of(buffers)),
            size_bytes=sum(tensor.elements * tensor.itemsize_bytes for tensor in sources),
            sent=self._end(f"{stage_name(source.number)}/sent", sources, leaving=True),
            received=self._end(f"{stage_name(destination.number)}/received", buffers, leaving=False),
        )

    def _end(self, name: str, tensors: list[Tensor], *, leaving: bool) -> Exchange:
        """What the tiles of one end of a copy between IPUs send or receive."""
        moved, nothing = bytes_of(self.emit, tensors), frozen(np.zeros(self.lowering.tiles, np.int64))
        return Exchange(
            name=name,
            sent_bytes=moved if leaving else nothing,
            received_bytes=nothing if leaving else moved,
            fragments=frozen(moved > 0),
        )


def _apart(crossings: Sequence[tuple[frozenset[int], Call]]) -> list[tuple[frozenset[int], Call]]:
    """The first crossings that share no IPU."""
    busy: set[int] = set()
    found = []
    for crossing in crossings:
        if busy.isdisjoint(crossing[0]):
            busy.update(crossing[0])
            found.append(crossing)
    return found
