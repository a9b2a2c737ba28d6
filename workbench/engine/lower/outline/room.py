"""Outline, room: how much may be held around a call without more memory being needed at any time.

What a body holds twice counts only as far as it rises over what the IPU needs anyway. That is known of the planned
operators lowered so far: what is live where each of them stands, and what it holds itself. Where a run stands, what is
live is left free of that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from workbench.base.arrays import IntArray
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import RESIDENT_ROLES, Function, Graph, Node, Value
from workbench.engine.graph.flow import INLINE, flat
from workbench.engine.graph.stages import stage_calls
from workbench.engine.program import Program, Variable, leaves


@dataclass(frozen=True, slots=True, eq=False)
class _Spans:
    """Values of a function with the place of the node that makes each (-1: none) and of the last that reads it.

    They come in the order in which they are made; `ending` are their numbers in the order in which they are last read.
    """

    values: tuple[Value, ...]
    made: IntArray
    last: IntArray
    ending: IntArray
    number: dict[Value, int]

    def is_live(self, value: Value, place: int) -> bool:
        """Whether a value is there before the node at a place, and read by it or later."""
        number = self.number.get(value)
        return number is not None and bool(self.made[number] < place <= self.last[number])

    def made_from(self, first: int, place: int) -> list[Value]:
        """What is made by the nodes from one place to before another."""
        begin, end = np.searchsorted(self.made, (first, place)).tolist()
        return list(self.values[begin:end])

    def read_from(self, first: int, place: int) -> list[Value]:
        """What is last read by them."""
        begin, end = np.searchsorted(self.last, (first, place), sorter=self.ending).tolist()
        return [self.values[number] for number in self.ending[begin:end].tolist()]


@dataclass(slots=True, eq=False)
class _Live:
    """What is live at a place of one function, kept up from one question to the next one further on.

    `bound` is the lowering's list of values as they are placed, of which so many are `heard`; `counted` are the
    variables of each live value, `held` how many values hold a variable and its bytes, of which `total` is the sum.
    """

    function: str
    bound: list[Value]
    place: int = -1
    heard: int = 0
    counted: dict[Value, tuple[int, ...]] = field(default_factory=dict)
    held: dict[int, tuple[int, IntArray]] = field(default_factory=dict)
    total: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    def move(self, place: int, spans: _Spans, lowering: Lowering) -> None:
        """Go on to a place: what has been read for the last time leaves, what was made or placed since is counted."""
        placed = dict.fromkeys(self.bound[self.heard :])
        for value in (*spans.read_from(self.place, place), *placed):
            self._release(value)
        for value in (*spans.made_from(self.place, place), *placed):
            if value not in self.counted and spans.is_live(value, place) and lowering.has(value):
                self._count(value, lowering)
        self.place, self.heard = place, len(self.bound)

    def _count(self, value: Value, lowering: Lowering) -> None:
        self.counted[value] = variables = tuple(dict.fromkeys(lowering.get(value).variables))
        for number in variables:
            variable = lowering.emit.variables[number]
            if variable.always_live:
                continue
            holders, size = self.held.get(number, (0, variable.bytes_per_tile))
            self.held[number] = holders + 1, size
            if not holders:
                self.total += size

    def _release(self, value: Value) -> None:
        for number in self.counted.pop(value, ()):
            if number in self.held:
                holders, size = self.held.pop(number)
                if holders > 1:
                    self.held[number] = holders - 1, size
                else:
                    self.total -= size


@dataclass(slots=True)
class Heard:
    """What is noted and asked while a body is lowered: `noted` is the most that it was told to be needed, int64[tiles].

    `asked`: for each question that `Room.fits` answered, what must have been needed before the body for a yes.
    """

    noted: IntArray | None = None
    asked: list[tuple[IntArray, bool]] = field(default_factory=list)


@dataclass(slots=True)
class Room:
    """What has been needed so far, int64[tiles] by IPU; known in the entry and what it calls as stages."""

    spans: dict[str, _Spans] = field(default_factory=dict)
    places: dict[Node, tuple[str, int]] = field(default_factory=dict)  # node → function and place in it
    shares: dict[str, float] = field(default_factory=dict)  # function → runs of it, of those of what runs most
    needed: dict[int, IntArray] = field(default_factory=dict)
    heard: Heard | None = None
    live: _Live | None = None

    def add(self, graph: Graph) -> None:
        """Take over the functions of a graph."""
        calls = {call.function.name: call.node for call in stage_calls(graph)}
        most = max((node.times for node in calls.values()), default=1)
        self.shares = {name: node.times / most for name, node in calls.items()}
        described = zip(graph.body.params, graph.inputs, strict=True)
        resident = {value for value, given in described if given.role in RESIDENT_ROLES}
        for function in (graph.functions[name] for name in (graph.entry, *calls)):
            if function.name in calls:
                pairs = zip(function.params, calls[function.name].operands, strict=True)
                resident |= {param for param, value in pairs if value in resident}
            self.places.update((node, (function.name, place)) for place, node in enumerate(function.nodes))
            self.spans[function.name] = _spans(graph, function, resident)

    def live_bytes(self, node: Node, lowering: Lowering) -> IntArray | None:
        """What is live where a node stands, of the values of its function, int64[tiles]; None if that is unknown."""
        if node not in self.places:
            return None
        name, place = self.places[node]
        live = self.live
        if live is None or live.function != name or live.bound is not lowering.bound or place < live.place:
            live = self.live = _Live(name, lowering.bound, total=np.zeros(lowering.tiles, np.int64))
        live.move(place, self.spans[name], lowering)
        return live.total.copy()

    def share_of_turns(self, node: Node) -> float:
        """How often the function of a node runs, of the times that those run which run most: once for many
        micro-batches, or with each.
        """
        return self.share_of(self.places.get(node, ("", 0))[0])

    def share_of(self, function: str) -> float:
        """The same of a function by name."""
        return self.shares.get(function, 1.0)

    def unused(self) -> Room:
        """The same functions, of which nothing has been lowered yet."""
        return Room(spans=self.spans, places=self.places, shares=self.shares)

    def note(self, node: Node, held_bytes: IntArray, lowering: Lowering) -> None:
        """A planned operator holds so much while it runs, int64[tiles], besides what is live."""
        live = self.live_bytes(node, lowering)
        if live is not None:
            self.need(lowering.emit.ipu, live + held_bytes)

    def need(self, ipu: int, least_bytes: IntArray) -> None:
        """An IPU needs at least so much at some time, int64[tiles]."""
        self.needed[ipu] = np.maximum(self.needed.get(ipu, 0), least_bytes)
        if self.heard is not None:
            noted = self.heard.noted
            self.heard.noted = least_bytes if noted is None else np.maximum(noted, least_bytes)

    def fits(
        self,
        node: Node,
        own_bytes: IntArray,
        twice_bytes: IntArray,
        kept_bytes: IntArray,
        most_bytes: int,
        lowering: Lowering,
    ) -> bool:
        """Whether a body where a node stands takes at most so much on every tile: what is kept for it, and of what it
        holds twice, which is part of its own, as much as its own rises over what is needed anyway. int64[tiles] each.
        """
        live, needed = self.live_bytes(node, lowering), self.needed.get(lowering.emit.ipu)
        if live is None or needed is None:
            return int((kept_bytes + twice_bytes).max()) <= most_bytes
        if int(kept_bytes.max()) > most_bytes:
            return False
        least = np.where(kept_bytes + twice_bytes > most_bytes, live + own_bytes + kept_bytes - most_bytes, 0)
        answer = bool((needed >= least).all())
        if self.heard is not None:
            noted = self.heard.noted
            self.heard.asked.append((least if noted is None else np.where(noted >= least, 0, least), answer))
        return answer


def _spans(graph: Graph, function: Function, resident: Collection[Value]) -> _Spans:
    """The spans of a function's values, but for those that are always there."""
    made = dict.fromkeys(function.params, -1)
    values = {value: value for value in function.params}
    last: dict[Value, int] = {}
    for place, node in enumerate(function.nodes):
        for value in node.results:
            made[value], values[value] = place, value
        inner = flat(graph, graph.functions[node.calls[0]]) if node.op in INLINE else ()
        for value in (value for each in (node, *inner) for value in each.operands):
            last[value] = place
    last.update((value, len(function.nodes)) for value in function.results)
    read = [name for name in values if name in last and name not in resident]
    ends = np.array([last[name] for name in read], dtype=np.int64)
    return _Spans(
        values=tuple(values[name] for name in read),
        made=np.array([made[name] for name in read], dtype=np.int64),
        last=ends,
        ending=np.argsort(ends, kind="stable"),
        number={values[name]: number for number, name in enumerate(read)},
    )


def held_at_once(program: Program, names: Collection[int], lowering: Lowering) -> IntArray:
    """The least that variables of a body need, int64[tiles]: each is held from its first access to its last."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for place, step in enumerate(leaves(program)):
        for name in (*step.reads, *step.writes):
            if name in names:
                first.setdefault(name, place)
                last[name] = place
    most = np.zeros(lowering.tiles, np.int64)
    for place in set(first.values()):  # what is live is most where something has just come
        live = [lowering.emit.variables[name] for name in first if first[name] <= place <= last[name]]
        most = np.maximum(most, _sum(live, lowering.tiles))
    return most


def _sum(variables: Iterable[Variable], tiles: int) -> IntArray:
    total = np.zeros(tiles, np.int64)
    for variable in variables:
        if not variable.always_live:
            total += variable.bytes_per_tile
    return total
