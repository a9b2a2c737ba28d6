"""Expansions compute what the primitives they stand for do, and leave nothing to the generic rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.engine.frontends.expand.expansions import EXPANSIONS, Expander
from workbench.engine.frontends.functions import trace_function
from workbench.engine.graph import walk

RNG = np.random.default_rng(4)
SQUARE = RNG.random((2, 5, 5)).astype("float32") + np.eye(5, dtype="float32")
SYMMETRIC = SQUARE + SQUARE.swapaxes(1, 2)
TALL, WIDE = SQUARE[0][:, :3], SQUARE[0][:3]
ROWS = RNG.random((4, 6)).astype("float32") + 0.5
BLOCKS = RNG.random((2, 3, 8)).astype("float32"), RNG.random((2, 8, 5)).astype("float32")
IMAGE, SOURCES = RNG.random((5, 6)).astype("float32"), RNG.random((3, 3)).astype("float32")


def windows(select: Any, scatter: Any, *operands: Any) -> Any:
    """Windows of 2 x 3 that overlap, and padding around them; no public function binds this primitive."""
    scalar = jnp.float32(0)
    programs = {}
    for name, function in (("select", select), ("scatter", scatter)):
        closed = jax.make_jaxpr(function)(scalar, scalar)
        programs |= {f"{name}_jaxpr": closed.jaxpr, f"{name}_consts": tuple(closed.consts)}
    return jax.lax.select_and_scatter_p.bind(
        *operands, **programs, window_dimensions=(2, 3), window_strides=(2, 2), padding=((0, 1), (1, 0))
    )


def expanded(function: Callable[..., Any], *operands: Any) -> tuple[list[Any], list[Any]]:
    """What the only expandable equation of a function gives, and what its expansion gives on the same operands."""
    closed = jax.make_jaxpr(function)(*operands)
    (eqn,) = [eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name in EXPANSIONS]
    found = Expander().of(eqn)
    assert found is not None
    before = closed.jaxpr.replace(outvars=eqn.invars, eqns=closed.jaxpr.eqns[: closed.jaxpr.eqns.index(eqn)])
    given = jax.extend.core.jaxpr_as_fun(jax.extend.core.ClosedJaxpr(before, closed.consts))(*operands)
    ours = jax.jit(jax.extend.core.jaxpr_as_fun(jax.extend.core.ClosedJaxpr(found.jaxpr, found.consts)))(*given)
    return list(ours), jax.tree_util.tree_leaves(function(*operands))


@pytest.mark.parametrize(
    ("function", "operands"),
    [
        (jax.lax.linalg.lu, (SQUARE,)),
        (jax.lax.linalg.lu, (TALL,)),
        (jax.lax.linalg.lu, (WIDE,)),
        (lambda p: jax.lax.linalg.lu_pivots_to_permutation(p, 5), (np.array([[2, 3, 4], [1, 1, 2]], "int32"),)),
        (jax.lax.linalg.tridiagonal_solve, (*ROWS[:1], ROWS[1] + 3, ROWS[2], ROWS[:2].T.copy())),
        (lambda a, x: jax.lax.igamma(a, x), (ROWS, ROWS[::-1].copy())),
        (lambda a, x: jax.lax.igammac(a, x), (ROWS, ROWS[::-1].copy())),
        (lambda a, b, x: jax.lax.betainc(a, b, x), (ROWS, ROWS[::-1].copy(), ROWS / 2)),
        (lambda x: jax.lax.approx_min_k(x, 3, reduction_dimension=0), (ROWS,)),
        (jax.lax.linalg.hessenberg, (SQUARE,)),
        (jax.lax.linalg.tridiagonal, (SYMMETRIC,)),
        (lambda a: jax.lax.linalg.tridiagonal(a, lower=False), (SQUARE[0],)),
        (jax.lax.linalg.cholesky_update, (np.triu(SQUARE[0]), ROWS[0, :5].copy())),
        (
            lambda a, c: jax.lax.linalg.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=True),
            (TALL, SYMMETRIC[0]),
        ),
        *(
            (
                lambda a, c, left=left, turned=turned: jax.lax.linalg.ormqr(
                    a, c[:3, 0], c, left=left, transpose=turned
                ),
                (TALL, SQUARE[1]),
            )
            for left in (True, False)
            for turned in (True, False)
        ),
        (
            lambda *given: jax.lax.scaled_dot(
                *given[:2],
                lhs_scale=given[2],
                rhs_scale=given[3],
                dimension_numbers=(((2,), (1,)), ((0,), (0,))),
                preferred_element_type="float32",
            ),
            (*BLOCKS, 1 + np.zeros((2, 3, 4), "float32"), 2 + np.zeros((2, 2, 5), "float32")),
        ),
        (lambda *given: windows(jax.lax.ge, jax.lax.add, *given), (IMAGE, SOURCES, np.float32(1))),
        (lambda *given: windows(jax.lax.le, jax.lax.max, *given), (IMAGE, SOURCES, np.float32(0.5))),
    ],
)
def test_an_expansion_computes_its_primitive(function: Callable[..., Any], operands: tuple[Any, ...]) -> None:
    ours, theirs = expanded(function, *operands)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("matrix", [SQUARE, TALL, WIDE], ids=["square", "tall", "wide"])
@pytest.mark.parametrize("full", [True, False])
def test_factors_are_orthogonal_and_multiply_to_the_matrix(matrix: Any, full: bool) -> None:
    (q, r), _ = expanded(lambda a: jax.lax.linalg.qr(a, full_matrices=full), matrix)
    np.testing.assert_allclose(q @ r, matrix, atol=1e-5)
    squared = np.asarray(q.swapaxes(-1, -2) @ q)
    np.testing.assert_allclose(squared, np.broadcast_to(np.eye(q.shape[-1]), squared.shape), atol=1e-5)
    (s, u, vt), (_, theirs, _) = expanded(lambda a: jax.lax.linalg.svd(a, full_matrices=full), matrix)
    np.testing.assert_allclose(s, theirs, rtol=1e-4, atol=1e-5)
    count = s.shape[-1]
    np.testing.assert_allclose((u[..., :count] * s[..., None, :]) @ vt[..., :count, :], matrix, atol=1e-4)


def test_eigenvectors_turn_the_matrix_diagonal() -> None:
    (v, w), (_, theirs) = expanded(lambda a: jax.lax.linalg.eigh(a), SYMMETRIC)
    np.testing.assert_allclose(w, theirs, atol=1e-4)
    np.testing.assert_allclose(v @ (w[..., None] * v.swapaxes(1, 2)), SYMMETRIC, atol=1e-4)


@pytest.mark.parametrize("matrix", [SQUARE, TALL, WIDE], ids=["square", "tall", "wide"])
def test_columns_are_pivoted_longest_first(matrix: Any) -> None:
    scaled = matrix * np.float32([1, 3, 2, 5, 4])[: matrix.shape[-1]]
    (q, r, order), (_, theirs, as_theirs) = expanded(
        lambda a: jax.lax.linalg.qr(a, pivoting=True, full_matrices=False), scaled
    )
    np.testing.assert_array_equal(order, as_theirs)
    np.testing.assert_allclose(np.abs(r), np.abs(theirs), atol=1e-4)
    np.testing.assert_allclose(q @ r, np.take_along_axis(scaled, order[..., None, :], -1), atol=1e-4)


@pytest.mark.parametrize(
    "size", [1, 2, pytest.param(3, marks=pytest.mark.slow), 5, pytest.param(8, marks=pytest.mark.slow)]
)
def test_a_schur_form_is_similar_and_triangular_but_for_blocks_of_two(size: int) -> None:
    matrix = np.random.default_rng(size).normal(size=(2, size, size)).astype("float32")
    (t, z), (theirs, _) = expanded(lambda a: jax.lax.linalg.schur(a), matrix)
    np.testing.assert_allclose(z @ t @ z.swapaxes(1, 2), matrix, atol=2e-5)
    np.testing.assert_allclose(z @ z.swapaxes(1, 2), np.broadcast_to(np.eye(size), z.shape), atol=1e-5)
    assert not np.tril(t, -2).any()
    for ours, reference in zip(np.asarray(t), np.asarray(theirs), strict=True):
        np.testing.assert_allclose(
            np.sort_complex(np.linalg.eigvals(ours)), np.sort_complex(np.linalg.eigvals(reference)), atol=1e-4
        )
        below = np.diag(ours, -1) != 0
        assert not (below[1:] & below[:-1]).any()
        for k in np.flatnonzero(below):  # a block that stays has an equal diagonal and complex eigenvalues
            assert ours[k, k] == pytest.approx(ours[k + 1, k + 1], abs=1e-4)
            assert ours[k, k + 1] * ours[k + 1, k] < 0


@pytest.mark.slow
def test_a_few_of_the_values_are_some_of_all() -> None:
    """The host has the whole decomposition only."""
    some = EXPANSIONS["eigh"]({"subset_by_index": (1, 3)})
    assert some is not None
    v, w = some(SYMMETRIC)
    theirs = np.linalg.eigvalsh(SYMMETRIC)[:, 1:3]
    np.testing.assert_allclose(w, theirs, atol=1e-4)
    np.testing.assert_allclose(SYMMETRIC @ v, v * w[:, None], atol=1e-3)


def test_gamma_variables_have_their_mean_and_variance() -> None:
    """Gamma of shape a has mean a and variance a; in logarithms the same."""
    for shape in (0.5, 2.5):
        drawn = [_gamma(shape, log_space) for log_space in (False, True)]
        np.testing.assert_allclose(np.exp(drawn[1]), drawn[0], rtol=1e-3)
        assert drawn[0].mean() == pytest.approx(shape, rel=0.03)
        assert drawn[0].var() == pytest.approx(shape, rel=0.08)


def _gamma(shape: float, log_space: bool) -> Any:
    draw = EXPANSIONS["random_gamma"]({"log_space": log_space})
    assert draw is not None
    return np.asarray(draw(jax.random.key(0), jnp.full(20_000, shape, jnp.float32)))


def test_a_slope_along_the_shape_is_that_of_the_numbers() -> None:
    """Between two values of a, h apart, the function of x rises by the slope times h."""
    slope = EXPANSIONS["igamma_grad_a"]({})
    assert slope is not None
    a, h = jnp.asarray(ROWS), 1e-2
    rise = jax.scipy.special.gammainc(a + h, 1.0) - jax.scipy.special.gammainc(a - h, 1.0)
    np.testing.assert_allclose(slope(a, jnp.ones_like(a)), rise / (2 * h), atol=1e-3)


def test_a_ragged_product_multiplies_rows_by_the_matrix_of_their_group() -> None:
    sizes = np.array([1, 0, 3], "int32")
    lhs, rhs = ROWS, RNG.random((3, 6, 2)).astype("float32")
    (ours,), (theirs,) = expanded(jax.lax.ragged_dot, lhs, rhs, sizes)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    np.testing.assert_allclose(ours[0], lhs[0] @ rhs[0], rtol=1e-4)
    np.testing.assert_allclose(ours[1:], lhs[1:] @ rhs[2], rtol=1e-4)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: jnp.linalg.solve(a, a[:, 0]),
        jax.grad(lambda a: jnp.linalg.solve(a, a[:, 0]).sum()),
        lambda a: jnp.linalg.eigh(a + a.T),
        lambda a: jax.random.gamma(jax.random.key(0), a),
        lambda a: jax.lax.linalg.schur(a),
        lambda a: jax.lax.linalg.qr(a, pivoting=True),
        lambda a: jax.lax.linalg.tridiagonal(a),
        lambda a: jax.nn.scaled_matmul(a[None], a[None], a[None, :, :1], a[None, :, :1]),
    ],
)
def test_no_primitive_that_expands_is_left_in_a_graph(function: Callable[..., Any]) -> None:
    graph = trace_function(function, SQUARE[0]).graph
    found = {node.op for _, node in walk(graph)}
    assert found.isdisjoint({*EXPANSIONS, "custom_linear_solve", "cond"}), found


def test_a_branch_on_a_known_number_is_taken() -> None:
    graph = trace_function(lambda x: jax.lax.switch(jnp.int32(1), [jnp.sin, jnp.cos], x), ROWS).graph
    assert [node.op for _, node in walk(graph)] == ["cos"]


@pytest.mark.parametrize("matrix", [SQUARE[0], TALL, WIDE], ids=["square", "tall", "wide"])
def test_reflections_of_pivoted_columns_are_those_of_lapack(matrix: Any) -> None:
    """geqp3, which a pivoted QR is lowered to: all in one matrix, the order of columns from 1, and the factors."""
    scaled = matrix * np.float32([1, 3, 2, 5, 4])[: matrix.shape[-1]]
    held, order, taus = jax.jit(EXPANSIONS["geqp3"]({}))(scaled, np.zeros(matrix.shape[1], "int32"))
    theirs, as_theirs, their_taus, _, failed = scipy.linalg.lapack.sgeqp3(scaled)
    assert failed == 0
    np.testing.assert_array_equal(order, as_theirs)
    np.testing.assert_allclose(held, theirs, atol=1e-4)
    np.testing.assert_allclose(taus, their_taus, atol=1e-4)


@pytest.mark.parametrize("reduced", ["psum", "pmean", "pmax", "pmin"])
@settings(max_examples=10)
@given(shape=st.lists(st.integers(1, 4), min_size=2, max_size=3), axis=st.integers(0, 1), both=st.booleans())
def test_a_collective_over_a_batch_is_a_reduction(reduced: str, shape: list[int], axis: int, both: bool) -> None:
    one = getattr(jax.lax, reduced)

    def fn(x: Any) -> Any:
        names = ("outer", "inner") if both else "inner"
        inner = jax.vmap(lambda v: v * 2 - one(v, names), axis_name="inner")
        return jax.vmap(inner, in_axes=axis, out_axes=axis, axis_name="outer")(x)

    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    executable = wb.compile(jax.grad(lambda x: fn(x).sum()) if reduced in ("psum", "pmean") else fn, x)
    expected = jax.grad(lambda x: fn(x).sum())(x) if reduced in ("psum", "pmean") else fn(x)
    np.testing.assert_allclose(executable.run(x), expected, rtol=1e-6, atol=1e-6)
    assert executable.profile.fits


def test_a_collective_over_a_batch_and_the_replicas_is_both() -> None:
    def fn(x: Any) -> Any:
        return jax.vmap(lambda v: jax.lax.psum(v, ("replicas", "batch")), axis_name="batch")(x)

    executable = wb.compile(fn, jax.ShapeDtypeStruct((4, 6), "float32"), replicas=2)
    done = [node.op for node in executable.graph.body.nodes]
    assert (done.count("reduce_sum"), done.count("psum")) == (1, 1)
    x = np.arange(48, dtype="float32").reshape(8, 6)
    np.testing.assert_allclose(np.ravel(executable.run(x))[:6], x.sum(0))
