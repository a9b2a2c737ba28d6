"""Factorisations and solves of large matrices as those of blocks: the same numbers, blocks no larger than asked."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import workbench as wb
from tests.engine.small_graphs import before_and_after
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


def padded(node: Node, value: Array, filler: Array) -> Array:
    (low,), (high,), (interior,) = (node.attr(name) for name in ("low", "high", "interior"))
    found = np.full(node.results[0].shape, filler)
    found[low : len(found) - high : interior + 1] = value
    return found


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
    "pad": padded,
}


def evaluate(graph: Graph, *values: Array, function: Function | None = None) -> Array:
    function = function or graph.body
    known = {id(param): value for param, value in zip(function.params, values, strict=True)}
    for node in function.nodes:
        operands = [known[id(value)] for value in node.operands]
        if node.calls:
            found = evaluate(graph, *operands, function=graph.functions[node.calls[0]])
        else:
            found = COMPUTED[node.op](node, *operands)
        assert found.shape == node.results[0].shape, node
        known[id(node.results[0])] = found
    return known[id(function.results[0])]


def blocks(graph: Graph, op: str) -> list[int]:
    return [node.operands[0].shape[-1] for node in graph.body.nodes if node.op == op]


def bodies(graph: Graph) -> list[Function]:
    return [body for name, body in graph.functions.items() if name != graph.entry]


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
    np.testing.assert_allclose(evaluate(graph, matrix), np.linalg.cholesky(matrix), atol=1e-9)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_a_triangular_solve_in_halves_is_that_of_the_matrix(left: bool, lower: bool, turned: bool) -> None:
    """20 rows are filled up to 24, which halve to 12 and to 6; 7 right-hand sides to 4 and 3, then 2, 2 and 2, 1.

    A vertex solves for one right-hand side, 4 times; for two, 3 x 4 calls of one body of 6 unknowns, all of which but
    the first take a product. Besides, there is one for each pair of halves: 2 of 24 rows and 4 x 2 of 12.
    """
    sides = (2, 20, 7) if left else (2, 7, 20)
    given = {"left_side": left, "lower": lower, "transpose_a": turned}
    graph = verify_graph(
        expand(
            graph_of("triangular_solve", (2, 20, 20), sides, result=sides, **given),
            options({"optimizations.triangular_solve_expander_block_size": 6}),
        )
    )
    assert blocks(graph, "triangular_solve") == [6] * 4
    assert blocks(graph, "substitution") == [6] * 12
    (body,) = bodies(graph)
    assert [node.op for node in body.nodes].count("dot_general") == 5
    assert len(blocks(graph, "dot_general")) == 2 + 4 * 2
    matrix = (np.tril if lower else np.triu)(random(2, 20, 20)) + 10 * np.eye(20)
    op = swapped(matrix) if turned else matrix
    unknown = random(*sides)
    right = op @ unknown if left else unknown @ op
    np.testing.assert_allclose(evaluate(graph, matrix, right), unknown, atol=1e-9)


def test_a_unit_diagonal_divides_nothing() -> None:
    given = {"left_side": True, "lower": True, "transpose_a": False, "unit_diagonal": True}
    graph = verify_graph(expand(graph_of("triangular_solve", (4, 4), (4, 3), result=(4, 3), **given), options()))
    assert not blocks(graph, "div")
    (body,) = bodies(graph)
    assert [node.operands[0].shape for node in body.nodes if node.op == "dot_general"] == [(1, 1), (1, 2), (1, 3)]


@pytest.mark.parametrize(("rows", "blocks_of_a_side"), [(256, 2), (512, 4), (500, 4)])
def test_all_blocks_of_a_solve_share_one_body(rows: int, blocks_of_a_side: int) -> None:
    """As many sides as unknowns, so as many blocks of sides as of unknowns; 500 are filled up to 512."""
    graph = verify_graph(
        expand(graph_of("triangular_solve", (rows, rows), (rows, rows), result=(rows, rows)), options())
    )
    assert blocks(graph, "substitution") == [128] * blocks_of_a_side**2
    (body,) = bodies(graph)
    assert [node.op for node in body.nodes].count("dot_general") == 127


def test_a_solve_in_a_branch_and_one_beside_it_have_bodies_of_their_own() -> None:
    """Each function of a graph is expanded by itself, and what they call is told apart by its name."""

    def solves(x: Any) -> Any:
        small = jax.scipy.linalg.solve_triangular
        upper = jax.lax.cond(x[0, 0] > 0, lambda: small(x[:, :4], x[:, :4]), lambda: x[:, :4])
        return upper, small(x[:, :4], x, lower=True)

    graph = wb.compile(solves, np.eye(4, 8, dtype=np.float32)).graph
    calls = [node for function in graph.functions.values() for node in function.nodes if node.op == "substitution"]
    assert sorted(node.results[0].shape for node in calls) == [(4, 4), (4, 8)]
    for node in calls:
        assert [each.shape for each in graph.functions[node.calls[0]].params] == [each.shape for each in node.operands]


@pytest.mark.parametrize("op", ["cholesky", "triangular_solve"])
@pytest.mark.parametrize(("rows", "parts"), [(DEFAULT_BLOCK, 1), (DEFAULT_BLOCK + 1, 2)])
def test_a_block_of_zero_is_the_default(op: str, rows: int, parts: int) -> None:
    shapes = [(rows, rows)] if op == "cholesky" else [(rows, rows), (rows, 1)]
    assert len(blocks(expand(graph_of(op, *shapes, result=shapes[-1]), options()), op)) == parts


def test_text(golden: Any) -> None:
    """Four rows in blocks of two."""
    before = graph_of("cholesky", (4, 4), result=(4, 4))
    after = expand(before, options({"optimizations.cholesky_block_size": 2}))
    golden("passes/expand.txt", before_and_after(before, after))
