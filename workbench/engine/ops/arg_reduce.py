"""Places of the largest or smallest elements: each tile finds its own, the finds are exchanged and compared.

Also reductions by an arbitrary function, which cost what a compiled reduction of bits does.
"""

from __future__ import annotations

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import Placement, reshape
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.ops.codelets import counted
from workbench.engine.ops.reduce import Partials, arrived_reduction, partials_of
from workbench.engine.ops.reduce_tile import emit_reductions

VERTICES = {"argmax": "popnn::ReduceMaxClass", "argmin": "popnn::ReduceMinClass"}


class ArgReduce(Family):
    """The place of the extreme along some axes."""

    name = "arg_reduce"
    ops = frozenset(VERTICES)

    def flops(self, node: Node, lowering: Lowering) -> int:
        """A comparison per element."""
        return node.operands[0].elements

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Find each tile's own, then compare what the tiles found."""
        source, value, label = lowering.get(node.operands[0]), node.results[0], lowering.label(node)
        axes = tuple(int(axis) for axis in node.attr("axes"))
        parts = partials_of(source.mapping, axes, tuple(s for a, s in enumerate(source.shape) if a not in axes))
        tiles, word = lowering.tiles, DTYPE_WORDS[source.dtype]
        finds = parts.held.elements_per_tile(tiles)
        size = np.where(finds > 0, ceil_div(source.elements_per_tile(tiles), np.maximum(1, finds)), 0)
        groups = counted(f"{VERTICES[node.op]}Gather", {"size": size}, finds, type=word)
        found = lowering.emit.tensor(f"{label}/found", parts.held.shape, source.dtype, parts.held, "temporary")
        if parts.depth == 1:
            result = lowering.result(node, 0, reshape(parts.result, value.shape))
            lowering.emit.compute(label, groups, source.variables, (*found.variables, *result.variables))
            return
        places = lowering.emit.tensor(f"{label}/places", parts.held.shape, value.dtype, parts.held, "temporary")
        lowering.emit.compute(f"{label}/tile", groups, source.variables, (*found.variables, *places.variables))
        _compare(node, lowering, parts, found, places)


def _compare(node: Node, lowering: Lowering, parts: Partials, found: Tensor, places: Tensor) -> None:
    value, label, tiles = node.results[0], lowering.label(node), lowering.tiles
    mapping = lowering.wish(value) or lowering.default_mapping(value)
    wanted = parts.needed(reshape(mapping, parts.kept))
    landed = lowering.emit.rearrange(label, [(found, wanted), (places, wanted)])
    result = lowering.result(node, 0, mapping)
    owned = mapping.elements_per_tile(tiles)
    groups = counted(
        f"{VERTICES[node.op]}Sparse", {"size": _depth(wanted, owned, tiles)}, owned, type=DTYPE_WORDS[found.dtype]
    )
    lowering.emit.compute(f"{label}/final", groups, [n for one in landed for n in one.variables], result.variables)


def _depth(wanted: Placement, owned: IntArray, tiles: int) -> IntArray:
    return np.where(owned > 0, ceil_div(wanted.elements_per_tile(tiles), np.maximum(1, owned)), 0)


class AnyReduce(Family):
    """A reduction by bits or by a function of the user's, of one operand or several together."""

    name = "any_reduce"
    ops = frozenset({"reduce", "reduce_xor"})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """As any reduction, at the cost of one that is compiled: element by element."""
        label, target = lowering.label(node), lowering.target
        axes = tuple(int(axis) for axis in node.attr("axes") or node.attr("dimensions") or ())
        for number, value in enumerate(node.results):
            source = lowering.get(node.operands[number])
            kept = tuple(size for axis, size in enumerate(source.shape) if axis not in axes)
            parts = partials_of(source.mapping, axes, kept)
            inner = len(source.shape) - 1 in axes
            found = arrived_reduction(
                source.mapping, parts.held, (source.dtype,) * 2, "LOGICAL_OR", target, inner=inner
            )
            if parts.depth == 1:
                result = lowering.result(node, number, reshape(parts.result, value.shape))
                emit_reductions(lowering.emit, label, [found], source.variables, result.variables)
                continue
            held = source.view(parts.held, parts.held.shape)
            if found:
                held = lowering.emit.tensor(f"{label}/partials", held.shape, source.dtype, parts.held, "temporary")
                emit_reductions(lowering.emit, f"{label}/tile", [found], source.variables, held.variables)
            mapping = lowering.wish(value) or lowering.default_mapping(value)
            wanted = parts.needed(reshape(mapping, parts.kept))
            (landed,) = lowering.emit.rearrange(label, [(held, wanted)])
            result = lowering.result(node, number, mapping)
            final = arrived_reduction(wanted, mapping, (source.dtype,) * 2, "LOGICAL_OR", target)
            emit_reductions(lowering.emit, f"{label}/final", [final], landed.variables, result.variables)


register(ArgReduce())
register(AnyReduce())
