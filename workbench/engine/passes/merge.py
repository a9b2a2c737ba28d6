"""Merge: what may wait for each other is done as one, up to a number of bytes: reductions, copies between IPUs,
gathers and scatters between replicas, and calls of the host.

As the driver's colocated instructions are (graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/
passes/combine_instructions.cc with tools/instruction_colocator_helper.cc).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from workbench.engine.graph import Function, Graph, Node, Value, attrs
from workbench.engine.graph.origin import Origin
from workbench.engine.graph.primitives import Kind, names
from workbench.engine.options import Options

COPY = "inter_ipu_copy"
# But for the sum of squares, because that is popops' own: the driver, whose option it is, sees a sum of products.
REDUCTIONS = names(Kind.REDUCTION) - {"reduce_square_sum"}
# Operators that wait because the driver has an option for them, which says how many bytes of them may.
WAITING = {
    "optimizations.maximum_inter_ipu_copies_buffer_size": frozenset({COPY}),
    "optimizations.maximum_reduce_many_buffer_size": REDUCTIONS,
    "optimizations.maximum_all_gather_buffer_size": frozenset({"all_gather"}),
    "optimizations.maximum_reduce_scatter_buffer_size": frozenset({"reduce_scatter", "psum_scatter"}),
    "optimizations.maximum_send_recv_cluster_size": frozenset({"host_call"}),
}


def merge(graph: Graph, options: Options) -> Graph:
    """Merge under the options of `WAITING`.

    Reductions of several layers become a region, whose reductions share their compute sets and exchanges; the others
    become one node with the operands and results of all.
    """
    functions = dict(graph.functions)
    inline = {name for function in functions.values() for node in function.nodes for name in node.calls}
    for name, function in graph.functions.items():
        for option, ops in WAITING.items():
            limit_bytes = int(options.get(option))
            if limit_bytes and name not in inline:
                function = _merged(function, ops, limit_bytes, functions)
        functions[name] = function
    return replace(graph, functions=functions)


def _merged(function: Function, ops: frozenset[str], limit_bytes: int, bodies: dict[str, Function]) -> Function:
    if COPY in ops:
        function = _copied_early(function)
    waiting = _Waiting(name=function.name, ops=ops, limit_bytes=limit_bytes, bodies=bodies)
    return replace(function, nodes=tuple(waiting.run(function)))


def _copied_early(function: Function) -> Function:
    """The function with every copy right behind what it copies, so that its readers do not cut the wait short."""
    copies: dict[int, list[Node]] = {}
    for node in function.nodes:
        if node.op == COPY:
            copies.setdefault(id(node.operands[0]), []).append(node)
    nodes: list[Node] = []

    def after(values: Sequence[Value]) -> None:
        for value in values:
            for copy in copies.get(id(value), ()):
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
    ops: frozenset[str]
    limit_bytes: int
    bodies: dict[str, Function]
    nodes: list[Node] = field(default_factory=list)
    size_bytes: int = 0

    def run(self, function: Function) -> Iterator[Node]:
        """The nodes of the function, those that can wait merged."""
        for node in function.nodes:
            made = {id(value) for waiting in self.nodes for value in waiting.results}
            if any(id(value) in made for value in node.operands):
                yield from self.flush()
            if node.op not in self.ops:
                yield node
                continue
            size_bytes = _size_bytes(node)
            if self.size_bytes + size_bytes > self.limit_bytes or (self.nodes and _kind(self.nodes[0]) != _kind(node)):
                yield from self.flush()
            self.nodes.append(node)
            self.size_bytes += size_bytes
        yield from self.flush()

    def flush(self) -> Iterator[Node]:
        """What waits, as one node."""
        if len(self.nodes) < 2:
            yield from self.nodes
        elif self.nodes[0].op not in REDUCTIONS:
            yield replace(self._joined(), operands=tuple(value for node in self.nodes for value in node.operands))
        else:
            name = f"{self.name}.reduce_many{len(self.bodies)}"
            node = replace(self._joined(), op="region", attrs=attrs(kind="reduce_many"), calls=(name,))
            self.bodies[name] = Function(name, node.operands, node.results, tuple(self.nodes))
            yield node
        self.nodes, self.size_bytes = [], 0

    def _joined(self) -> Node:
        first = self.nodes[0]
        layers = {node.origin.layer for node in self.nodes}
        shared = Origin(layer="merged", direction=first.origin.direction, shard=first.origin.shard)
        return replace(
            first,
            operands=tuple(dict.fromkeys(value for node in self.nodes for value in node.operands)),
            results=tuple(value for node in self.nodes for value in node.results),
            origin=first.origin if len(layers) == 1 else shared,
        )


def _kind(node: Node) -> Hashable:
    """What nodes that run as one have in common."""
    where = (node.origin.direction, node.origin.shard)
    return where if node.op in REDUCTIONS else (node.op, node.attrs, *where)


def _size_bytes(node: Node) -> int:
    """What a node that waits takes: what it reads; of a gather or scatter what it makes; of the host the larger."""
    read, made = (sum(value.size_bytes for value in values) for values in (node.operands, node.results))
    if node.op == "host_call":
        return max(read, made)
    return read if node.op == COPY or node.op in REDUCTIONS else made
