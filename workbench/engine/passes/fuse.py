"""Fuse: chains of elementwise operations of one layer and direction become one node, as popops `map` makes one vertex.

Bodies of fused nodes are inline: their parameters and results are the very values of the caller. Constants, broadcasts
and counters are copied into every chain that reads them, so a chain reads a bias as it is stored.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.engine.graph import Function, Graph, Node
from workbench.engine.ops.pointwise import is_pointwise
from workbench.engine.passes.clusters import Closing, Flow, collapse, flow_of

MAX_CHAIN = 64  # operations of one codelet; longer expressions are split, as generated code would be


def fuse(graph: Graph) -> Graph:
    """Fuse the elementwise chains of every function."""
    functions: dict[str, Function] = {}
    for function in graph.functions.values():
        flow = flow_of(function)
        clusters = [(chain, Closing("fused", (), chain[-1].origin, "fused")) for chain in _chains(function, flow)]
        fused, bodies = collapse(function, clusters, flow)
        functions[fused.name] = fused
        functions.update(bodies)
    return replace(graph, functions=functions)


def _chains(function: Function, flow: Flow) -> list[list[Node]]:
    """Grow chains in program order; a chain moves to the place of its last member, past nobody who reads it."""
    chain_of: dict[int, list[Node]] = {}
    chains: list[list[Node]] = []
    for place, node in enumerate(function.nodes):
        if not is_pointwise(node) or node.results[0].elements == 0:
            continue
        chain = _joinable(node, place, flow, chain_of)
        if chain is None:
            chain = []
            chains.append(chain)
        chain.append(node)
        chain_of[id(node)] = chain
    return chains


def _joinable(node: Node, place: int, flow: Flow, chain_of: dict[int, list[Node]]) -> list[Node] | None:
    """The latest chain among the producers of the node's operands that the node can join."""
    found: list[list[Node]] = []
    for value in node.operands:
        made_by = flow.producer.get(id(value))
        chain = chain_of.get(id(made_by)) if made_by is not None else None
        if chain is not None and not any(chain is other for other in found):
            found.append(chain)
    found.sort(key=lambda chain: -flow.place_of[id(chain[-1])])
    for chain in found:
        if _alike(chain, node) and not flow.read_before(chain, place):
            return chain
    return None


def _alike(chain: list[Node], node: Node) -> bool:
    last, origin = chain[-1], node.origin
    return (
        last.results[0].shape == node.results[0].shape
        and len(chain) < MAX_CHAIN
        and (last.origin.layer, last.origin.call, last.origin.direction)
        == (origin.layer, origin.call, origin.direction)
    )
