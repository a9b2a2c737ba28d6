"""Offload: variables that live in streaming memory, or in shares on all replicas, come for use and go back after it.

`load` puts the whole variable on the chip before its first reader, and again for the backward pass; `store` takes its
next value away after the last reader. In between the program is as without: the variable is where the load put it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.engine.graph import Function, Graph, Node, Role, Value, attrs
from workbench.engine.graph.flow import INLINE, carried
from workbench.engine.graph.origin import Origin
from workbench.engine.graph.stages import stage_calls
from workbench.engine.options import Options
from workbench.engine.program.remote_buffers import LOAD, STORE
from workbench.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a variable lives: in streaming memory or on the chip, whole or one of `shards`."""

    name: str
    layer: str
    remote: bool
    shards: int


def offload(graph: Graph, options: Options) -> Graph:
    """Insert loads and stores for what the options offload or shard."""
    homes = _homes(graph, options)
    check_remote_buffers(any(home.remote for home in homes.values()), options)
    if not homes:
        return graph
    functions = dict(graph.functions)
    pairs = carried(graph)
    for name, params in _readers(graph, homes, pairs).items():
        functions[name] = _rewritten(graph, functions[name], params, pairs.get(name, {}))
    return replace(graph, functions=functions)


def moved(graph: Graph, options: Options) -> frozenset[tuple[Role, bool, bool]]:
    """What the options move: roles of variables, whether to streaming memory, and whether in shares."""
    homes = _homes(graph, options)
    return frozenset((graph.inputs[number].role, home.remote, home.shards > 1) for number, home in homes.items())


def check_remote_buffers(wanted: bool, options: Options) -> None:
    """Raise an `InputError` when a program compiled for a system that is not there needs remote buffers unannounced."""
    kind = options.get("device_connection.type")
    if wanted and kind != "ALWAYS" and not options.get("device_connection.enable_remote_buffers"):
        raise InputError(
            f"the program keeps variables in streaming memory, and device_connection.type is {kind}",
            expected="a system that is known to have remote buffers",
            todo="set device_connection.enable_remote_buffers = True",
        )


def _homes(graph: Graph, options: Options) -> dict[int, Home]:
    """Number of an entry parameter → where it lives, for those that do not stay whole on the chip."""
    replicas = int(str(graph.meta.get("replicas", 1)))
    least_bytes = int(options.get("optimizations.minimum_remote_tensor_size"))
    state = bool(options.get("pipeline.offload_weight_update_variables"))
    sums = bool(options.get("pipeline.offload_gradient_accumulation_buffers"))
    weights = bool(options.get("pipeline.offload_weights"))
    shared = "pipeline.replicated_optimizer_state_sharding" if state else "pipeline.optimizer_state_sharding"
    state_shards = replicas if options.get(shared) else 1
    weight_shards = replicas if weights or options.get("pipeline.replicated_weight_sharding") else 1
    found: dict[int, Home] = {}
    for number, (value, described) in enumerate(zip(graph.body.params, graph.inputs, strict=True)):
        if described.role == "parameter":
            remote, shards = weights, weight_shards
        elif described.role == "accumulator":
            remote, shards = sums, 1
        elif described.role == "optimizer":
            remote, shards = state, state_shards
        else:
            continue
        if (remote or shards > 1) and value.elements and value.size_bytes >= least_bytes:
            found[number] = Home(name=described.name, layer=described.layer, remote=remote, shards=shards)
    return found


def _readers(
    graph: Graph, homes: Mapping[int, Home], pairs: Mapping[str, Mapping[int, int]]
) -> dict[str, dict[int, Home]]:
    """Function → its parameters that are offloaded: those of the entry, or of the functions it calls."""
    calls = stage_calls(graph)
    if not calls:
        return _in_loops(graph, graph.body, dict(homes), pairs)
    number_of = {value: number for number, value in enumerate(graph.body.params)}
    found: dict[str, dict[int, Home]] = {}
    for call in calls:
        operands, name = call.node.operands, call.function.name
        known = {place: number_of[value] for place, value in enumerate(operands) if value in number_of}
        found[name] = {place: homes[number] for place, number in known.items() if number in homes}
        for result, place in pairs.get(name, {}).items():
            if place in known:
                number_of[call.node.results[result]] = known[place]
    return found


def _in_loops(
    graph: Graph, function: Function, homes: dict[int, Home], pairs: Mapping[str, Mapping[int, int]]
) -> dict[str, dict[int, Home]]:
    """Function → its parameters that are offloaded: of a loop that alone reads and changes them, those of its body.

    So a variable that every turn of a loop over updates changes comes for each of them, and is away in between.
    """
    found: dict[str, dict[int, Home]] = {}
    kept = dict(homes)
    next_of = {param: function.results[result] for result, param in pairs.get(function.name, {}).items()}
    for number, home in homes.items():
        value = function.params[number]
        readers = [node for node in function.nodes if value in node.operands]
        if len(readers) != 1 or readers[0].op != "scan" or next_of.get(number) not in readers[0].results:
            continue
        (loop,) = readers
        place, body = loop.operands.index(value), graph.functions[loop.calls[0]]
        result = loop.results.index(next_of[number])
        if loop.operands.count(value) == 1 and pairs.get(body.name, {}).get(result) == place:
            kept.pop(number)
            found.setdefault(body.name, {})[place] = home
    inside = [_in_loops(graph, graph.functions[name], below, pairs) for name, below in found.items()]
    return {function.name: kept} | {name: each for below in inside for name, each in below.items()}


def _rewritten(graph: Graph, function: Function, params: Mapping[int, Home], pairs: Mapping[int, int]) -> Function:
    reads: dict[Value, list[int]] = {}
    made: dict[Value, int] = {}
    for place, node in enumerate(function.nodes):
        for value in _read(graph, node):
            reads.setdefault(value, []).append(place)
        made.update((value, place) for value in node.results)
    before: dict[int, list[Node]] = {}
    after: dict[int, list[Node]] = {}
    next_of = {param: function.results[result] for result, param in pairs.items()}
    for number, home in params.items():
        value = function.params[number]
        new = next_of.get(number)
        changed_at = made.get(new) if new is not None else None
        places = reads.get(value, [] if changed_at is None else [changed_at])
        if not places:
            continue
        key = f"{function.name}:{number}"
        for first in _beginnings(function, places):
            before.setdefault(first, []).append(_node(LOAD, value, key, home, function.nodes[first]))
        if new is not None and changed_at is not None:
            last = max(places[-1], changed_at)
            after.setdefault(last, []).append(_node(STORE, new, key, home, function.nodes[last]))
    nodes = [
        each
        for place, node in enumerate(function.nodes)
        for each in (*before.get(place, ()), node, *after.get(place, ()))
    ]
    return replace(function, nodes=tuple(nodes))


def _beginnings(function: Function, places: Sequence[int]) -> list[int]:
    """The first reader, and the first after the forward pass: between the two the variable need not stay."""
    forward = [place for place in places if function.nodes[place].origin.direction == "forward"]
    later = [place for place in places if function.nodes[place].origin.direction != "forward"]
    if forward and later and forward[-1] < later[0]:
        return [forward[0], later[0]]
    return [places[0]]


def _read(graph: Graph, node: Node) -> Iterator[Value]:
    """Operands of a node and of what is inside its inline bodies."""
    yield from node.operands
    for name in node.calls if node.op in INLINE else ():
        for inner in graph.functions[name].nodes:
            yield from _read(graph, inner)


def _node(op: str, value: Value, key: str, home: Home, beside: Node) -> Node:
    origin = Origin(layer=home.layer, direction=beside.origin.direction, shard=beside.origin.shard)
    described = attrs(key=key, name=home.name, remote=home.remote, shards=home.shards)
    return Node(op, (value,), (), described, origin)
