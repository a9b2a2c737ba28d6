"""Factorisations and triangular solves: every matrix, and every right-hand side, whole on one tile.

What is larger than a block (`optimizations.cholesky_block_size`, `triangular_solve_expander_block_size`) has become
blocks before it comes here.
"""

from __future__ import annotations

from math import prod

from workbench.base.arrays import ceil_div
from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import Grid, grid, grid_of_cuts
from workbench.engine.mapping.grid import whole
from workbench.engine.ops import Family, family_of, register
from workbench.engine.ops.codelets import counted
from workbench.engine.ops.control import Calls


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


class Substitution(Calls):
    """Several right-hand sides of a block, one unknown after another: a body that equal blocks share."""

    name = "substitution"
    ops = frozenset({"substitution"})
    operators = False
    outlined = True
    alone = False

    def flops(self, node: Node, lowering: Lowering) -> int:
        """Those of its products and subtractions."""
        return sum(family_of(inner).flops(inner, lowering) for inner in lowering.body(node).nodes)

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """How many unknowns follow one another."""
        return f"{node.operands[0].shape[-1]} unknowns one after another"


class TriangularInverse(Family):
    """The transposed inverse of triangular matrices: six columns to a tile, which sees the whole matrix."""

    name = "triangular_inverse"
    ops = frozenset({"triangular_inverse"})

    def flops(self, node: Node, lowering: Lowering) -> int:
        """A division per column, a product per pair, a multiply-add per triple."""
        size = node.results[0].shape[-1]
        return _batch(node) * (size + size * (size - 1) // 2 + (size + 1) * size * (size - 1) // 3)

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring each matrix to the tiles that hold six of its columns each (poplin Cholesky.cpp:108-129)."""
        value, label, tiles = node.results[0], lowering.label(node), lowering.tiles
        size = value.shape[-1]
        shared = min(ceil_div(size, lowering.target.workers_per_tile), tiles)
        whole_matrices = matrices_on_tiles(value.shape, tiles // shared)
        mapping = grid(value.shape, [*(len(cut.lo) for cut in whole_matrices.axes[:-2]), shared, 1])
        rows, columns = mapping.axes[-2:]
        wanted = grid_of_cuts(
            value.shape, [*mapping.axes[:-2], whole(size), columns], first_tile=mapping.first_tile, replicas=rows.offset
        )
        (held,) = lowering.emit.rearrange(label, [(lowering.get(node.operands[0]), wanted)])
        result = lowering.result(node, 0, mapping)
        per_tile = ceil_div(mapping.elements_per_tile(tiles), max(1, int(rows.lengths.max()) * size))
        groups = counted(
            "poplin::TriangularInverseWithTranspose", {}, per_tile, type=DTYPE_WORDS[value.dtype], dim=size
        )
        lowering.emit.compute(label, groups, held.variables, result.variables)


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
register(Substitution())
register(TriangularInverse())
