"""Stochastic rounding of halves: a result lies between two halves and becomes either, the nearer more often.

The chance of the upper is the part of the way to it, so the mean of many roundings is the number itself
(graphcore: "AI-Float: mixed precision arithmetic for AI", stochastic rounding).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from workbench.engine.graph.primitives import names

HALF_BITS = 13  # of a float's 23 fraction bits, those a half does not have
SMALLEST_NORMAL = 2.0**-14
_ODD = 2654435761  # Knuth's multiplicative hash: turns of nested loops give different keys
SPACING_BELOW = 2.0**-24  # between halves below the smallest normal one

ROUNDED = names(rounds_once=True)


def rounded_equation(eqn: Any, values: list[Any]) -> Any | None:
    """The result of an equation of halves in float32, not yet rounded; None where there is nothing to round."""
    name = eqn.primitive.name
    if name not in ROUNDED or len(eqn.outvars) != 1 or eqn.outvars[0].aval.dtype != jnp.float16:
        return None
    wide = [value.astype(jnp.float32) if _is_half(value) else jnp.asarray(value) for value in values]
    if name == "convert_element_type":
        return wide[0].astype(jnp.float32)
    params = dict(eqn.params)
    if "preferred_element_type" in params:
        params["preferred_element_type"] = jnp.dtype(jnp.float32)
    return eqn.primitive.bind(*wide, **params)


def _is_half(value: Any) -> bool:
    return bool(jnp.result_type(value) == jnp.float16)


def first_key(words: Any) -> Any:
    """uint32[4] that all rounding of a run follows from: two words, and a counter the generator counts up."""
    return jnp.concatenate([jnp.asarray(words, jnp.uint32), jnp.zeros(2, jnp.uint32)])


def turn_key(key: Any, turn: Any) -> Any:
    """The key of one turn of a loop."""
    return key.at[0].set((key[0] ^ (jnp.asarray(turn, jnp.uint32) + jnp.uint32(1))) * jnp.uint32(_ODD))


def draw_key(key: Any, place: int) -> Any:
    """The key of one operation."""
    return key.at[1].set((key[1] ^ jnp.uint32(place)) * jnp.uint32(_ODD))


def round_half(exact: Any, key: Any) -> Any:
    """float32 numbers that are halves: each of the two around it, by chance. `key`: uint32[4]."""
    # XLA's own generator: it compiles in a tenth of the time of a hash written out, and there is one for each result.
    _, noise = jax.lax.rng_bit_generator(key, jnp.shape(exact), jnp.uint32)
    kept = ~jnp.uint32((1 << HALF_BITS) - 1)
    bits = jax.lax.bitcast_convert_type(exact, jnp.uint32)
    normal = jax.lax.bitcast_convert_type((bits + (noise >> (32 - HALF_BITS))) & kept, jnp.float32)
    share = (noise >> 8).astype(jnp.float32) * 2.0**-24
    small = jnp.floor(exact / SPACING_BELOW + share) * SPACING_BELOW
    rounded = jnp.where(jnp.abs(exact) < SMALLEST_NORMAL, small, normal)
    return jnp.where(jnp.isfinite(exact), rounded, exact)


__all__ = ["ROUNDED", "draw_key", "first_key", "round_half", "rounded_equation", "turn_key"]
