"""The stand-in for a codelet nobody modelled: a compiled loop that touches every element once."""

from __future__ import annotations

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices.operands import untold

# Popops' C++ (not assembly) integer operations cost 7 cycles an element: poplibs@7eac0f26
# lib/popops/popopsCycleEstimators.cpp:63-345 (INT ADD). A loop of unknown content is taken to be no faster.
CYCLES_PER_ELEMENT = 7
OVERHEAD_CYCLES = 40


@codelet(
    "generic",
    kind="multi",
    source="derived from poplibs@7eac0f26 lib/popops/popopsCycleEstimators.cpp:63-345 (C++ loops, INT ADD)",
    formula="workers * (40 + 7 * ceil(elements / workers)); stands for an operation without a model",
    state_bytes=lambda **_: 16,
    code_bytes=400,
    operands=untold,
)
def generic(*, elements: int, workers: int) -> int:
    """Tile cycles of a plain loop over `elements`."""
    return workers * (OVERHEAD_CYCLES + CYCLES_PER_ELEMENT * ceil_div(elements, workers))
