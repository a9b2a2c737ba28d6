"""Factorisations and triangular solves: every matrix, and every right-hand side, whole on one tile."""

from __future__ import annotations

from math import prod

from workbench.engine.graph import Node
from workbench.engine.lowering import Lowering
from workbench.engine.mapping import Grid, grid
from workbench.engine.ops import DTYPE_WORDS, Family, register
from workbench.engine.ops.codelets import counted


class Cholesky(Family):
    """The triangular root of each matrix."""

    name = "cholesky"
    ops = frozenset({"cholesky"})

    def flops(self, node: Node, lowering: Lowering) -> int:
        """A root per column, an addition and a division per pair, a multiply-add per triple."""
        size = node.results[0].shape[-1]
        return _batch(node) * (size + (size + 1) * size + (size + 1) * size * (size - 1) // 3)

    def lower(self, node: Node, lowering: Lowering) -> None:
        """One worker per matrix."""
        value, label = node.results[0], lowering.label(node)
        mapping = matrices_on_tiles(value.shape, lowering.tiles)
        (held,) = lowering.emit.rearrange(label, [(lowering.get(node.operands[0]), mapping)])
        result = lowering.result(node, 0, mapping)
        per_tile = mapping.elements_per_tile(lowering.tiles) // max(1, value.shape[-1] ** 2)
        groups = counted("poplin::Cholesky", {}, per_tile, type=DTYPE_WORDS[value.dtype], dim=value.shape[-1])
        lowering.emit.compute(label, groups, held.variables, result.variables)


class TriangularSolve(Family):
    """Triangular systems, each right-hand side solved by one worker."""

    name = "triangular_solve"
    ops = frozenset({"triangular_solve"})

    def flops(self, node: Node, lowering: Lowering) -> int:
        """A multiply-add per pair and a division per unknown, for every right-hand side."""
        size = node.operands[0].shape[-1]
        return node.results[0].elements // max(1, size) * size * size

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring each matrix and its right-hand sides together."""
        matrix, sides = lowering.operands(node)
        value, label, size = node.results[0], lowering.label(node), matrix.shape[-1]
        home = matrices_on_tiles(value.shape, lowering.tiles)
        held = lowering.emit.rearrange(
            label, [(matrix, matrices_on_tiles(matrix.shape, lowering.tiles)), (sides, home)]
        )
        result = lowering.result(node, 0, home)
        per_tile = home.elements_per_tile(lowering.tiles) // max(1, size)
        lower = bool(node.attr("lower", True)) != bool(node.attr("transpose_a", False))
        groups = counted("poplin::TriangularSolve", {}, per_tile, type=DTYPE_WORDS[value.dtype], an=size, lower=lower)
        lowering.emit.compute(label, groups, [name for one in held for name in one.variables], result.variables)


def _batch(node: Node) -> int:
    return prod(node.results[0].shape[:-2])


def matrices_on_tiles(shape: tuple[int, ...], tiles: int) -> Grid:
    """The last two axes whole, the matrices evenly over the tiles."""
    left, splits = tiles, []
    for size in shape[:-2]:
        splits.append(min(size, max(1, left)))
        left //= splits[-1]
    return grid(shape, [*splits, 1, 1])


register(Cholesky())
register(TriangularSolve())
