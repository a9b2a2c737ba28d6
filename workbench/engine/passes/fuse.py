"""Fuse: chains of elementwise operations of one layer and direction become one node, as popops `map` makes one vertex.

Bodies of fused nodes are inline: their parameters and results are the very values of the caller. Constants, broadcasts
and counters are copied into every chain that reads them, so a chain reads a bias as it is stored.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.engine.graph import Function, Graph, Node
from workbench.engine.graph.origin import Origin
from workbench.engine.ops.pointwise import is_pointwise, is_unit_reshape, squeezed
from workbench.engine.passes.clusters import Closing, Flow, collapse, flow_of, read_through

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
    chain_of: dict[Node, list[Node]] = {}
    chains: dict[Node, list[Node]] = {}  # by the last member
    for place, node in enumerate(function.nodes):
        if not (is_pointwise(node) or is_unit_reshape(node)) or node.results[0].elements == 0:
            continue
        joined = _joinable(node, place, flow, chain_of)
        if not joined and is_unit_reshape(node):
            continue
        for other in joined:
            del chains[other[-1]]
        chain = sorted((member for part in joined for member in part), key=lambda m: flow.place_of[m])
        chain.append(node)
        chains[node] = chain
        chain_of.update((member, chain) for member in chain)
    return [trimmed for chain in chains.values() if (trimmed := _trimmed(chain, flow))]


def _joinable(node: Node, place: int, flow: Flow, chain_of: dict[Node, list[Node]]) -> list[list[Node]]:
    """The chains among the producers of the node's operands that can all move to its place and become one with it."""
    found: list[list[Node]] = []
    for value in node.operands:
        made_by = flow.producer.get(value)
        chain = chain_of.get(made_by) if made_by is not None else None
        if chain is not None and not any(chain is other for other in found):
            found.append(chain)
    found.sort(key=lambda chain: -flow.place_of[chain[-1]])
    chosen: list[list[Node]] = []
    members = 0
    for chain in found:
        fits = members + len(chain) < MAX_CHAIN
        if fits and _alike(chain, node) and not flow.read_before(chain, place, chain_of, chain, chosen):
            chosen.append(chain)
            members += len(chain)
    return chosen


# Named functions PopNN has a codelet for: a chain does not reach across their border.
OWN_CODELETS = frozenset({"relu", "relu6", "gelu", "silu", "swish", "sigmoid", "tanh", "hard_sigmoid", "hard_swish"})


def _group(origin: Origin) -> tuple[object, ...]:
    function = origin.region if origin.region in OWN_CODELETS else ""
    return (origin.layer, origin.call, origin.direction, function)


def _alike(chain: list[Node], node: Node) -> bool:
    """Whether the node runs over the chain's shape, in the same layer and direction."""
    last = chain[-1]
    same_shape = squeezed(last.results[0].shape) == squeezed(node.results[0].shape)
    return same_shape and _group(last.origin) == _group(node.origin)


def _trimmed(chain: list[Node], flow: Flow) -> list[Node]:
    """The chain without views that none of its members reads: outside they cost nothing, inside they are copies.

    What a member reads through a broadcast counts: outside, the view would stand before the chain it depends on.
    """
    while True:
        read = {value for member in chain for value in read_through(member, flow.producer)}
        kept = [m for m in chain if not is_unit_reshape(m) or any(value in read for value in m.results)]
        if len(kept) == len(chain):
            return kept
        chain = kept
