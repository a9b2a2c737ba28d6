"""Level of detail of executed programs: what a window of time shows at a given fineness, and no more.

A block at least as long as one bin is a rectangle; what is shorter is summed, by cause, into the bins it falls into.
So a picture costs what it shows, whatever the length of the program, and bins and rectangles add up to the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.profiler.profile import Profile
from workbench.profiler.timeline import Enclosing, TimedNode, called, enclosing_of, entered, plain_calls
from workbench.profiler.timeline.busy import busy_before
from workbench.profiler.timeline.tree import Call

BUSY = ("compute", "exchange", "sync", "host", "inter_ipu", "collective")
_PLACE = {cause: number for number, cause in enumerate(BUSY)}
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


class _Known(NamedTuple):
    """A step: its layer and direction, the place of its cause among `BUSY` (-1: none of them), and its IPUs."""

    layer: Layer
    cause: int
    ipus: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """What one IPU does in a sequence, as columns: starts, lengths and cycles by cause of the parts that it works in,
    and the sums by cause before each. `members` are nodes, or steps by their ids."""

    members: Sequence[TimedNode | int]
    starts: IntArray
    cycles: IntArray
    busy: FloatArray
    sums: FloatArray


class _Mix(NamedTuple):
    """Cycles by layer inside a node, and the one that has most. Calls of one body for one layer share theirs."""

    cycles: Counter[Layer]
    main: Layer


class Detail:
    """Windows of one profile; what a node holds is worked out once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        steps = profile.tables["steps"]
        names = ("id", "layer", "direction", "cause", "ipu", "to_ipu")
        self._causes: dict[int, str] = {}
        self._steps: dict[int, _Known] = {}
        for step, layer, direction, cause, *ipus in zip(*(steps[name].tolist() for name in names), strict=True):
            self._causes[step] = cause
            self._steps[step] = _Known((layer, direction), _PLACE.get(cause, -1), (ipus[0], ipus[1]))
        self._mixes: dict[tuple[TimedNode, str | None, str], _Mix] = {}
        self._busy: dict[tuple[TimedNode, int], tuple[int, ...]] = {}
        self._spans: dict[TimedNode, tuple[IntArray, IntArray]] = {}
        self._rows: dict[TimedNode, dict[int, _Row]] = {}

    def lane(self, ipu: int, window: Window) -> Lane:
        """What one IPU does in a window."""
        return self.lanes(window, (ipu,))[0]

    def lanes(self, window: Window, ipus: Iterable[int] | None = None) -> list[Lane]:
        """What each of some IPUs (default: all) does in a window, by one walk over the program."""
        chosen = list(range(self.profile.ipus) if ipus is None else ipus)
        bins = np.zeros((len(chosen), window.bins, len(BUSY)))
        lanes = {ipu: Lane(bins=own) for ipu, own in zip(chosen, bins, strict=True)}
        if window.last > window.first:
            visit = _Visit(detail=self, lanes=lanes, window=window)
            visit.node(self.profile.timeline.root, 0, Enclosing())
            visit.spread(bins)
        for lane in lanes.values():
            lane.blocks.sort()
            lane.layers = _joined(sorted(lane.layers), window.each if window.least < 0 else 0.0)
        return list(lanes.values())

    def cause(self, step: int) -> str:
        """What a step's cycles are spent on."""
        return self._causes[step]

    def main_layer(self, member: TimedNode | int) -> Layer:
        """The layer and direction with most cycles inside a node, or those of a step."""
        return self._steps[member].layer if isinstance(member, int) else self._mix(member).main

    def main_layer_of_call(self, call: Call, body: TimedNode) -> Layer:
        """The same of the call of a body."""
        key = (body, call.for_layer, call.direction)
        known = self._mixes.get(key)
        return (known or self._mix_of_call(body, enclosing_of(call))).main

    def _mix(self, node: TimedNode) -> _Mix:
        if node.kind == "call":
            return self._mix_of_call(node.children[0], node.call)
        found = self._mixes.get((node, None, ""))
        if found is None:
            found = self._mixes[node, None, ""] = _mixed(self._of_parts(node))
        return found

    def _mix_of_call(self, body: TimedNode, call: Enclosing) -> _Mix:
        key = (body, call.layer, call.direction)
        found = self._mixes.get(key)
        if found is None:
            named: Counter[Layer] = Counter()
            for (layer, own), cycles in self._mix(body).cycles.items():
                named[call.layer_of(layer), call.direction_of(own)] += cycles
            found = self._mixes[key] = _mixed(named)
        return found

    def _of_parts(self, node: TimedNode) -> Counter[Layer]:
        found: Counter[Layer] = Counter()
        if node.kind == "step":
            found[self._steps[node.step].layer] = node.cycles
        elif node.kind == "sequence":
            for member, cycles in zip(node.members, self.spans(node)[1].tolist(), strict=True):
                if isinstance(member, int):
                    layer = self._steps[member].layer
                    found[layer] = found.get(layer, 0) + cycles
                else:
                    self._add_mix(found, member)
        else:
            for child in (node.children[node.arm],) if node.kind == "if" else node.children:
                self._add_mix(found, child, node.times)
        return found

    def _add_mix(self, found: Counter[Layer], node: TimedNode, times: int = 1) -> None:
        for key, cycles in self._mix(node).cycles.items():
            found[key] = found.get(key, 0) + cycles * times

    def busy(self, node: TimedNode, ipu: int) -> tuple[int, ...]:
        """Cycles of one execution of a node on an IPU by cause."""
        found = self._busy.get((node, ipu))
        if found is None:
            found = self._busy[node, ipu] = tuple([node.totals.get((ipu, cause), 0) for cause in BUSY])
        return found

    def spans(self, node: TimedNode) -> tuple[IntArray, IntArray]:
        """Starts and cycles of the parts of a sequence."""
        found = self._spans.get(node)
        if found is None:
            starts = np.array(node.offsets, dtype=np.int64)
            found = self._spans[node] = (starts, np.diff(starts, append=node.cycles))
        return found

    def row(self, node: TimedNode, ipu: int) -> _Row:
        """The parts of a sequence that one IPU works in."""
        found = self._rows.get(node)
        if found is None:
            found = self._rows[node] = self._rows_of_steps(node) if node.steps else self._rows_of_nodes(node)
        return found[ipu]

    def _rows_of_steps(self, node: TimedNode) -> dict[int, _Row]:
        starts, cycles = self.spans(node)
        steps = node.steps  # worked out each time it is asked for
        known = [self._steps[step] for step in steps]
        causes = np.array([each.cause for each in known], dtype=np.int64)
        busy = (causes[:, None] == np.arange(len(BUSY))) * cycles[:, None].astype(np.float64)
        found: dict[int, _Row] = {}
        for ipu in node.ipus:
            mine = [place for place, each in enumerate(known) if ipu in each.ipus]
            found[ipu] = _row([steps[place] for place in mine], starts[mine], cycles[mine], busy[mine])
        return found

    def _rows_of_nodes(self, node: TimedNode) -> dict[int, _Row]:
        """Of what works on many IPUs, as a column of a pipeline, the cycles of all are taken at once."""
        starts, cycles = self.spans(node)
        places: dict[int, list[int]] = {ipu: [] for ipu in node.ipus}
        spent: dict[int, list[list[int]]] = {ipu: [] for ipu in node.ipus}
        members, lengths = node.members, cycles.tolist()
        for place, child in enumerate(members):
            if isinstance(child, int):
                rows = self._step_rows(child, lengths[place])
            else:
                rows = {ipu: [0] * len(BUSY) for ipu in child.ipus}
                for (ipu, cause), amount in child.totals.items():
                    if cause in _PLACE and ipu in rows:
                        rows[ipu][_PLACE[cause]] = amount
            for ipu, row in rows.items():
                places[ipu].append(place)
                spent[ipu].append(row)
        found: dict[int, _Row] = {}
        for ipu, mine in places.items():
            busy = np.array(spent[ipu], dtype=np.float64).reshape(-1, len(BUSY))
            found[ipu] = _row([members[place] for place in mine], starts[mine], cycles[mine], busy)
        return found

    def _step_rows(self, step: int, cycles: int) -> dict[int, list[int]]:
        """Cycles of a step by cause, of the IPUs that work in it."""
        known = self._steps[step]
        row = [cycles * (place == known.cause) for place in range(len(BUSY))]
        return {ipu: row for ipu in known.ipus if ipu >= 0}


def _row(members: Sequence[TimedNode | int], starts: IntArray, cycles: IntArray, busy: FloatArray) -> _Row:
    return _Row(members=members, starts=starts, cycles=cycles, busy=busy, sums=np.cumsum(busy, axis=0) - busy)


def _mixed(cycles: Counter[Layer]) -> _Mix:
    return _Mix(cycles, max(cycles, key=cycles.__getitem__, default=("", "")))


@dataclass(slots=True, kw_only=True)
class _Visit:
    """One walk over the tree for some IPUs and a window, filling their lanes. `whole` gathers what is spread evenly
    over the bins it covers: IPU, start, cycles and cycles by cause."""

    detail: Detail
    lanes: Mapping[int, Lane]
    window: Window
    whole: list[tuple[int, int, int, tuple[int, ...]]] = field(default_factory=list)
    _fine: float = field(init=False)

    def __post_init__(self) -> None:
        self._fine = min(self.window.each, self.window.shortest)

    def node(self, node: TimedNode, start: int, context: Enclosing) -> None:
        """Add a node that stands at `start`."""
        mine = self._mine(node, start)
        if not mine:
            return
        if node.kind == "step":
            self._step(node, start, context, mine)
        elif node.cycles < self._fine:
            self._whole(node, start, self.detail.main_layer(node), context, mine)
        elif node.kind == "sequence":
            self._sequence(node, start, context, mine)
        elif node.kind == "repeat":
            self._repeat(node, start, context, mine)
        elif node.kind == "overlap":
            self._overlap(node, start, context)
        else:
            self.node(node.children[node.arm], start, called(node, context))

    def _mine(self, node: TimedNode, start: int) -> list[int]:
        """The IPUs with a lane that work in a node; none where it is outside the window or takes no time."""
        if not node.cycles or start >= self.window.last or start + node.cycles <= self.window.first:
            return []
        return [ipu for ipu in node.ipus if ipu in self.lanes]

    def _step(self, node: TimedNode, start: int, context: Enclosing, mine: list[int]) -> None:
        layer = self.detail.main_layer(node.step)
        if node.cycles < self.window.shortest:
            self._whole(node, start, layer, context, mine)
            return
        for ipu in mine:
            self.lanes[ipu].blocks.append((start, node.cycles, node.step, context.micro_batch))
            self._layer(ipu, start, start + node.cycles, layer, context)

    def _whole(self, node: TimedNode, start: int, layer: Layer, context: Enclosing, mine: list[int]) -> None:
        for ipu in mine:
            self.whole.append((ipu, start, node.cycles, self.detail.busy(node, ipu)))
            self._layer(ipu, start, start + node.cycles, layer, context)

    def _layer(self, ipu: int, start: float, end: float, layer: Layer, context: Enclosing) -> None:
        name, direction = context.layer_of(layer[0]), context.direction_of(layer[1])
        if name or direction:
            self.lanes[ipu].layers.append((start, end, name, direction))

    def _overlap(self, node: TimedNode, start: int, context: Enclosing) -> None:
        """Branches; where all are calls, no nodes are made of them."""
        branches = plain_calls(node)
        if branches is None:
            for child in node.children:
                self.node(child, start, context)
            return
        for calls in branches:
            place = start
            for call in calls:
                body = self.detail.profile.timeline.functions[call.function]
                self._call(call, body, place, context)
                place += body.cycles

    def _call(self, call: Call, body: TimedNode, start: int, context: Enclosing) -> None:
        mine = self._mine(body, start)
        if mine and body.cycles < self._fine:
            self._whole(body, start, self.detail.main_layer_of_call(call, body), context, mine)
        elif mine:
            self.node(body, start, entered(enclosing_of(call), context))

    def _repeat(self, node: TimedNode, start: int, context: Enclosing, mine: list[int]) -> None:
        body = node.children[0]
        if body.cycles < self._fine:
            # Many short turns are an even mix, however many there are.
            self._whole(node, start, self.detail.main_layer(node), context, mine)
            return
        first = max(0, (self.window.first - start) // body.cycles)
        last = min(node.times, -((start - self.window.last) // body.cycles))
        for turn in range(first, last):
            self.node(body, start + turn * body.cycles, context._replace(iteration=turn, lexical=turn))

    def _sequence(self, node: TimedNode, start: int, context: Enclosing, mine: list[int]) -> None:
        """Long parts one by one; the short ones together, by their running sums at the edges of bins."""
        starts, cycles = self.detail.spans(node)
        low, high = self._inside(starts, start)
        long = cycles[low:high] >= self._fine
        for place in (low + np.flatnonzero(long)).tolist():
            self.node(node.children[place], start + node.offsets[place], context)
        if not long.all():
            for ipu in mine:
                self._short(ipu, self.detail.row(node, ipu), start, context)

    def _inside(self, starts: IntArray, start: int) -> tuple[int, int]:
        low = max(0, int(np.searchsorted(starts, self.window.first - start, side="right")) - 1)
        return low, int(np.searchsorted(starts, self.window.last - start, side="left"))

    def _short(self, ipu: int, row: _Row, start: int, context: Enclosing) -> None:
        low, high = self._inside(row.starts, start)
        short = row.cycles[low:high] < self._fine
        if not short.any():
            return
        begins, cycles, busy, sums = row.starts[low:high], row.cycles[low:high], row.busy[low:high], row.sums[low:high]
        members = row.members[low:high]
        if not short.all():
            begins, cycles, busy = begins[short], cycles[short], busy[short]
            sums = np.cumsum(busy, axis=0) - busy
            members = [members[place] for place in np.flatnonzero(short).tolist()]
        begins = begins + start
        first, last = self.window.span(float(begins[0]), float(begins[-1] + cycles[-1]))
        edges = self.window.first + np.arange(first, last + 1) * self.window.each
        at = np.maximum(np.searchsorted(begins, edges, side="right") - 1, 0)
        part = np.clip((edges - begins[at]) / np.maximum(cycles[at], 1), 0, 1)
        self.lanes[ipu].bins[first:last] += np.diff(sums[at] + busy[at] * part[:, None], axis=0)
        # What is too short to be seen is sampled for its layer, once a bin.
        centres = edges[:-1] + 0.5 * self.window.each
        at = np.maximum(np.searchsorted(begins, centres, side="right") - 1, 0)
        seen = np.where((begins[at] <= centres) & (centres < begins[at] + cycles[at]), at, -1).tolist()
        place = first
        for member, bins in groupby(seen):  # only what falls on a centre is asked for its layer
            begin, place = place, place + sum(1 for _ in bins)
            if member >= 0 and any(layer := self.detail.main_layer(members[member])):
                left, right = (self.window.first + edge * self.window.each for edge in (begin, place))
                self._layer(ipu, left, right, layer, context)

    def spread(self, bins: FloatArray) -> None:
        """Add what was gathered to the bins of all lanes, float64[lanes, bins, causes]."""
        if not self.whole:
            return
        lane = {ipu: place for place, ipu in enumerate(self.lanes)}
        ipus, begins, lengths, spent = zip(*self.whole, strict=True)
        start, cycles = np.array(begins, dtype=np.float64), np.array(lengths, dtype=np.float64)
        busy = np.array(spent, dtype=np.float64)
        low = np.maximum(0, np.floor((start - self.window.first) / self.window.each)).astype(np.int64)
        high = np.ceil((start + cycles - self.window.first) / self.window.each).astype(np.int64)
        count = np.maximum(0, np.minimum(self.window.bins, high) - low)
        row = np.repeat(np.arange(len(count)), count)
        place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + low[row]
        left = np.maximum(self.window.first + place * self.window.each, start[row])
        right = np.minimum(self.window.first + (place + 1) * self.window.each, (start + cycles)[row])
        share = np.maximum(0, right - left) / cycles[row]
        where = np.array([lane[ipu] for ipu in ipus])[row] * self.window.bins + place
        size = bins.shape[0] * bins.shape[1]
        for cause in np.flatnonzero(busy.any(axis=0)).tolist():
            bins[:, :, cause] += np.bincount(where, share * busy[row, cause], size).reshape(bins.shape[:2])


def _joined(layers: list[tuple[float, float, str, str]], gap: float) -> list[tuple[float, float, str, str]]:
    """Neighbours of one layer and direction as one; gaps of at most `gap` cycles do not part them."""
    found: list[tuple[float, float, str, str]] = []
    for start, end, *same in layers:
        if found and list(found[-1][2:]) == same and start - found[-1][1] <= gap:
            found[-1] = (found[-1][0], max(end, found[-1][1]), same[0], same[1])
        else:
            found.append((start, end, same[0], same[1]))
    return found


def bins_of(profile: Profile, window: Window, ipus: Iterable[int] | None = None) -> FloatArray:
    """Cycles by cause in each bin of a window, without rectangles and layers: float64[IPUs, bins, causes]."""
    chosen = list(range(profile.ipus) if ipus is None else ipus)
    edges = np.asarray(window.first + np.arange(window.bins + 1) * window.each, dtype=np.float64)
    return np.diff(busy_before(profile, edges, chosen, BUSY), axis=0).transpose(1, 0, 2)


def count_blocks(profile: Profile, most: int) -> int:
    """Executed blocks of the whole program over its IPUs, counted up to `most`."""
    return sum(1 for _ in islice(profile.timeline.walk(0, profile.total_cycles), most))
