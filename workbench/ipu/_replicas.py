"""What replicas of a program have: calls of the host, one for all with their values side by side, and copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from workbench.engine.frontends.describe.replicas import replica_index, replicas_here


def take(function: Callable[[], Sequence[Any]], types: Sequence[jax.ShapeDtypeStruct]) -> list[Any]:
    """Values the host gives, in the order of the program; each replica takes the next ones."""

    def alone() -> list[Any]:
        return list(io_callback(function, list(types), ordered=True))

    if replicas_here() == 1:
        return alone()

    @jax.custom_batching.custom_vmap  # type: ignore[untyped-decorator]
    def one(replica: Any) -> list[Any]:
        return alone()

    @one.def_vmap  # type: ignore[untyped-decorator]
    def every(size: int, batched: Any, replica: Any) -> Any:
        def taken() -> list[Any]:
            columns = zip(*(function() for _ in range(size)), strict=True)
            return [np.stack(column) for column in columns]

        wide = [jax.ShapeDtypeStruct((size, *each.shape), each.dtype) for each in types]
        return list(io_callback(taken, wide, ordered=True)), [True] * len(types)

    return list(one(replica_index()))


def give(function: Callable[..., None], values: Sequence[Any]) -> None:
    """Give the host values, in the order of the program; those of all replicas along a first dimension."""
    if replicas_here() == 1:
        io_callback(function, None, *values, ordered=True)
        return

    @jax.custom_batching.custom_vmap  # type: ignore[untyped-decorator]
    def one(replica: Any, *parts: Any) -> Any:
        io_callback(function, None, *parts, ordered=True)
        return jnp.int32(0)

    @one.def_vmap  # type: ignore[untyped-decorator]
    def every(size: int, batched: Any, replica: Any, *parts: Any) -> Any:
        wide = [
            part if is_batched else jnp.broadcast_to(part, (size, *jnp.shape(part)))
            for part, is_batched in zip(parts, batched[1:], strict=True)
        ]
        io_callback(function, None, *wide, ordered=True)
        return jnp.zeros(size, jnp.int32), True

    one(replica_index(), *values)


def copied(value: Any) -> Any:
    """A copy that compilers do not see through."""
    return jax.lax.optimization_barrier(value)


__all__ = ["copied", "give", "take"]
