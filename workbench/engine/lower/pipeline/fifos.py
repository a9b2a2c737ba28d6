"""FIFOs: what waits for a later pass of a stage, and what turns it.

Its slots are on the chip, or in streaming memory as rows of a remote buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from workbench.base.arrays import IntArray, frozen
from workbench.engine.emit import Emitter
from workbench.engine.emit.links import remote_copy
from workbench.engine.graph.origin import Origin
from workbench.engine.graph.stages import body_name
from workbench.engine.lower.pipeline.stages import Fifo, Stage, emitted
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.options import Options
from workbench.engine.pipeline_schedule import Column, stash_depth
from workbench.engine.program import Call, Program
from workbench.engine.program.remote_buffers import RemoteBuffer


def is_offloaded(size_bytes: int, options: Options) -> bool:
    """Whether a value of so many bytes waits in streaming memory."""
    least_bytes = int(options.get("optimizations.minimum_remote_tensor_size"))
    return bool(options.get("pipeline.offload_activations")) and size_bytes >= least_bytes


def settle(emit: Emitter, stash: int) -> None:
    """Move the slots of a FIFO off the chip."""
    held = emit.variables[stash]
    emit.settled[stash] = RemoteBuffer(
        variable=stash, name=held.name, ipu=held.ipu, dtype=held.dtype, shape=held.shape, size_bytes=held.size_bytes
    )
    emit.variables[stash] = replace(held, bytes_per_tile=frozen(np.zeros_like(held.bytes_per_tile)))


class Fifos:
    """The FIFOs of all stages, each stage's turned by functions of its own; `count` is the number of micro-batches."""

    def __init__(self, emit: Emitter, schedule: str, stages: Sequence[Stage], count: int) -> None:
        self.emit = emit
        self.schedule = schedule
        self.stages = stages
        self.count = count
        for stage in stages:
            self._fifo(stage, back=False)
            self._fifo(stage, back=True)
            self._drained_fifo(stage)

    def turns(self, column: Column, later: int) -> dict[int, list[Program]]:
        """FIFOs whose turn it is by IPU, of the last element first, as long as something in them is wanted.

        A turn belongs to the micro-batch that enters; behind the last one, to the one that leaves.
        """
        found: dict[int, list[Program]] = {}
        for element, micro_batch in sorted(column.turns, key=lambda turn: -turn[0]):
            back = element >= len(self.stages)
            stage = self.stages[2 * len(self.stages) - 1 - element if back else element]
            held = 0 if back else stash_depth(self.schedule, len(self.stages), stage.number)
            wanted = 0 <= micro_batch < self.count + held
            drained = self._drained_name(stage)
            late = micro_batch >= self.count and drained in self.emit.functions
            name = drained if late else self._fifo_name(stage, back)
            if wanted and name in self.emit.functions:
                moved = micro_batch + later if micro_batch < self.count else micro_batch - held
                call = Call(function=name, ipu=stage.ipu, stage=stage.number, micro_batch=moved)
                found.setdefault(stage.ipu, []).append(call)
        return found

    @staticmethod
    def _fifo_name(stage: Stage, back: bool) -> str:
        return body_name(stage.number, "fifo_back" if back else "fifo")

    @staticmethod
    def _drained_name(stage: Stage) -> str:
        return body_name(stage.number, "fifo_drained")

    @contextmanager
    def _body(self, stage: Stage, name: str, fifos: Sequence[Fifo], *, back: bool) -> Iterator[None]:
        """What turns FIFOs belongs to the direction they turn with, and to the layer that made all that is in them."""
        held = [self.emit.variables[number].origin.layer for number in variables_of(fifo.current for fifo in fifos)]
        origin = Origin(layer=_common(held), direction="backward" if back else "forward")
        with emitted(self.emit, stage, name, empty=False), self.emit.inside(origin=origin):
            yield

    def _fifo(self, stage: Stage, back: bool) -> None:
        """What turns a stage's FIFOs: the oldest slot leaves, the newest value takes its place."""
        fifos = stage.fifos_back if back else stage.fifos
        with self._body(stage, self._fifo_name(stage, back), fifos, back=back):
            _turn_remote(self.emit, [fifo for fifo in fifos if fifo.stash in self.emit.settled])
            deep = [fifo for fifo in fifos if fifo.stash is not None and fifo.stash not in self.emit.settled]
            flat = [fifo for fifo in fifos if fifo.stash is None]
            stashes = [fifo.stash for fifo in deep if fifo.stash is not None]
            self._copy("fifo/pop", deep, stashes, variables_of(fifo.left for fifo in deep))
            self._copy("fifo/push", deep, [*variables_of(fifo.current for fifo in deep), *stashes], stashes)
            current, left = variables_of(fifo.current for fifo in flat), variables_of(fifo.left for fifo in flat)
            self._copy("fifo/keep", flat, current, left)

    def _drained_fifo(self, stage: Stage) -> None:
        """What turns them behind the last micro-batch: nothing new comes, so what last came need not be kept for it."""
        if any(fifo.stash is None or fifo.stash in self.emit.settled for fifo in stage.fifos):
            return
        stashes = [fifo.stash for fifo in stage.fifos if fifo.stash is not None]
        with self._body(stage, self._drained_name(stage), stage.fifos, back=False):
            self._copy("fifo/pop", stage.fifos, stashes, variables_of(fifo.left for fifo in stage.fifos))

    def _copy(self, name: str, fifos: Sequence[Fifo], reads: Sequence[int], writes: Sequence[int]) -> None:
        if fifos:
            moved = bytes_of(self.emit, [fifo.current for fifo in fifos])
            self.emit.compute(name, self.emit.copy_groups(moved), reads, writes)


def _turn_remote(emit: Emitter, fifos: Sequence[Fifo]) -> None:
    """The oldest rows come, the newest values go: one copy each for all FIFOs of a stage."""
    if not fifos:
        return
    stash = next(fifo.stash for fifo in fifos if fifo.stash is not None)
    left, current = [fifo.left for fifo in fifos], [fifo.current for fifo in fifos]
    remote_copy(emit, "fifo/from_remote", bytes_of(emit, left), "to_device", variables_of(left), stash)
    remote_copy(emit, "fifo/to_remote", bytes_of(emit, current), "to_host", variables_of(current), stash)


def bytes_of(emit: Emitter, tensors: Iterable[Tensor]) -> IntArray:
    """What tensors take on each tile, int64[tiles]."""
    return frozen(np.sum([each.mapping.bytes_per_tile(each.itemsize_bytes, emit.tiles) for each in tensors], axis=0))


def variables_of(tensors: Iterable[Tensor]) -> list[int]:
    """The variables of tensors, in order."""
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
