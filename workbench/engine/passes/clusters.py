"""Clusters of nodes that run together at the place of their last member: what fusion and recognition share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from workbench.engine.cost import Plain
from workbench.engine.graph import Function, Node, Value
from workbench.engine.graph.origin import Origin
from workbench.engine.ops.pointwise import is_free, is_unit_reshape


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Who makes and who reads each value of a function."""

    nodes: tuple[Node, ...]  # by place
    place_of: dict[Node, int]  # node → place
    producer: dict[Value, Node]  # value → node
    uses: dict[Value, list[int]]  # value → places of its readers, in order
    read: dict[Node, list[Value]]  # node → what it reads, through free nodes; none of a free node

    def read_before(
        self,
        members: Sequence[Node],
        place: int,
        cluster_of: Mapping[Node, object],
        cluster: object,
        others: Sequence[object] = (),
    ) -> bool:
        """Whether a node outside reads a value of `members` before `place`: then they cannot move there.

        Inside are the nodes of their `cluster`, and of `others` that move along.
        """
        for member in members:
            for value in member.results:
                for use in self.uses.get(value, ()):
                    if use >= place:
                        break
                    reader = cluster_of.get(self.nodes[use])
                    if reader is not cluster and not any(reader is each for each in others):
                        return True
        return False


@lru_cache(maxsize=1)  # rewrites that change nothing hand the same function on
def flow_of(function: Function) -> Flow:
    """The flow of a function's values. A free node is no reader: whoever reads its result reads its operands."""
    producer = {value: node for node in function.nodes for value in node.results}
    free = {value for node in function.nodes if is_free(node) for value in node.results}
    uses: defaultdict[Value, list[int]] = defaultdict(list)
    read: dict[Node, list[Value]] = {}
    for place, node in enumerate(function.nodes):
        if is_free(node):
            continue
        direct = free.isdisjoint(node.operands)
        read[node] = found = list(node.operands[::-1]) if direct else read_through(node, producer)
        for value in found:
            uses[value].append(place)
    places = {node: place for place, node in enumerate(function.nodes)}
    uses.default_factory = None
    return Flow(nodes=function.nodes, place_of=places, producer=producer, uses=uses, read=read)


def read_through(node: Node, producer: dict[Value, Node]) -> list[Value]:
    """The node's operands, and what the free nodes among their producers read, and so on."""
    return _seen_through(node.operands, producer)


def _seen_through(values: Sequence[Value], producer: dict[Value, Node]) -> list[Value]:
    found: list[Value] = []
    pending = list(values)
    while pending:
        value = pending.pop()
        found.append(value)
        made_by = producer.get(value)
        if made_by is not None and is_free(made_by):
            pending += made_by.operands
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Closing:
    """How a cluster becomes one node: its op, attributes and origin."""

    op: str
    attrs: tuple[tuple[str, Plain], ...]
    origin: Origin
    label: str


def collapse(
    function: Function, clusters: Sequence[tuple[list[Node], Closing]], flow: Flow
) -> tuple[Function, dict[str, Function]]:
    """Replace each cluster by a node that calls an inline body.

    Free nodes (constants, broadcasts, counters) are copied into the bodies that read them; what else reads one, or a
    view that only changes unit axes, has it right before its first reader; those nobody reads are dropped.
    """
    cluster_of = {node: number for number, (members, _) in enumerate(clusters) for node in members}
    outside = _read_outside(function, cluster_of, flow)
    late = _Late(waiting={node for node in function.nodes if _waits(node, cluster_of)})
    late.producer.update((value, node) for node in late.waiting for value in node.results)
    bodies: dict[str, Function] = {}
    for node in function.nodes:
        number = cluster_of.get(node)
        if node in late.waiting or (number is not None and node is not clusters[number][0][-1]):
            continue
        if number is not None:
            members, closing = clusters[number]
            name = f"{function.name}.{closing.label}{len(bodies)}"
            node, bodies[name] = _close(name, members, closing, flow, outside)
        for value in node.operands:
            late.place(value)
        late.nodes.append(node)
    for value in function.results:
        late.place(value)
    return Function(function.name, function.params, function.results, tuple(late.nodes)), bodies


def _waits(node: Node, cluster_of: dict[Node, int]) -> bool:
    """Whether a node is placed when it is read."""
    return is_free(node) or (is_unit_reshape(node) and node not in cluster_of)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Late:
    """The new `nodes` of a function, to which what waits is added before its first reader.

    `producer` says of the values of `waiting` nodes which one makes them.
    """

    waiting: set[Node]
    producer: dict[Value, Node] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    placed: set[Node] = field(default_factory=set)

    def place(self, value: Value) -> None:
        """Add what makes a value, if it waits still, behind what makes its own operands."""
        made_by = self.producer.get(value)
        if made_by is None or made_by in self.placed:
            return
        for operand in made_by.operands:
            self.place(operand)
        self.placed.add(made_by)
        self.nodes.append(made_by)


def _read_outside(function: Function, cluster_of: dict[Node, int], flow: Flow) -> set[Value]:
    """Values that another cluster, a node of none, or the caller reads."""
    owner = {value: cluster_of.get(node) for node in function.nodes for value in node.results}
    found = set(_seen_through(function.results, flow.producer))
    for node in function.nodes:
        reader = cluster_of.get(node)
        for value in flow.read.get(node, ()):
            if reader is None or owner.get(value) != reader:
                found.add(value)
    return found


def _close(name: str, members: list[Node], closing: Closing, flow: Flow, outside: set[Value]) -> tuple[Node, Function]:
    made = {value for member in members for value in member.results}
    inner = _Body(producer=flow.producer, made=made)
    for member in members:
        for value in member.operands:
            inner.need(value)
        inner.nodes.append(member)
    results = tuple(v for m in members for v in m.results if v in outside) or members[-1].results
    operands = tuple(inner.params)
    node = Node(closing.op, operands, results, closing.attrs, closing.origin, (name,))
    return node, Function(name, operands, results, tuple(inner.nodes))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Body:
    """The `nodes` of a cluster's body so far; `made` are the values of its members and copies, `params` are given."""

    producer: dict[Value, Node]
    made: set[Value]
    nodes: list[Node] = field(default_factory=list)
    params: dict[Value, None] = field(default_factory=dict)

    def need(self, value: Value) -> None:
        """A member reads a value: free nodes are copied into the body, all else is given to it."""
        if value in self.made or value in self.params:
            return
        made_by = self.producer.get(value)
        if made_by is None or not is_free(made_by):
            self.params[value] = None
            return
        for operand in made_by.operands:
            self.need(operand)
        self.nodes.append(made_by)
        self.made.add(value)
