"""Cutting a chain of layers into pipeline stages: slowest stage and slowest transfer together as short as can be.

A column of an inference pipeline lasts as long as its slowest stage, then as long as its slowest transfer. Source of
the cost: graphcore/ipu_tensorflow_addons@6dcfc49a591a keras/experimental/auto_pipeline/auto_pipeline_readme.md,
utils/types_utils.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from workbench.base.units import things_text
from workbench.errors import InputError

GIB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLayer:
    """One layer of a chain: its cycles and memory, what crosses before and behind it, and the variable it shares."""

    cycles: int
    memory_bytes: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    variable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One direction of a connection: GiB per second, and cycles before the first byte."""

    gib_per_second: float
    idle_cycles: int = 0

    def cycles(self, size_bytes: int, clock_hz: float) -> int:
        """Cycles to move some bytes: idle + bytes / (bytes per cycle), rounded down."""
        return int(self.idle_cycles + size_bytes / (self.gib_per_second * GIB / clock_hz))


def transfer_cycles(
    layers: Sequence[ChainLayer],
    receive: Sequence[Wire],
    send: Sequence[Wire],
    ipu: int,
    first: int,
    last: int,
    clock_hz: float,
) -> int:
    """Cycles in which an IPU with the layers `first` to `last` waits for data to move.

    Its own receiving (not the first IPU) and sending (not the last), then the host's: the model's output from the last
    IPU and its next input to the first, which do not overlap with what moves between IPUs.
    """
    ends = len(receive) - 1
    cycles = receive[0].cycles(layers[0].input_bytes, clock_hz) + send[ends].cycles(layers[-1].output_bytes, clock_hz)
    if ipu:
        cycles += receive[ipu].cycles(layers[first].input_bytes, clock_hz)
    if ipu != ends:
        cycles += send[ipu].cycles(layers[last].output_bytes, clock_hz)
    return cycles


def best_partitions(
    layers: Sequence[ChainLayer], stages: int, memory_bytes: int, transfer: Callable[[int, int, int], int]
) -> list[tuple[int, ...]]:
    """All best ways to cut, in order: the first layer of each stage, then the number of layers.

    `transfer(ipu, first, last)` is in cycles. A stage fits `memory_bytes`; layers that share a variable are in one.
    Errors: `InputError` when no way fits.
    """
    steps = _Steps(layers, stages, memory_bytes, transfer)
    best, found = None, list[tuple[int, ...]]()
    for longest in sorted({cost for costs in steps.transfers.values() for cost in costs}):
        if best is not None and longest >= best:
            break
        slowest = steps.slowest(longest)
        if slowest is not None and (best is None or slowest + longest < best):
            best, found = slowest + longest, list(steps.cuts(longest, slowest))
    if best is None:
        raise InputError(
            f"{things_text(len(layers), 'layer')} {'does' if len(layers) == 1 else 'do'} not fit "
            f"{things_text(stages, 'stage')} of {memory_bytes} bytes each"
        )
    return found


class _Steps:
    """Stages as steps from the first layer to behind the last; one is allowed when it fits and shares no variable."""

    def __init__(
        self, layers: Sequence[ChainLayer], stages: int, memory_bytes: int, transfer: Callable[[int, int, int], int]
    ) -> None:
        self.size, self.stages = len(layers), stages
        self.cycles: dict[tuple[int, int], int] = {}
        for first in range(self.size):
            for end in range(first + 1, self.size + 1):
                inside, outside = layers[first:end], (*layers[:first], *layers[end:])
                shared = {layer.variable for layer in inside} & {layer.variable for layer in outside} - {""}
                if not shared and sum(layer.memory_bytes for layer in inside) <= memory_bytes:
                    self.cycles[first, end] = sum(layer.cycles for layer in inside)
        self.transfers = {
            (first, end): tuple(transfer(ipu, first, end - 1) for ipu in range(stages)) for first, end in self.cycles
        }

    def _next(self, ipu: int, first: int, longest: int) -> Iterator[int]:
        for end in range(first + 1, self.size + 1):
            if (first, end) in self.cycles and self.transfers[first, end][ipu] <= longest:
                yield end

    def slowest(self, longest: int) -> int | None:
        """Cycles of the slowest stage of the best way without a transfer above `longest`; None when there is none."""
        reached = {0: 0}
        for ipu in range(self.stages):
            ahead: dict[int, int] = {}
            for first, slowest in reached.items():
                for end in self._next(ipu, first, longest):
                    cost = max(slowest, self.cycles[first, end])
                    ahead[end] = min(cost, ahead.get(end, cost))
            reached = ahead
        return reached.get(self.size)

    def cuts(self, longest: int, slowest: int, done: tuple[int, ...] = (0,)) -> Iterator[tuple[int, ...]]:
        """All ways within both bounds."""
        ipu = len(done) - 1
        if ipu == self.stages:
            yield from (done,) * (done[-1] == self.size)
            return
        for end in self._next(ipu, done[-1], longest):
            if self.cycles[done[-1], end] <= slowest:
                yield from self.cuts(longest, slowest, (*done, end))


def carried_elements(sizes: Sequence[int], reads: Sequence[Sequence[int]]) -> dict[str, list[int]]:
    """What crosses each layer of a chain: `carry` past it, `input` before it and `output` behind it.

    `sizes[0]` is the model's input, `sizes[i + 1]` what layer i makes; `reads[i]` names by those places what it reads.
    """
    last = {
        place: max((layer for layer, read in enumerate(reads) if place in read), default=len(reads))
        for place in range(len(sizes))
    }

    def crossing(made_before: int, needed_from: int) -> int:
        return sum(size for place, size in enumerate(sizes) if place <= made_before and last[place] >= needed_from)

    layers = range(len(reads))
    return {
        "carry": [crossing(layer, layer + 1) for layer in layers],
        "input": [crossing(layer, layer) for layer in layers],
        "output": [crossing(layer + 1, layer + 1) for layer in layers],
    }
