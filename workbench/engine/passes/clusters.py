"""Clusters of nodes that run together at the place of their last member: what fusion and recognition share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.engine.cost import Plain
from workbench.engine.graph import Function, Node, Value
from workbench.engine.ops.pointwise import is_free
from workbench.engine.origin import Origin


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Who makes and who reads each value of a function."""

    place_of: dict[int, int]  # id(node) → place
    producer: dict[int, Node]  # id(value) → node
    uses: dict[int, list[int]]  # id(value) → places of its readers

    def read_before(self, members: Sequence[Node], place: int) -> bool:
        """Whether a node outside reads a value of `members` before `place`: then they cannot move there."""
        places = {self.place_of[id(member)] for member in members}
        return any(
            use < place and use not in places
            for member in members
            for value in member.results
            for use in self.uses.get(id(value), ())
        )


def flow_of(function: Function) -> Flow:
    """The flow of a function's values."""
    uses: dict[int, list[int]] = {}
    for place, node in enumerate(function.nodes):
        for value in node.operands:
            uses.setdefault(id(value), []).append(place)
    return Flow(
        place_of={id(node): place for place, node in enumerate(function.nodes)},
        producer={id(value): node for node in function.nodes for value in node.results},
        uses=uses,
    )


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
    """Replace each cluster by a node that calls an inline body; nodes that nobody reads any more are dropped."""
    cluster_of = {id(node): number for number, (members, _) in enumerate(clusters) for node in members}
    outside = _read_outside(function, cluster_of)
    nodes: list[Node] = []
    bodies: dict[str, Function] = {}
    for node in function.nodes:
        number = cluster_of.get(id(node))
        if number is None:
            nodes.append(node)
            continue
        members, closing = clusters[number]
        if node is members[-1]:
            name = f"{function.name}.{closing.label}{len(bodies)}"
            closed, bodies[name] = _close(name, members, closing, flow, outside)
            nodes.append(closed)
    kept = _without_unread(nodes, function.results)
    return Function(function.name, function.params, function.results, kept), bodies


def _read_outside(function: Function, cluster_of: dict[int, int]) -> set[int]:
    """Values that another cluster, a node of none, or the caller reads."""
    owner = {id(value): cluster_of.get(id(node)) for node in function.nodes for value in node.results}
    found = {id(value) for value in function.results}
    for node in function.nodes:
        reader = cluster_of.get(id(node))
        found.update(id(v) for v in node.operands if reader is None or owner.get(id(v)) != reader)
    return found


def _close(
    name: str, members: list[Node], closing: Closing, flow: Flow, outside: set[int]
) -> tuple[Node, Function]:
    inside = {id(value) for member in members for value in member.results}
    body: list[Node] = []
    params: dict[int, Value] = {}
    copied: set[int] = set()

    def need(value: Value) -> None:
        if id(value) in inside or id(value) in copied or id(value) in params:
            return
        made_by = flow.producer.get(id(value))
        if made_by is None or not is_free(made_by):
            params[id(value)] = value
            return
        for operand in made_by.operands:
            need(operand)
        body.append(made_by)
        copied.add(id(value))

    for member in members:
        for value in member.operands:
            need(value)
        body.append(member)
    results = tuple(v for m in members for v in m.results if id(v) in outside) or members[-1].results
    operands = tuple(params.values())
    node = Node(closing.op, operands, results, closing.attrs, closing.origin, (name,))
    return node, Function(name, operands, results, tuple(body))


def _without_unread(nodes: list[Node], results: tuple[Value, ...]) -> tuple[Node, ...]:
    """Drop constants, broadcasts and counters whose readers all have a copy of their own."""
    needed = {id(value) for value in results}
    kept: list[Node] = []
    for node in reversed(nodes):
        if is_free(node) and not any(id(value) in needed for value in node.results):
            continue
        needed.update(id(value) for value in node.operands)
        kept.append(node)
    return tuple(reversed(kept))
