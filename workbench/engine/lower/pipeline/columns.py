"""The columns of a pipeline as a program: calls side by side, then FIFOs, then what crosses to other stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from workbench.base.arrays import frozen
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.graph.origin import Origin
from workbench.engine.graph.stages import body_name, direction_of, stage_name
from workbench.engine.lower.pipeline.offload_fifos import turn
from workbench.engine.lower.pipeline.stages import Fifo, Stage
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.pipeline_schedule import Column, Stretch, Work, stash_depth
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
        self.schedule = schedule
        self.stages = stages
        self.count = count
        for stage in stages:
            self._fifo(stage, back=False)
            self._fifo(stage, back=True)
            self._drained_fifo(stage)

    # -- FIFOs -------------------------------------------------------------------------------------------

    @staticmethod
    def _fifo_name(stage: Stage, back: bool) -> str:
        return body_name(stage.number, "fifo_back" if back else "fifo")

    @contextmanager
    def _body(self, stage: Stage, name: str) -> Iterator[None]:
        """What is emitted inside becomes a function on the stage's IPU; none when it is nothing."""
        emit = self.emit
        before = (emit.ipu, emit.stage, emit.function)
        emit.ipu, emit.stage, emit.function = stage.ipu, stage.number, name
        try:
            with emit.body() as collected:
                yield
        finally:
            emit.ipu, emit.stage, emit.function = before
        if collected:
            emit.functions[name] = ProgramSequence(children=tuple(collected), name=name)

    @contextmanager
    def _stamped(self, fifos: Sequence[Fifo], *, back: bool) -> Iterator[None]:
        """What turns FIFOs belongs to the direction they turn with, and to the layer that made all that is in them."""
        emit, before = self.emit, self.emit.origin
        held = [emit.variables[number].origin.layer for number in _variables(fifo.current for fifo in fifos)]
        emit.origin = Origin(layer=_common(held), direction="backward" if back else "forward")
        try:
            yield
        finally:
            emit.origin = before

    def _fifo(self, stage: Stage, back: bool) -> None:
        """What turns a stage's FIFOs: the oldest slot leaves, the newest value takes its place."""
        fifos = stage.fifos_back if back else stage.fifos
        with self._body(stage, self._fifo_name(stage, back)), self._stamped(fifos, back=back):
            turn(self.emit, [fifo for fifo in fifos if fifo.stash in self.emit.settled])
            deep = [fifo for fifo in fifos if fifo.stash is not None and fifo.stash not in self.emit.settled]
            flat = [fifo for fifo in fifos if fifo.stash is None]
            stashes = [fifo.stash for fifo in deep if fifo.stash is not None]
            self._copy("fifo/pop", deep, stashes, _variables(fifo.left for fifo in deep))
            self._copy("fifo/push", deep, [*_variables(fifo.current for fifo in deep), *stashes], stashes)
            current, left = _variables(fifo.current for fifo in flat), _variables(fifo.left for fifo in flat)
            self._copy("fifo/keep", flat, current, left)

    @staticmethod
    def _drained_name(stage: Stage) -> str:
        return body_name(stage.number, "fifo_drained")

    def _drained_fifo(self, stage: Stage) -> None:
        """What turns them behind the last micro-batch: nothing new comes, so what last came need not be kept for it."""
        if any(fifo.stash is None or fifo.stash in self.emit.settled for fifo in stage.fifos):
            return
        stashes = [fifo.stash for fifo in stage.fifos if fifo.stash is not None]
        with self._body(stage, self._drained_name(stage)), self._stamped(stage.fifos, back=False):
            self._copy("fifo/pop", stage.fifos, stashes, _variables(fifo.left for fifo in stage.fifos))

    def _copy(self, name: str, fifos: Sequence[Fifo], reads: Sequence[int], writes: Sequence[int]) -> None:
        if fifos:
            self.emit.compute(name, self.emit.copy_groups(self._bytes([f.current for f in fifos])), reads, writes)

    def _bytes(self, tensors: Sequence[Tensor]) -> Any:
        parts = [t.mapping.bytes_per_tile(t.itemsize_bytes, self.lowering.tiles) for t in tensors]
        return frozen(np.sum(parts, axis=0))

    def _turns(self, column: Column, ipu: int, later: int) -> list[Program]:
        """FIFOs whose turn it is, of the last element first, as long as something in them is wanted.

        A turn belongs to the micro-batch that enters; behind the last one, to the one that leaves.
        """
        found: list[tuple[int, Program]] = []
        for element, micro_batch in column.turns:
            back = element >= len(self.stages)
            stage = self.stages[2 * len(self.stages) - 1 - element if back else element]
            held = 0 if back else stash_depth(self.schedule, len(self.stages), stage.number)
            wanted = 0 <= micro_batch < self.count + held
            drained = self._drained_name(stage)
            late = micro_batch >= self.count and drained in self.emit.functions
            name = drained if late else self._fifo_name(stage, back)
            if stage.ipu == ipu and wanted and name in self.emit.functions:
                moved = micro_batch + later if micro_batch < self.count else micro_batch - held
                found.append((element, Call(function=name, ipu=ipu, stage=stage.number, micro_batch=moved)))
        return [turn for _, turn in sorted(found, key=lambda item: -item[0])]

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
        cells = [self._cell(column, ipu, work, later) for ipu, work in enumerate(column.work)]
        ran = [item for cell in column.work for item in cell]
        branches = [cell for cell in cells if cell.children]
        self.side_by_side(" ".join(map(str, ran)) or "FIFOs", branches, column.phase)
        self._cross(ran, column.phase, later)

    def _cell(self, column: Column, ipu: int, work: tuple[Work, ...], later: int) -> ProgramSequence:
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
            *self._turns(column, ipu, later),
            *(step for steps in here for step in steps),
            *calls(True),
        ]
        stages = list(dict.fromkeys(item.stage for item in work)) or [ipu]
        return ProgramSequence(children=tuple(parts), name=" ".join(f"stage {number}" for number in stages))

    # -- what crosses ------------------------------------------------------------------------------------

    def _moved(self, item: Work) -> tuple[Stage | None, list[tuple[Tensor, Tensor]]]:
        """The neighbour a pass hands its results to, and what it hands on: pairs of tensor and buffer."""
        number = item.stage + {"forward": 1, "backward": -1, "recompute": len(self.stages)}[item.direction]
        if not 0 <= number < len(self.stages):
            return None, []
        arrivals = self.stages[number].received.values()
        return self.stages[number], [(a.source, a.buffer) for a in arrivals if a.neighbour == item.stage]

    def _handing_on(self, item: Work) -> list[Program]:
        """To a stage on the same IPU: copies inside its tiles."""
        source, (destination, moved) = self.stages[item.stage], self._moved(item)
        if destination is None or destination.ipu != source.ipu or not moved:
            return []
        name = body_name(source.number, f"to_{stage_name(destination.number)}")
        if name not in self.emit.functions:
            with self._body(source, name):
                groups = self.emit.copy_groups(self._bytes([tensor for tensor, _ in moved]))
                reads, writes = _variables(tensor for tensor, _ in moved), _variables(buffer for _, buffer in moved)
                before, self.emit.origin = self.emit.origin, Origin(direction=item.direction)
                self.emit.compute(name.replace("_to", "/to"), groups, reads, writes)
                self.emit.origin = before
        return [Call(function=name, ipu=source.ipu)]

    def _cross(self, ran: Sequence[Work], phase: Any, later: int) -> None:
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

    def _crossing(self, item: Work, later: int) -> list[tuple[frozenset[int], Call]]:
        """The call that copies to a stage on another IPU, with both IPUs."""
        source, (destination, moved) = self.stages[item.stage], self._moved(item)
        if destination is None or destination.ipu == source.ipu or not moved:
            return []
        name = body_name(source.number, f"to_{stage_name(destination.number)}")
        if name not in self.emit.functions:
            with self._body(source, name):
                self.emit.add(self._link(item, destination, moved))
        micro_batch = item.micro_batch + later
        call = Call(function=name, stage=source.number, direction=item.direction, micro_batch=micro_batch)
        return [(frozenset((source.ipu, destination.ipu)), call)]

    def _link(self, item: Work, destination: Stage, moved: Sequence[tuple[Tensor, Tensor]]) -> GlobalExchange:
        source = self.stages[item.stage]
        self.emit.next_step += 1
        name, other = stage_name(source.number), stage_name(destination.number)
        sources, buffers = [tensor for tensor, _ in moved], [buffer for _, buffer in moved]
        return GlobalExchange(
            id=self.emit.next_step - 1,
            name=f"{name}/to_{other}",
            ipu=source.ipu,
            to_ipu=destination.ipu,
            origin=Origin(direction=item.direction),
            stage=source.number,
            reads=tuple(_variables(sources)),
            writes=tuple(_variables(buffers)),
            size_bytes=sum(tensor.elements * tensor.itemsize_bytes for tensor in sources),
            sent=self._end(f"{name}/sent", sources, leaving=True),
            received=self._end(f"{other}/received", buffers, leaving=False),
        )

    def _end(self, name: str, tensors: list[Tensor], *, leaving: bool) -> Exchange:
        """What the tiles of one end of a copy between IPUs send or receive."""
        moved, nothing = self._bytes(tensors), frozen(np.zeros(self.lowering.tiles, np.int64))
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


def _variables(tensors: Iterable[Tensor]) -> list[int]:
    return [name for tensor in tensors for name in tensor.variables]


def _common(layers: Sequence[str]) -> str:
    """The innermost layer that all of these are or are in; "" when there is none."""
    paths = [layer.split("/") for layer in layers]
    shared = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "/".join(shared)
