"""Factorisations and solves of large matrices as those of blocks: the same numbers, blocks no larger than asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.engine.graph import Function, Graph, GraphBuilder, Input, Node, Output, verify_graph
from workbench.engine.options import options
from workbench.engine.passes.expand import DEFAULT_BLOCK, expand

F32 = "float32"
Array = Any


def graph_of(op: str, *shapes: tuple[int, ...], result: tuple[int, ...], **attributes: Any) -> Graph:
    builder = GraphBuilder("main")
    params = tuple(builder.param(shape, F32) for shape in shapes)
    main = builder.function(builder.node(op, params, ((result, F32),), **attributes))
    inputs = tuple(Input(name=f"in{number}", role="input") for number in range(len(shapes)))
    return Graph(functions={"main": main}, entry="main", inputs=inputs, outputs=(Output(name="out"),))


def swapped(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


def solved(node: Node, matrix: Array, sides: Array) -> Array:
    op = swapped(matrix) if node.attr("transpose_a") else matrix
    return (
        np.linalg.solve(op, sides) if node.attr("left_side") else swapped(np.linalg.solve(swapped(op), swapped(sides)))
    )


def product(node: Node, left: Array, right: Array) -> Array:
    left = left if node.attr("lhs_contract") == (2,) else swapped(left)
    return left @ (right if node.attr("rhs_contract") == (1,) else swapped(right))


def cut(node: Node, value: Array) -> Array:
    return value[tuple(map(slice, node.attr("start_indices"), node.attr("limit_indices"), node.attr("strides")))]


def spread(node: Node, value: Array) -> Array:
    sizes = dict(zip(node.attr("broadcast_dimensions"), value.shape, strict=True))
    return np.broadcast_to(
        value.reshape([sizes.get(axis, 1) for axis in range(len(node.attr("shape")))]), node.attr("shape")
    )


COMPUTED: dict[str, Any] = {
    "cholesky": lambda node, matrix: np.linalg.cholesky(matrix),
    "triangular_inverse": lambda node, matrix: swapped(np.linalg.inv(matrix)),
    "triangular_solve": solved,
    "dot_general": product,
    "slice": cut,
    "sub": lambda node, left, right: left - right,
    "concatenate": lambda node, *parts: np.concatenate(parts, node.attr("dimension")),
    "constant": lambda node: np.asarray(node.attr("value")),
    "broadcast_in_dim": spread,
    "div": lambda node, left, right: left / right,
    "reshape": lambda node, value: value.reshape(node.results[0].shape),
}


def evaluate(function: Function, *values: Array) -> Array:
    known = {id(param): value for param, value in zip(function.params, values, strict=True)}
    for node in function.nodes:
        found = COMPUTED[node.op](node, *(known[id(value)] for value in node.operands))
        assert found.shape == node.results[0].shape, node
        known[id(node.results[0])] = found
    return known[id(function.results[0])]


def blocks(graph: Graph, op: str) -> list[int]:
    return [node.operands[0].shape[-1] for node in graph.body.nodes if node.op == op]


def random(*shape: int) -> Array:
    return np.random.default_rng(0).normal(size=shape)


def test_a_cholesky_factorisation_of_blocks_is_that_of_the_matrix() -> None:
    """20 rows in blocks of 6: 6, 6, 6 and 2; each but the last is inverted for what is below it."""
    graph = verify_graph(
        expand(graph_of("cholesky", (2, 20, 20), result=(2, 20, 20)), options({"optimizations.cholesky_block_size": 6}))
    )
    assert blocks(graph, "cholesky") == [6, 6, 6, 2]
    assert blocks(graph, "triangular_inverse") == [6, 6, 6]
    root = random(2, 20, 20)
    matrix = root @ swapped(root) + 20 * np.eye(20)
    np.testing.assert_allclose(evaluate(graph.body, matrix), np.linalg.cholesky(matrix), atol=1e-9)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_a_triangular_solve_in_halves_is_that_of_the_matrix(left: bool, lower: bool, turned: bool) -> None:
    """20 rows halve to 10 and to 5, no more than 6; 7 right-hand sides to 4 and 3, then 2, 2 and 2, 1: 4 times 4.

    A vertex solves for one right-hand side; for two, all 5 unknowns but the first take a product: 12 x 4 of them, and
    one for each pair of halves, 2 of 20 rows and 4 x 2 of 10.
    """
    sides = (2, 20, 7) if left else (2, 7, 20)
    given = {"left_side": left, "lower": lower, "transpose_a": turned}
    graph = verify_graph(
        expand(
            graph_of("triangular_solve", (2, 20, 20), sides, result=sides, **given),
            options({"optimizations.triangular_solve_expander_block_size": 6}),
        )
    )
    assert blocks(graph, "triangular_solve") == [5] * 4
    assert len(blocks(graph, "dot_general")) == 12 * 4 + 2 + 4 * 2
    matrix = (np.tril if lower else np.triu)(random(2, 20, 20)) + 10 * np.eye(20)
    op = swapped(matrix) if turned else matrix
    unknown = random(*sides)
    right = op @ unknown if left else unknown @ op
    np.testing.assert_allclose(evaluate(graph.body, matrix, right), unknown, atol=1e-9)


def test_a_unit_diagonal_divides_nothing() -> None:
    given = {"left_side": True, "lower": True, "transpose_a": False, "unit_diagonal": True}
    graph = verify_graph(expand(graph_of("triangular_solve", (4, 4), (4, 3), result=(4, 3), **given), options()))
    assert not blocks(graph, "div")
    assert [node.operands[0].shape for node in graph.body.nodes if node.op == "dot_general"] == [(1, 1), (1, 2), (1, 3)]


def test_a_solve_of_very_many_unknowns_keeps_to_vertices() -> None:
    """256 unknowns for 256 sides are 2 x 2 blocks of 127 products, 512 for 512 are 4 x 4 of them."""
    shapes = [(rows, rows) for rows in (256, 512)]
    few, many = (expand(graph_of("triangular_solve", shape, shape, result=shape), options()) for shape in shapes)
    assert (len(blocks(few, "triangular_solve")), len(blocks(few, "dot_general"))) == (0, 4 * 127 + 2)
    assert (len(blocks(many, "triangular_solve")), len(blocks(many, "dot_general"))) == (16, 2 + 4 * 2)


@pytest.mark.parametrize("op", ["cholesky", "triangular_solve"])
@pytest.mark.parametrize(("rows", "parts"), [(DEFAULT_BLOCK, 1), (DEFAULT_BLOCK + 1, 2)])
def test_a_block_of_zero_is_the_default(op: str, rows: int, parts: int) -> None:
    shapes = [(rows, rows)] if op == "cholesky" else [(rows, rows), (rows, 1)]
    assert len(blocks(expand(graph_of(op, *shapes, result=shapes[-1]), options()), op)) == parts
