"""Outline, runs: which runs of operators of a function are equal, so that one body can stand for all of them.

A run is a stretch of neighbouring operators of one layer and direction that are not planned by themselves: chains,
reductions, norms and the like, with the views between them, sums over replicas, and loads of variables that the stretch
stores again. Two runs are equal when they do the same to values of the same types, use each other's results alike and
overwrite the same operands. A constant from outside belongs to the run, any other value from outside is an argument;
what outside reads of any of them is a result of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.engine import ops
from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.graph.flow import INLINE, flat
from workbench.engine.lower.in_place import flat_nodes
from workbench.engine.program.remote_buffers import LOAD, STORE

Signature = tuple[object, ...]
LEAST_CALLS = 3  # with two calls the copies of arguments take about what the second body would


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Neighbouring operators with the values they read from outside, in order of first use, but for those they load."""

    nodes: tuple[Node, ...]
    arguments: tuple[Value, ...]

    @property
    def loads(self) -> tuple[Node, ...]:
        """The loads among the operators, in order."""
        return tuple(node for node in self.nodes if node.op == LOAD)

    @property
    def stores(self) -> tuple[Node, ...]:
        """The stores among the operators, in order."""
        return tuple(node for node in self.nodes if node.op == STORE)

    @property
    def values(self) -> tuple[Value, ...]:
        """Every result, in order."""
        return tuple(value for node in self.nodes for value in node.results)


@dataclass(frozen=True, slots=True, eq=False)
class RunClass:
    """Equal runs. `results` are the numbers among `Run.values` that are read outside or that views read outside show,
    `shown` the numbers among `Run.nodes` of those views, and `common` the numbers among `Run.arguments` that are the
    same value for all runs.
    """

    runs: tuple[Run, ...]
    results: tuple[int, ...]
    shown: tuple[int, ...]
    common: frozenset[int]


def is_view(node: Node) -> bool:
    """Whether the node only says how memory is seen."""
    return ops.family_of(node).pure_view


@dataclass(slots=True)
class RunFinder:
    """Finds classes of equal runs in one function. `reuse` maps a result to the operand it overwrites."""

    graph: Graph
    function: Function
    reuse: Mapping[Value, Value]
    _constants: dict[Value, Node] = field(default_factory=dict)
    _readers: dict[Value, set[Node | None]] = field(
        default_factory=dict
    )  # value → top-level nodes that read it, None for the caller
    _single: dict[RunClass, list[RunClass]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in flat(self.graph, self.function):
            if node.op == "constant":
                self._constants[node.results[0]] = node
        for node in self.function.nodes:
            for value in self._read_by(node):
                self._readers.setdefault(value, set()).add(node)
        for value in self.function.results:
            self._readers.setdefault(value, set()).add(None)

    def classes(self) -> list[RunClass]:
        """Runs that are as long as they can be, then the operators of those that occur too seldom, one by one."""
        longest = list(self._stretches())
        found = self.equal(longest)
        taken = {node for each in found for run in each.runs for node in run.nodes}
        left = [[node] for run in longest for node in run if node not in taken and not is_view(node)]
        return [*found, *self.equal(left)]

    def single(self, shared: RunClass) -> list[RunClass]:
        """The classes of the single operators of a class."""
        if shared not in self._single:
            self._single[shared] = self.equal([node] for run in shared.runs for node in run.nodes if not is_view(node))
        return self._single[shared]

    def equal(self, stretches: Iterable[Sequence[Node]]) -> list[RunClass]:
        """The classes of equal stretches that occur often enough."""
        found: dict[Signature, list[Run]] = {}
        for nodes in stretches:
            reading = _Reading(self.graph, self.reuse, self._constants)
            signature = reading.signature(nodes)
            if signature is not None:
                found.setdefault(signature, []).append(Run(tuple(nodes), tuple(reading.arguments)))
        return [self._class(runs) for runs in found.values() if len(runs) >= LEAST_CALLS]

    def _class(self, runs: Sequence[Run]) -> RunClass:
        results, shown = _bases(runs[0], {number for run in runs for number in self._leaving(run)})
        common = {
            number
            for number, first in enumerate(runs[0].arguments)
            if all(run.arguments[number] is first for run in runs)
        }
        return RunClass(tuple(runs), results, shown, frozenset(common))

    def _leaving(self, run: Run) -> Iterator[int]:
        own = set[Node | None](run.nodes)
        gone = {node.operands[0] for node in run.stores}  # they are where they were stored
        for number, value in enumerate(run.values):
            if value not in gone and self._readers.get(value, set()) - own:
                yield number

    def _read_by(self, node: Node) -> Iterator[Value]:
        yield from node.operands
        if node.op in INLINE:
            for inner in flat(self.graph, self.graph.functions[node.calls[0]]):
                yield from inner.operands

    def _stretches(self) -> Iterator[list[Node]]:
        """The longest stretches of one layer and direction without anything that cannot be in a body."""
        current: list[Node] = []
        where: object = None
        for node in self.function.nodes:
            if not self._allowed(node):
                yield from _without_outer_views(current)
                current = []
                continue
            here = (node.origin.layer, node.origin.call, node.origin.direction, node.origin.shard)
            if not is_view(node) and here != where:
                yield from _without_outer_views(current)
                current, where = [], here
            current.append(node)
        yield from _without_outer_views(current)

    def _allowed(self, node: Node) -> bool:
        inside = flat_nodes(self.graph, self.graph.functions[node.calls[0]]) if node.op == "region" else ()
        return all(ops.family_of(each).shareable for each in (node, *inside))


def _bases(run: Run, leaving: set[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What has to leave a run so that `leaving` can be seen outside, and the numbers of the views that show it."""
    wanted = {run.values[number] for number in leaving}
    shown: list[int] = []
    for number in reversed(range(len(run.nodes))):
        node = run.nodes[number]
        if is_view(node) and any(value in wanted for value in node.results):
            shown.append(number)
            wanted.difference_update(node.results)
            wanted.update(node.operands)
    bases = tuple(number for number, value in enumerate(run.values) if value in wanted)
    return bases, tuple(reversed(shown))


def _without_outer_views(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """The stretch from its first operator to its last; nothing when all are views."""
    places = [place for place, node in enumerate(nodes) if not is_view(node)]
    if places:
        yield list(nodes[places[0] : places[-1] + 1])


@dataclass(slots=True)
class _Reading:
    """Reads a stretch and numbers its values: what makes it equal to another, and its arguments."""

    graph: Graph
    reuse: Mapping[Value, Value]
    constants: Mapping[Value, Node]
    arguments: list[Value] = field(default_factory=list)
    known: dict[Value, Signature] = field(default_factory=dict)
    loaded: dict[object, int] = field(default_factory=dict)  # key of a load → its number
    stored: set[object] = field(default_factory=set)
    made: int = 0

    def signature(self, nodes: Sequence[Node]) -> Signature | None:
        """The stretch without names and places; None if it overwrites what it does not read or keeps what it loads."""
        parts = [part for node in nodes for part in self._node(node)]
        over = self._overwritten(nodes) if self.stored == set(self.loaded) else None
        types = tuple((value.shape, value.dtype) for value in self.arguments)
        return None if over is None else (tuple(parts), over, types, nodes[0].origin.shard)

    def _node(self, node: Node) -> Iterator[Signature]:
        if node.op in (LOAD, STORE):
            yield self._remote(node)
            return
        if node.op in INLINE:
            operands = tuple(self._reference(value) for value in node.operands)
            for inner in self.graph.functions[node.calls[0]].nodes:
                yield from self._node(inner)
        else:
            operands = tuple(self._reference(value) for value in node.operands)
        for value in node.results:
            if value not in self.known:
                self.known[value] = ("made", self.made)
                self.made += 1
        results = tuple((*self.known[value], value.shape, value.dtype) for value in node.results)
        yield (node.op, node.attrs, node.times, operands, results, node.origin.direction, node.origin.region)

    def _remote(self, node: Node) -> Signature:
        """A load or store without the name of its variable; a load of what has been read before is like no other."""
        (value,), key = node.operands, node.attr("key")
        if node.op == STORE:
            self.stored.add(key)
            return (STORE, self.loaded.get(key, key), self._reference(value), node.origin.direction)
        number = self.loaded.setdefault(key, len(self.loaded))
        told = (LOAD, number, node.attr("remote"), node.attr("shards"), value.shape, value.dtype, node.origin.direction)
        return told if self.known.setdefault(value, ("loaded", number)) == ("loaded", number) else (*told, key)

    def _reference(self, value: Value) -> Signature:
        if value not in self.known:
            constant = self.constants.get(value)
            if constant is not None:
                return ("constant", constant.attrs, value.shape, value.dtype)
            self.known[value] = ("argument", len(self.arguments))
            self.arguments.append(value)
        return self.known[value]

    def _overwritten(self, nodes: Sequence[Node]) -> Signature | None:
        """What each result overwrites; None when that is none of the values the stretch knows."""
        found: list[object] = []
        for node in nodes:
            inner = flat(self.graph, self.graph.functions[node.calls[0]]) if node.op in INLINE else ()
            for value in (value for each in (node, *inner) for value in each.results):
                old = self.reuse.get(value)
                if old is not None and old not in self.known:
                    return None
                found.append(None if old is None else self.known[old])
        return tuple(found)
