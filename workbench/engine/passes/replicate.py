"""Replicate: sums over the replicas that may wait for each other become one, up to a number of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workbench.engine.graph import Function, Graph, Node
from workbench.engine.graph.origin import Origin
from workbench.engine.options import Options

SUM = "psum"


def replicate(graph: Graph, options: Options) -> Graph:
    """Combine the sums of every function under `optimizations.maximum_cross_replica_sum_buffer_size`."""
    limit = int(options.get("optimizations.maximum_cross_replica_sum_buffer_size"))
    if not limit or not graph.meta.get("replicas"):
        return graph
    return replace(graph, functions={name: _combined(each, limit) for name, each in graph.functions.items()})


def _combined(function: Function, limit_bytes: int) -> Function:
    return replace(function, nodes=tuple(_Waiting(limit_bytes).run(function)))


class _Waiting:
    """Sums met so far that nothing has read yet; they run as one before they are read or would be too many bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.nodes: list[Node] = []
        self.results: set[int] = set()
        self.size_bytes = 0

    def run(self, function: Function) -> Iterator[Node]:
        """The nodes of the function with sums combined."""
        for node in function.nodes:
            if any(id(value) in self.results for value in node.operands):
                yield from self.flush()
            if node.op != SUM:
                yield node
                continue
            size_bytes = sum(value.size_bytes for value in node.operands)
            if self.size_bytes + size_bytes > self.limit_bytes or (self.nodes and self.nodes[0].attrs != node.attrs):
                yield from self.flush()
            self.nodes.append(node)
            self.results.update(id(value) for value in node.results)
            self.size_bytes += size_bytes
        yield from self.flush()

    def flush(self) -> Iterator[Node]:
        """What waits, as one node."""
        if len(self.nodes) > 1:
            layers = {node.origin.layer for node in self.nodes}
            first = self.nodes[0]
            yield replace(
                first,
                operands=tuple(value for node in self.nodes for value in node.operands),
                results=tuple(value for node in self.nodes for value in node.results),
                origin=first.origin if len(layers) == 1 else Origin(layer="replicas", direction=first.origin.direction),
            )
        else:
            yield from self.nodes
        self.nodes, self.results, self.size_bytes = [], set(), 0
