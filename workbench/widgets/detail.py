"""Level of detail of executed programs: what a window of time shows at a given fineness, and no more.

A block at least as long as one bin is a rectangle; what is shorter is summed, by cause, into the bins it falls into.
So a picture costs what it shows, whatever the length of the program, and bins and rectangles add up to the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from workbench.profiler.profile import Profile
from workbench.profiler.timeline import Block, Node

BUSY = ("compute", "exchange", "sync", "host", "inter_ipu", "collective")
MAX_RECTANGLES = 20_000

FloatArray = npt.NDArray[np.float64]


@dataclass(slots=True, kw_only=True)
class Lane:
    """One IPU in a window: rectangles by start, cycles by cause and bin, and stretches of one layer and direction.

    `blocks` (start, cycles, step, micro-batch); `bins` float64[bins, causes]; `layers` (start, end, layer, direction).
    """

    bins: FloatArray
    blocks: list[tuple[int, int, int, int]] = field(default_factory=list)
    layers: list[tuple[int, int, str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window of cycles at the fineness of `bins` equal parts; blocks shorter than `least` cycles (default: a bin) are
    summed into bins: 0 keeps every block, infinity none."""

    first: int
    last: int
    bins: int
    least: float = -1.0

    @property
    def each(self) -> float:
        """Cycles of one bin."""
        return (self.last - self.first) / self.bins

    @property
    def shortest(self) -> float:
        """Cycles of the shortest block that stays a rectangle."""
        return self.each if self.least < 0 else self.least


class Detail:
    """Windows of one profile; what a node holds is worked out once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        steps = profile.tables["steps"]
        names = ("id", "layer", "direction", "cause")
        rows = zip(*(steps[name].tolist() for name in names), strict=True)
        self._steps: dict[int, tuple[str, str, str]] = {row[0]: row[1:] for row in rows}
        self._mixes: dict[Node, Counter[tuple[str, str]]] = {}

    def lane(self, ipu: int, window: Window) -> Lane:
        """What one IPU does in a window."""
        lane = Lane(bins=np.zeros((window.bins, len(BUSY))))
        if window.last <= window.first:
            return lane
        least, each = window.shortest, min(window.each, window.shortest)

        def whole(node: Node) -> bool:
            # A loop of short iterations is an even mix: one block, however often it turns.
            return node.cycles < each or (node.kind == "repeat" and node.children[0].cycles < each)

        for block in self.profile.timeline.walk(window.first, window.last, ipu, whole):
            node = block.node
            if node.kind == "step" and node.cycles >= least:
                lane.blocks.append((block.start, node.cycles, node.step, block.context.micro_batch))
            else:
                self._into_bins(lane.bins, block, ipu, window)
            self._layer(lane, block, each)
        return lane

    def _into_bins(self, bins: FloatArray, block: Block, ipu: int, window: Window) -> None:
        """Add the cycles of a block by cause, spread evenly over the bins it covers."""
        busy = np.array([block.node.totals.get((ipu, cause), 0) for cause in BUSY], dtype=np.float64)
        begin = max(0.0, (block.start - window.first) / window.each)
        end = min(float(window.bins), (block.end - window.first) / window.each)
        low, high = int(begin), min(window.bins, int(np.ceil(end)))
        if end <= begin:
            return
        edges = np.clip(np.arange(low, high + 1, dtype=np.float64), begin, end)
        covered = np.diff(edges) * window.each / block.node.cycles
        bins[low:high] += covered[:, None] * busy[None, :]

    def _layer(self, lane: Lane, block: Block, each: float) -> None:
        layer, direction = self.main_layer(block.node)
        direction = block.context.direction or direction
        if not layer and not direction:
            return
        if lane.layers:
            start, end, *same = lane.layers[-1]
            if same == [layer, direction] and block.start - end <= each:
                lane.layers[-1] = (start, block.end, layer, direction)
                return
            if block.end - start < each and block.start - end < each:
                # Both are too short to be seen: the longer one stands for them.
                longer = (layer, direction) if block.node.cycles > end - start else (same[0], same[1])
                lane.layers[-1] = (start, block.end, *longer)
                return
        lane.layers.append((block.start, block.end, layer, direction))

    def main_layer(self, node: Node) -> tuple[str, str]:
        """The layer and direction with most cycles inside a node."""
        mix = self._mix(node)
        return max(mix, key=lambda key: mix[key]) if mix else ("", "")

    def _mix(self, node: Node) -> Counter[tuple[str, str]]:
        found = self._mixes.get(node)
        if found is None:
            if node.kind == "step":
                layer, direction, _ = self._steps[node.step]
                found = Counter({(layer, direction): node.cycles})
            else:
                found = self._of_children(node)
            self._mixes[node] = found
        return found

    def _of_children(self, node: Node) -> Counter[tuple[str, str]]:
        taken = (node.children[node.arm],) if node.kind == "if" else node.children
        direction = node.call.direction
        found: Counter[tuple[str, str]] = Counter()
        for child in taken:
            for (layer, own), cycles in self._mix(child).items():
                found[layer, direction or own] += cycles * node.times
        return found

    def cause(self, step: int) -> str:
        """What a step's cycles are spent on."""
        return self._steps[step][2]


def count_blocks(profile: Profile, most: int) -> int:
    """Executed blocks of the whole program over its IPUs, counted up to `most`."""
    return sum(1 for _ in _first(most, profile.timeline.walk(0, profile.total_cycles)))


def _first(most: int, blocks: Iterable[Block]) -> Iterable[Block]:
    return (block for _, block in zip(range(most), blocks, strict=False))
