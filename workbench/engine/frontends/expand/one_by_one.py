"""Look-ups and updates of windows of several rows at places nobody knows: one slice, or update of one, after another.

As PopLibs does what is no look-up or update of rows (poplibs@7eac0f26 lib/popops/GatherInternal.cpp:85-128,
lib/popops/Scatter.cpp:283-407): a loop over the index vectors, in it a dynamic slice or update. One vector needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from workbench.engine.frontends.expand.factorisations import Expansion
from workbench.engine.frontends.expand.windows import IndexedWindows

Array: TypeAlias = Any


def gathered_one_by_one(eqn: Any) -> Expansion | None:
    """A gather of windows of several rows; None of any other."""
    windows = IndexedWindows.of_gather(eqn, np.zeros(eqn.invars[1].aval.shape, np.int64))
    if windows is None or windows.rows_per_window == 1:
        return None

    def run(operand: Array, indices: Array) -> Array:
        def one(starts: list[Array]) -> Array:
            return lax.dynamic_slice(operand, starts, windows.window)

        starts = _starts(eqn.params["dimension_numbers"].start_index_map, windows, indices)
        alone = prod(windows.batch) == 1
        return windows.from_windows(one([each[0] for each in starts]) if alone else lax.map(one, starts))

    return run


def scattered_one_by_one(eqn: Any, combine: Callable[[Array, Array], Array]) -> Expansion | None:
    """A scatter of windows of several rows; None of any other."""
    windows = IndexedWindows.of_scatter(eqn, np.zeros(eqn.invars[1].aval.shape, np.int64))
    if windows.rows_per_window == 1:
        return None

    def run(operand: Array, indices: Array, updates: Array) -> Array:
        def one(before: Array, turn: tuple[list[Array], Array]) -> tuple[Array, None]:
            starts, update = turn
            update = combine(lax.dynamic_slice(before, starts, windows.window), update)
            return lax.dynamic_update_slice(before, update, starts), None

        starts = _starts(eqn.params["dimension_numbers"].scatter_dims_to_operand_dims, windows, indices)
        each = windows.to_windows(updates)
        if prod(windows.batch) == 1:
            return one(operand, ([start[0] for start in starts], each[0]))[0]
        return lax.scan(one, operand, (starts, each))[0]

    return run


def _starts(indexed: Sequence[int], windows: IndexedWindows, indices: Array) -> list[Array]:
    """Where each window begins along each axis: of an index vector, of its place among the batch, or 0."""
    count = prod(windows.batch)
    starts = [jnp.asarray(known.reshape(count), indices.dtype) for known in windows.starts]
    for part, axis in enumerate(indexed):
        starts[axis] = indices[..., part].reshape(count)
    return starts
