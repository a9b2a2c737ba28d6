"""Merge: what may wait for each other is done as one, up to a number of bytes: reductions, copies between IPUs, sums,
gathers and scatters between replicas, and calls of the host.

As the driver's colocated instructions are (graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/
passes/combine_instructions.cc with tools/instruction_colocator_helper.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from workbench.engine.graph import Function, Graph, Node, Value, attrs
from workbench.engine.graph.origin import Origin
from workbench.engine.graph.primitives import Kind, names
from workbench.engine.options import Options

COPY = "inter_ipu_copy"
# But for the sum of squares, because that is popops' own: the driver, whose option it is, sees a sum of products.
REDUCTIONS = names(Kind.REDUCTION) - {"reduce_square_sum"}


def _read_bytes(node: Node) -> int:
    return sum(value.size_bytes for value in node.operands)


def _made_bytes(node: Node) -> int:
    return sum(value.size_bytes for value in node.results)


def _larger_bytes(node: Node) -> int:
    return max(_read_bytes(node), _made_bytes(node))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Operators that may wait for each other, and the option that says how many bytes of them, by `size_bytes`.

    `over_replicas`: sums over replicas wait for those of other directions and IPUs too, wherever they stand.
    `together`: they become a region, whose reductions share compute sets and exchanges, else one node.
    """

    option: str
    ops: frozenset[str]
    size_bytes: Callable[[Node], int]
    over_replicas: bool = False
    together: bool = False

    def key(self, node: Node) -> Hashable:
        """What nodes that run as one have in common."""
        if self.over_replicas:
            return node.attrs
        where = (node.origin.direction, node.origin.shard)
        return where if self.together else (node.op, node.attrs, *where)

    def origin(self, nodes: Sequence[Node]) -> Origin:
        """Where what is done for several comes from."""
        first = nodes[0].origin
        if len({node.origin.layer for node in nodes}) == 1:
            return first
        if self.over_replicas:
            return Origin(layer="replicas", direction=first.direction)
        return Origin(layer="merged", direction=first.direction, shard=first.shard)


# Because the driver has an option for each of these.
WAITING = (
    Wait(
        option="optimizations.maximum_cross_replica_sum_buffer_size",
        ops=frozenset({"psum"}),
        size_bytes=_read_bytes,
        over_replicas=True,
    ),
    Wait(option="optimizations.maximum_inter_ipu_copies_buffer_size", ops=frozenset({COPY}), size_bytes=_read_bytes),
    Wait(option="optimizations.maximum_reduce_many_buffer_size", ops=REDUCTIONS, size_bytes=_read_bytes, together=True),
    Wait(option="optimizations.maximum_all_gather_buffer_size", ops=frozenset({"all_gather"}), size_bytes=_made_bytes),
    Wait(
        option="optimizations.maximum_reduce_scatter_buffer_size",
        ops=frozenset({"reduce_scatter", "psum_scatter"}),
        size_bytes=_made_bytes,
    ),
    Wait(option="optimizations.maximum_send_recv_cluster_size", ops=frozenset({"host_call"}), size_bytes=_larger_bytes),
)


def merge(graph: Graph, options: Options) -> Graph:
    """Merge what `WAITING` lists, under its options; inside inline bodies only sums over replicas."""
    functions = dict(graph.functions)
    inline = {name for function in functions.values() for node in function.nodes for name in node.calls}
    for name, function in graph.functions.items():
        for wait in WAITING:
            limit_bytes = int(options.get(wait.option))
            may = bool(graph.meta.get("replicas")) if wait.over_replicas else name not in inline
            if limit_bytes and may:
                function = _merged(function, wait, limit_bytes, functions)
        functions[name] = function
    return replace(graph, functions=functions)


def _merged(function: Function, wait: Wait, limit_bytes: int, bodies: dict[str, Function]) -> Function:
    if COPY in wait.ops:
        function = _copied_early(function)
    waiting = _Waiting(name=function.name, wait=wait, limit_bytes=limit_bytes, bodies=bodies)
    return replace(function, nodes=tuple(waiting.run(function)))


def _copied_early(function: Function) -> Function:
    """The function with every copy right behind what it copies, so that its readers do not cut the wait short."""
    copies: dict[Value, list[Node]] = {}
    for node in function.nodes:
        if node.op == COPY:
            copies.setdefault(node.operands[0], []).append(node)
    nodes: list[Node] = []

    def after(values: Sequence[Value]) -> None:
        for value in values:
            for copy in copies.get(value, ()):
                nodes.append(copy)
                after(copy.results)

    after(function.params)
    for node in function.nodes:
        if node.op != COPY:
            nodes.append(node)
            after(node.results)
    return replace(function, nodes=tuple(nodes))


@dataclass(slots=True)
class _Waiting:
    """Nodes met so far that nothing has read yet; they run as one before they are read or would be too many bytes."""

    name: str
    wait: Wait
    limit_bytes: int
    bodies: dict[str, Function]
    nodes: list[Node] = field(default_factory=list)
    made: set[Value] = field(default_factory=set)  # results of those
    size_bytes: int = 0

    def run(self, function: Function) -> Iterator[Node]:
        """The nodes of the function, those that can wait merged."""
        for node in function.nodes:
            if not self.made.isdisjoint(node.operands):
                yield from self.flush()
            if node.op not in self.wait.ops:
                yield node
                continue
            size_bytes, key = self.wait.size_bytes(node), self.wait.key(node)
            is_full = self.size_bytes + size_bytes > self.limit_bytes
            if is_full or (self.nodes and self.wait.key(self.nodes[0]) != key):
                yield from self.flush()
            self.nodes.append(node)
            self.made.update(node.results)
            self.size_bytes += size_bytes
        yield from self.flush()

    def flush(self) -> Iterator[Node]:
        """What waits, as one node."""
        if len(self.nodes) < 2:
            yield from self.nodes
        elif not self.wait.together:
            yield replace(self._joined(), operands=tuple(value for node in self.nodes for value in node.operands))
        else:
            name = f"{self.name}.reduce_many{len(self.bodies)}"
            node = replace(self._joined(), op="region", attrs=attrs(kind="reduce_many"), calls=(name,))
            self.bodies[name] = Function(name, node.operands, node.results, tuple(self.nodes))
            yield node
        self.nodes, self.made, self.size_bytes = [], set(), 0

    def _joined(self) -> Node:
        return replace(
            self.nodes[0],
            operands=tuple(dict.fromkeys(value for node in self.nodes for value in node.operands)),
            results=tuple(value for node in self.nodes for value in node.results),
            origin=self.wait.origin(self.nodes),
        )
