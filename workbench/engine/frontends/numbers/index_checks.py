"""Whether a look-up or an update of rows names a row that is not there (`slices.poplar_options.validateIndices`).

PopLibs compares the largest index, unsigned, with the size of the table and aborts the run
(graphcore/poplibs@7eac0f26 lib/popops/DynamicSlice.cpp:480-516); so does this, at every gather and scatter. Its few
cycles are not modelled.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from workbench.engine.graph.primitives import Kind, names

OUTSIDE = "an index outside the table"
UPDATES = names(Kind.SCATTER)


def index_outside(eqn: Any, values: list[Any]) -> Any | None:
    """bool[]: whether an index of a gather or scatter is outside; None for other operations."""
    limits = _limits(eqn)
    if limits is None:
        return None
    indices = jnp.asarray(values[1])
    last = jnp.asarray(np.array(limits, np.int64), indices.dtype)
    return jnp.any((indices < 0) | (indices > last))


def _limits(eqn: Any) -> list[int] | None:
    """The largest index in each place of an index vector; None for an operation without indices."""
    name = eqn.primitive.name
    if name != "gather" and name not in UPDATES:
        return None
    shape, numbers = eqn.invars[0].aval.shape, eqn.params["dimension_numbers"]
    if name == "gather":
        sizes = list(eqn.params["slice_sizes"])
        return [shape[axis] - sizes[axis] for axis in numbers.start_index_map]
    windows = iter(eqn.invars[2].aval.shape[axis] for axis in numbers.update_window_dims)
    whole = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    sizes = [1 if axis in whole else next(windows) for axis in range(len(shape))]
    return [shape[axis] - sizes[axis] for axis in numbers.scatter_dims_to_operand_dims]


__all__ = ["OUTSIDE", "UPDATES", "index_outside"]
