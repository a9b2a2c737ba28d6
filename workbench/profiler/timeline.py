"""The executed program as a tree with durations, from which windows of time are unrolled when asked for.

A body that runs many times is one node with one duration, so a window costs what it shows, not what came before it.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pandas as pd

if TYPE_CHECKING:
    from workbench.profiler.profile import Profile

Totals: TypeAlias = "Counter[tuple[int, str]]"

_IDLE_OF_PHASE = {"fill": "idle_fill", "drain": "idle_drain", "steady": "idle_wait_stage"}
_IDLE_OF_CAUSE = {"host": "idle_wait_host"}


class Context(NamedTuple):
    """What the enclosing calls and loops say about a block; -1 is none."""

    stage: int = -1
    micro_batch: int = -1
    iteration: int = -1
    direction: str = ""


class Block(NamedTuple):
    """A node of the tree at one time."""

    node: Node
    start: int
    context: Context

    @property
    def end(self) -> int:
        """The cycle after its last."""
        return self.start + self.node.cycles


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Node:
    """One node: `cycles` of one execution; `totals` cycles by (ipu, cause), busy and idle, summing per IPU to `cycles`.

    `kind` is step, sequence, repeat, call, if or overlap. Of an `if`, `children` holds the dearest arm alone.
    `offsets` are the starts of a sequence's children. `ipus` are those that work in it.
    """

    kind: str
    name: str
    cycles: int
    totals: Totals
    ipus: frozenset[int]
    children: tuple[Node, ...] = ()
    offsets: tuple[int, ...] = ()
    times: int = 1
    step: int = -1
    idle_cause: str = ""
    call: Context = field(default=Context())

    def busy(self, ipu: int) -> int:
        """Cycles in which an IPU works."""
        return sum(cycles for (place, cause), cycles in self.totals.items() if place == ipu and cause[:5] != "idle_")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Timeline:
    """The tree of a whole call of the program on `ipus` IPUs."""

    root: Node
    ipus: int

    @classmethod
    def from_profile(cls, profile: Profile) -> Timeline:
        """The tree of `meta["trace"]` with the durations of the steps table."""
        builder = _Builder(profile)
        return cls(root=builder.node(profile.meta["trace"]["entry"]), ipus=profile.ipus)

    def walk(self, first: int, last: int, ipu: int | None = None, smallest: int = 0) -> Iterator[Block]:
        """Blocks that overlap cycles [first, last), in order of start; nodes shorter than `smallest` come whole.

        Whole iterations of a loop that are shorter than `smallest` come as one block of their loop's body each.
        """
        return _walk(Block(self.root, 0, Context()), (first, last, ipu, smallest))

    def totals(self, first: int, last: int) -> Totals:
        """Cycles by (ipu, cause) inside [first, last); each IPU sums to the window's length within the program."""
        return _window_totals(self.root, 0, first, last, self.ipus)


_Window: TypeAlias = "tuple[int, int, int | None, int]"


def _walk(block: Block, window: _Window) -> Iterator[Block]:
    node, start, context = block
    first, last, ipu, smallest = window
    if start >= last or (block.end <= first and node.cycles) or start + node.cycles < first:
        return
    if ipu is not None and ipu not in node.ipus:
        return
    if node.kind == "step" or node.cycles < smallest:
        yield block
    elif node.kind == "overlap":
        parts = [_walk(Block(child, start, context), window) for child in node.children]
        yield from heapq.merge(*parts, key=lambda found: found.start)
    else:
        for child in _inside(block, first, last):
            yield from _walk(child, window)


def _inside(block: Block, first: int, last: int) -> Iterator[Block]:
    node, start, context = block
    if node.kind == "sequence":
        begin = max(0, bisect_right(node.offsets, first - start) - 1)
        while begin and node.offsets[begin - 1] + start >= first:
            begin -= 1  # children of no duration that stand at the window's first cycle
        for place in range(begin, len(node.children)):
            if start + node.offsets[place] >= last:
                return
            yield Block(node.children[place], start + node.offsets[place], context)
    elif node.kind == "repeat":
        length = max(1, node.children[0].cycles)
        for turn in range(max(0, (first - start) // length), node.times):
            if start + turn * length >= last:
                return
            inner = Context(context.stage, context.micro_batch, turn, context.direction)
            yield Block(node.children[0], start + turn * node.children[0].cycles, inner)
    else:
        yield Block(node.children[0], start, _called(node, context))


def _called(node: Node, context: Context) -> Context:
    call = node.call
    if node.kind != "call":
        return context
    micro_batch = context.micro_batch
    if call.micro_batch >= 0:
        micro_batch = call.micro_batch + max(0, context.iteration)
    return Context(
        call.stage if call.stage >= 0 else context.stage,
        micro_batch,
        context.iteration,
        call.direction or context.direction,
    )


def _window_totals(node: Node, start: int, first: int, last: int, ipus: int) -> Totals:
    begin, end = max(start, first), min(start + node.cycles, last)
    found: Totals = Counter()
    if begin >= end:
        return found
    if end - begin == node.cycles:
        return node.totals
    if node.kind == "step":
        return Counter(dict.fromkeys(node.totals, end - begin))
    if node.kind == "overlap":
        for child in node.children:
            inner = _window_totals(child, start, first, last, ipus)
            found.update({key: cycles for key, cycles in inner.items() if not key[1].startswith("idle_")})
        return _with_idle(found, end - begin, node.idle_cause, ipus)
    if node.kind == "repeat":
        return _repeat_totals(node, start, (begin, end), ipus)
    for child in _inside(Block(node, start, Context()), first, last):
        found.update(_window_totals(child.node, child.start, first, last, ipus))
    return found


def _repeat_totals(node: Node, start: int, window: tuple[int, int], ipus: int) -> Totals:
    body = node.children[0]
    low, high = (window[0] - start) // body.cycles, -((start - window[1]) // body.cycles)
    found: Totals = Counter()
    whole = range(low + 1, high - 1)
    for turn in {low, high - 1}:
        found.update(_window_totals(body, start + turn * body.cycles, *window, ipus))
    found.update({key: cycles * len(whole) for key, cycles in body.totals.items()})
    return found


def _with_idle(busy: Totals, cycles: int, cause: str, ipus: int) -> Totals:
    working: Counter[int] = Counter()
    for (ipu, _), amount in busy.items():
        working[ipu] += amount
    for ipu in range(ipus):
        if cycles > working[ipu]:
            busy[ipu, cause] += cycles - working[ipu]
    return busy


class _Builder:
    """Makes nodes from the JSON tree; a function's body is one node, shared by its calls."""

    def __init__(self, profile: Profile) -> None:
        steps = profile.tables["steps"]
        columns = [steps[name].tolist() for name in ("id", "name", "cycles", "ipu", "to_ipu", "cause")]
        self.steps: Mapping[int, tuple[Any, ...]] = {row[0]: row for row in zip(*columns, strict=True)}
        self.bodies: Mapping[str, Any] = profile.meta["trace"]["functions"]
        self.made: dict[str, Node] = {}
        self.ipus = profile.ipus

    def node(self, tree: Sequence[Any]) -> Node:
        kind = tree[0]
        if kind == "step":
            return self.step(tree[1])
        if kind == "sequence":
            return self.sequence(tree[1], [self.node(child) for child in tree[2]])
        if kind == "repeat":
            return self.repeat(tree[1], int(tree[2]), self.node(tree[3]))
        if kind == "call":
            return self.call(tree)
        if kind == "if":
            arms = [self.node(child) for child in tree[2]]
            return self.around("if", tree[1], max(arms, key=lambda arm: arm.cycles))
        return self.overlap(tree[1], tree[2], [self.node(child) for child in tree[3]])

    def step(self, step: int) -> Node:
        _, name, cycles, ipu, to_ipu, cause = self.steps[step]
        working = frozenset({ipu} if to_ipu < 0 else {ipu, to_ipu})
        idle = _IDLE_OF_CAUSE.get(cause, "idle_wait_stage")
        totals: Totals = Counter({(place, cause if place in working else idle): cycles for place in range(self.ipus)})
        return Node(kind="step", name=name, cycles=cycles, totals=totals, ipus=working, step=step)

    def sequence(self, name: str, children: list[Node]) -> Node:
        ends = list(accumulate((child.cycles for child in children), initial=0))
        totals: Totals = Counter()
        for child in children:
            totals.update(child.totals)
        return Node(
            kind="sequence",
            name=name,
            cycles=ends[-1],
            totals=totals,
            ipus=_ipus(children),
            children=tuple(children),
            offsets=tuple(ends[:-1]),
        )

    def repeat(self, name: str, times: int, body: Node) -> Node:
        totals: Totals = Counter({key: cycles * times for key, cycles in body.totals.items()})
        return Node(
            kind="repeat",
            name=name,
            cycles=body.cycles * times,
            totals=totals,
            ipus=body.ipus,
            children=(body,),
            times=times,
        )

    def call(self, tree: Sequence[Any]) -> Node:
        _, function, name, _, stage, direction, micro_batch = tree
        if function not in self.made:
            self.made[function] = self.node(self.bodies[function])
        context = Context(
            -1 if stage is None else int(stage), -1 if micro_batch is None else int(micro_batch), -1, direction or ""
        )
        return self.around("call", name or function, self.made[function], context)

    def around(self, kind: str, name: str, body: Node, call: Context = Context()) -> Node:  # noqa: B008
        return Node(
            kind=kind, name=name, cycles=body.cycles, totals=body.totals, ipus=body.ipus, children=(body,), call=call
        )

    def overlap(self, name: str, phase: str, branches: list[Node]) -> Node:
        cycles = max((branch.cycles for branch in branches), default=0)
        totals: Totals = Counter()
        for branch in branches:
            totals.update({key: amount for key, amount in branch.totals.items() if not key[1].startswith("idle_")})
        cause = _IDLE_OF_PHASE[phase]
        return Node(
            kind="overlap",
            name=name,
            cycles=cycles,
            totals=_with_idle(totals, cycles, cause, self.ipus),
            ipus=_ipus(branches),
            children=tuple(branches),
            idle_cause=cause,
        )


def _ipus(nodes: Sequence[Node]) -> frozenset[int]:
    return frozenset(ipu for node in nodes for ipu in node.ipus)


BLOCK_COLUMNS = (
    "step",
    "ipu",
    "replica",
    "stage",
    "micro_batch",
    "iteration",
    "direction",
    "layer",
    "cycles_from",
    "cycles_to",
    "cause",
)


def block_rows(
    profile: Profile, ipu: int | None = None, first: int = 0, last: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """Rows of `BLOCK_COLUMNS` in order of time, one per IPU a step occupies; replicas run alike, so one is shown."""
    steps = profile.tables["steps"]
    columns = [steps[name].tolist() for name in ("id", "layer", "direction", "stage", "cause")]
    known = {row[0]: row for row in zip(*columns, strict=True)}
    end = profile.timeline.root.cycles + 1 if last is None else last
    for node, start, context in profile.timeline.walk(first, end, ipu):
        step, layer, direction, stage, cause = known[node.step]
        for place in sorted(node.ipus) if ipu is None else (ipu,):
            yield (
                step,
                place,
                0,
                context.stage if context.stage >= 0 else stage,
                context.micro_batch,
                context.iteration,
                context.direction or direction,
                layer,
                start,
                start + node.cycles,
                cause,
            )


def blocks(profile: Profile, ipu: int | None, first: int | None, last: int | None, max_rows: int) -> pd.DataFrame:
    """See `Profile.blocks`."""
    rows: list[tuple[Any, ...]] = []
    for row in block_rows(profile, ipu, max(0, first or 0), last):
        if len(rows) >= max_rows:
            break
        rows.append(row)
    return pd.DataFrame(rows, columns=list(BLOCK_COLUMNS))
