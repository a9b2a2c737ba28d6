"""What a pipelined program executes, as progressions: one row is a block that recurs every so many cycles.

A column that runs a thousand times is one row a block, so the blocks of a window are found by arithmetic, and a
pipeline of many micro-batches costs as much as one of few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain, groupby
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.base.causes import PHASE_BY_IDLE
from workbench.base.collection import paused_collection
from workbench.profiler.timeline.timeline import Later, Timed, TimedNode, Timeline, in_turn
from workbench.profiler.timeline.tree import Call, Part, in_order

Kind = Literal["stage", "copy", "collective", "other", "idle", "column"]
Mix = tuple[tuple[str, float], ...]

MANY_LAYERS = 3
MOST_ROWS = 200_000  # progressions of one program; the turns of a loop after them are one block
MOST_BLOCKS = 1_000_000  # that are held at once


def layers_text(layers: Sequence[str]) -> str:
    """Layers in one text; of many the first and the last."""
    return ", ".join(layers) if len(layers) <= MANY_LAYERS else f"{layers[0]} … {layers[-1]}"


class Activity(NamedTuple):
    """What recurs: a stage in one direction, a copy between IPUs, a collective of replicas, other work, waiting, or a
    column. An update is cut where collectives stand in it.

    `mix` is the share of its cycles by cause, on its IPU. `ipu` of waiting and of a column is the IPU that all wait
    for, -1 the host. `layers` are those of a stage, in order; `phase` that of a column: fill, steady, drain, update.
    """

    kind: Kind
    name: str = ""
    stage: int = -1
    direction: str = ""
    layers: tuple[str, ...] = ()
    mix: Mix = ()
    ipu: int = -1
    phase: str = ""

    @property
    def layer(self) -> str:
        """The layers in one text; of many the first and the last."""
        return layers_text(self.layers)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blocks:
    """Blocks as columns, int64[n] each: IPU (-1 of a column), place of the body, start and length in cycles, and
    micro-batch (-1 none)."""

    ipu: IntArray
    body: IntArray
    start: IntArray
    cycles: IntArray
    micro_batch: IntArray

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> IntArray:
        """The cycle after the last of each."""
        return self.start + self.cycles

    def take(self, chosen: Any) -> Blocks:
        """Some of the blocks, by mask or by place."""
        return Blocks(
            ipu=self.ipu[chosen],
            body=self.body[chosen],
            start=self.start[chosen],
            cycles=self.cycles[chosen],
            micro_batch=self.micro_batch[chosen],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Executions:
    """All progressions of a program: int64[n, 8], columns as in `COLUMNS`.

    A row runs `times` times from `start` on, `period` cycles apart, each with a micro-batch that is `stride` higher.
    """

    bodies: tuple[Activity, ...]
    table: IntArray

    @classmethod
    def from_profile(cls, profile: Timed) -> Executions:
        """The progressions of a profile's timeline."""
        steps, timeline = profile.tables["steps"], profile.timeline
        layers = dict(zip(steps["id"].tolist(), steps["layer"].tolist(), strict=True))
        collector = _Collector(timeline, layers)
        with paused_collection():
            collector.visit(timeline.root, _Place(0, 1, 1, 0), alone=True)
        table = np.array(collector.rows, dtype=np.int64).reshape(-1, len(COLUMNS))
        return cls(bodies=tuple(collector.bodies), table=table[np.argsort(table[:, 2], kind="stable")])

    @cached_property
    def kinds(self) -> npt.NDArray[np.str_]:
        """The kind of each body."""
        return np.array([body.kind for body in self.bodies], dtype="U10")

    def window(self, first: int, last: int, kinds: tuple[Kind, ...]) -> Blocks:
        """Blocks of some kinds that touch cycles [first, last), sorted by IPU, then by start."""
        mine = np.isin(self.kinds, kinds)
        return _expanded(self.table[mine[self.table[:, 1]]], first, last)

    def count(self, first: int, last: int, kinds: tuple[Kind, ...]) -> int:
        """How many blocks `window` would give."""
        mine = np.isin(self.kinds, kinds)
        return int(_turns(self.table[mine[self.table[:, 1]]], first, last)[1].sum())

    def span(self, kind: Kind) -> tuple[int, int] | None:
        """Cycles [first, last) from the start of the first block of a kind to the end of the last; None for none."""
        rows = self.table[self.kinds[self.table[:, 1]] == kind]
        if not len(rows):
            return None
        _, _, start, cycles, period, times, _, _ = rows.T
        return int(start.min()), int((start + (times - 1) * period + cycles).max())

    def until(self, first: int, last: int, kinds: tuple[Kind, ...], most: int = MOST_BLOCKS) -> int:
        """The end of the longest window from `first`, up to `last`, that has at most so many blocks."""
        if self.count(first, last, kinds) <= most:
            return last
        low, high = first, last
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.count(first, middle, kinds) <= most else (low, middle - 1)
        return low

    def cycles_between(self, rows: IntArray, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Cycles of each of some rows of the table between neighbouring edges of time: float64[rows, edges - 1]."""
        start, cycles, period, times = (column[:, None] for column in rows.T[2:6])
        since = edges[None, :] - start
        turn = np.clip(np.floor(since / period), 0, times - 1)
        return np.diff(turn * cycles + np.clip(since - turn * period, 0, cycles), axis=1)

    def of_micro_batch(self, number: int) -> Blocks:
        """Every block of one micro-batch, over the whole program."""
        table = self.table
        base, times, stride = table[:, 6], table[:, 5], table[:, 7]
        turn = number - base
        here = (base >= 0) & (turn >= 0) & np.where(stride > 0, turn < times, turn == 0)
        found = table[here].copy()
        moving = found[:, 7] > 0
        found[:, 2] += np.where(moving, turn[here] * found[:, 4], 0)
        found[moving, 5] = 1
        found[:, 6], found[:, 7] = number, 0
        return _expanded(found, -1, np.iinfo(np.int64).max >> 1)


COLUMNS = ("ipu", "body", "start", "cycles", "period", "times", "micro_batch", "stride")


def _expanded(table: IntArray, first: int, last: int) -> Blocks:
    ipu, body, start, cycles, period, _, base, stride = table.T
    low, count = _turns(table, first, last)
    row = np.repeat(np.arange(len(table)), count)
    turn = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + low[row]
    begins = start[row] + turn * period[row]
    micro_batch = np.where(base[row] < 0, -1, base[row] + turn * stride[row])
    order = np.lexsort((begins, ipu[row]))
    return Blocks(
        ipu=ipu[row][order],
        body=body[row][order],
        start=begins[order],
        cycles=cycles[row][order],
        micro_batch=micro_batch[order],
    )


def _turns(table: IntArray, first: int, last: int) -> tuple[IntArray, IntArray]:
    """Of each row the first turn that touches [first, last), and how many do."""
    _, _, start, cycles, period, times, _, _ = table.T
    low = np.maximum(0, (first - cycles - start) // period + 1)
    high = np.minimum(times, -((start - last) // period))
    return low, np.maximum(0, high - low)


_Plain = tuple[int, tuple[tuple[int, int], ...], bool, frozenset[int]]
"""Of a call: cycles, (IPU, place of its body) where it works, whether it is a stage's, and the IPUs it works on."""


class _Place(NamedTuple):
    """Where a node stands: its start, and how often it recurs; `stride` is 1 where a call counts those turns."""

    start: int
    period: int
    times: int
    stride: int

    def later(self, cycles: int) -> _Place:
        return self._replace(start=self.start + cycles)


@dataclass(slots=True)
class _Collector:
    """One walk over a tree; `rows` as in `COLUMNS`, `bodies` each once."""

    timeline: Timeline
    layers: Mapping[int, str]
    rows: list[tuple[int, ...]] = field(default_factory=list)
    bodies: dict[Activity, int] = field(default_factory=dict)
    _staged: dict[TimedNode, bool] = field(default_factory=dict)
    _layers: dict[TimedNode, tuple[str, ...]] = field(default_factory=dict)
    _mixes: dict[tuple[TimedNode, int], Mix] = field(default_factory=dict)
    _known: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _plain: dict[tuple[Any, ...], _Plain | None] = field(default_factory=dict)

    def visit(self, node: TimedNode, at: _Place, *, alone: bool) -> None:
        """Add a node. `alone`: nothing runs beside it, so the other IPUs wait."""
        if not node.cycles:
            return
        if node.kind == "overlap":
            self._overlap(node, at)
        elif is_stage(node) and node.call.direction == "update" and "collective" in busy(node):
            self._update(node, at, alone)
        elif is_stage(node) or not self._has_stages(node):
            self._leaf(node, at, alone)
        elif node.kind == "sequence":
            for offset, child in zip(node.offsets, node.children, strict=True):
                self.visit(child, at.later(offset), alone=alone)
        elif node.kind == "repeat":
            self._repeat(node, at, alone)
        else:
            self.visit(node.children[node.arm], at._replace(stride=0), alone=alone)

    def _repeat(self, node: TimedNode, at: _Place, alone: bool) -> None:
        body = node.children[0]
        if at.times == 1 and not _any(body, _is_repeat):
            self.visit(body, _Place(at.start, body.cycles, node.times, 1), alone=alone)
            return
        for turn in range(node.times):
            if turn and len(self.rows) >= MOST_ROWS:
                self._rest(node, turn, at)
                return
            self.visit(body, at.later(turn * body.cycles), alone=alone)

    def _rest(self, node: TimedNode, turn: int, at: _Place) -> None:
        """The turns of a loop from one on as a block on each IPU, which says so; its cycles by cause are theirs."""
        body, name = node.children[0], f"turns {turn:,} to {node.times - 1:,} of {node.name or 'a loop'}, summed"
        for ipu in range(self.timeline.ipus):
            place = self._place(Activity(kind="other", name=name, mix=self._mix(body, ipu)))
            self._add(ipu, place, at.later(turn * body.cycles), (node.times - turn) * body.cycles)

    def _overlap(self, node: TimedNode, at: _Place) -> None:
        branches = self._branches(node, at)
        slowest = max(branches, key=lambda branch: branch[0])[1]
        waited = min(slowest, default=-1)
        idle = self._place(Activity(kind="idle", mix=((node.idle_cause, 1.0),), ipu=waited))
        resting = set(range(self.timeline.ipus))
        for cycles, ipus in branches:
            resting -= ipus
            for ipu in ipus if cycles < node.cycles else ():
                self._add(ipu, idle, at.later(cycles), node.cycles - cycles)
        for ipu in resting:
            self._add(ipu, idle, at, node.cycles)
        if busy(node) != {"inter_ipu"}:
            phase = "update" if _all_update(node) else PHASE_BY_IDLE[node.idle_cause]
            self._add(-1, self._place(Activity(kind="column", ipu=waited, phase=phase)), at, node.cycles)

    def _branches(self, node: TimedNode, at: _Place) -> list[tuple[int, frozenset[int]]]:
        """Add the branches of an overlap; cycles and IPUs of each. Calls are added without a node for each."""
        found = []
        for place, branch in enumerate(_branches(node)):
            calls = self._plain_calls(branch, node)
            if calls is None:
                inside = node.children[place]
                self.visit(inside, at, alone=False)
                found.append((inside.cycles, inside.ipus))
                continue
            start, ipus = at.start, frozenset[int]()
            for (cycles, pairs, staged, working), micro_batch in calls:
                batch = micro_batch if staged and micro_batch is not None else -1
                row = (start, cycles, at.period, at.times, batch, at.stride)
                for ipu, body in pairs:
                    self.rows.append((ipu, body, *row))
                start, ipus = start + cycles, ipus | working
            found.append((start - at.start, ipus))
        return found

    def _plain_calls(self, branch: Part, node: TimedNode) -> list[tuple[_Plain, int | None]] | None:
        """What the calls of a branch add, each with its micro-batch; None when it is more than calls that each stand
        for themselves."""
        found = []
        for call in in_order(branch):
            if not isinstance(call, Call):
                return None
            key = call.work
            if key not in self._plain:
                self._plain[key] = self._plain_call(call, node)
            plain = self._plain[key]
            if plain is None:
                return None
            found.append((plain, call.micro_batch))
        return found

    def _plain_call(self, call: Call, node: TimedNode) -> _Plain | None:
        assert isinstance(node.parts, Later)
        made = node.parts.make(call)
        pieces = made.call.direction == "update" and "collective" in busy(made)
        if pieces or not (is_stage(made) or not self._has_stages(made)):
            return None
        pairs = tuple((ipu, self._body(made, ipu)) for ipu in sorted(made.ipus)) if made.cycles else ()
        return made.cycles, pairs, is_stage(made), made.ipus

    def _leaf(self, node: TimedNode, at: _Place, alone: bool) -> None:
        for ipu in sorted(node.ipus):
            self._add(ipu, self._body(node, ipu), at, node.cycles, node.call.micro_batch if is_stage(node) else -1)
        if alone:
            waited = -1 if "host" in busy(node) else min(node.ipus, default=-1)
            for ipu in set(range(self.timeline.ipus)) - node.ipus:
                idle = self._place(Activity(kind="idle", mix=self._mix(node, ipu), ipu=waited))
                self._add(ipu, idle, at, node.cycles)

    def _update(self, node: TimedNode, at: _Place, alone: bool) -> None:
        """An update with collectives in it, piece by piece."""
        start = 0
        for collective, run in groupby(units(node), lambda unit: busy(unit) == {"collective"}):
            piece = joined(node, tuple(run), whole=not collective)
            self._leaf(piece, at.later(start), alone)
            start += piece.cycles

    def _body(self, node: TimedNode, ipu: int) -> int:
        """The place of what a node does on an IPU; calls of one function differ by micro-batch alone."""
        key = (node.name, node.call[:1], node.call.direction, node.children[0] if node.kind == "call" else node, ipu)
        if key not in self._known:
            mix, copies = self._mix(node, ipu), busy(node) == {"inter_ipu"}
            if is_stage(node):
                kind: Kind = "copy" if copies else "stage"
                body = Activity(kind, node.name, node.call.stage, node.call.direction, self._layers_of(node), mix)
            else:
                kind = "copy" if copies else "collective" if busy(node) == {"collective"} else "other"
                body = Activity(kind=kind, name=node.name or node.function, mix=mix)
            self._known[key] = self._place(body)
        return self._known[key]

    def _place(self, body: Activity) -> int:
        return self.bodies.setdefault(body, len(self.bodies))

    def _add(self, ipu: int, body: int, at: _Place, cycles: int, micro_batch: int = -1) -> None:
        if cycles:
            self.rows.append((ipu, body, at.start, cycles, at.period, at.times, micro_batch, at.stride))

    def _mix(self, node: TimedNode, ipu: int) -> Mix:
        # The bodies of calls are shared, so what a call holds is worked out once.
        key = (node.children[0] if node.kind == "call" else node, ipu)
        if key not in self._mixes:
            own = ((cause, cycles) for (place, cause), cycles in node.totals.items() if place == ipu)
            parts = sorted(part for part in (own if ipu in node.ipus else node.rest.items()) if part[1])
            self._mixes[key] = tuple((cause, cycles / node.cycles) for cause, cycles in parts)
        return self._mixes[key]

    def _has_stages(self, node: TimedNode) -> bool:
        if node not in self._staged:
            self._staged[node] = (
                is_stage(node) or any(map(_has_stage, _branches(node))) or any(map(self._has_stages, node.inner))
            )
        return self._staged[node]

    def _layers_of(self, node: TimedNode) -> tuple[str, ...]:
        if node.kind == "step":
            layer = self.layers[node.step]
            return (layer,) if layer else ()
        if node.call.layer is not None:
            return (node.call.layer,) if node.call.layer else ()
        body = node.children[0] if node.kind == "call" else node
        if body not in self._layers:
            if body.kind == "step":
                self._layers[body] = self._layers_of(body)
            else:
                members = body.members if body.kind == "sequence" else body.children
                inside = ((self.layers[m],) if isinstance(m, int) else self._layers_of(m) for m in members)
                self._layers[body] = tuple(dict.fromkeys(filter(None, chain.from_iterable(inside))))
        return self._layers[body]


def is_stage(node: TimedNode) -> bool:
    """Whether a node is the call of a stage's work in some direction."""
    return node.kind == "call" and node.call.stage >= 0 and bool(node.call.direction)


def _is_repeat(node: TimedNode) -> bool:
    return node.kind == "repeat"


def _any(node: TimedNode, test: Callable[[TimedNode], bool]) -> bool:
    return test(node) or (not is_stage(node) and any(_any(child, test) for child in node.inner))


def _branches(node: TimedNode) -> Sequence[Part]:
    """The branches of an overlap, whose nodes may not have been made."""
    return node.parts.branches if node.kind == "overlap" and isinstance(node.parts, Later) else ()


def _has_stage(branch: Part, but: str = "") -> bool:
    """Whether a branch calls a stage, in a direction other than `but`."""
    calls = (call for call in in_order(branch) if isinstance(call, Call))
    return any(call.stage is not None and call.direction not in ("", but) for call in calls)


def _all_update(node: TimedNode) -> bool:
    if any(_has_stage(branch, but="update") for branch in _branches(node)):
        return False
    return node.call.direction == "update" if is_stage(node) else all(map(_all_update, node.inner))


# The pieces of an update with collectives in it: what replicas sum together, and the work between


def busy(node: TimedNode) -> set[str]:
    """The causes that the IPUs which work in a node spend cycles on, but waiting."""
    return {
        cause for (ipu, cause), cycles in node.totals.items() if cycles and ipu in node.ipus and "idle" not in cause
    }


def units(node: TimedNode) -> Iterator[TimedNode]:
    """What runs in a node in turn, in parts that are a collective or hold none, as far as its sequences go."""
    if node.kind in ("sequence", "call") and _is_mixed(node):
        for child in node.children:
            yield from units(child)
    elif node.cycles:
        yield node


def _is_mixed(node: TimedNode) -> bool:
    causes = busy(node)
    return "collective" in causes and len(causes) > 1


def joined(node: TimedNode, run: tuple[TimedNode, ...], *, whole: bool) -> TimedNode:
    """Neighbours as one node: as a call of what `node` calls when they are its own work."""
    spent, cycles = in_turn([unit.spent for unit in run]), sum(unit.cycles for unit in run)
    body = TimedNode(
        kind="sequence",
        name=run[0].name,
        cycles=cycles,
        totals=spent.own,
        rest=spent.rest,
        ipus=spent.ipus,
        parts=run,
        offsets=(*accumulate((unit.cycles for unit in run[:-1]), initial=0),),
    )
    found = replace(node, cycles=cycles, totals=spent.own, rest=spent.rest, parts=(body,), sums={})
    return found if whole else body
