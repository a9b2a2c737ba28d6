"""Hypothesis strategy: short JAX programs over the whole operator set, on small arrays of several types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from hypothesis import strategies as st
from jax import lax

SHAPES = ((), (1,), (5,), (8,), (3, 4), (4, 4), (1, 6), (2, 3, 4), (2, 4, 4, 3))
DTYPES = ("float32", "float32", "float16", "int32", "uint8", "bool")
MOST_ELEMENTS = 600
LONGEST = 6

Operation = Callable[[Any, Any, int], Any]


def real(x: Any) -> Any:
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.float32)


def whole(x: Any) -> Any:
    return x if jnp.issubdtype(x.dtype, jnp.integer) else (x > 0).astype(jnp.int32)


def rows(x: Any) -> Any:
    """At least one axis."""
    return x.reshape(1) if x.ndim == 0 else x


def matrix(x: Any) -> Any:
    return real(x).reshape(-1, x.shape[-1]) if x.ndim else real(x).reshape(1, 1)


def images(x: Any) -> Any:
    return real(x).reshape((1,) * (4 - x.ndim) + x.shape)


def alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Both of one shape and type: the second repeated or cut into the first's shape."""
    flat = jnp.resize(y, x.shape) if y.size else jnp.zeros(x.shape, x.dtype)
    return x, flat.astype(x.dtype)


def _square(x: Any) -> Any:
    m = matrix(x)[:4]
    return m @ m.T + 3 * jnp.eye(m.shape[0], dtype=m.dtype)


def _indices(y: Any, count: int) -> Any:
    return whole(rows(y)).reshape(-1)[:3].astype(jnp.int32) % count


def _axis(x: Any, n: int) -> int:
    return n % x.ndim


def _conv(x: Any, y: Any, n: int) -> Any:
    image = images(x)
    size, groups = 1 + n % 3, image.shape[-1] if n % 2 else 1
    kernel = jnp.resize(real(y).astype(image.dtype), (size, size, image.shape[-1] // groups, 2 * groups))
    return lax.conv_general_dilated(
        image, kernel, (1 + n % 2, 1), "SAME", feature_group_count=groups, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def _scan(x: Any, y: Any, n: int) -> Any:
    xs = real(rows(x))
    start = jnp.zeros(xs.shape[1:], xs.dtype)
    return lax.scan(lambda c, v: (jnp.tanh(c + v), c * v), start, xs, reverse=bool(n % 2))[1]


def _while(x: Any, y: Any, n: int) -> Any:
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (jnp.int32(0), real(x)))[1]


def _cond(x: Any, y: Any, n: int) -> Any:
    chosen = whole(rows(y)).reshape(-1)[0] > n
    return lax.cond(chosen, lambda v: jnp.sin(v), lambda v: v[::-1] if v.ndim else -v, real(x))


def _window(x: Any, y: Any, n: int) -> Any:
    image = images(x)
    reducer, start = ((lax.add, 0.0), (lax.max, -jnp.inf))[n % 2]
    first = jnp.asarray(start, image.dtype)
    return lax.reduce_window(image, first, reducer, (1, 2, 2, 1), (1, 1 + n % 2, 1, 1), "SAME")


def _uniform(x: Any, y: Any, n: int) -> Any:
    seed = whole(rows(y)).reshape(-1)[0].astype(jnp.uint32)
    return jax.random.uniform(jax.random.fold_in(jax.random.key(seed), n), x.shape)


def _gradient(x: Any, y: Any, n: int) -> Any:
    return jax.grad(lambda v: (jax.nn.softmax(jnp.tanh(v)) * v).sum())(real(rows(x)))


FUNCTIONS = (jnp.tanh, jnp.exp, jnp.sin, jax.nn.gelu, lax.erf, jnp.sqrt, jnp.floor, jax.nn.softplus)
REDUCTIONS = (jnp.sum, jnp.max, jnp.min, jnp.prod, jnp.mean)
OPERATIONS: dict[str, Operation] = {
    "add": lambda x, y, n: jnp.add(*alike(x, y)),
    "subtract": lambda x, y, n: real(x) - real(alike(x, y)[1]),
    "multiply": lambda x, y, n: jnp.multiply(*alike(x, y)),
    "maximum": lambda x, y, n: jnp.maximum(*alike(x, y)),
    "divide": lambda x, y, n: real(x) / (jnp.abs(real(alike(x, y)[1])) + 1),
    "bits": lambda x, y, n: (whole(x) ^ n) | (whole(x) << (n % 3)),
    "remainder": lambda x, y, n: whole(x) % (n + 1),
    "function": lambda x, y, n: FUNCTIONS[n % 8](real(x)),
    "compare": lambda x, y, n: jnp.less(*alike(x, y)),
    "where": lambda x, y, n: jnp.where(real(x) > 0, *alike(real(x), y)),
    "clip": lambda x, y, n: jnp.clip(real(x), -1, n),
    "cast": lambda x, y, n: x.astype(("float16", "float32", "int32", "bool", "bfloat16", "int8", "uint16")[n % 7]),
    "sum": lambda x, y, n: REDUCTIONS[n % 5](real(rows(x)), axis=_axis(rows(x), n)),
    "all and any": lambda x, y, n: (jnp.all, jnp.any)[n % 2](rows(x) > 0, axis=_axis(rows(x), n)),
    "variance": lambda x, y, n: jnp.var(real(rows(x)), axis=_axis(rows(x), n), keepdims=True),
    "softmax": lambda x, y, n: jax.nn.softmax(real(rows(x)), axis=_axis(rows(x), n)),
    "argmax": lambda x, y, n: (jnp.argmax, jnp.argmin)[n % 2](rows(x), axis=_axis(rows(x), n)),
    "sort": lambda x, y, n: jnp.sort(rows(x), axis=_axis(rows(x), n)),
    "argsort": lambda x, y, n: jnp.argsort(real(rows(x)), axis=_axis(rows(x), n)),
    "top": lambda x, y, n: lax.top_k(real(rows(x)), 1 + n % rows(x).shape[-1])[n % 2],
    "cumulate": lambda x, y, n: (jnp.cumsum, jnp.cumprod, lax.cummax)[n % 3](real(rows(x)), axis=_axis(rows(x), n)),
    "take": lambda x, y, n: jnp.take(rows(x), _indices(y, rows(x).shape[0]), axis=0),
    "scatter": lambda x, y, n: getattr(rows(x).at[_indices(y, rows(x).shape[0])], ("set", "add", "max")[n % 3])(1),
    "dynamic slice": lambda x, y, n: lax.dynamic_slice_in_dim(rows(x), _indices(y, 2)[0], 1 + rows(x).shape[0] // 2),
    "dynamic update": lambda x, y, n: lax.dynamic_update_slice_in_dim(rows(x), rows(x)[:1], _indices(y, 2)[0], 0),
    "reshape": lambda x, y, n: x.reshape(-1) if n % 2 else rows(x).reshape(*rows(x).shape[::-1]),
    "transpose": lambda x, y, n: x.T if n % 2 else jnp.moveaxis(rows(x), 0, -1),
    "reverse": lambda x, y, n: jnp.flip(rows(x), _axis(rows(x), n)),
    "slice": lambda x, y, n: rows(x)[n % 2 :: 1 + n % 3],
    "pad": lambda x, y, n: jnp.pad(rows(x), n % 3),
    "interior pad": lambda x, y, n: lax.pad(rows(x), jnp.zeros((), x.dtype), [(-1 * (n % 2), 1, n % 3)] * rows(x).ndim),
    "concatenate": lambda x, y, n: jnp.concatenate(alike(rows(x), y), axis=_axis(rows(x), n)),
    "stack": lambda x, y, n: jnp.stack(alike(x, y)),
    "split": lambda x, y, n: jnp.split(rows(x), [1])[n % 2],
    "tile": lambda x, y, n: jnp.tile(x, 1 + n % 3),
    "broadcast": lambda x, y, n: jnp.broadcast_to(x, (1 + n % 3, *x.shape)),
    "one hot": lambda x, y, n: jax.nn.one_hot(whole(x), 1 + n),
    "iota": lambda x, y, n: lax.broadcasted_iota(jnp.int32, rows(x).shape, _axis(rows(x), n)),
    "matmul": lambda x, y, n: matrix(x) @ matrix(alike(matrix(x), y)[1]).T,
    "batched matmul": lambda x, y, n: jnp.einsum("...ij,...kj->...ik", images(x), images(x)),
    "outer": lambda x, y, n: jnp.outer(real(x).reshape(-1)[:9], real(y).reshape(-1)[:9]),
    "convolution": _conv,
    "window": _window,
    "cholesky": lambda x, y, n: jnp.linalg.cholesky(_square(x).astype(jnp.float32)),
    "solve": lambda x, y, n: jax.scipy.linalg.solve_triangular(
        _square(x).astype(jnp.float32), _square(x).astype(jnp.float32), lower=bool(n % 2)
    ),
    "scan": _scan,
    "while": _while,
    "fori": lambda x, y, n: lax.fori_loop(0, n % 4, lambda i, s: s * 0.5 + i.astype(s.dtype), real(x)),
    "cond": _cond,
    "remat": lambda x, y, n: jax.checkpoint(lambda v: jnp.sin(v) * v)(real(x)),
    "uniform": _uniform,
    "gradient": _gradient,
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A program that a failing test prints as it can be made again: types, and (operation, operands, number) steps."""

    types: tuple[tuple[tuple[int, ...], str], ...]
    steps: tuple[tuple[str, int, int, int], ...]

    def __call__(self, *arrays: Any) -> list[Any]:
        pool = list(arrays)
        for name, one, other, number in self.steps:
            made = OPERATIONS[name](pool[-1 - one % len(pool)], pool[-1 - other % len(pool)], number)
            if 0 < made.size <= MOST_ELEMENTS:
                pool.append(made)
        return pool[len(arrays) :][-2:] or [pool[0] + 1]

    def specs(self) -> Sequence[Any]:
        return [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in self.types]


def functions() -> st.SearchStrategy[Drawn]:
    """A few inputs, then up to six operations, each on recent values."""
    step = st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 3), st.integers(0, 3), st.integers(0, 7))
    kind = st.tuples(st.sampled_from(SHAPES), st.sampled_from(DTYPES))
    return st.builds(
        lambda types, steps: Drawn(tuple(types), tuple(steps)),
        st.lists(kind, min_size=1, max_size=2),
        st.lists(step, min_size=1, max_size=LONGEST),
    )
