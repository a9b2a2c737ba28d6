"""Level of detail of executed programs: what a window of time shows at a given fineness, and no more.

A block at least as long as one bin is a rectangle; what is shorter is summed, by cause, into the bins it falls into.
So a picture costs what it shows, whatever the length of the program, and bins and rectangles add up to the window.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.profiler.profile import Profile
from workbench.profiler.timeline import Enclosing, TimedNode, called

BUSY = ("compute", "exchange", "sync", "host", "inter_ipu", "collective")
MAX_RECTANGLES = 20_000

FloatArray = npt.NDArray[np.float64]
Layer = tuple[str, str]


@dataclass(slots=True, kw_only=True)
class Lane:
    """One IPU in a window: rectangles by start, cycles by cause and bin, and stretches of one layer and direction.

    `blocks` (start, cycles, step, micro-batch); `bins` float64[bins, causes]; `layers` (start, end, layer, direction).
    """

    bins: FloatArray
    blocks: list[tuple[int, int, int, int]] = field(default_factory=list)
    layers: list[tuple[float, float, str, str]] = field(default_factory=list)


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

    def span(self, start: float, end: float) -> tuple[int, int]:
        """The bins [low, high) that cycles [start, end) touch."""
        low = max(0, int((start - self.first) / self.each))
        return low, max(low, min(self.bins, int(np.ceil((end - self.first) / self.each))))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """The children of a sequence as columns: starts, lengths, cycles by cause on one IPU, and if it works there."""

    children: tuple[TimedNode, ...]
    starts: IntArray
    cycles: IntArray
    busy: FloatArray
    mine: npt.NDArray[np.bool_]


class _Mix(NamedTuple):
    """Cycles by layer inside a node, and the one that has most. Calls of one body for one layer share theirs."""

    cycles: Counter[Layer]
    main: Layer


class Detail:
    """Windows of one profile; what a node holds is worked out once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        steps = profile.tables["steps"]
        names = ("id", "layer", "direction", "cause")
        rows = zip(*(steps[name].tolist() for name in names), strict=True)
        self._steps: dict[int, tuple[str, str, str]] = {row[0]: row[1:] for row in rows}
        self._mixes: dict[tuple[TimedNode, str | None, str], _Mix] = {}
        self._branches: dict[TimedNode, dict[int, list[TimedNode]]] = {}
        self._rows: dict[tuple[TimedNode, int], _Row] = {}

    def lane(self, ipu: int, window: Window) -> Lane:
        """What one IPU does in a window."""
        lane = Lane(bins=np.zeros((window.bins, len(BUSY))))
        if window.last > window.first:
            _Visit(self, lane, ipu, window).node(self.profile.timeline.root, 0, Enclosing())
        lane.blocks.sort()
        lane.layers = _joined(sorted(lane.layers), window.each if window.least < 0 else 0.0)
        return lane

    def cause(self, step: int) -> str:
        """What a step's cycles are spent on."""
        return self._steps[step][2]

    def main_layer(self, node: TimedNode) -> Layer:
        """The layer and direction with most cycles inside a node."""
        return self._mix(node).main

    def _mix(self, node: TimedNode) -> _Mix:
        call = node.call
        same = (node.children[0], call.layer, call.direction) if node.kind == "call" else (node, None, "")
        found = self._mixes.get(same)
        if found is None:
            if node.kind == "step":
                layer, direction, _ = self._steps[node.step]
                cycles = Counter({(layer, direction): node.cycles})
            else:
                cycles = self._of_children(node)
            found = self._mixes[same] = _Mix(cycles, max(cycles, key=cycles.__getitem__, default=("", "")))
        return found

    def _of_children(self, node: TimedNode) -> Counter[Layer]:
        taken = (node.children[node.arm],) if node.kind == "if" else node.children
        found: Counter[Layer] = Counter()
        for child in taken:
            for key, cycles in self._mix(child).cycles.items():
                found[key] = found.get(key, 0) + cycles * node.times
        if node.kind != "call":
            return found
        named: Counter[Layer] = Counter()
        for (layer, own), cycles in found.items():
            named[node.call.layer_of(layer), node.call.direction_of(own)] += cycles
        return named

    def branches(self, node: TimedNode) -> dict[int, list[TimedNode]]:
        """The branches of an overlap by the IPUs that work in them."""
        found = self._branches.get(node)
        if found is None:
            found = self._branches[node] = {}
            for child in node.children:
                for ipu in child.ipus:
                    found.setdefault(ipu, []).append(child)
        return found

    def row(self, node: TimedNode, ipu: int) -> _Row:
        """The children of a sequence for one IPU; those in which it does nothing count as no work."""
        found = self._rows.get((node, ipu))
        if found is None:
            busy = [[child.totals.get((ipu, cause), 0) for cause in BUSY] for child in node.children]
            found = _Row(
                children=node.children,
                starts=np.array(node.offsets, dtype=np.int64),
                cycles=np.array([child.cycles for child in node.children], dtype=np.int64),
                busy=np.array(busy, dtype=np.float64).reshape(-1, len(BUSY)),
                mine=np.array([ipu in child.ipus for child in node.children], dtype=np.bool_),
            )
            self._rows[node, ipu] = found
        return found


@dataclass(slots=True)
class _Visit:
    """One walk over the tree for one IPU and window, filling a lane."""

    detail: Detail
    lane: Lane
    ipu: int
    window: Window

    def node(self, node: TimedNode, start: int, context: Enclosing) -> None:
        """Add a node that stands at `start`."""
        window = self.window
        outside = start >= window.last or start + node.cycles <= window.first
        if not node.cycles or outside or self.ipu not in node.ipus:
            return
        if node.kind == "step":
            self._step(node, start, context)
        elif node.cycles < self._fine:
            self._whole(node, start, context)
        elif node.kind == "sequence":
            self._sequence(node, start, context)
        elif node.kind == "repeat":
            self._repeat(node, start, context)
        elif node.kind == "overlap":
            for child in self.detail.branches(node).get(self.ipu, ()):
                self.node(child, start, context)
        else:
            self.node(node.children[node.arm], start, called(node, context))

    @property
    def _fine(self) -> float:
        return min(self.window.each, self.window.shortest)

    def _step(self, node: TimedNode, start: int, context: Enclosing) -> None:
        if node.cycles < self.window.shortest:
            self._whole(node, start, context)
            return
        self.lane.blocks.append((start, node.cycles, node.step, context.micro_batch))
        self._layer(start, start + node.cycles, self.detail.main_layer(node), context)

    def _whole(self, node: TimedNode, start: int, context: Enclosing) -> None:
        """Spread a node's cycles by cause evenly over the bins it covers."""
        busy = np.array([node.totals.get((self.ipu, cause), 0) for cause in BUSY], dtype=np.float64)
        end = start + node.cycles
        low, high = self.window.span(start, end)
        edges = np.clip(self.window.first + np.arange(low, high + 1) * self.window.each, start, end)
        self.lane.bins[low:high] += (np.diff(edges) / node.cycles)[:, None] * busy[None, :]
        self._layer(start, end, self.detail.main_layer(node), context)

    def _layer(self, start: float, end: float, layer: Layer, context: Enclosing) -> None:
        name, direction = context.layer_of(layer[0]), context.direction_of(layer[1])
        if name or direction:
            self.lane.layers.append((start, end, name, direction))

    def _repeat(self, node: TimedNode, start: int, context: Enclosing) -> None:
        body = node.children[0]
        if body.cycles < self._fine:
            # Many short turns are an even mix, however many there are.
            self._whole(node, start, context)
            return
        first = max(0, (self.window.first - start) // body.cycles)
        last = min(node.times, -((start - self.window.last) // body.cycles))
        for turn in range(first, last):
            self.node(body, start + turn * body.cycles, context._replace(iteration=turn, lexical=turn))

    def _sequence(self, node: TimedNode, start: int, context: Enclosing) -> None:
        """Long children one by one; the short ones together, by their running sums at the edges of bins."""
        row = self.detail.row(node, self.ipu)
        low = max(0, int(np.searchsorted(row.starts, self.window.first - start, side="right")) - 1)
        high = int(np.searchsorted(row.starts, self.window.last - start, side="left"))
        short = row.cycles[low:high] < self._fine
        for place in (low + np.flatnonzero(~short)).tolist():
            self.node(node.children[place], start + node.offsets[place], context)
        if short.any():
            places = low + np.flatnonzero(short)
            self._short(row, places, start)
            self._short_layers(row, places, start, context)

    def _short(self, row: _Row, places: IntArray, start: int) -> None:
        begins, cycles, busy = row.starts[places] + start, row.cycles[places], row.busy[places]
        first, last = self.window.span(float(begins[0]), float(begins[-1] + cycles[-1]))
        edges = self.window.first + np.arange(first, last + 1) * self.window.each
        knots = np.stack([begins, begins + cycles], axis=1).reshape(-1)
        for cause in np.flatnonzero(busy.any(axis=0)).tolist():
            sums = np.concatenate(([0.0], np.cumsum(busy[:, cause])))
            values = np.stack([sums[:-1], sums[1:]], axis=1).reshape(-1)
            self.lane.bins[first:last, cause] += np.diff(np.interp(edges, knots, values))

    def _short_layers(self, row: _Row, places: IntArray, start: int, context: Enclosing) -> None:
        """What is too short to be seen is sampled, once a bin."""
        begins, ends = row.starts[places] + start, row.starts[places] + row.cycles[places] + start
        first, last = self.window.span(float(begins[0]), float(ends[-1]))
        centres = self.window.first + (np.arange(first, last) + 0.5) * self.window.each
        at = np.clip(np.searchsorted(begins, centres, side="right") - 1, 0, len(begins) - 1)
        inside = (begins[at] <= centres) & (centres < ends[at])
        seen = np.where(inside & row.mine[places][at], places[at], -1).tolist()
        place = first
        for child, bins in groupby(seen):  # only what falls on a centre is asked for its layer
            begin, place = place, place + sum(1 for _ in bins)
            if child >= 0 and any(layer := self.detail.main_layer(row.children[child])):
                left, right = (self.window.first + edge * self.window.each for edge in (begin, place))
                self._layer(left, right, layer, context)


def _joined(layers: list[tuple[float, float, str, str]], gap: float) -> list[tuple[float, float, str, str]]:
    """Neighbours of one layer and direction as one; gaps of at most `gap` cycles do not part them."""
    found: list[tuple[float, float, str, str]] = []
    for start, end, *same in layers:
        if found and list(found[-1][2:]) == same and start - found[-1][1] <= gap:
            found[-1] = (found[-1][0], max(end, found[-1][1]), same[0], same[1])
        else:
            found.append((start, end, same[0], same[1]))
    return found


def count_blocks(profile: Profile, most: int) -> int:
    """Executed blocks of the whole program over its IPUs, counted up to `most`."""
    return sum(1 for _ in islice(profile.timeline.walk(0, profile.total_cycles), most))
