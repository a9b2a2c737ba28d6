"""The executed program as a tree with durations, from which windows of time are unrolled when asked for.

A body that runs many times is one node with one duration, so a window costs what it shows, not what came before it.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """What the enclosing calls and loops say about a block; a stage or micro-batch of -1 is none.

    `iteration` is that of the innermost loop, `lexical` that of the innermost loop of the same body.
    """

    stage: int = -1
    micro_batch: int = -1
    iteration: int = 0
    direction: str = ""
    lexical: int = 0


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

    `kind` is step, sequence, repeat, call, if, overlap or run (some neighbours of a sequence). `arm` is the dearest arm
    of an `if`. `offsets` are the starts of a sequence's children. `ipus` are those that work in it. `function` names
    the body of a call. `sums` keeps what `totals` add up to before each child of a sequence, once it was asked for.
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
    arm: int = 0
    function: str = ""
    call: Context = field(default=Context())
    sums: dict[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)


def _is_step(node: Node) -> bool:
    return node.kind == "step"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Timeline:
    """The tree of a whole call of the program on `ipus` IPUs."""

    root: Node
    functions: Mapping[str, Node]
    ipus: int

    @classmethod
    def from_profile(cls, profile: Profile) -> Timeline:
        """The tree of `meta["trace"]` with the durations of the steps table."""
        builder = _Builder(profile)
        return cls(root=builder.node(profile.meta["trace"]["entry"]), functions=builder.made, ipus=profile.ipus)

    def walk(
        self,
        first: int,
        last: int,
        ipu: int | None = None,
        *,
        whole: Callable[[Node], bool] = _is_step,
        smallest: int = 0,
    ) -> Iterator[Block]:
        """Blocks that touch cycles [first, last), in order of start: steps, and the nodes that are to come `whole`.

        What is shorter than `smallest` comes whole too, neighbours of one sequence together as a node of kind "run"
        up to that length. Nodes without duration are left out.
        """
        return _walk(Block(self.root, 0, Context()), (first, last, ipu, whole, smallest))

    def totals(self, first: int, last: int) -> Totals:
        """Cycles by (ipu, cause) inside [first, last); each IPU sums to the window's length within the program."""
        found = _window_totals(self.root, 0, first, last, self.ipus)
        return Counter({key: amount for key, amount in found.items() if amount})


_Window: TypeAlias = "tuple[int, int, int | None, Callable[[Node], bool], int]"


def _walk(block: Block, window: _Window) -> Iterator[Block]:
    node, start, context = block
    first, last, ipu, whole, smallest = window
    if not node.cycles or start >= last or block.end <= first or (ipu is not None and ipu not in node.ipus):
        return
    if node.kind in ("step", "run") or node.cycles < smallest or whole(node):
        yield block
    elif node.kind == "overlap":
        parts = [_walk(Block(child, start, context), window) for child in node.children]
        yield from heapq.merge(*parts, key=lambda found: found.start)
    else:
        for child in _inside(block, first, last, smallest):
            yield from _walk(child, window)


def _inside(block: Block, first: int, last: int, smallest: int = 0) -> Iterator[Block]:
    node, start, context = block
    if node.kind == "sequence":
        place = max(0, bisect_right(node.offsets, first - start) - 1)
        while place < len(node.children) and start + node.offsets[place] < last:
            offset = node.offsets[place]
            stop = (
                max(place + 1, bisect_right(node.offsets, offset + smallest, lo=place) - 1) if smallest else place + 1
            )
            child = node.children[place] if stop == place + 1 else _run(node, place, stop)
            yield Block(child, start + offset, context)
            place = stop
    elif node.kind == "repeat":
        body = node.children[0]
        for turn in range(max(0, (first - start) // body.cycles), node.times):
            if start + turn * body.cycles >= last:
                return
            yield Block(body, start + turn * body.cycles, context._replace(iteration=turn, lexical=turn))
    else:
        yield Block(node.children[node.arm], start, called(node, context))


def _run(node: Node, first: int, stop: int) -> Node:
    """Children [first, stop) of a sequence as one node, by sums kept with the sequence."""
    if not node.sums:
        for key in node.totals:
            parts = accumulate((child.totals[key] for child in node.children), initial=0)
            node.sums[key] = tuple(parts)
    totals: Totals = Counter()
    for key, sums in node.sums.items():
        if sums[stop] > sums[first]:
            totals[key] = sums[stop] - sums[first]
    longest = max(node.children[first:stop], key=lambda child: child.cycles)
    return Node(
        kind="run",
        name=longest.name,
        cycles=node.offsets[stop] - node.offsets[first]
        if stop < len(node.offsets)
        else node.cycles - node.offsets[first],
        totals=totals,
        ipus=frozenset(key[0] for key in totals if not key[1].startswith("idle_")),
        children=node.children[first:stop],
    )


def called(node: Node, context: Context) -> Context:
    """What holds inside a node: of a call its own stage, micro-batch and direction, else what held before."""
    call = node.call
    if node.kind != "call":
        return context
    return Context(
        call.stage if call.stage >= 0 else context.stage,
        call.micro_batch + context.lexical if call.micro_batch >= 0 else context.micro_batch,
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
        branches = [(child, _window_totals(child, start, first, last, ipus)) for child in node.children]
        return _side_by_side(branches, end - begin, node.idle_cause, ipus)
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


def _side_by_side(branches: Sequence[tuple[Node, Totals]], cycles: int, idle: str, ipus: int) -> Totals:
    """Totals of branches on different IPUs: each its own, and idle until all have ended."""
    found: Totals = Counter()
    resting = set(range(ipus))
    for branch, totals in branches:
        own = {key: amount for key, amount in totals.items() if key[0] in branch.ipus}
        found.update(own)
        for ipu in branch.ipus:
            found[ipu, idle] += cycles - sum(amount for key, amount in own.items() if key[0] == ipu)
        resting -= branch.ipus
    found.update({(ipu, idle): cycles for ipu in resting})
    return found


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
            return self.branch(tree[1], arms)
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
            -1 if stage is None else int(stage), -1 if micro_batch is None else int(micro_batch), 0, direction or ""
        )
        body = self.made[function]
        return Node(
            kind="call",
            name=name or function,
            cycles=body.cycles,
            totals=body.totals,
            ipus=body.ipus,
            children=(body,),
            function=function,
            call=context,
        )

    def branch(self, name: str, arms: list[Node]) -> Node:
        dearest = max(arms, key=lambda arm: arm.cycles)
        return Node(
            kind="if",
            name=name,
            cycles=dearest.cycles,
            totals=dearest.totals,
            ipus=_ipus(arms),
            children=tuple(arms),
            arm=arms.index(dearest),
        )

    def overlap(self, name: str, phase: str, branches: list[Node]) -> Node:
        cycles = max((branch.cycles for branch in branches), default=0)
        cause = _IDLE_OF_PHASE[phase]
        return Node(
            kind="overlap",
            name=name,
            cycles=cycles,
            totals=_side_by_side([(branch, branch.totals) for branch in branches], cycles, cause, self.ipus),
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
                direction if direction == "recompute" else context.direction or direction,
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
