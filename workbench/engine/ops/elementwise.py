"""Elementwise: a chain of pointwise operations is one codelet on every tile that holds part of the result."""

from __future__ import annotations

from workbench.base.arrays import IntArray
from workbench.base.identity import Selves
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import Mapping, Placement, needed_by, reshape
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register, same_type
from workbench.engine.ops.codelets import expression_groups
from workbench.engine.ops.expressions import Expression, expression_of, operations_of
from workbench.engine.ops.pointwise import COMPUTE, is_pointwise, squeezed
from workbench.engine.program import VertexGroup
from workbench.engine.remembered import remembered
from workbench.engine.target import Machine


class Elementwise(Family):
    """Fused chains and lone pointwise operations."""

    name = "elementwise"
    ops = frozenset({"fused", *COMPUTE})
    light = True
    pointwise = True
    shareable = True

    def word(self, node: Node) -> str:
        """A chain that comes from a named function is that."""
        if node.op != "fused":
            return node.op
        return node.origin.region.strip("_") if node.origin.region else "elementwise"

    def claims(self, node: Node) -> bool:
        """Every fused node, and a lone node that is pointwise."""
        return node.op == "fused" or is_pointwise(node)

    def handed_back(self, node: Node, wished: Mapping) -> dict[int, Mapping]:
        """Operands of the result's shape lie as it does."""
        shape = node.results[0].shape
        return {number: wished for number, value in enumerate(node.operands) if value.shape == shape}

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
        known: Expression | None = lowering.of_nodes.get(node)  # where it was lowered
        if known is not None:
            done = known.operations
        else:
            done = operations_of(lowering.body(node).nodes if node.op == "fused" else (node,))
        return sum(dtype in ("float", "half") and op != "CAST" for op, dtype in done) * node.results[0].elements

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Choose where to compute, bring what is elsewhere, execute."""
        expression = _expression(node, lowering)
        mapping = choose_mapping(node, expression, lowering)
        label = lowering.label(node)
        sources: list[tuple[Tensor, Placement]] = [
            (seen_as(lowering.get(value), expression.shape), mapping) for value in expression.full
        ]
        for value, axes in expression.broadcast:
            tensor = seen_as(lowering.get(value), squeezed(value.shape))
            sources.append((tensor, _needs(mapping, tensor.shape, axes)))
        arranged = lowering.emit.rearrange(label, sources)
        in_place = _overwritten(node, expression, mapping, lowering)
        results = [
            lowering.result(node, number, reshape(mapping, value.shape)) for number, value in enumerate(node.results)
        ]
        amounts = [mapping, *(wanted for _, wanted in sources[len(expression.full) :])]
        lowering.emit.compute(
            label,
            _groups(
                Selves((expression,)),
                Selves([placed.elements_per_tile(lowering.tiles) for placed in amounts]),
                lowering.target.machine,
                in_place,
            ),
            [name for tensor in arranged for name in tensor.variables],
            [name for tensor in results for name in tensor.variables],
        )


@remembered(4096)
def _groups(
    expression: Selves[Expression], amounts: Selves[IntArray], machine: Machine, in_place: int | None
) -> tuple[VertexGroup, ...]:
    """`expression_groups` of what the result and each broadcast operand have on each tile: read-only arrays, and an
    expression that is kept with its graph, so that another compile of that finds them again."""
    (chain,), (elements, *needed) = expression, amounts
    return tuple(expression_groups(chain, elements, needed, machine=machine, in_place=in_place))


@remembered(4096)
def _needs(mapping: Mapping, shape: tuple[int, ...], axes: tuple[int, ...]) -> Placement:
    return needed_by(mapping, shape, axes)


def seen_as(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The tensor under a shape of as many elements."""
    return tensor if tensor.shape == shape else tensor.view(reshape(tensor.mapping, shape), shape)


def _expression(node: Node, lowering: Lowering) -> Expression:
    """The expression of a node, read once."""
    known: Expression | None = lowering.of_nodes.get(node)
    if known is None:
        known = expression_of(node, lowering.body(node) if node.op == "fused" else None)
        lowering.of_nodes[node] = known
    return known


def _overwritten(node: Node, expression: Expression, mapping: Mapping, lowering: Lowering) -> int | None:
    """The number of the full operand whose memory the result takes."""
    for value in node.results:
        old = lowering.reuse.get(value)
        if old is None or not lowering.has(old) or reshape(lowering.get(old).mapping, mapping.shape) != mapping:
            continue
        for number, operand in enumerate(expression.full):
            if operand is old:
                return number
    return None


def choose_mapping(node: Node, expression: Expression, lowering: Lowering) -> Mapping:
    """Where the chain runs: over what it overwrites, else as its largest operand lies, else as its reader wishes.

    What stays where it is, as parameters do, comes before what is made anew in every run. An operand that lies on few
    tiles, as a slice of another tensor may, is no model for the result.
    """
    variables = lowering.emit.variables

    def stays(tensor: Tensor) -> bool:
        return all(variables[name].always_live for name in tensor.variables)

    olds = [old for old in map(lowering.reusable, node.results) if old is not None]
    olds = [old for old in olds if lowering.is_model(old) or (stays(old) and old.mapping.is_owner)]
    if olds:
        return reshape(max(olds, key=stays).mapping, expression.shape)
    owners = [tensor for tensor in map(lowering.get, expression.full) if lowering.is_model(tensor)]
    if owners:
        return reshape(max(owners, key=lambda tensor: tensor.itemsize_bytes).mapping, expression.shape)
    value = node.results[0]
    return lowering.wish(value) or lowering.default_mapping(value)


register(Elementwise())
