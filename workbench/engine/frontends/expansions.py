"""Primitives that a program of smaller ones computes, as on machines that have no library function for them.

The numbers of a run still come from the primitive itself; the expansion is what the tile program does. Algorithms are
those of textbooks, written with what JAX offers everybody; `G&VL` is Golub and Van Loan, "Matrix Computations", 4th
edition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from workbench.engine.frontends import special_functions

Expansion: TypeAlias = Callable[..., Any]

# Jacobi's method converges quadratically; G&VL 8.5.4: rarely more than ten sweeps.
JACOBI_SWEEPS = 10


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


def _reflections(a: Any) -> Any:
    """Householder vectors below the diagonal of R, and their factors (G&VL algorithm 5.2.1)."""

    def step(k: Any, state: Any) -> Any:
        a, taus = state
        rows = jnp.arange(a.shape[0], dtype=jnp.int32)
        below = jnp.where(rows > k, a[:, k], 0)
        head = a[k, k]
        norm = jnp.sqrt(head * head + jnp.sum(below * below))
        beta = jnp.where(head > 0, -norm, norm)
        tau = jnp.where(norm > 0, (beta - head) / jnp.where(norm > 0, beta, 1), 0)
        vector = jnp.where(rows == k, 1, below / jnp.where(norm > 0, head - beta, 1))
        columns = jnp.arange(a.shape[1], dtype=jnp.int32)
        turned = a - tau * jnp.outer(vector, jnp.where(columns > k, vector @ a, 0))
        column = jnp.where(rows == k, jnp.where(norm > 0, beta, head), jnp.where(rows > k, vector, a[:, k]))
        return turned.at[:, k].set(column), taus.at[k].set(tau)

    count = min(a.shape)
    return lax.fori_loop(0, count, step, (a, jnp.zeros(count, a.dtype)))


def _orthogonal(a: Any, taus: Any) -> Any:
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
        held, taus = _reflections(a)
        wide = rows if params["full_matrices"] else min(rows, columns)
        padded = jnp.pad(held, ((0, 0), (0, max(0, wide - columns))))[:, :wide]
        return _orthogonal(padded, taus), jnp.triu(held[:wide])

    return over_batch(factorise, (2,))


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
        return v[:size, :size][:, order], values[order]

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
    held, taus = _reflections(u)
    return _orthogonal(jnp.pad(held, ((0, 0), (0, rows - columns))), taus)[:, columns:]


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


def _gamma(params: Mapping[str, Any]) -> Expansion:
    """Marsaglia and Tsang, "A simple method for generating gamma variables" (2000), until all are accepted."""

    def draw(keys: Any, alpha: Any) -> Any:
        boosted = jnp.where(alpha >= 1, alpha, alpha + 1)
        d = boosted - 1 / 3
        c = lax.rsqrt(9 * d)
        key = keys if keys.ndim == 0 else keys.reshape(-1)[0]

        def missing(state: Any) -> Any:
            return jnp.any(state[1] < 0)

        def attempt(state: Any) -> Any:
            key, found = state
            key, one, two = jax.random.split(key, 3)
            normal = jax.random.normal(one, alpha.shape, alpha.dtype)
            uniform = jax.random.uniform(two, alpha.shape, alpha.dtype)
            v = (1 + c * normal) ** 3
            bound = normal * normal / 2 + d * (1 - v + jnp.log(jnp.where(v > 0, v, 1)))
            accepted = (v > 0) & (jnp.log(uniform) < bound)
            return key, jnp.where((found < 0) & accepted, v, found)

        key, found = lax.while_loop(missing, attempt, (key, jnp.full(alpha.shape, -1, alpha.dtype)))
        boost = jnp.log(jax.random.uniform(key, alpha.shape, alpha.dtype)) / alpha
        drawn = jnp.log(d * found) + jnp.where(alpha >= 1, 0, boost)
        return drawn if params["log_space"] else jnp.exp(drawn)

    return draw


def _approximate_top(params: Mapping[str, Any]) -> Expansion:
    """The exact one: nothing is gained by approximation where all tiles compare at once."""

    def largest(operand: Any) -> Any:
        axis = params["reduction_dimension"] % operand.ndim
        turned = jnp.moveaxis(operand if params["is_max_k"] else -operand, axis, -1)
        values, places = lax.top_k(turned, params["k"])
        values = values if params["is_max_k"] else -values
        return jnp.moveaxis(values, -1, axis), jnp.moveaxis(places, -1, axis)

    return largest


def _ragged_dot(params: Mapping[str, Any]) -> Expansion | None:
    """Rows multiplied by the matrix of their group: every group's product, of which each row keeps its own."""
    numbers = params["ragged_dot_dimension_numbers"]
    plain = tuple(tuple(map(tuple, pair)) for pair in numbers.dot_dimension_numbers) == (((1,), (1,)), ((), ()))
    if not plain or tuple(numbers.lhs_ragged_dimensions) != (0,) or tuple(numbers.rhs_group_dimensions) != (0,):
        return None

    def multiply(lhs: Any, rhs: Any, sizes: Any) -> Any:
        ends = jnp.cumsum(sizes)
        rows = jnp.arange(lhs.shape[0], dtype=sizes.dtype)[:, None]
        inside = ((rows < ends) & (rows >= ends - sizes)).astype(lhs.dtype)
        return jnp.einsum("mk,mg,gkn->mn", lhs, inside, rhs)

    return multiply


def _platform(params: Mapping[str, Any]) -> Expansion:
    """The branch for platforms that are not named, the first where all are."""
    platforms = list(params["platforms"])
    number = platforms.index(None) if None in platforms else 0
    return lambda: jnp.int32(number)


EXPANSIONS: Mapping[str, Callable[[Mapping[str, Any]], Expansion | None]] = {
    "lu": _lu,
    "lu_pivots_to_permutation": _permutation,
    "geqrf": lambda params: over_batch(_reflections, (2,)),
    "householder_product": lambda params: over_batch(_orthogonal, (2, 1)),
    "qr": lambda params: None if params["pivoting"] else _qr(params),
    "eigh": lambda params: None if params["subset_by_index"] else _eigh(params),
    "svd": lambda params: None if params["subset_by_index"] else _svd(params),
    "tridiagonal_solve": _tridiagonal_solve,
    "random_gamma": _gamma,
    "ragged_dot_general": _ragged_dot,
    "approx_top_k": _approximate_top,
    "igamma": lambda params: special_functions.igamma,
    "igammac": lambda params: special_functions.igammac,
    "igamma_grad_a": lambda params: special_functions.igamma_grad_a,
    "regularized_incomplete_beta": lambda params: special_functions.incomplete_beta,
    "platform_index": _platform,
    "empty2": lambda params: lambda: jnp.zeros((), params["dtype"]),
    "empty": lambda params: lambda: jnp.zeros(params["shape"], params["dtype"]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """A jaxpr that stands for an equation; it takes the operands whose numbers are `taken`."""

    jaxpr: Any
    consts: Sequence[Any]
    taken: Sequence[int]


@dataclass(slots=True)
class Expander:
    """Traces expansions, each once for equal parameters and types."""

    known: dict[str, Expanded | None] = field(default_factory=dict)

    def of(self, eqn: Any) -> Expanded | None:
        """What stands for the equation, None where it is an operation of its own."""
        name = eqn.primitive.name
        if name == "custom_linear_solve":
            return _solved(eqn)
        if name not in EXPANSIONS:
            return None
        types = [var.aval for var in eqn.invars]
        key = f"{name} {types} {sorted((key, str(value)) for key, value in eqn.params.items())}"
        if key not in self.known:
            self.known[key] = _traced(EXPANSIONS[name](eqn.params), types, [var.aval for var in eqn.outvars])
        return self.known[key]


def _traced(function: Expansion | None, types: Sequence[Any], results: Sequence[Any]) -> Expanded | None:
    if function is None:
        return None
    closed = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in types))
    made = [(each.shape, each.dtype) for each in closed.out_avals]
    if made != [(each.shape, each.dtype) for each in results]:
        raise TypeError(f"an expansion makes {made}, not {list(results)}")
    return Expanded(jaxpr=closed.jaxpr, consts=closed.consts, taken=range(len(types)))


def _solved(eqn: Any) -> Expanded:
    """The solver a linear solve was given, which the gradients have been taken through already.

    Its operands: what the product, the transposed product, the solver and the transposed solver close over, then the
    right-hand sides.
    """
    lengths, solve = eqn.params["const_lengths"], eqn.params["jaxprs"].solve
    products = lengths.matvec + lengths.vecmat
    own = range(products, products + lengths.solve)
    sides = range(own.stop + lengths.transpose_solve, len(eqn.invars))
    return Expanded(jaxpr=solve.jaxpr, consts=solve.consts, taken=(*own, *sides))
