"""Incomplete gamma and beta functions as programs: series and continued fractions until they stand still.

How often a loop runs depends on the numbers; such loops are marked and run as often as `trip_counts` says.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

MOST_TERMS = 2000  # XLA stops there too: openxla/xla xla/hlo/builder/lib/math.cc IgammaSeries


def _gamma_factor(a: Any, x: Any) -> Any:
    """x to the power of a, over e to the power of x and Gamma(a + 1)."""
    return jnp.exp(a * jnp.log(x) - x - lax.lgamma(a + 1))


def _series(a: Any, x: Any) -> Any:
    """The lower function by its power series (Abramowitz and Stegun 6.5.29)."""
    precision = jnp.finfo(x.dtype).eps

    def going(state: Any) -> Any:
        number, term, total = state
        return (number < MOST_TERMS) & jnp.any(term > precision * total)

    def add(state: Any) -> Any:
        number, term, total = state
        term = term * x / (a + number + 1)
        return number + 1, term, total + term

    return lax.while_loop(going, add, (jnp.zeros((), x.dtype), jnp.ones_like(x), jnp.ones_like(x)))[2] * _gamma_factor(
        a, x
    )


def _fraction(a: Any, x: Any) -> Any:
    """The upper function by its continued fraction (Abramowitz and Stegun 6.5.31), forwards by Lentz's method."""
    tiny, precision = jnp.finfo(x.dtype).tiny, jnp.finfo(x.dtype).eps

    def going(state: Any) -> Any:
        number, *_, change = state
        return (number < MOST_TERMS) & jnp.any(jnp.abs(change - 1) > precision)

    def step(state: Any) -> Any:
        number, b, c, d, found, _ = state
        factor = -number * (number - a)
        b = b + 2
        d, c = 1 / (factor * d + b + tiny), b + factor / c
        return number + 1, b, c, d, found * (c * d), c * d

    b = x + 1 - a
    start = (jnp.ones((), x.dtype), b, jnp.full_like(x, 1 / tiny), 1 / b, 1 / b, jnp.zeros_like(x))
    return lax.while_loop(going, step, start)[4] * _gamma_factor(a, x) * a


def igamma(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function."""
    return jnp.where(x < a + 1, _series(a, jnp.minimum(x, a + 1)), 1 - _fraction(a, jnp.maximum(x, a + 1)))


def igammac(a: Any, x: Any) -> Any:
    """The regularised upper incomplete gamma function."""
    return 1 - igamma(a, x)


def igamma_grad_a(a: Any, x: Any) -> Any:
    """The slope of the lower function along a, carried through the same loops."""
    return jax.jvp(lambda a: igamma(a, x), (a,), (jnp.ones_like(a),))[1]


def incomplete_beta(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    precision, tiny = jnp.finfo(x.dtype).eps, jnp.finfo(x.dtype).tiny
    turned = x > (a + 1) / (a + b + 2)
    p, q, z = jnp.where(turned, b, a), jnp.where(turned, a, b), jnp.where(turned, 1 - x, x)

    def going(state: Any) -> Any:
        return (state[0] < MOST_TERMS) & jnp.any(jnp.abs(state[-1] - 1) > precision)

    def step(state: Any) -> Any:
        m, c, d, found, _ = state
        even = m * (q - m) * z / ((p + 2 * m - 1) * (p + 2 * m))
        d, c = 1 / (1 + even * d + tiny), 1 + even / c
        found = found * c * d
        odd = -(p + m) * (p + q + m) * z / ((p + 2 * m) * (p + 2 * m + 1))
        d, c = 1 / (1 + odd * d + tiny), 1 + odd / c
        return m + 1, c, d, found * c * d, c * d

    d = 1 / (1 - (p + q) * z / (p + 1))
    fraction = lax.while_loop(going, step, (jnp.ones((), x.dtype), jnp.ones_like(x), d, d, jnp.zeros_like(x)))[3]
    scale = jnp.exp(lax.lgamma(p + q) - lax.lgamma(p) - lax.lgamma(q) + p * jnp.log(z) + q * jnp.log1p(-z)) / p
    return jnp.where(turned, 1 - scale * fraction, scale * fraction)
