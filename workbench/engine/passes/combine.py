"""Combine: look-ups in one table become one, and matmuls that share an operand become one of their joined operands.

As the driver does when told to (graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/passes/
multi_slice_combiner.cc and matmul_combiner.cc). What is combined must not wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.graph.rewriting import Writer
from workbench.engine.options import Options

Kind = Callable[[Node], Sequence[Hashable]]
Join = Callable[[list[Node], Writer], list[Value]]


def combine(graph: Graph, options: Options) -> Graph:
    """Combine under `optimizations.combine_embedding_lookups` and `optimizations.combine_matmuls`."""
    functions = dict(graph.functions)
    for name, function in functions.items():
        if options.get("optimizations.combine_embedding_lookups"):
            function = _all_combined(function, _lookup_kinds, _joined_lookups)
        if options.get("optimizations.combine_matmuls"):
            function = _all_combined(function, _matmul_kinds, _joined_matmuls)
        functions[name] = function
    return replace(graph, functions=functions)


def _all_combined(function: Function, kinds: Kind, join: Join) -> Function:
    """Combine one group after another, as each moves what the next may need."""
    tried: set[Hashable] = set()
    while True:
        found = _next_group(function, kinds, tried)
        if found is None:
            return function
        kind, members = found
        tried.add(kind)
        function = _combined(function, members, join)


def _next_group(function: Function, kinds: Kind, tried: set[Hashable]) -> tuple[Hashable, list[Node]] | None:
    """The first group of at least two that has not been combined yet."""
    groups: dict[Hashable, list[Node]] = {}
    for node in function.nodes:
        for kind in kinds(node):
            groups.setdefault(kind, []).append(node)
    for kind, nodes in groups.items():
        if kind in tried or len(nodes) < 2:
            continue
        members = _independent(function, nodes)
        if len(members) > 1:
            return kind, members
        tried.add(kind)
    return None


def _independent(function: Function, nodes: list[Node]) -> list[Node]:
    """The first of the nodes and those that depend on none that was taken before."""
    wanted, taken = set(nodes), []
    behind: set[Value] = set()  # each value that depends on a node taken
    for node in function.nodes:
        depends = any(value in behind for value in node.operands)
        if node in wanted and not depends:
            taken.append(node)
            depends = True
        if depends:
            behind.update(node.results)
    return taken


def _combined(function: Function, members: list[Node], join: Join) -> Function:
    """The members as one node at the place of the first; what the others need is made before it."""
    own = set(members)
    places = [place for place, node in enumerate(function.nodes) if node in own]
    first, last = places[0], places[-1]
    needed = {value for node in members for value in node.operands}
    early: list[Node] = []
    for node in reversed(function.nodes[first : last + 1]):
        if node not in own and any(value in needed for value in node.results):
            early.append(node)
            needed.update(node.operands)
    moved = own | set(early)
    writer = Writer(function)
    writer.begin(members[0])
    for node in (*function.nodes[:first], *reversed(early)):
        writer.add(node)
    made = join(members, writer)
    stands_for = {node.results[0]: value for node, value in zip(members, made, strict=True)}
    for node in function.nodes[first:]:
        if node not in moved:
            writer.add(replace(node, operands=tuple(stands_for.get(value, value) for value in node.operands)))
    results = tuple(stands_for.get(value, value) for value in function.results)
    return Function(function.name, function.params, results, tuple(writer.nodes))


def _lookup_kinds(node: Node) -> Sequence[Hashable]:
    """The table and how rows are taken from it: index vectors before all offsets, as in an embedding."""
    if node.op != "gather" or node.attr("operand_batching_dims"):
        return ()
    table, indices = node.operands
    rank, offsets = len(node.results[0].shape), tuple(node.attr("offset_dims"))
    if offsets != tuple(range(rank - len(offsets), rank)) or not indices.shape:
        return ()
    taken = tuple(node.attr(name) for name in ("collapsed_slice_dims", "start_index_map", "slice_sizes"))
    return [(table, indices.shape[-1], indices.dtype, taken, node.attr("mode"), *_side(node))]


def _joined_lookups(members: list[Node], writer: Writer) -> list[Value]:
    """One look-up of all indices behind each other, cut up again."""
    first = members[0]
    depth = first.operands[1].shape[-1]
    counts = [node.operands[1].elements // max(1, depth) for node in members]
    parts = [writer.reshape(node.operands[1], (count, depth)) for node, count in zip(members, counts, strict=True)]
    row = first.results[0].shape[len(first.results[0].shape) - len(first.attr("offset_dims")) :]
    given = {**dict(first.attrs), "offset_dims": tuple(range(1, 1 + len(row)))}
    rows = writer.write("gather", [first.operands[0], writer.join(parts, 0)], (sum(counts), *row), "", **given)
    return _cut_up(rows, 0, counts, members, writer)


def _matmul_kinds(node: Node) -> Sequence[Hashable]:
    """A matmul can be joined with those of its left operand, and with those of its right one."""
    if node.op != "dot_general" or not all(len(node.attr(f"{side}_contract")) == 1 for side in ("lhs", "rhs")):
        return ()
    if any(node.attr(f"{side}_batch") for side in ("lhs", "rhs")):
        return ()
    kinds: list[Hashable] = []
    for shared in (0, 1):
        other = node.operands[1 - shared]
        if len(other.shape) == 2:
            kinds.append((shared, node.operands[shared], other.dtype, node.results[0].dtype, node.attrs, *_side(node)))
    return kinds


def _joined_matmuls(members: list[Node], writer: Writer) -> list[Value]:
    """One product with the operands that differ behind each other along their own axis, cut up again."""
    first = members[0]
    shared = 0 if all(node.operands[0] is first.operands[0] for node in members) else 1
    (contract,) = first.attr(("rhs_contract", "lhs_contract")[shared])
    axis = 1 - contract
    others = [node.operands[1 - shared] for node in members]
    joined = writer.join(others, axis)
    operands = [first.operands[0], joined] if shared == 0 else [joined, first.operands[1]]
    sizes = [value.shape[axis] for value in others]
    shape = list(first.results[0].shape)
    along = len(shape) - 1 if shared == 0 else 0
    shape[along] = sum(sizes)
    product = writer.write("dot_general", operands, shape, first.results[0].dtype, **dict(first.attrs))
    return _cut_up(product, along, sizes, members, writer)


def _side(node: Node) -> tuple[Hashable, ...]:
    return (node.origin.direction, node.origin.shard)


def _cut_up(whole: Value, axis: int, sizes: Sequence[int], members: list[Node], writer: Writer) -> list[Value]:
    parts, start = [], 0
    for node, size in zip(members, sizes, strict=True):
        part = writer.slice(whole, axis, start, start + size)
        parts.append(writer.reshape(part, node.results[0].shape))
        start += size
    return parts
