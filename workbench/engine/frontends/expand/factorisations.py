"""Factorisations as programs: LU, QR with and without pivots, Hessenberg and tridiagonal forms, updates of roots.

Algorithms of Golub and Van Loan, "Matrix Computations", 4th edition (`G&VL`). PopLibs has none of them; what the tile
program does is what these programs do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

Expansion: TypeAlias = Callable[..., Any]


def over_batch(function: Expansion, ranks: tuple[int, ...]) -> Expansion:
    """The function over the leading axes of its operands, which have these ranks without them."""

    def mapped(*operands: Any) -> Any:
        each = function
        for _ in range(operands[0].ndim - ranks[0]):
            each = jax.vmap(each)
        return each(*operands)

    return mapped


def _lu(params: Mapping[str, Any]) -> Expansion:
    """Outer products with partial pivoting (G&VL algorithm 3.4.1): factors in one matrix, pivots, permutation."""

    def step(k: Any, state: Any) -> Any:
        a, pivots, order = state
        rows = jnp.arange(a.shape[0], dtype=jnp.int32)
        pivot = jnp.argmax(jnp.where(rows >= k, jnp.abs(a[:, k]), -1)).astype(jnp.int32)
        a, order = _swapped(a, k, pivot), _swapped(order, k, pivot)
        factors = jnp.where(rows > k, a[:, k] / a[k, k], 0)
        columns = jnp.arange(a.shape[1], dtype=jnp.int32)
        a = a - jnp.outer(factors, jnp.where(columns > k, a[k], 0))
        return a.at[:, k].set(jnp.where(rows > k, factors, a[:, k])), pivots.at[k].set(pivot), order

    def factorise(a: Any) -> Any:
        count = min(a.shape)
        rows = jnp.arange(a.shape[0], dtype=jnp.int32)
        return lax.fori_loop(0, count, step, (a, jnp.zeros(count, jnp.int32), rows))

    return over_batch(factorise, (2,))


def _swapped(array: Any, one: Any, other: Any) -> Any:
    held = array[one]
    return array.at[one].set(array[other]).at[other].set(held)


def _permutation(params: Mapping[str, Any]) -> Expansion:
    """Row exchanges one after the other."""

    def permute(pivots: Any) -> Any:
        rows = jnp.arange(params["permutation_size"], dtype=jnp.int32)
        return lax.fori_loop(0, pivots.shape[0], lambda k, order: _swapped(order, k, pivots[k]), rows)

    return over_batch(permute, (1,))


def reflector(column: Any, head: Any) -> tuple[Any, Any, Any]:
    """What turns `column` below place `head` into zeros (G&VL algorithm 5.1.1, LAPACK's signs).

    The vector (1 at `head`, 0 above), its factor, and what `head` becomes.
    """
    rows = jnp.arange(column.shape[0], dtype=jnp.int32)
    below, first = jnp.where(rows > head, column, 0), column[head]
    rest = jnp.sum(below * below)
    norm = jnp.sqrt(first * first + rest)
    beta = jnp.where(rest > 0, jnp.where(first >= 0, -norm, norm), first)
    tau = jnp.where(rest > 0, (beta - first) / jnp.where(rest > 0, beta, 1), 0)
    return jnp.where(rows == head, 1, below / jnp.where(rest > 0, first - beta, 1)), tau, beta


def _eliminated(a: Any, k: Any, row: Any) -> tuple[Any, Any, Any]:
    """The reflector of column k from `row` on, and the matrix it has turned, holding the vector below `row`."""
    rows, columns = (jnp.arange(size, dtype=jnp.int32) for size in a.shape)
    vector, tau, beta = reflector(a[:, k], row)
    turned = a - tau * jnp.outer(vector, jnp.where(columns > k, vector @ a, 0))
    column = jnp.where(rows == row, beta, jnp.where(rows > row, vector, a[:, k]))
    return turned.at[:, k].set(column), vector, tau


def reflections(a: Any) -> Any:
    """Householder vectors below the diagonal of R, and their factors (G&VL algorithm 5.2.1)."""

    def step(k: Any, state: Any) -> Any:
        a, taus = state
        a, _, tau = _eliminated(a, k, k)
        return a, taus.at[k].set(tau)

    count = min(a.shape)
    return lax.fori_loop(0, count, step, (a, jnp.zeros(count, a.dtype)))


def _pivoted(a: Any) -> Any:
    """Reflections of the longest remaining column in turn, and the order of columns (G&VL algorithm 5.4.1)."""
    count, columns = min(a.shape), jnp.arange(a.shape[1], dtype=jnp.int32)

    def step(k: Any, state: Any) -> Any:
        a, taus, order, lengths = state
        longest = jnp.argmax(jnp.where(columns >= k, lengths, -1)).astype(jnp.int32)
        a = _swapped(a.T, k, longest).T
        order, lengths = _swapped(order, k, longest), _swapped(lengths, k, longest)
        a, _, tau = _eliminated(a, k, k)
        return a, taus.at[k].set(tau), order, lengths - a[k] * a[k]

    start = (a, jnp.zeros(count, a.dtype), columns, jnp.sum(a * a, 0))
    return lax.fori_loop(0, count, step, start)[:3]


def _pivoted_from_one(params: Mapping[str, Any]) -> Expansion:
    """Pivots counted from 1; columns that are to stay in front are pivoted like the others, which is as much work."""

    def factorise(a: Any, fixed: Any) -> Any:
        held, taus, order = _pivoted(a)
        return held, order + 1, taus

    return over_batch(factorise, (2, 1))


def orthogonal(a: Any, taus: Any) -> Any:
    """The product of the reflections, applied from the last to the first (G&VL section 5.1.6)."""
    rows, columns = jnp.arange(a.shape[0]), jnp.arange(a.shape[1])
    count = taus.shape[0]

    def step(number: Any, q: Any) -> Any:
        k = count - 1 - number
        vector = jnp.where(rows == k, 1, jnp.where(rows > k, a[:, k], 0))
        return q - taus[k] * jnp.outer(vector, vector @ q)

    return lax.fori_loop(0, count, step, jnp.where(rows[:, None] == columns[None, :], 1, 0).astype(a.dtype))


def _qr(params: Mapping[str, Any]) -> Expansion:
    """Reflections, then their product."""

    def factorise(a: Any) -> Any:
        rows, columns = a.shape
        held, taus, *order = _pivoted(a) if params["pivoting"] else reflections(a)
        wide = rows if params["full_matrices"] else min(rows, columns)
        padded = jnp.pad(held, ((0, 0), (0, max(0, wide - columns))))[:, :wide]
        return orthogonal(padded, taus), jnp.triu(held[:wide]), *order

    return over_batch(factorise, (2,))


def _turned(params: Mapping[str, Any]) -> Expansion:
    """A product of reflections applied one after the other, to rows or to columns (G&VL section 5.1.4)."""
    backwards = params["left"] != params["transpose"]

    def apply(a: Any, taus: Any, c: Any) -> Any:
        rows, count = jnp.arange(a.shape[0], dtype=jnp.int32), taus.shape[0]

        def step(number: Any, c: Any) -> Any:
            k = count - 1 - number if backwards else number
            vector = jnp.where(rows == k, 1, jnp.where(rows > k, a[:, k], 0))
            return c - taus[k] * jnp.outer(vector, vector @ c)

        start = c if params["left"] else c.T
        found = lax.fori_loop(0, count, step, start)
        return found if params["left"] else found.T

    return over_batch(apply, (2, 1, 2))


def hessenberg(a: Any) -> Any:
    """Zeros below the first subdiagonal by similar matrices; the vectors there, and factors (G&VL algorithm 7.4.2)."""

    def step(k: Any, state: Any) -> Any:
        a, taus = state
        a, vector, tau = _eliminated(a, k, k + 1)
        columns = jnp.arange(a.shape[1], dtype=jnp.int32)
        right = jnp.where(columns > k, vector, 0)
        return a - tau * jnp.outer(a @ right, right), taus.at[k].set(tau)

    count = max(0, a.shape[0] - 1)
    start = a, jnp.zeros(count, a.dtype)
    return lax.fori_loop(0, count, step, start) if count else start


def _tridiagonal(params: Mapping[str, Any]) -> Expansion:
    """A symmetric matrix with one diagonal beside the main one (G&VL algorithm 8.3.1); the upper triangle: turned."""

    def from_lower(a: Any) -> Any:
        rows = jnp.arange(a.shape[0], dtype=jnp.int32)

        def step(k: Any, state: Any) -> Any:
            a, held, taus = state
            vector, tau, beta = reflector(a[:, k], k + 1)
            vector = jnp.where(rows > k, vector, 0)
            product = tau * (a @ vector)
            other = product - tau / 2 * (product @ vector) * vector
            column = jnp.where(rows == k + 1, beta, jnp.where(rows > k, vector, a[:, k]))
            a = a - jnp.outer(vector, other) - jnp.outer(other, vector)
            return a, held.at[:, k].set(column), taus.at[k].set(tau)

        symmetric = jnp.tril(a) + jnp.tril(a, -1).T
        count = a.shape[0] - 1
        if not count:
            return a, a[0], jnp.zeros(0, a.dtype), jnp.zeros(0, a.dtype)
        reduced, held, taus = lax.fori_loop(0, count, step, (symmetric, symmetric, jnp.zeros(count, a.dtype)))
        held = held.at[-1, -1].set(reduced[-1, -1])
        lower = jnp.where(rows[:, None] == rows[None, :], reduced, held)
        return jnp.tril(lower) + jnp.triu(a, 1), jnp.diagonal(reduced), jnp.diagonal(held, -1), taus

    def reduce(a: Any) -> Any:
        if params["lower"]:
            return from_lower(a)
        held, *rest = from_lower(a[::-1, ::-1])
        return held[::-1, ::-1], *(each[::-1] for each in rest)

    return over_batch(reduce, (2,))


def _cholesky_update(params: Mapping[str, Any]) -> Expansion:
    """A rotation a row that takes the vector into it (G&VL section 6.5.4)."""

    def update(root: Any, vector: Any) -> Any:
        def step(k: Any, state: Any) -> Any:
            root, vector = state
            row = root[k]
            length = jnp.sqrt(row[k] * row[k] + vector[k] * vector[k])
            safe = jnp.where(length > 0, length, 1)
            cosine, sine = jnp.where(length > 0, row[k] / safe, 1), vector[k] / safe
            return root.at[k].set(cosine * row + sine * vector), cosine * vector - sine * row

        return lax.fori_loop(0, root.shape[0], step, (root, vector))[0]

    return over_batch(update, (2, 1))


def _symmetric_product(params: Mapping[str, Any]) -> Expansion:
    """The product with the transposed, added to the other matrix where that counts."""

    def product(a: Any, c: Any) -> Any:
        found = params["alpha"] * (a @ a.T)
        return found + params["beta"] * c if params["beta"] else found

    return over_batch(product, (2, 2))


def _tridiagonal_solve(params: Mapping[str, Any]) -> Expansion:
    """Elimination forwards, substitution backwards (G&VL algorithm 4.3.6)."""

    def solve(lower: Any, diagonal: Any, upper: Any, sides: Any) -> Any:
        def forwards(carry: Any, row: Any) -> Any:
            above, solved = carry
            low, middle, up, side = row
            pivot = middle - low * above
            kept = (up / pivot, (side - low * solved) / pivot)
            return kept, kept

        def backwards(below: Any, row: Any) -> Any:
            above, solved = row
            found = solved - above * below
            return found, found

        nothing = jnp.zeros(sides.shape[1:], sides.dtype)
        rows = (lower, diagonal, upper, sides)
        _, kept = lax.scan(forwards, (jnp.zeros((), sides.dtype), nothing), rows)
        return lax.scan(backwards, nothing, kept, reverse=True)[1]

    return over_batch(solve, (1, 1, 1, 2))


FACTORISATIONS: Mapping[str, Callable[[Mapping[str, Any]], Expansion]] = {
    "lu": _lu,
    "lu_pivots_to_permutation": _permutation,
    "geqrf": lambda params: over_batch(reflections, (2,)),
    "geqp3": _pivoted_from_one,
    "householder_product": lambda params: over_batch(orthogonal, (2, 1)),
    "ormqr": _turned,
    "qr": _qr,
    "hessenberg": lambda params: over_batch(hessenberg, (2,)),
    "tridiagonal": _tridiagonal,
    "tridiagonal_solve": _tridiagonal_solve,
    "cholesky_update": _cholesky_update,
    "symmetric_product": _symmetric_product,
}
