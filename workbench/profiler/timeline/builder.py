"""Makes the tree of a timeline from the trace of a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from workbench.base.causes import IDLE_BY_PHASE, Phase, idle_beside
from workbench.base.collection import paused_collection
from workbench.profiler.schema import Stored
from workbench.profiler.timeline.timeline import Context, Later, Node, Spent, Timeline, Totals, in_turn, repeated


class Builder:
    """Makes nodes from the JSON tree; a function's body is one node, shared by its calls (`made`)."""

    def __init__(self, profile: Stored) -> None:
        steps = profile.tables["steps"]
        columns = [steps[name].tolist() for name in ("id", "name", "cycles", "ipu", "to_ipu", "cause")]
        self.steps: Mapping[int, tuple[Any, ...]] = {row[0]: row for row in zip(*columns, strict=True)}
        self.bodies: Mapping[str, Any] = profile.meta["trace"]["functions"]
        self.made: dict[str, Node] = {}
        self._calls: dict[tuple[Any, ...], Node] = {}
        self._lengths: dict[tuple[str, ...], tuple[int, Spent]] = {}
        self._spent: dict[tuple[Any, ...], Spent] = {}  # syncs and copies of one IPU often take the same

    def node(self, tree: Sequence[Any]) -> Node:
        """The node of a part of the trace."""
        kind = tree[0]
        if kind == "step":
            return self._step(tree[1])
        if kind == "sequence":
            return self._sequence(tree[1], [self.node(child) for child in tree[2]])
        if kind == "repeat":
            return self._repeat(tree[1], int(tree[2]), self.node(tree[3]))
        if kind == "call":
            return self._call(tree)
        if kind == "if":
            return self._branch(tree[1], [self.node(child) for child in tree[2]])
        return self._overlap(tree[1], tree[2], tree[3])

    def _step(self, step: int) -> Node:
        _, name, *key = self.steps[step]
        spent = self._spent.get(tuple(key)) or self._spent.setdefault(tuple(key), _spent(*key))
        return _made("step", name, key[0], spent, step=step)

    def _sequence(self, name: str, children: list[Node]) -> Node:
        ends = list(accumulate((child.cycles for child in children), initial=0))
        spent = in_turn([child.spent for child in children])
        return _made("sequence", name, ends[-1], spent, parts=tuple(children), offsets=tuple(ends[:-1]))

    def _repeat(self, name: str, times: int, body: Node) -> Node:
        return _made("repeat", name, body.cycles * times, repeated(body.spent, times), parts=(body,), times=times)

    def _call(self, tree: Sequence[Any]) -> Node:
        key = tuple(tree[:8])  # for which operator it is made does not change what it does
        if key not in self._calls:
            self._calls[key] = self._new_call(*key[1:])
        return self._calls[key]

    def _new_call(
        self,
        function: str,
        name: str,
        ipu: int | None,
        stage: int | None,
        direction: str | None,
        micro_batch: int | None,
        layer: str = "",
    ) -> Node:
        body = self._body(function)
        context = Context(
            stage=-1 if stage is None else int(stage),
            micro_batch=-1 if micro_batch is None else int(micro_batch),
            direction=direction or "",
            layer=layer,
        )
        return _made("call", name or function, body.cycles, body.spent, parts=(body,), function=function, call=context)

    def _body(self, function: str) -> Node:
        if function not in self.made:
            self.made[function] = self.node(self.bodies[function])
        return self.made[function]

    def _branch(self, name: str, arms: list[Node]) -> Node:
        dearest = max(arms, key=lambda arm: arm.cycles)
        # An IPU that works in another arm only waits in this one.
        everywhere = [Spent(Counter(), Counter(), arm.ipus) for arm in arms]
        spent = in_turn([dearest.spent, *everywhere])
        return _made("if", name, dearest.cycles, spent, parts=tuple(arms), arm=arms.index(dearest))

    def _overlap(self, name: str, phase: Phase, trees: Sequence[Any]) -> Node:
        branches = [self._length(tree) for tree in trees]
        cycles = max((length for length, _ in branches), default=0)
        cause = IDLE_BY_PHASE[phase]
        spent = _beside(branches, cycles, cause)
        return _made("overlap", name, cycles, spent, parts=Later(trees=trees, make=self.node), idle_cause=cause)

    def _length(self, tree: Sequence[Any]) -> tuple[int, Spent]:
        """Cycles of a branch and what it takes; calls are added up by function, without a node for each."""
        functions = functions_of(tree)
        if functions is None:
            node = self.node(tree)
            return node.cycles, node.spent
        if functions not in self._lengths:
            bodies = [self._body(function) for function in functions]
            self._lengths[functions] = (sum(body.cycles for body in bodies), in_turn([body.spent for body in bodies]))
        return self._lengths[functions]


def timeline_of(profile: Stored) -> Timeline:
    """The tree of `meta["trace"]` with the durations of the steps table."""
    builder = Builder(profile)
    with paused_collection():
        root = builder.node(profile.meta["trace"]["entry"])
    return Timeline(root=root, functions=builder.made, ipus=int(profile.meta["ipus"]))


def functions_of(tree: Sequence[Any]) -> tuple[str, ...] | None:
    """The functions a branch calls one after another; None when it is anything else."""
    calls = calls_of(tree)
    return tuple([call[1] for call in calls]) if all(call[0] == "call" for call in calls) else None


def calls_of(tree: Sequence[Any]) -> Sequence[Any]:
    """The parts of a branch in turn."""
    return tree[2] if tree[0] == "sequence" else (tree,)


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


def _spent(cycles: int, ipu: int, to_ipu: int, cause: str) -> Spent:
    """What one execution of a step takes of the IPUs it occupies, and of each other one."""
    working = frozenset({ipu} if to_ipu < 0 else {ipu, to_ipu})
    own = Counter({(place, cause): cycles for place in working})
    return Spent(own, Counter({idle_beside(cause): cycles}), working)


def _made(kind: str, name: str, cycles: int, spent: Spent, **more: Any) -> Node:
    return Node(kind=kind, name=name, cycles=cycles, totals=spent.own, rest=spent.rest, ipus=spent.ipus, **more)
