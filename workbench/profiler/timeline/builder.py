"""Makes the tree of a timeline from the control tree of a profile and the table of its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from workbench.base.arrays import IntArray
from workbench.base.causes import IDLE_BY_PHASE, idle_beside
from workbench.base.collection import paused_collection
from workbench.profiler.schema import Table
from workbench.profiler.timeline import tree
from workbench.profiler.timeline.timeline import (
    Later,
    Spent,
    Stretch,
    TimedNode,
    Timeline,
    Totals,
    enclosing_of,
    in_turn,
    repeated,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Course:
    """What a program executes, read when it is asked for from the data of one of its profiles: once for all of them
    that differ in other meta."""

    meta: Mapping[str, Any]
    tables: Mapping[str, Table]
    arrays: Mapping[str, IntArray]

    @cached_property
    def control(self) -> tree.ControlTree:
        """The control tree."""
        steps = frozenset(self.tables["steps"]["id"].tolist())
        return tree.parse(self.meta["trace"], steps=steps, ipus=int(self.meta["ipus"]))

    @cached_property
    def timeline(self) -> Timeline:
        """The timeline."""
        return timeline_of(self)


def timeline_of(profile: tree.Controlled) -> Timeline:
    """The control tree of a profile with the durations of its steps table."""
    builder = _Builder(profile.control.functions, profile.tables["steps"])
    with paused_collection():
        root = builder.node(profile.control.entry)
    return Timeline(root=root, functions=builder.made, ipus=int(profile.meta["ipus"]))


class _Builder:
    """Makes nodes from parts; a function's body is one node, shared by its calls (`made`)."""

    def __init__(self, bodies: Mapping[str, tree.Part], steps: Table) -> None:
        ids, names, cycles, *where = (
            steps[name].tolist() for name in ("id", "name", "cycles", "ipu", "to_ipu", "cause")
        )
        rows = zip(names, cycles, zip(*where, strict=True), strict=True)
        self.steps: Mapping[int, tuple[str, int, tuple[Any, ...]]] = dict(zip(ids, rows, strict=True))
        self.bodies = bodies
        self.made: dict[str, TimedNode] = {}
        self._calls: dict[tuple[Any, ...], TimedNode] = {}
        self._lengths: dict[tuple[str, ...], tuple[int, Spent]] = {}
        self._spent: dict[tuple[Any, ...], Spent] = {}  # syncs and copies of one IPU often take the same

    def node(self, part: tree.Part) -> TimedNode:
        """The node of a part of the control tree."""
        match part:
            case tree.Step():
                return self._step(part.id)
            case tree.Sequence():
                return self._sequence(part)
            case tree.Repeat():
                return self._repeat(part.name, part.times, self.node(part.body))
            case tree.Call():
                return self._call(part)
            case tree.If():
                return self._branch(part.name, [self.node(arm) for arm in part.arms])
            case tree.Overlap():
                return self._overlap(part)

    def _step(self, step: int) -> TimedNode:
        name, cycles, where = self.steps[step]
        key = (cycles, *where)
        spent = self._spent.get(key) or self._spent.setdefault(key, in_turn([_spent(*key)]))
        return _made("step", name, cycles, spent, step=step)

    def _sequence(self, sequence: tree.Sequence) -> TimedNode:
        """Its steps get nodes when they are asked for; what they take is added up by where and on what."""
        known: dict[int, TimedNode] = {}
        lengths: list[int] = []
        together: dict[tuple[Any, ...], int] = {}
        timed = self.steps
        for place, part in enumerate(sequence.children):
            if isinstance(part, tree.Step):
                _, cycles, where = timed[part.id]
                together[where] = together.get(where, 0) + cycles
            else:
                known[place] = node = self.node(part)
                cycles = node.cycles
            lengths.append(cycles)
        ends = list(accumulate(lengths, initial=0))
        steps = [_spent(cycles, *where) for where, cycles in together.items()]
        spent = in_turn([*steps, *[node.spent for node in known.values()]])
        parts = Later(branches=sequence.children, make=self.node, known=known) if sequence.children else ()
        return _made("sequence", sequence.name, ends[-1], spent, parts=parts, offsets=tuple(ends[:-1]))

    def _repeat(self, name: str, times: int, body: TimedNode) -> TimedNode:
        return _made("repeat", name, body.cycles * times, repeated(body.spent, times), parts=(body,), times=times)

    def _call(self, call: tree.Call) -> TimedNode:
        key = (call.micro_batch, *call.work)
        if key not in self._calls:
            self._calls[key] = self._new_call(call)
        return self._calls[key]

    def _new_call(self, call: tree.Call) -> TimedNode:
        body = self._body(call.function)
        name, function = call.name or call.function, call.function
        return _made("call", name, body.cycles, body.spent, parts=(body,), function=function, call=enclosing_of(call))

    def _body(self, function: str) -> TimedNode:
        if function not in self.made:
            self.made[function] = self.node(self.bodies[function])
        return self.made[function]

    def _branch(self, name: str, arms: list[TimedNode]) -> TimedNode:
        if not arms:
            return _made("if", name, 0, in_turn([]))
        dearest = max(arms, key=lambda arm: arm.cycles)
        # An IPU that works in another arm only waits in this one.
        everywhere = [Spent(Counter(), Counter(), arm.ipus) for arm in arms]
        spent = in_turn([dearest.spent, *everywhere])
        return _made("if", name, dearest.cycles, spent, parts=tuple(arms), arm=arms.index(dearest))

    def _overlap(self, overlap: tree.Overlap) -> TimedNode:
        branches = [self._length(branch) for branch in overlap.branches]
        cycles = max((length for length, _ in branches), default=0)
        cause = IDLE_BY_PHASE[overlap.phase]
        spent = _beside(branches, cycles, cause)
        parts = Later(branches=overlap.branches, make=self.node)
        return _made("overlap", overlap.name, cycles, spent, parts=parts, idle_cause=cause)

    def _length(self, branch: tree.Part) -> tuple[int, Spent]:
        """Cycles of a branch and what it takes; calls are added up by function, without a node for each."""
        functions = _functions_of(branch)
        if functions is None:
            node = self.node(branch)
            return node.cycles, node.spent
        if functions not in self._lengths:
            bodies = [self._body(function) for function in functions]
            self._lengths[functions] = (sum(body.cycles for body in bodies), in_turn([body.spent for body in bodies]))
        return self._lengths[functions]


def _functions_of(branch: tree.Part) -> tuple[str, ...] | None:
    """The functions a branch calls one after another; None when it is anything else."""
    calls = [part for part in tree.in_order(branch) if isinstance(part, tree.Call)]
    return tuple([call.function for call in calls]) if len(calls) == len(tree.in_order(branch)) else None


def _beside(branches: Sequence[tuple[int, Spent]], cycles: int, idle: str) -> Spent:
    """Branches on different IPUs at the same time; each IPU's causes sum to its branch's length."""
    own: Totals = Counter()
    for length, part in branches:
        for key, amount in part.own.items():
            own[key] = own.get(key, 0) + amount
        if cycles > length:
            for ipu in part.ipus:
                own[ipu, idle] = own.get((ipu, idle), 0) + cycles - length
    ipus = frozenset(ipu for _, part in branches for ipu in part.ipus)
    return Spent(own, Counter({idle: cycles} if cycles else {}), ipus)


def _spent(cycles: int, ipu: int, to_ipu: int, cause: str) -> Stretch:
    """What one execution of a step takes of the IPUs it occupies, and of each other one."""
    working = frozenset({ipu} if to_ipu < 0 else {ipu, to_ipu})
    return {(place, cause): cycles for place in working}, {idle_beside(cause): cycles}, working


def _made(kind: str, name: str, cycles: int, spent: Spent, **more: Any) -> TimedNode:
    return TimedNode(kind=kind, name=name, cycles=cycles, totals=spent.own, rest=spent.rest, ipus=spent.ipus, **more)
