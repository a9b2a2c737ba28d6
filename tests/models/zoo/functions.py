"""What users write in JAX itself: sorting, indexing, linear algebra, random numbers, small types, loops, gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclass(frozen=True, slots=True)
class Program:
    """A function and the shapes and types it is called with."""

    function: Callable[..., Any]
    types: Sequence[tuple[tuple[int, ...], str]]
    below: int = 5

    def specs(self) -> list[Any]:
        return [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in self.types]

    def arguments(self) -> list[Any]:
        """Values; whole numbers below `below`."""
        rng = np.random.default_rng(3)
        found: list[Any] = []
        for shape, dtype in self.types:
            if dtype.startswith(("int", "uint")):
                found.append(rng.integers(0, self.below, shape).astype(dtype))
            elif dtype == "bool":
                found.append(rng.integers(0, 2, shape).astype(bool))
            else:
                found.append(jnp.asarray(rng.random(shape) + 0.25, dtype))
        return found


def floats(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "float32") -> Program:
    return Program(function, [(shape, dtype) for shape in shapes])


def whole(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "int32") -> Program:
    return Program(function, [(shape, dtype) for shape in shapes])


def _positive(x: Any) -> Any:
    return x @ x.swapaxes(-1, -2) + jnp.eye(x.shape[-1], dtype=x.dtype)


INDEXING = {
    "sort": floats(lambda x: jnp.sort(x, axis=1), (4, 9)),
    "argsort": floats(lambda x: jnp.argsort(x, axis=0), (9, 4)),
    "sort of two": Program(lambda k, v: lax.sort((k, v), num_keys=1), [((12,), "int32"), ((12,), "float32")]),
    "top_k": floats(lambda x: lax.top_k(x, 3), (4, 12)),
    "approximate top_k": floats(lambda x: lax.approx_max_k(x, 3), (4, 12)),
    "cumsum": floats(lambda x: jnp.cumsum(x, axis=1), (4, 12)),
    "cumulative": floats(lambda x: (lax.cumprod(x), lax.cummax(x), lax.cummin(x), lax.cumlogsumexp(x)), (12,)),
    "gather": Program(lambda x, i: x[i], [((12, 4), "float32"), ((7,), "int32")]),
    "take along": Program(lambda x, i: jnp.take_along_axis(x, i, 1), [((4, 6), "float32"), ((4, 2), "int32")]),
    "scatter": Program(lambda x, i, v: x.at[i].set(v), [((9, 4), "float32"), ((3,), "int32"), ((3, 4), "float32")]),
    "scatters": Program(
        lambda x, i, v: (x.at[i].add(v), x.at[i].mul(v), x.at[i].max(v), x.at[i].min(v), x.at[i].apply(jnp.sin)),
        [((9, 4), "float32"), ((3,), "int32"), ((3, 4), "float32")],
    ),
    "dynamic slices": Program(
        lambda x, v, i: lax.dynamic_update_slice(x, v * lax.dynamic_slice(x, (i, 0), (2, 4)), (i, 0)),
        [((9, 4), "float32"), ((2, 4), "float32"), ((), "int32")],
    ),
    "one hot": whole(lambda i: jax.nn.one_hot(i, 6), (4,)),
    "segment sum": Program(lambda x, i: jax.ops.segment_sum(x, i, 5), [((9, 4), "float32"), ((9,), "int32")]),
    "searchsorted": floats(lambda x, v: jnp.searchsorted(x, v), (16,), (5,)),
    "unstack and tile": floats(lambda x: [jnp.tile(row, 3) for row in jnp.unstack(x)], (3, 4)),
    "roll, flip, pad": floats(lambda x: jnp.pad(jnp.flip(jnp.roll(x, 2, 1), 0), 1, mode="reflect"), (4, 6)),
    "nonzero of a size": floats(lambda x: jnp.nonzero(x > 0.7, size=4), (9,)),
    "unique of a size": whole(lambda x: jnp.unique(x, size=4), (9,)),
    "argmax": floats(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), (4, 6)),
    "median": floats(lambda x: jnp.median(x, axis=1), (4, 7)),
    "histogram": floats(lambda x: jnp.histogram(x, bins=4, range=(0.0, 2.0))[0], (12,)),
}
ALGEBRA = {
    "cholesky": floats(lambda x: jnp.linalg.cholesky(_positive(x)), (2, 5, 5)),
    "triangular solve": floats(lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), (5, 5), (5, 2)),
    "solve": floats(lambda a, b: jnp.linalg.solve(_positive(a), b), (5, 5), (5, 2)),
    "inverse": floats(lambda a: jnp.linalg.inv(_positive(a)), (2, 4, 4)),
    "determinant": floats(lambda a: jnp.linalg.slogdet(_positive(a)), (2, 4, 4)),
    "qr": floats(lambda a: jnp.linalg.qr(a), (6, 4)),
    "eigh": floats(lambda a: jnp.linalg.eigh(_positive(a)), (5, 5)),
    "svd": floats(lambda a: jnp.linalg.svd(a, full_matrices=False), (6, 4)),
    "norms": floats(lambda a: (jnp.linalg.norm(a), jnp.linalg.norm(a, ord=2)), (6, 4)),
    "least squares": floats(lambda a, b: jnp.linalg.lstsq(a, b)[0], (6, 4), (6,)),
    "matrix power": floats(lambda a: jnp.linalg.matrix_power(a, 5), (4, 4)),
    "einsum": floats(lambda a, b: jnp.einsum("bij,bkj,b->ik", a, b, a[:, 0, 0]), (2, 3, 4), (2, 5, 4)),
    "kron and outer": floats(lambda a, b: jnp.kron(a, b), (2, 3), (3, 2)),
    "tridiagonal solve": floats(lambda a, b, c, d: lax.linalg.tridiagonal_solve(a, b + 2, c, d), *[(6,)] * 3, (6, 2)),
    "ragged dot": Program(
        lambda a, b: lax.ragged_dot(a, b, jnp.array([2, 1, 3], jnp.int32)),
        [((6, 4), "float32"), ((3, 4, 5), "float32")],
    ),
    "gradient of a solve": floats(jax.grad(lambda a, b: jnp.linalg.solve(_positive(a), b).sum()), (4, 4), (4,)),
    "gradient of a cholesky": floats(jax.grad(lambda a: jnp.linalg.cholesky(_positive(a)).sum()), (4, 4)),
}


def _drawn(draw: Callable[..., Any]) -> Program:
    return Program(lambda seed: draw(jax.random.key(seed)), [((), "uint32")])


RANDOM = {
    "uniform": _drawn(lambda key: jax.random.uniform(key, (4, 5))),
    "normal": _drawn(lambda key: jax.random.normal(key, (4, 5), jnp.float16)),
    "truncated": _drawn(lambda key: jax.random.truncated_normal(key, -1.0, 1.0, (8,))),
    "bernoulli": _drawn(lambda key: jax.random.bernoulli(key, 0.3, (8,))),
    "integers": _drawn(lambda key: jax.random.randint(key, (8,), 0, 9)),
    "categorical": _drawn(lambda key: jax.random.categorical(key, jnp.ones((3, 4)))),
    "permutation": _drawn(lambda key: jax.random.permutation(key, 9)),
    "choice": _drawn(lambda key: jax.random.choice(key, 9, (4,))),
    "split and folded": _drawn(lambda key: jax.random.bits(jax.random.fold_in(jax.random.split(key, 3)[1], 7), (4,))),
    "gamma": _drawn(lambda key: jax.random.gamma(key, 2.5, (4,))),
    "dirichlet, beta": _drawn(lambda key: (jax.random.dirichlet(key, jnp.ones(3)), jax.random.beta(key, 2.0, 3.0))),
    "poisson": _drawn(lambda key: jax.random.poisson(key, 3.0, (4,))),
    "exponential": _drawn(lambda key: jax.random.exponential(key, (4,))),
    "old keys": Program(lambda seed: jax.random.normal(jax.random.PRNGKey(seed), (4,)), [((), "uint32")]),
}
TYPES = {
    "integers": whole(lambda a, b: (a * b - 3) // (b + 1) % 7, (12,), (12,)),
    "bits": whole(lambda a, b: ((a & b) | (a ^ b)) << 1 >> 2, (12,), (12,), dtype="uint32"),
    "bytes": whole(lambda a, b: a + b * 2, (12,), (12,), dtype="int8"),
    "shorts": whole(lambda a, b: jnp.maximum(a, b).sum(), (12,), (12,), dtype="uint16"),
    "bytes multiplied": whole(
        lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32),
        (4, 6),
        (6, 5),
        dtype="int8",
    ),
    "booleans": Program(lambda a, b: (a & ~b, jnp.any(a), jnp.all(b), jnp.where(a, 1, 2)), [((9,), "bool")] * 2),
    "eighths": floats(
        lambda a: a.astype(jnp.float8_e4m3fn).astype(jnp.float32) + a.astype(jnp.float8_e5m2).astype(jnp.float32),
        (12,),
    ),
    "eighths stored": Program(lambda a: a.astype(jnp.float16) * 2, [((12,), "float8_e4m3fn")]),
    "bfloat16": floats(lambda a, b: a @ b, (4, 6), (6, 4), dtype="bfloat16"),
    "halves": floats(lambda a, b: jax.nn.softmax(a @ b), (4, 6), (6, 4), dtype="float16"),
    "counting bits": whole(lambda a: lax.population_count(a) + lax.clz(a), (12,)),
    "casts": whole(lambda a: lax.bitcast_convert_type(a, jnp.float32) + a.astype(jnp.float16), (12,)),
    "xor of all": whole(lambda a: lax.reduce(a, 0, lax.bitwise_xor, (0,)), (12,)),
}
SPECIAL = {
    name: floats(function, *[(6,)] * operands)
    for name, function, operands in (
        ("gamma functions", lambda x: (jax.scipy.special.gammaln(x), jax.scipy.special.digamma(x)), 1),
        ("incomplete gamma", lambda a, x: (jax.scipy.special.gammainc(a, x), jax.scipy.special.gammaincc(a, x)), 2),
        ("gradient of incomplete gamma", jax.grad(lambda a, x: jax.scipy.special.gammainc(a, x).sum()), 2),
        ("incomplete beta", lambda a, b, x: jax.scipy.special.betainc(a, b, x / 2), 3),
        ("errors", lambda x: (lax.erf(x), lax.erfc(x), lax.erf_inv(x / 2)), 1),
        ("bessel", lambda x: (jax.scipy.special.i0e(x), jax.scipy.special.i1e(x)), 1),
        ("zeta", lambda x: (jax.scipy.special.zeta(x + 1, x), jax.scipy.special.polygamma(2, x)), 1),
        ("hyperbolic", lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x), jnp.arccosh(x + 1), jnp.arctanh(x / 2)), 1),
        ("circular", lambda x: (jnp.sin(x), jnp.tan(x), jnp.arcsin(x / 2), jnp.arccos(x / 2), jnp.arctan2(x, 2.0)), 1),
        ("rounding", lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.sign(x), jnp.cbrt(x), jnp.exp2(x)), 1),
        ("polynomials", lambda x: jnp.polyval(jnp.array([1.0, 2.0, 3.0]), x), 1),
        ("interpolation", lambda x, y: jnp.interp(x, jnp.linspace(0.0, 2.0, 6), y), 2),
    )
}


@jax.custom_vjp
def _clipped(x: Any) -> Any:
    return x


_clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))


@jax.custom_jvp
def _straight(x: Any) -> Any:
    return jnp.round(x)


_straight.defjvp(lambda primals, tangents: (_straight(*primals), tangents[0]))


def _scanned(w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(h @ w + x)
        return h, h.sum(-1)

    return lax.scan(step, jnp.zeros(xs.shape[1:]), xs)


CONTROL = {
    "scan": floats(_scanned, (4, 4), (5, 2, 4)),
    "scan backwards": floats(jax.grad(lambda w, xs: _scanned(w, xs)[1].sum()), (4, 4), (5, 2, 4)),
    "scan of remat": floats(
        jax.grad(lambda w, x: lax.scan(jax.checkpoint(lambda h, _: (jnp.sin(h @ w), None)), x, None, 4)[0].sum()),
        (4, 4),
        (2, 4),
    ),
    "while": floats(lambda x: lax.while_loop(lambda s: s.sum() < 100, lambda s: s * 2, x), (6,)),
    "fori": floats(lambda x: lax.fori_loop(0, 7, lambda i, s: s * 1.5 + i, x), (6,)),
    "fori from a number": Program(
        lambda x, n: lax.fori_loop(0, n, lambda i, s: s.at[i].add(1.0), x), [((6,), "float32"), ((), "int32")]
    ),
    "cond": Program(
        lambda p, x: lax.cond(p, lambda x: x @ x, lambda x: x.T * 2, x), [((), "bool"), ((4, 4), "float32")]
    ),
    "switch": Program(
        lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x[::-1]], x), [((), "int32"), ((6,), "float32")]
    ),
    "gradient of a cond": Program(
        jax.grad(lambda x, p: lax.cond(p, lambda x: (x * x).sum(), lambda x: jnp.exp(x).sum(), x)),
        [((6,), "float32"), ((), "bool")],
    ),
    "remat": floats(jax.grad(lambda w, x: jax.checkpoint(lambda w, x: jnp.sin(x @ w))(w, x).sum()), (4, 4), (2, 4)),
    "custom vjp": floats(jax.grad(lambda x: (_clipped(x) ** 3).sum()), (6,)),
    "custom jvp": floats(jax.grad(lambda x: (_straight(x) * x).sum()), (6,)),
    "vmap": floats(jax.vmap(lambda x, y: jnp.outer(x, y)), (3, 4), (3, 5)),
    "hessian": floats(jax.hessian(lambda x: (x**3).sum() * x[0]), (4,)),
    "jacobian": floats(jax.jacrev(lambda x: jnp.tanh(x) * x.sum()), (4,)),
    "associative scan": floats(lambda x: lax.associative_scan(jnp.multiply, x), (9,)),
    "map": floats(lambda x: lax.map(lambda row: row @ row, x), (4, 6)),
    "barrier": floats(lambda x: lax.optimization_barrier((x * 2, x + 1)), (6,)),
    "loop in a loop": floats(
        lambda x: lax.fori_loop(0, 3, lambda i, s: lax.scan(lambda c, v: (c + v, c * v), s[0], s)[1], x), (5,)
    ),
    "reduce window": floats(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3), (1, 2), "SAME"), (4, 9)),
    "convolution of signals": floats(lambda x, k: jnp.convolve(x, k, mode="same"), (16,), (5,)),
}

TABLES = ("INDEXING", "ALGEBRA", "RANDOM", "TYPES", "SPECIAL", "CONTROL")
ALL: dict[str, Program] = {f"{table.lower()}: {name}": p for table in TABLES for name, p in globals()[table].items()}
