"""Collectives between replicas: sums and extremes, gathers, scatters and exchanges, in rings over the IPU-Links.

Every replica has the same program, so a tensor lies alike on all of them and a tile only ever talks to the same tile of
other replicas. An all-reduce is a reduce-scatter, after which each replica has its share of the result, and an
all-gather. Shares that arrive are held in a buffer until they are added. Several tensors that are reduced together are
first brought into one buffer, spread evenly, and back from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from workbench.base.arrays import IntArray, frozen
from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit import total_of, vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.emit.links import collective, held_bytes, part
from workbench.engine.graph import Node
from workbench.engine.mapping import linear, on_tile, reshape
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.ops.free import fill_groups

_OPERATIONS = {"psum": "ADD", "pmax": "MAXIMUM", "pmin": "MINIMUM"}


def group_size(node: Node, lowering: Lowering) -> int:
    """Replicas that take part: those of a group when the node names groups, else all."""
    groups = node.attr("axis_index_groups")
    return len(groups[0]) if groups else int(str(lowering.graph.meta.get("replicas", 1)))


class AllReduce(Family):
    """Sum, largest or smallest over the replicas, where the operand lies."""

    name = "all_reduce"
    ops = frozenset(_OPERATIONS)
    shareable = True

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """Each result over its operand."""
        return tuple((number, number) for number in range(len(node.results)))

    def flops(self, node: Node, lowering: Lowering) -> int:
        """One operation per element that arrives."""
        replicas = group_size(node, lowering)
        return sum(value.elements * (replicas - 1) // replicas for value in node.operands)

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """The ring and how many tensors share it."""
        return f"ring of {group_size(node, lowering)} replicas, {len(node.operands)} tensors"

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Reduce-scatter, combine, all-gather."""
        label, replicas = lowering.label(node), group_size(node, lowering)
        results = []
        for number, value in enumerate(node.operands):
            operand = lowering.get(value)
            result = lowering.result(node, number, operand.mapping)
            if result.variables != operand.variables:
                lowering.emit.move_into(f"{label}/copy", operand, result)
            results.append(result)
        if replicas == 1:
            return
        together = _in_one_buffer(label, results, lowering) if len(results) > 1 else results
        for dtype, tensors in groupby(sorted(together, key=_dtype), key=_dtype):
            _reduce(label, list(tensors), dtype, _OPERATIONS[node.op], replicas, lowering)
        if together is not results:
            lowering.emit.move_all(f"{label}/back", list(zip(together, results, strict=True)))


def _dtype(tensor: Tensor) -> str:
    return tensor.dtype


def _copies(node: Node, operands: Sequence[Tensor], lowering: Lowering) -> None:
    """A single replica has everything already."""
    for number, (operand, value) in enumerate(zip(operands, node.results, strict=True)):
        seen = operand.view(reshape(operand.mapping, value.shape), value.shape)
        lowering.emit.move_into(lowering.label(node), seen, lowering.result(node, number, seen.mapping))


def _where_wished(node: Node, lowering: Lowering) -> list[Tensor]:
    """The results, each laid out as its reader wishes."""
    return [
        lowering.result(node, number, lowering.wish(value) or lowering.default_mapping(value))
        for number, value in enumerate(node.results)
    ]


def _ids(tensors: Sequence[Tensor]) -> list[int]:
    return [name for tensor in tensors for name in tensor.variables]


def _bytes(tensor: Tensor, lowering: Lowering) -> IntArray:
    return tensor.mapping.bytes_per_tile(tensor.itemsize_bytes, lowering.tiles)


def _in_one_buffer(label: str, tensors: Sequence[Tensor], lowering: Lowering) -> list[Tensor]:
    """The tensors spread evenly, each in its part of one buffer."""
    buffers = []
    for tensor in tensors:
        spread = linear(tensor.shape, tensor.dtype, lowering.tiles, vector_bytes=lowering.target.data_path_bytes)
        buffers.append(lowering.emit.tensor(f"{label}/buffer", tensor.shape, tensor.dtype, spread, "temporary"))
    lowering.emit.move_all(f"{label}/buffer", list(zip(tensors, buffers, strict=True)))
    return buffers


def _reduce(
    label: str, tensors: Sequence[Tensor], dtype: str, operation: str, replicas: int, lowering: Lowering
) -> None:
    emit = lowering.emit
    held = _ids(tensors)
    elements = total_of([tensor.elements_per_tile(lowering.tiles) for tensor in tensors])
    itemsize = tensors[0].itemsize_bytes
    size_bytes = sum(tensor.elements for tensor in tensors) * itemsize
    share = part(elements, 1, replicas)
    moved = part(elements * itemsize, replicas - 1, replicas)
    arriving = held_bytes(emit, f"{label}/arriving", dtype, share * itemsize)
    collective(emit, f"{label}/reduce_scatter", "reduce_scatter", replicas, size_bytes, moved, held, [arriving])
    groups = vertex_groups("popops::BinaryOp1DInPlace", {"n": share}, op=operation, type=DTYPE_WORDS[dtype])
    with emit.repeat(replicas - 1, f"{label}/ring"):
        emit.compute(f"{label}/combine", groups, [*held, arriving], held)
    collective(emit, f"{label}/all_gather", "all_gather", replicas, size_bytes, moved, held, held)


class AllGather(Family):
    """Every replica's operand, on all of them."""

    name = "all_gather"
    ops = frozenset({"all_gather"})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """One ring for all operands; what arrives lies as its reader wishes."""
        replicas, label = group_size(node, lowering), lowering.label(node)
        operands = [lowering.get(value) for value in node.operands]
        if replicas == 1:
            _copies(node, operands, lowering)
            return
        results = _where_wished(node, lowering)
        moved = total_of([part(_bytes(each, lowering), replicas - 1, replicas) for each in results])
        size_bytes = sum(value.size_bytes for value in node.results)
        collective(lowering.emit, label, "all_gather", replicas, size_bytes, moved, _ids(operands), _ids(results))


class ReduceScatter(Family):
    """The sum over the replicas, to each its share."""

    name = "reduce_scatter"
    ops = frozenset({"reduce_scatter", "psum_scatter"})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """One ring for all operands, and the sums of the shares."""
        replicas, label, emit = group_size(node, lowering), lowering.label(node), lowering.emit
        operands = [lowering.get(value) for value in node.operands]
        if replicas == 1:
            _copies(node, operands, lowering)
            return
        results = _where_wished(node, lowering)
        moved = total_of([frozen(_bytes(each, lowering) * (replicas - 1)) for each in results])
        size_bytes = sum(value.size_bytes for value in node.operands)
        collective(emit, label, "reduce_scatter", replicas, size_bytes, moved, _ids(operands), _ids(results))
        groups = [
            group
            for tensor in results
            for group in vertex_groups(
                "popops::BinaryOp1DInPlace",
                {"n": tensor.elements_per_tile(lowering.tiles)},
                op="ADD",
                type=DTYPE_WORDS[tensor.dtype],
            )
        ]
        with emit.repeat(replicas - 1, f"{label}/ring"):
            emit.compute(f"{label}/combine", groups, _ids(results), _ids(results))


class AllToAll(Family):
    """Each replica's k-th part to replica k."""

    name = "all_to_all"
    ops = frozenset({"all_to_all"})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Every byte but a replica's own part crosses once; in a ring it passes half the replicas on its way."""
        replicas = group_size(node, lowering)
        operand = lowering.get(node.operands[0])
        if replicas == 1:
            _copies(node, [operand], lowering)
            return
        result = lowering.result(node, 0, reshape(operand.mapping, node.results[0].shape))
        per_tile = operand.mapping.bytes_per_tile(operand.itemsize_bytes, lowering.tiles)
        size_bytes = operand.elements * operand.itemsize_bytes * max(1, replicas // 2)
        moved = part(per_tile, replicas - 1, replicas)
        label, ends = lowering.label(node), (operand.variables, result.variables)
        collective(lowering.emit, label, "all_to_all", replicas, size_bytes, moved, *ends)


class ReplicaNumber(Family):
    """The number of the replica: a word that the host writes into each program."""

    name = "replica_number"
    ops = frozenset({"axis_index"})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Filled in on tile 0."""
        value = node.results[0]
        result = lowering.result(node, 0, on_tile(value.shape, 0))
        filled = np.zeros(lowering.tiles, np.int64)
        filled[0] = 1
        lowering.emit.compute(
            lowering.label(node),
            fill_groups(filled, value.dtype, lowering.target.workers_per_tile),
            (),
            result.variables,
        )


for _family in (AllReduce(), AllGather(), ReduceScatter(), AllToAll(), ReplicaNumber()):
    register(_family)
