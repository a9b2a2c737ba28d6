"""Running sums, products and extremes along an axis.

Each tile runs over the pieces of rows it holds, at the cost of the operation on every element; where rows are cut, the
totals of the pieces before a piece are brought to it, reduced, and applied to its elements.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import Grid, even_cuts, grid_of_cuts, reshape, transpose
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.ops.reduce_tile import emit_reductions, tile_reduction

OPERATIONS = {
    "cumsum": ("ADD",),
    "cumprod": ("MULTIPLY",),
    "cummax": ("MAXIMUM",),
    "cummin": ("MINIMUM",),
    "cumlogsumexp": ("MAXIMUM", "SUBTRACT", "EXPONENT", "LOGARITHM_ONE_PLUS", "ADD"),
}
REDUCED = {"cumsum": "ADD", "cumprod": "MUL", "cummax": "MAX", "cummin": "MIN", "cumlogsumexp": "LOG_ADD"}
LEAST_PIECE = 32  # elements of a row that stay together, so that an exchange of totals pays


class Running(Family):
    """A running operation; forwards and backwards cost the same."""

    name = "running"
    ops = frozenset(OPERATIONS)

    def flops(self, node: Node, lowering: Lowering) -> int:
        """One per operation and element."""
        return len(OPERATIONS[node.op]) * node.results[0].elements

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Run over the pieces, then apply what came before each."""
        axis = int(node.attr("axis", 0))
        value, label = node.results[0], lowering.label(node)
        rows, length = prod(value.shape) // value.shape[axis], value.shape[axis]
        cut = cut_rows(rows, length, lowering.tiles)
        order = [*(other for other in range(len(value.shape)) if other != axis), axis]
        back = [order.index(other) for other in range(len(order))]
        turned = reshape(cut, [value.shape[other] for other in order])
        mapping = transpose(turned, back)
        (held,) = lowering.emit.rearrange(label, [(lowering.get(node.operands[0]), mapping)])
        result = lowering.result(node, 0, mapping)
        word = DTYPE_WORDS[value.dtype]
        elements = mapping.elements_per_tile(lowering.tiles)
        runs = vertex_groups(
            "popops::MapExpression",
            {"n": elements},
            loads=(word,),
            stores=(word,),
            operations=tuple((op, word) for op in OPERATIONS[node.op]),
        )
        lowering.emit.compute(f"{label}/pieces", runs, held.variables, result.variables)
        if len(cut.axes[1]) > 1:
            _carry_over(node, lowering, cut, result)


def cut_rows(rows: int, length: int, tiles: int) -> Grid:
    """[rows, length] over the tiles: rows first, each in pieces if there are tiles left."""
    row_parts = min(rows, tiles)
    pieces = max(1, min(tiles // row_parts, length // LEAST_PIECE))
    axes: list[Any] = []
    for size, parts, stride in ((rows, row_parts, pieces), (length, pieces, 1)):
        bounds = even_cuts(size, parts)
        axes.append((bounds[:-1], bounds[1:], np.arange(parts, dtype=np.int64) * stride))
    return grid_of_cuts((rows, length), axes)


def _carry_over(node: Node, lowering: Lowering, cut: Grid, result: Tensor) -> None:
    """Bring the totals of the pieces before it to every piece, reduce them and apply them."""
    emit, label, word = lowering.emit, lowering.label(node), DTYPE_WORDS[result.dtype]
    rows, pieces = cut.axes[0], len(cut.axes[1])
    count = np.arange(pieces, dtype=np.int64)
    step = cut.axes[1].offset
    shape = (rows.size, pieces)
    owned = grid_of_cuts(shape, [rows, (count, count + 1, step)], first_tile=cut.first_tile)
    before = grid_of_cuts(shape, [rows, (0 * count[1:], count[1:], step[1:])], first_tile=cut.first_tile)
    totals = emit.tensor(f"{label}/totals", shape, result.dtype, owned, "temporary")
    copies = emit.copy_groups(owned.elements_per_tile(lowering.tiles) * result.itemsize_bytes)
    emit.compute(f"{label}/totals", copies, result.variables, totals.variables)
    (landed,) = emit.rearrange(f"{label}/before", [(totals, before)])
    here = owned.elements_per_tile(lowering.tiles)
    depth = np.where(here > 0, before.elements_per_tile(lowering.tiles) // np.maximum(1, here), 0)
    found = tile_reduction((result.dtype,) * 2, here, depth, REDUCED[node.op], lowering.target.machine, inner=True)
    carried = landed.variables
    if found:  # a single piece before needs no reduction
        carried = (emit.new(f"{label}/before", shape, result.dtype, owned, "temporary"),)
        emit_reductions(emit, f"{label}/before", [found], landed.variables, carried)
    last = cut.elements_per_tile(lowering.tiles)
    apply = vertex_groups(
        "popops::MapExpression",
        {"n": np.where(before.elements_per_tile(lowering.tiles) > 0, last, 0)},
        loads=(word,),
        stores=(word,),
        operations=tuple((op, word) for op in OPERATIONS[node.op]),
    )
    emit.compute(label, apply, (*carried, *result.variables), result.variables)


register(Running())
