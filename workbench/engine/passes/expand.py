"""Expand: factorisations and triangular solves of large matrices become those of blocks, with products between them.

A block is what one tile works on. The blocks of a Cholesky factorisation are eliminated one after another
(poplibs@7eac0f26 lib/poplin/Cholesky.cpp:216-251); a triangular solve halves the matrix and its right-hand sides until
a block is left (lib/poplin/TriangularSolve.cpp:185-262). One right-hand side of a block is a vertex's; several are
solved one unknown after another, each a product with those known before and a subtraction (:325-395), of a matrix that
was divided by its diagonal (:673-687). That substitution is a body which all blocks share, as it is a function there:
the matrix is padded with ones on its diagonal until its blocks are whole, a block's sides with zeros (:421-432, :698).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from workbench.engine.graph import Function, Graph, Node, Value, attrs
from workbench.engine.graph.rewriting import Writer, rewrite
from workbench.engine.options import Options

# graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/poplar_executor.h, both block sizes at 0.
DEFAULT_BLOCK = 128

Bodies = dict[tuple[object, ...], Function]  # of substitutions, by what makes two of them equal


def expand(graph: Graph, options: Options) -> Graph:
    """Rewrite what is larger than `cholesky_block_size` and `triangular_solve_expander_block_size`."""
    factor = int(options.get("optimizations.cholesky_block_size")) or DEFAULT_BLOCK
    solve = int(options.get("optimizations.triangular_solve_expander_block_size")) or DEFAULT_BLOCK
    bodies: Bodies = {}
    rule = partial(_expanded, factor_block=factor, solve_block=solve, bodies=bodies)
    # Because PopLibs computes these two in blocks.
    graph = rewrite(graph, rule, ops=("cholesky", "triangular_solve"))
    if not bodies:
        return graph
    return replace(graph, functions={**graph.functions, **{body.name: body for body in bodies.values()}})


def _expanded(node: Node, writer: Writer, *, factor_block: int, solve_block: int, bodies: Bodies) -> list[Value] | None:
    if not node.operands or not node.operands[0].shape:
        return None
    rows = node.operands[0].shape[-1]
    if node.op == "cholesky" and rows > factor_block:
        return [_cholesky(node, node.operands[0], factor_block, writer)]
    if node.op == "triangular_solve" and node.results[0].elements:
        return _Solve(node, solve_block, writer, bodies).solution()
    return None


def _name(key: tuple[object, ...]) -> str:
    """All that a body is: functions of a graph, each expanded by itself, share equal ones, and no others."""
    return "substitution." + ".".join(
        "x".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in key
    )


def _product(writer: Writer, left: Value, right: Value, left_axis: int, right_axis: int) -> Value:
    """Matrix product over one of the last two axes of each (-2 or -1), matrix by matrix."""
    rank = len(left.shape)
    batch = tuple(range(rank - 2))
    sizes = [operand.shape[-3 - axis] for operand, axis in ((left, left_axis), (right, right_axis))]
    return writer.write(
        "dot_general",
        [left, right],
        [*left.shape[:-2], *sizes],
        lhs_contract=(rank + left_axis,),
        rhs_contract=(rank + right_axis,),
        lhs_batch=batch,
        rhs_batch=batch,
    )


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

    def __init__(self, node: Node, block: int, writer: Writer, bodies: Bodies) -> None:
        self.node, self.given = node, dict(node.attrs)
        self.block, self.writer, self.bodies = block, writer, bodies
        self.left = bool(node.attr("left_side", True))
        self.turned = bool(node.attr("transpose_a", False))
        self.lower = bool(node.attr("lower", True))
        self.along = -2 if self.left else -1  # the axis of B that A has too
        self.across = -3 - self.along
        self.rows, self.padded = node.operands[0].shape[-1], block
        self.sides = node.operands[1].shape[self.across]  # of a block, in the end
        while self.padded < self.rows:
            self.padded, self.sides = 2 * self.padded, (self.sides + 1) // 2

    def solution(self) -> list[Value] | None:
        """What stands for the node's result; None where a vertex for each right-hand side does it."""
        matrix, sides = self.node.operands
        if self.rows <= self.block:
            return [self.run(*self._scaled(matrix, sides))] if self.sides > 1 and self.rows > 1 else None
        if self.sides > 1:
            matrix, sides = self._scaled(matrix, sides)
        result = self.run(*self._filled_up(matrix, sides))
        return [self._cut(result, self.along, 0, self.rows)]

    def _filled_up(self, matrix: Value, sides: Value) -> tuple[Value, Value]:
        """Unknowns that are zero at the end, until halving ends in whole blocks."""
        writer, more, batch, dtype = self.writer, self.padded - self.rows, matrix.shape[:-2], matrix.dtype
        if not more:
            return matrix, sides
        ones, zero = writer.filled(1.0, (more,), dtype), writer.filled(0.0, (), dtype)
        line = writer.write("pad", [ones, zero], (more * more,), low=(0,), high=(0,), interior=(more,))
        corner = writer.reshape(line, (more, more))
        if batch:
            wide, last = (*batch, more, more), (len(batch), len(batch) + 1)
            corner = writer.write("broadcast_in_dim", [corner], wide, shape=wide, broadcast_dimensions=last)
        right = writer.join([writer.filled(0.0, (*batch, self.rows, more), dtype), corner], -2)
        below = writer.filled(0.0, (*batch, more, self.rows), dtype)
        matrix = writer.join([writer.join([matrix, below], -2), right], -1)
        empty = list(sides.shape)
        empty[self.along] = more
        return matrix, writer.join([sides, writer.filled(0.0, empty, dtype)], self.along)

    def run(self, matrix: Value, sides: Value) -> Value:
        """The solution, of the shape of the right-hand sides."""
        count = sides.shape[self.across]
        if matrix.shape[-1] <= self.block:
            if count > 1:
                return self._substitute(matrix, sides)
            return self.writer.write("triangular_solve", [matrix, sides], sides.shape, **self.given)
        middle = (count + 1) // 2
        cuts = [(0, middle), (middle, count)] if middle < count else [(0, count)]
        parts = [self._cut(sides, self.across, *cut) for cut in cuts]
        return self.writer.join([self._halves(matrix, part) for part in parts], self.across)

    def _cut(self, source: Value, axis: int, low: int, high: int) -> Value:
        return source if (low, high) == (0, source.shape[axis]) else self.writer.slice(source, axis, low, high)

    def _scaled(self, matrix: Value, sides: Value) -> tuple[Value, Value]:
        """Both divided by the diagonal, row by row of op(A), or column by column where X is on its left."""
        if self.given.get("unit_diagonal"):
            return matrix, sides
        writer, size, batch = self.writer, matrix.shape[-1], matrix.shape[:-2]
        flat = writer.reshape(matrix, (*batch, size * size))
        steps = {
            "start_indices": (0,) * len(flat.shape),
            "limit_indices": flat.shape,
            "strides": (*(1,) * len(batch), size + 1),
        }
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
        """A call of the body, with zeros for the sides that a smaller block lacks."""
        count, lacking = sides.shape[self.across], list(sides.shape)
        lacking[self.across] = self.sides - count
        if count < self.sides:
            sides = self.writer.join([sides, self.writer.filled(0.0, lacking, sides.dtype)], self.across)
        forward = (self.lower != self.turned) == self.left
        how = {"forward": forward, "left_side": self.left, "turned": self.turned}
        key = (matrix.shape, sides.shape, matrix.dtype, *how.values())
        if key not in self.bodies:
            self.bodies[key] = self._body(_name(key), matrix, sides, forward)
        result = self.writer.value(sides.shape, sides.dtype)
        now = self.writer.now
        name = self.bodies[key].name
        self.writer.add(Node("substitution", (matrix, sides), (result,), attrs(**how), now.origin, (name,)))
        return self._cut(result, self.across, 0, count)

    def _body(self, name: str, matrix: Value, sides: Value, forward: bool) -> Function:
        """One unknown after another: its right-hand sides, less the product of its row with those known before."""
        params = (Value(0, matrix.shape, matrix.dtype), Value(1, sides.shape, sides.dtype))
        outer, self.writer = self.writer, Writer(Function(name, params, (), ()))
        self.writer.begin(outer.now)
        size, writer = matrix.shape[-1], self.writer
        known: list[Value] = []
        for row in range(size) if forward else reversed(range(size)):
            value = writer.slice(params[1], self.along, row, row + 1)
            if known:
                before = (0, row) if forward else (row + 1, size)
                value = writer.write("sub", [value, self._known(params[0], row, before, known)], value.shape)
            known = [*known, value] if forward else [value, *known]
        result = writer.join(known, self.along)
        self.writer = outer
        return Function(name, params, (result,), tuple(writer.nodes))

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
