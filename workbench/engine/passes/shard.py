"""Shard: every node gets an IPU, and what one IPU makes for another is copied over.

A scope decides for what was traced in it, forward and backward. What is in no scope runs where the largest of what it
reads is, or where its first reader is. Constants are made where they are read. A variable is on the IPU of its first
reader, and so is its update.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from workbench.engine.graph import RESIDENT_ROLES, Function, Graph, Node, Value, attrs
from workbench.engine.passes.carries import INLINE
from workbench.errors import InputError

COPY = "inter_ipu_copy"
FREE = frozenset({"constant", "iota", "broadcast_in_dim", "reshape"})


def shards_of(graph: Graph) -> int:
    """IPUs that scopes name: one more than the highest number; 1 without scopes."""
    found = [node.origin.shard for function in graph.functions.values() for node in function.nodes]
    return max(found, default=-1) + 1 or 1


def shard(graph: Graph) -> Graph:
    """Place the nodes of the entry; a graph without scopes stays as it is."""
    count = shards_of(graph)
    if count == 1:
        return graph
    if any(node.op == "call" for node in graph.body.nodes):
        raise InputError(
            "the model uses ipu_shard inside pipeline stages or accumulated micro-batches",
            expected="one IPU for each stage",
            todo="leave ipu_shard out, or compile without stages and gradient accumulation",
        )
    made = _Sharding(graph).run()
    meta = {**graph.meta, "shards": count, "input_shards": made.input_shards}
    return replace(graph, functions={**graph.functions, graph.entry: made.function}, meta=meta)


@dataclass(frozen=True, slots=True)
class _Sharded:
    function: Function
    input_shards: tuple[int, ...]


@dataclass(slots=True)
class _Sharding:
    """The IPUs of values and nodes of the entry, and the nodes with copies between."""

    graph: Graph
    home: dict[int, int] = field(default_factory=dict)  # id(value) → IPU
    made_by: dict[int, Node] = field(default_factory=dict)
    copies: dict[tuple[int, int], Value] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    next_id: int = 0

    def run(self) -> _Sharded:
        body = self.graph.body
        self.made_by = {id(value): node for node in body.nodes for value in node.results}
        self.next_id = 1 + max(value.id for value in (*body.params, *(v for n in body.nodes for v in n.results)))
        places = self._places()
        for node, place in zip(body.nodes, places, strict=True):
            if self._is_free(node):
                continue  # made again wherever it is read
            operands = tuple(self._on(value, place) for value in node.operands)
            self.nodes.append(replace(node, operands=operands, origin=replace(node.origin, shard=place)))
        results = tuple(self._result(number, value) for number, value in enumerate(body.results))
        function = replace(body, nodes=tuple(self.nodes), results=results)
        return _Sharded(function, tuple(self.home.get(id(value), 0) for value in body.params))

    # -- where -------------------------------------------------------------------------------------------

    def _places(self) -> list[int]:
        """The IPU of each node; parameters find theirs on the way."""
        nodes = self.graph.body.nodes
        wanted = [self._scope(node) for node in nodes]
        self._parameters(nodes, wanted)
        for number, node in enumerate(nodes):
            if wanted[number] < 0:
                wanted[number] = self._of_operands(node)
            self._settle(node, wanted[number])
        reader: dict[int, int] = {}  # id(value) → IPU of its first reader
        for number in reversed(range(len(nodes))):
            if wanted[number] < 0:
                known = [reader[id(value)] for value in nodes[number].results if id(value) in reader]
                wanted[number] = known[0] if known else 0
                self._settle(nodes[number], wanted[number])
            reader.update((id(value), wanted[number]) for value in nodes[number].operands)
        return wanted

    def _scope(self, node: Node) -> int:
        """What scopes say of a node and of what is inside it."""
        inside = {node.origin.shard} | set(self._inside(node))
        named = sorted(inside - {-1})
        if len(named) > 1 and node.op not in INLINE:
            raise InputError(
                f"a {node.op} of layer {node.origin.layer or self.graph.name!r} spans the shards {named}",
                expected="loops and branches on one IPU",
                todo="open ipu_shard around the loop, or write its body out",
            )
        return named[0] if named else -1

    def _inside(self, node: Node) -> Iterator[int]:
        for name in node.calls:
            for inner in self.graph.functions[name].nodes:
                yield inner.origin.shard
                yield from self._inside(inner)

    def _parameters(self, nodes: tuple[Node, ...], wanted: list[int]) -> None:
        """Parameters are where a scope reads them first; weights that two shards read are an error."""
        readers: dict[int, list[int]] = {}
        for node, place in zip(nodes, wanted, strict=True):
            for value in node.operands if place >= 0 else ():
                readers.setdefault(id(value), []).append(place)
        for value, described in zip(self.graph.body.params, self.graph.inputs, strict=True):
            places = readers.get(id(value), [])
            if described.role == "parameter" and len(set(places)) > 1:
                raise InputError(
                    f"the variable {described.name!r} of layer {described.layer!r} is used on the IPUs "
                    f"{sorted(set(places))}",
                    expected="one IPU for each variable",
                    todo="open ipu_shard with one number wherever the layer is called",
                )
            if places:
                self.home[id(value)] = places[0]

    def _of_operands(self, node: Node) -> int:
        """Where most of what a node reads is, -1 when nothing it reads has a place yet."""
        known = [value for value in node.operands if id(value) in self.home]
        return self.home[id(max(known, key=lambda value: value.size_bytes))] if known else -1

    def _settle(self, node: Node, place: int) -> None:
        """Results are where the node is; parameters nobody else has read come there too. Constants stay free."""
        if place < 0:
            return
        params = {id(value) for value in self.graph.body.params}
        for value in node.operands:
            if id(value) in params:
                self.home.setdefault(id(value), place)
        if not self._is_free(node):
            self.home.update((id(value), place) for value in node.results)

    def _is_free(self, node: Node) -> bool:
        """Whether a node makes constants of constants."""
        makers = [self.made_by.get(id(value)) for value in node.operands]
        return node.op in FREE and all(maker is not None and self._is_free(maker) for maker in makers)

    # -- copies ------------------------------------------------------------------------------------------

    def _on(self, value: Value, place: int) -> Value:
        """The value on an IPU: itself, a constant made there, or a copy."""
        maker = self.made_by.get(id(value))
        free = maker is not None and self._is_free(maker)
        if not free and self.home.get(id(value), place) == place:
            return value
        key = (id(value), place)
        if key not in self.copies:
            self.copies[key] = self._again(maker, place) if free and maker is not None else self._copy(value, place)
        return self.copies[key]

    def _again(self, maker: Node, place: int) -> Value:
        """A constant made once more, on another IPU."""
        operands = tuple(self._on(value, place) for value in maker.operands)
        result = self._fresh(maker.results[0])
        self.nodes.append(
            replace(maker, operands=operands, results=(result,), origin=replace(maker.origin, shard=place))
        )
        return result

    def _copy(self, value: Value, place: int) -> Value:
        result = self._fresh(value)
        maker = self.made_by.get(id(value))
        layer = maker.origin if maker is not None else self.graph.body.nodes[0].origin
        origin = replace(layer, shard=place, region="")
        self.nodes.append(Node(COPY, (value,), (result,), attrs(source=self.home[id(value)], to=place), origin))
        return result

    def _fresh(self, value: Value) -> Value:
        self.next_id += 1
        return Value(self.next_id - 1, value.shape, value.dtype)

    def _result(self, number: int, value: Value) -> Value:
        """New values of variables go to where the variable is."""
        updates = self.graph.outputs[number].updates
        if updates is None:
            return value if id(value) in self.home else self._on(value, 0)
        resident = self.graph.inputs[updates].role in RESIDENT_ROLES
        return self._on(value, self.home.get(id(self.graph.body.params[updates]), 0)) if resident else value
