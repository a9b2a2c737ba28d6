"""JAX functions: control flow, indexing, windows, algebra, small types, and ones drawn at random."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import workbench as wb
from tests.corpus.drawing import drawn
from tests.corpus.registry import add, ipu2, program
from tests.engine.random_functions import functions
from workbench import ipu


def shape(*sizes: int, dtype: str = "float32") -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


@program
def jax_control_flow() -> Any:
    """Branches, scans both ways, loops by count and by condition, one in another."""

    def function(x: Any, w: Any, n: Any) -> Any:
        def cell(carry: Any, row: Any) -> Any:
            carry = jnp.tanh(carry @ w + row)
            return carry, carry.sum()

        last, sums = lax.scan(cell, jnp.zeros(8), x)
        back = lax.scan(cell, last, x, reverse=True)[1]
        taken = lax.cond(n > 2, lambda v: v @ w, lambda v: v * 2 + 1, last)
        chosen = lax.switch(n, [jnp.sin, jnp.exp, lambda v: v * v], taken)
        grown = lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] @ w), (jnp.int32(0), chosen))[1]
        nested = lax.fori_loop(0, 3, lambda i, s: lax.fori_loop(0, 2, lambda j, t: t * 0.5 + j, s) + i, grown)
        return sums, back, nested

    return wb.profile(function, shape(12, 8), shape(8, 8), shape(dtype="int32"), target=ipu2(16), trip_counts=None)


@program
def jax_indexing() -> Any:
    """Gathers, scatters, sorts, cumulative sums, slices at a place that is not known."""

    def function(x: Any, i: Any, v: Any, n: Any) -> Any:
        put = x.at[i].set(v), x.at[i].add(v), x.at[i].max(v)
        moved = lax.dynamic_update_slice(x, v * lax.dynamic_slice(x, (n, 0), v.shape), (n, 0))
        ordered = jnp.sort(x, axis=1), jnp.argsort(x, axis=0), lax.top_k(x, 3), lax.sort((i, i + 1), num_keys=1)
        summed = jnp.cumsum(x, axis=1), jnp.cumsum(x, axis=0), lax.cummax(x), lax.cumprod(x, axis=1)
        found = jnp.argmax(x, 1), jax.nn.one_hot(i, 9), jnp.take_along_axis(x, ordered[1], 0)
        shifted = jnp.pad(jnp.flip(jnp.roll(x, 2, 1), 0), 1), jnp.tile(x, (2, 1)), jnp.repeat(x, 2, axis=0)
        return x[i], put, moved, ordered, summed, found, shifted, jax.ops.segment_sum(v, i, 5)

    whole = shape(5, dtype="int32"), shape(5, 32), shape(dtype="int32")
    return wb.profile(function, shape(40, 32), *whole, target=ipu2(24))


@program
def jax_windows() -> Any:
    """Convolutions with strides, dilation, groups and their gradients, and every pooling."""

    def loss(image: Any, kernel: Any, small: Any) -> Any:
        words = ("NHWC", "HWIO", "NHWC")
        x = lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=words)
        x = lax.conv_general_dilated(x, small, (1, 1), "VALID", rhs_dilation=(2, 1), dimension_numbers=words)
        deep = jnp.ones((3, 3, 1, x.shape[-1]), x.dtype)
        x = lax.conv_general_dilated(x, deep, (1, 2), "SAME", feature_group_count=x.shape[-1], dimension_numbers=words)
        x = lax.conv_transpose(x, small, (2, 2), "SAME", dimension_numbers=words)
        most = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        mean = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return (most**2).sum() + mean.mean()

    given = shape(2, 24, 24, 3), shape(5, 5, 3, 16), shape(3, 3, 16, 16)
    return wb.profile(jax.value_and_grad(loss, (0, 1, 2)), *given, target=ipu2(64))


@program
def jax_algebra() -> Any:
    """Products of every form, factorisations, softmax and moments, random numbers, and small types."""

    def function(x: Any, y: Any, h: Any, key: Any) -> Any:
        square = x @ x.T + 3 * jnp.eye(12)
        lower = jnp.linalg.cholesky(square)
        solved = jax.scipy.linalg.solve_triangular(lower, x, lower=True)
        batched = jnp.einsum("bij,bkj->bik", y, y), jnp.einsum("bij,j->bi", y, x[0, :10]), jnp.outer(x[0], x[1])
        half = jax.nn.softmax(h @ h.T), jnp.var(h, axis=0), h.astype("float32").mean(1), jax.nn.gelu(h)
        noise = jax.random.normal(jax.random.key(0), (16, 8)), jax.random.bernoulli(jax.random.key(key), 0.5, (32,))
        bits = (key.astype("int32") << 3) ^ jnp.arange(20), jnp.where(x > 0, x, -x).astype("int8")
        return solved, batched, half, noise, bits, jnp.linalg.qr(square)[1]

    given = shape(12, 20), shape(4, 6, 10), shape(32, 48, dtype="float16"), shape(dtype="uint32")
    return wb.profile(function, *given, target=ipu2(32))


@program
def jax_matmul() -> Any:
    """One product on a whole IPU, in halves with partials in halves."""
    config = ipu.config.IPUConfig()
    config.matmuls.poplar_options = {"partialsType": "half", "availableMemoryProportion": "0.3"}
    half = {"dtype": "float16"}
    return wb.profile(jnp.matmul, shape(1024, 768, **half), shape(768, 3072, **half), config=config)


def _random(seed: int) -> Any:
    function = drawn(functions(), seed)
    return wb.profile(function, *function.specs(), target=ipu2(4 * seed))


for number in range(1, 5):
    add(f"jax_random_{number}", partial(_random, number))
