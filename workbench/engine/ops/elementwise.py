"""Elementwise: a chain of pointwise operations is one codelet on every tile that holds part of the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.engine import vertices
from workbench.engine.emit import vertex_groups
from workbench.engine.graph import Function, Node, Value
from workbench.engine.lowering import Lowering
from workbench.engine.mapping import Mapping, Placement, needed_by
from workbench.engine.ops import DTYPE_WORDS, Family, register, same_type
from workbench.engine.ops.pointwise import COMPUTE, expression_ops, is_free, is_pointwise
from workbench.engine.program import VertexGroup
from workbench.engine.tensor import Tensor
from workbench.engine.tileset import IntArray

SINGLE_UNARY = ("popops::UnaryOp1D", "popops::UnaryOp1DInPlace")
SINGLE_BINARY = ("popops::BinaryOp1D", "popops::BinaryOp1DInPlace")
SCALAR_BINARY = ("popops::BroadcastScalar1D", "popops::BroadcastScalar1DInPlace")


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """What one chain computes: full operands, operands that are broadcast (with their dims), and operations."""

    full: tuple[Value, ...]
    broadcast: tuple[tuple[Value, tuple[int, ...]], ...]
    operations: tuple[tuple[str, str], ...]  # (PopLibs op, dtype word)
    loads: tuple[str, ...]
    stores: tuple[str, ...]


def expression_of(node: Node, body: Function | None) -> Expression:
    """Read the expression of a fused node (its body) or of a single pointwise node."""
    members = [node] if body is None else list(body.nodes)
    shape = node.results[0].shape
    made = {id(value): member for member in members for value in member.results}
    full: dict[int, Value] = {}
    broadcast: dict[tuple[int, tuple[int, ...]], Value] = {}
    operations: list[tuple[str, str]] = []
    for member in members:
        if member.op == "iota":
            operations.append(("ADD", DTYPE_WORDS[member.results[0].dtype]))
        if member.op == "broadcast_in_dim" and id(member.operands[0]) not in made:
            dims = tuple(member.attr("broadcast_dimensions"))
            broadcast[(id(member.operands[0]), dims)] = member.operands[0]
        if is_free(member):
            continue
        operations += [(op, DTYPE_WORDS[dtype]) for op, dtype in expression_ops(member)]
        for value in member.operands:
            if id(value) in made:
                continue
            if value.shape == shape and shape:
                full[id(value)] = value
            else:
                broadcast[(id(value), ())] = value
    if not shape:
        full.update({key[0]: value for key, value in broadcast.items()})
        broadcast = {}
    return Expression(
        full=tuple(full.values()),
        broadcast=tuple((value, dims) for (_, dims), value in broadcast.items()),
        operations=tuple(operations),
        loads=tuple(DTYPE_WORDS[value.dtype] for value in full.values()),
        stores=tuple(DTYPE_WORDS[value.dtype] for value in node.results),
    )


class Elementwise(Family):
    """Fused chains and lone pointwise operations."""

    name = "elementwise"
    ops = frozenset({"fused", *COMPUTE})

    def claims(self, node: Node) -> bool:
        """Every fused node, and a lone node that is pointwise."""
        return node.op == "fused" or is_pointwise(node)

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """Any result may overwrite any operand of its type."""
        return tuple(
            (index, number)
            for index, result in enumerate(node.results)
            for number, operand in enumerate(node.operands)
            if same_type(result, operand)
        )

    def flops(self, node: Node, lowering: Lowering) -> int:
        """One per floating-point operation and element."""
        expression = expression_of(node, _body(node, lowering))
        counted = [op for op, dtype in expression.operations if dtype in ("float", "half") and op != "CAST"]
        return len(counted) * node.results[0].elements

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Choose where to compute, bring what is elsewhere, execute."""
        expression = expression_of(node, _body(node, lowering))
        mapping = choose_mapping(node, expression, lowering)
        label = lowering.label(node)
        sources: list[tuple[Tensor, Placement]] = [(lowering.get(value), mapping) for value in expression.full]
        for value, dims in expression.broadcast:
            tensor = lowering.get(value)
            sources.append((tensor, needed_by(mapping, tensor.shape, dims)))
        arranged = lowering.emit.rearrange(label, sources)
        in_place = any(
            old is not None and old.mapping == mapping
            for old in (lowering.reusable(value) for value in node.results)
        )
        results = [lowering.result(node, number, mapping) for number in range(len(node.results))]
        elements = mapping.elements_per_tile(lowering.tiles)
        lowering.emit.compute(
            label,
            expression_groups(expression, elements, in_place=in_place),
            [name for tensor in arranged for name in tensor.variables],
            [name for tensor in results for name in tensor.variables],
        )


def _body(node: Node, lowering: Lowering) -> Function | None:
    return lowering.body(node) if node.op == "fused" else None


def choose_mapping(node: Node, expression: Expression, lowering: Lowering) -> Mapping:
    """Where the chain runs: over what it overwrites, else as its largest operand lies, else as its reader wishes."""
    for value in node.results:
        old = lowering.reusable(value)
        if old is not None and old.mapping.is_owner:
            return old.mapping
    owners = [lowering.get(value) for value in expression.full]
    owners = [tensor for tensor in owners if tensor.mapping.is_owner]
    if owners:
        return max(owners, key=lambda tensor: tensor.itemsize_bytes).mapping
    value = node.results[0]
    return lowering.wish(value) or lowering.default_mapping(value)


def expression_groups(expression: Expression, elements: IntArray, *, in_place: bool) -> list[VertexGroup]:
    """The vertices of a chain: PopLibs' own codelet for one operation, a generated one for several."""
    vertex, fixed, name = _codelet(expression, in_place)
    return vertex_groups(vertex, {name: np.asarray(elements)}, **fixed)


def _codelet(expression: Expression, in_place: bool) -> tuple[str, dict[str, Any], str]:
    operations = expression.operations
    operands = len(expression.full) + len(expression.broadcast)
    if len(operations) == 1 and len(expression.stores) == 1:
        op, dtype = operations[0]
        if op == "CAST":
            return "popops::Cast1D", {"from_type": dtype, "to_type": expression.stores[0]}, "num_elems"
        candidates = _single(operands, len(expression.full))
        if candidates and _knows(candidates[in_place], op, dtype):
            return candidates[in_place], {"op": op, "type": dtype}, "n"
    fixed = {"loads": expression.loads, "stores": expression.stores, "operations": operations}
    return "popops::MapExpression", fixed, "n"


def _single(operands: int, full: int) -> tuple[str, str] | None:
    if operands == 1 and full == 1:
        return SINGLE_UNARY
    if operands == 2 and full == 2:
        return SINGLE_BINARY
    return None


def _knows(vertex: str, op: str, dtype: str) -> bool:
    """Whether PopLibs has this codelet for the operation and type."""
    try:
        vertices.cycles(vertex, op=op, type=dtype, n=1)
    except Exception:  # the table's own error type; anything it refuses goes to the generated codelet
        return False
    return True


register(Elementwise())
