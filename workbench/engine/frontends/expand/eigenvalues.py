"""Eigenvalues and singular values as programs: Jacobi's method for symmetric matrices, Francis' for others.

Algorithms of Golub and Van Loan, "Matrix Computations", 4th edition (`G&VL`). PopLibs has none of them; what the tile
program does is what these programs do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
from jax import lax

from workbench.engine.frontends.expand.factorisations import (
    Expansion,
    hessenberg,
    orthogonal,
    over_batch,
    reflections,
    reflector,
)

# Jacobi's method converges quadratically; G&VL 8.5.4: rarely more than ten sweeps.
JACOBI_SWEEPS = 10
# Double shifts for each row of a matrix. G&VL 7.5.6: two an eigenvalue on average; with three, none of 100 random
# matrices of 3 to 20 rows was left unfinished, with two, three were.
FRANCIS_STEPS = 3


def _pairs(size: int) -> Any:
    """The rounds of a tournament of `size` (even) players: int32[size - 1, 2, size / 2] (G&VL section 8.5.5)."""
    players, rounds = list(range(size)), []
    for _ in range(size - 1):
        rounds.append((players[: size // 2], players[: size // 2 - 1 : -1]))
        players = [players[0], players[-1], *players[1:-1]]
    return jnp.asarray(rounds, jnp.int32)


def _turn(app: Any, aqq: Any, apq: Any) -> tuple[Any, Any]:
    """Cosine and sine of the rotations that make the elements `apq` zero (G&VL algorithm 8.5.1)."""
    safe = jnp.where(apq == 0, 1, apq)
    tau = (aqq - app) / (2 * safe)
    tangent = jnp.where(tau >= 0, 1, -1) / (jnp.abs(tau) + jnp.sqrt(1 + tau * tau))
    cosine = lax.rsqrt(1 + tangent * tangent)
    return jnp.where(apq == 0, 1, cosine), jnp.where(apq == 0, 0, tangent * cosine)


def _rotated(a: Any, p: Any, q: Any, cosine: Any, sine: Any) -> Any:
    """Columns p and q turned."""
    left, right = a[:, p], a[:, q]
    return a.at[:, p].set(cosine * left - sine * right).at[:, q].set(sine * left + cosine * right)


def _eigh(params: Mapping[str, Any]) -> Expansion:
    """Jacobi's method, half the rows in every round (G&VL section 8.5.5): eigenvectors and sorted eigenvalues."""

    def decompose(a: Any) -> Any:
        size = a.shape[0]
        even = size + size % 2
        a = jnp.pad((a + a.T) / 2, ((0, even - size), (0, even - size)))
        rounds = _pairs(even)

        def step(number: Any, state: Any) -> Any:
            a, v = state
            p, q = rounds[number % (even - 1)]
            turn = _turn(a[p, p], a[q, q], a[p, q])
            a = _rotated(_rotated(a, p, q, *turn).T, p, q, *turn).T
            return a, _rotated(v, p, q, *turn)

        a, v = lax.fori_loop(0, JACOBI_SWEEPS * (even - 1), step, (a, jnp.eye(even, dtype=a.dtype)))
        values = jnp.diagonal(a)[:size]
        order = jnp.argsort(values)
        kept = slice(*params["subset_by_index"]) if params["subset_by_index"] else slice(None)
        return v[:size, :size][:, order][:, kept], values[order][kept]

    return over_batch(decompose, (2,))


def _svd(params: Mapping[str, Any]) -> Expansion:
    """Jacobi's method on the columns (G&VL section 8.6.3): singular values, and the vectors if they are wanted."""

    def decompose(a: Any) -> Any:
        if a.shape[0] < a.shape[1]:
            found = decompose(a.T)
            return (found[0], found[2].T, found[1].T) if len(found) == 3 else found
        columns = a.shape[1]
        even = columns + columns % 2
        a = jnp.pad(a, ((0, 0), (0, even - columns)))
        rounds = _pairs(even)

        def step(number: Any, state: Any) -> Any:
            a, v = state
            p, q = rounds[number % (even - 1)]
            left, right = a[:, p], a[:, q]
            turn = _turn(jnp.sum(left * left, 0), jnp.sum(right * right, 0), jnp.sum(left * right, 0))
            return _rotated(a, p, q, *turn), _rotated(v, p, q, *turn)

        a, v = lax.fori_loop(0, JACOBI_SWEEPS * (even - 1), step, (a, jnp.eye(even, dtype=a.dtype)))
        values = jnp.sqrt(jnp.sum(a * a, 0))[:columns]
        order = jnp.argsort(-values)
        if params["subset_by_index"]:
            order = order[slice(*params["subset_by_index"])]
        if not params["compute_uv"]:
            return (values[order],)
        u = (a[:, :columns] / jnp.where(values > 0, values, 1))[:, order]
        if params["full_matrices"] and u.shape[0] > columns:
            u = jnp.concatenate([u, _orthogonal_complement(u)], axis=1)
        return values[order], u, v[:columns, :columns][:, order].T

    return over_batch(decompose, (2,))


def _orthogonal_complement(u: Any) -> Any:
    """Columns that make orthonormal ones a basis: the rest of the reflections' product."""
    rows, columns = u.shape
    held, taus = reflections(u)
    return orthogonal(jnp.pad(held, ((0, 0), (0, rows - columns))), taus)[:, columns:]


def _schur(params: Mapping[str, Any]) -> Expansion | None:
    """Francis' double shifts on the Hessenberg form (G&VL algorithm 7.5.2), then blocks of two made standard."""
    if params["sort_eig_vals"]:
        return None

    def decompose(a: Any) -> Any:
        size = a.shape[0]
        held, taus = hessenberg(a)
        vectors = jnp.eye(size, dtype=a.dtype)
        if size > 1:
            vectors = vectors.at[1:, 1:].set(orthogonal(held[1:, :-1], taus))
        t = jnp.triu(held, -1)
        if size > 2:
            # Zeros around the matrix, so that windows of three at its edges need no case of their own.
            wide = jnp.pad(t, ((0, 2), (0, 2))), jnp.pad(vectors, ((0, 0), (0, 2)))
            t, vectors = lax.fori_loop(
                0, FRANCIS_STEPS * size, lambda _, state: _francis(state[0], state[1], size), wide
            )
            t, vectors = _deflated(t)[0][:size, :size], vectors[:, :size]
        if size > 1:
            t, vectors = lax.fori_loop(0, size - 1, lambda k, state: _standard(state[0], state[1], k), (t, vectors))
        return (t, vectors) if params["compute_schur_vectors"] else (t,)

    return over_batch(decompose, (2,))


def _deflated(t: Any) -> tuple[Any, Any]:
    """Negligible subdiagonal elements made zero, and which of them are not (G&VL equation 7.5.3)."""
    below, diagonal = jnp.diagonal(t, -1), jnp.abs(jnp.diagonal(t))
    coupled = jnp.abs(below) > jnp.finfo(t.dtype).eps * (diagonal[:-1] + diagonal[1:])
    return t - jnp.diag(jnp.where(coupled, 0, below), -1), coupled


def _francis(t: Any, vectors: Any, size: int) -> tuple[Any, Any]:
    """One double shift on the last block of three or more rows that still hang together; nothing when there is none."""
    t, coupled = _deflated(t)
    places = jnp.arange(coupled.shape[0], dtype=jnp.int32)
    both = coupled & jnp.roll(coupled, 1) & (places > 0)
    last = jnp.max(jnp.where(both, places + 1, 0))
    first = jnp.max(jnp.where(~coupled & (places < last), places + 1, 0))
    column = _first_column(t, first, last)

    def step(k: Any, state: Any) -> Any:
        t, vectors, column = state
        vector, tau, _ = reflector(column, 0)
        tau = jnp.where(k < last, tau, 0)
        at = jnp.minimum(k, size - 1)
        rows = lax.dynamic_slice(t, (at, 0), (3, size + 2))
        t = lax.dynamic_update_slice(t, rows - tau * jnp.outer(vector, vector @ rows), (at, 0))
        columns = lax.dynamic_slice(t, (0, at), (size + 2, 3))
        t = lax.dynamic_update_slice(t, columns - tau * jnp.outer(columns @ vector, vector), (0, at))
        columns = lax.dynamic_slice(vectors, (0, at), (size, 3))
        vectors = lax.dynamic_update_slice(vectors, columns - tau * jnp.outer(columns @ vector, vector), (0, at))
        column = lax.dynamic_slice(t, (at + 1, at), (3, 1))[:, 0]
        return t, vectors, jnp.where(at + 1 + jnp.arange(3) <= last, column, 0)

    def sweep(number: Any, state: Any) -> Any:
        return step(first + number, state)

    t, vectors, _ = lax.fori_loop(0, size - 1, sweep, (t, vectors, column))
    kept = jnp.arange(size + 2, dtype=jnp.int32)
    return jnp.where(kept[:, None] <= kept[None, :] + 1, t, 0), vectors


def _first_column(t: Any, first: Any, last: Any) -> Any:
    """The first three elements of the first column of (T - aI)(T - bI), a and b those of the last block of two."""
    corner = lax.dynamic_slice(t, (jnp.maximum(last - 1, 0), jnp.maximum(last - 1, 0)), (2, 2))
    trace, product = corner[0, 0] + corner[1, 1], corner[0, 0] * corner[1, 1] - corner[0, 1] * corner[1, 0]
    head = lax.dynamic_slice(t, (first, first), (3, 3))
    top = head[0, 0] * head[0, 0] + head[0, 1] * head[1, 0] - trace * head[0, 0] + product
    return jnp.stack([top, head[1, 0] * (head[0, 0] + head[1, 1] - trace), head[1, 0] * head[2, 1]])


def _standard(t: Any, vectors: Any, k: Any) -> tuple[Any, Any]:
    """The block of rows k and k + 1: triangular where its eigenvalues are real, else with an equal diagonal."""
    block = lax.dynamic_slice(t, (k, k), (2, 2))
    half, low, up = (block[0, 0] - block[1, 1]) / 2, block[1, 0], block[0, 1]
    inside = half * half + low * up
    real = jnp.where(half >= 0, 1, -1) * jnp.sqrt(jnp.maximum(inside, 0)) + half
    slant = jnp.arctan2(-2 * half, low + up) / 2
    angle = jnp.where(inside >= 0, jnp.arctan2(low, real), slant)
    angle = jnp.where(low == 0, 0, angle)
    turn = jnp.stack([jnp.cos(angle), -jnp.sin(angle), jnp.sin(angle), jnp.cos(angle)]).reshape(2, 2)
    size = t.shape[0]
    rows = lax.dynamic_slice(t, (k, 0), (2, size))
    t = lax.dynamic_update_slice(t, turn.T @ rows, (k, 0))
    t = lax.dynamic_update_slice(t, lax.dynamic_slice(t, (0, k), (size, 2)) @ turn, (0, k))
    t = t.at[k + 1, k].set(jnp.where(inside >= 0, 0, t[k + 1, k]))
    return t, lax.dynamic_update_slice(vectors, lax.dynamic_slice(vectors, (0, k), (size, 2)) @ turn, (0, k))


def iterations(name: str, rows: int) -> str:
    """What is assumed of an expansion that runs until it has converged; "" of others, and of matrices too small."""
    sweeps = f"{JACOBI_SWEEPS} sweeps of Jacobi's method"
    steps = f"{FRANCIS_STEPS} of Francis' steps for each row" if rows > 2 else ""
    return {"eigh": sweeps, "svd": sweeps, "schur": steps}.get(name, "")


EIGENVALUES: Mapping[str, Callable[[Mapping[str, Any]], Expansion | None]] = {
    "eigh": _eigh,
    "svd": _svd,
    "schur": _schur,
}
