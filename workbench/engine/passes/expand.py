"""Expand: factorisations and triangular solves of large matrices become those of blocks, with products between them.

A block is what one tile works on. The blocks of a Cholesky factorisation are eliminated one after another
(poplibs@7eac0f26 lib/poplin/Cholesky.cpp:216-251); a triangular solve halves the matrix and its right-hand sides until
a block is left (lib/poplin/TriangularSolve.cpp:185-262). One right-hand side of a block is a vertex's; several are
solved one unknown after another, each a product with those known before and a subtraction (:325-395), of a matrix that
was divided by its diagonal (:673-687).
"""

from __future__ import annotations

from functools import partial

from workbench.engine.graph import Graph, Node, Value
from workbench.engine.options import Options
from workbench.engine.passes.rewriting import Writer, rewrite

# graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/poplar_executor.h, both block sizes at 0.
DEFAULT_BLOCK = 128
# PopLibs has the substitution once, as a function; here it is written out, so a solve of more products than this keeps
# to a vertex for each right-hand side.
MOST_PRODUCTS = 512


def expand(graph: Graph, options: Options) -> Graph:
    """Rewrite what is larger than `cholesky_block_size` and `triangular_solve_expander_block_size`."""
    factor = int(options.get("optimizations.cholesky_block_size")) or DEFAULT_BLOCK
    solve = int(options.get("optimizations.triangular_solve_expander_block_size")) or DEFAULT_BLOCK
    rule = partial(_expanded, factor_block=factor, solve_block=solve)
    return rewrite(graph, rule, ops=("cholesky", "triangular_solve"))


def _expanded(node: Node, writer: Writer, *, factor_block: int, solve_block: int) -> list[Value] | None:
    if not node.operands or not node.operands[0].shape:
        return None
    rows = node.operands[0].shape[-1]
    if node.op == "cholesky" and rows > factor_block:
        return [_cholesky(node, node.operands[0], factor_block, writer)]
    if node.op == "triangular_solve" and node.results[0].elements:
        found = _Solve(node, solve_block, writer)
        if found.substitutes:
            return [found.run(*found.scaled(*node.operands))]
        return [found.run(*node.operands)] if rows > solve_block else None
    return None


def _product(writer: Writer, left: Value, right: Value, left_axis: int, right_axis: int) -> Value:
    """Matrix product over one of the last two axes of each (-2 or -1), matrix by matrix."""
    rank = len(left.shape)
    batch = tuple(range(rank - 2))
    sizes = [operand.shape[-3 - axis] for operand, axis in ((left, left_axis), (right, right_axis))]
    return writer.write(
        "dot_general", [left, right], [*left.shape[:-2], *sizes],
        lhs_contract=(rank + left_axis,), rhs_contract=(rank + right_axis,), lhs_batch=batch, rhs_batch=batch,
    )  # fmt: skip


def _cholesky(node: Node, matrix: Value, block: int, writer: Writer) -> Value:
    """Factorise a block, multiply what is below by its inverse, take the product of that from the rest; again."""
    rows, done = matrix.shape[-1], 0
    columns: list[Value] = []
    given = dict(node.attrs)
    rest = matrix
    while done < rows:
        size = min(block, rows - done)
        corner = writer.slice(writer.slice(rest, -2, 0, size), -1, 0, size)
        factor = writer.write("cholesky", [corner], corner.shape, **given)
        column = [factor]
        if done + size < rows:
            left = writer.slice(rest, -1, 0, size)
            inverse = writer.write("triangular_inverse", [factor], factor.shape)
            below = _product(writer, writer.slice(left, -2, size, rows - done), inverse, -1, -2)
            square = _product(writer, below, below, -1, -1)
            right = writer.slice(writer.slice(rest, -1, size, rows - done), -2, size, rows - done)
            rest = writer.write("sub", [right, square], right.shape)
            column.append(below)
        if done:
            column.insert(0, writer.filled(0.0, (*matrix.shape[:-2], done, size), matrix.dtype))
        columns.append(writer.join(column, -2))
        done += size
    return writer.join(columns, -1)


class _Solve:
    """op(A) X = B, or X op(A) = B: halves of A, and of B along its other axis, until a block of A is left."""

    def __init__(self, node: Node, block: int, writer: Writer) -> None:
        self.given = dict(node.attrs)
        self.block, self.writer = block, writer
        self.left = bool(node.attr("left_side", True))
        self.turned = bool(node.attr("transpose_a", False))
        self.lower = bool(node.attr("lower", True))
        self.along = -2 if self.left else -1  # the axis of B that A has too
        self.across = -3 - self.along
        products = self._products(node.operands[0].shape[-1], node.operands[1].shape[self.across])
        self.substitutes = 0 < products <= MOST_PRODUCTS

    def _products(self, rows: int, count: int) -> int:
        """Products of all substitutions: of an unknown of every block but its first, for every block of sides."""
        if rows <= self.block:
            return rows - 1 if count > 1 else 0
        half = (rows + 1) // 2, (count + 1) // 2
        return sum(
            self._products(each, part) for each in (half[0], rows - half[0]) for part in (half[1], count - half[1])
        )

    def run(self, matrix: Value, sides: Value) -> Value:
        """The solution, of the shape of the right-hand sides."""
        count = sides.shape[self.across]
        if matrix.shape[-1] <= self.block:
            if count > 1 and self.substitutes:
                return self._substitute(matrix, sides)
            return self.writer.write("triangular_solve", [matrix, sides], sides.shape, **self.given)
        middle = (count + 1) // 2
        cuts = [(0, middle), (middle, count)] if middle < count else [(0, count)]
        parts = [self._cut(sides, self.across, *cut) for cut in cuts]
        return self.writer.join([self._halves(matrix, part) for part in parts], self.across)

    def _cut(self, source: Value, axis: int, low: int, high: int) -> Value:
        return source if (low, high) == (0, source.shape[axis]) else self.writer.slice(source, axis, low, high)

    def scaled(self, matrix: Value, sides: Value) -> tuple[Value, Value]:
        """Both divided by the diagonal, row by row of op(A), or column by column where X is on its left."""
        if self.given.get("unit_diagonal"):
            return matrix, sides
        writer, size, batch = self.writer, matrix.shape[-1], matrix.shape[:-2]
        flat = writer.reshape(matrix, (*batch, size * size))
        steps = {
            "start_indices": (0,) * len(flat.shape), "limit_indices": flat.shape,
            "strides": (*(1,) * len(batch), size + 1),
        }  # fmt: skip
        diagonal = writer.write("slice", [flat], (*batch, size), **steps)

        def divided(value: Value, axis: int) -> Value:
            rank = len(value.shape)
            along = (*range(rank - 2), rank + axis)
            wide = writer.write(
                "broadcast_in_dim", [diagonal], value.shape, shape=value.shape, broadcast_dimensions=along
            )
            return writer.write("div", [value, wide], value.shape)

        return divided(matrix, -2 if self.left != self.turned else -1), divided(sides, self.along)

    def _substitute(self, matrix: Value, sides: Value) -> Value:
        """One unknown after another: its right-hand sides, less the product of its row with those known before."""
        size, writer = matrix.shape[-1], self.writer
        forward = (self.lower != self.turned) == self.left
        known: list[Value] = []
        for row in range(size) if forward else reversed(range(size)):
            value = writer.slice(sides, self.along, row, row + 1)
            if known:
                before = (0, row) if forward else (row + 1, size)
                value = writer.write("sub", [value, self._known(matrix, row, before, known)], value.shape)
            known = [*known, value] if forward else [value, *known]
        return writer.join(known, self.along)

    def _known(self, matrix: Value, row: int, before: tuple[int, int], known: list[Value]) -> Value:
        """What the unknowns before contribute to one."""
        writer, joined = self.writer, self.writer.join(known, self.along)
        own, summed = (-2, -1) if self.left != self.turned else (-1, -2)
        beside = self._cut(writer.slice(matrix, own, row, row + 1), summed, *before)
        if self.left:
            return _product(writer, beside, joined, summed, -2)
        return _product(writer, joined, beside, -1, summed)

    def _halves(self, matrix: Value, sides: Value) -> Value:
        """One half of the unknowns, then the other without what the first contributes."""
        size, writer = matrix.shape[-1], self.writer
        middle = (size + 1) // 2
        ranges = [(0, middle), (middle, size)]
        first = int((self.lower != self.turned) != self.left)  # the half that depends on no other
        order = [ranges[first], ranges[1 - first]]
        corners = [writer.slice(writer.slice(matrix, -2, *each), -1, *each) for each in order]
        parts = [writer.slice(sides, self.along, *each) for each in order]
        solved = self.run(corners[0], parts[0])
        rows, columns = (ranges[1], ranges[0]) if self.lower else (ranges[0], ranges[1])
        beside = writer.slice(writer.slice(matrix, -2, *rows), -1, *columns)
        if self.left:
            known = _product(writer, beside, solved, -2 if self.turned else -1, -2)
        else:
            known = _product(writer, solved, beside, -1, -1 if self.turned else -2)
        other = self.run(corners[1], writer.write("sub", [parts[1], known], parts[1].shape))
        return writer.join([solved, other] if first == 0 else [other, solved], self.along)
