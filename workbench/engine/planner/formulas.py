"""The formulas of a plan's cost that all methods share; each takes the sizes of one candidate or arrays over many."""

from __future__ import annotations

from functools import partial

import numpy as np

from workbench.base.arrays import ceil_div
from workbench.engine.cost import formula
from workbench.engine.planner.reduction import FAST_GRAIN, step_table, steps
from workbench.engine.vertices.conv import reduce_add_cycles
from workbench.engine.vertices.copy import CALL_CYCLES
from workbench.engine.vertices.popops import multi
from workbench.engine.vertices.sizes import Sizes, smaller, where

SHORTEST_RUN = 16
"""Elements: what tiles share out among them is not cut smaller for balance alone.

Source: poplibs@7eac0f26 lib/poplin/ConvReduce.cpp (regions of whole groups of channels).
"""

_MODEL = "poplibs@7eac0f26 lib/poplin/ConvModel.cpp"


def shared_out(elements: Sizes, parts: Sizes) -> tuple[Sizes, Sizes]:
    """Most and fewest elements that one of `parts` tiles has of them: no fewer than a run, unless none at all."""
    taken = smaller(parts, ceil_div(elements, SHORTEST_RUN))
    return ceil_div(elements, taken), where(taken < parts, 0, elements // parts)


@formula(
    "plan.exchange",
    text="bytes that arrive on the fullest tile / bytes per cycle, rounded up",
    source=f"{_MODEL}:957 (addExchangeCycleEstimates)",
    error_kind="exchange",
)
def exchange_cycles(size_bytes: Sizes, rate: Sizes) -> Sizes:
    """Cycles of one exchange."""
    return ceil_div(size_bytes, rate)


@formula(
    "plan.copy",
    text="workers*23 + 11 + bytes / data path bytes, rounded up; 0 for none",
    source="poplar::Memcpy",
)
def copy_cycles(size_bytes: Sizes, workers: int, data_path_bytes: int) -> Sizes:
    """Cycles of a contiguous copy on the tile."""
    return where(size_bytes > 0, multi(CALL_CYCLES, workers) + ceil_div(size_bytes, data_path_bytes), 0)


@formula(
    "plan.spread",
    text="the outputs of a tile copied to their places between zeros: workers*23 + 11 + bytes / data path "
    "bytes, and a Fill "
    "vertex a worker over all elements",
    source=f"{_MODEL} (dilatePostConv); popops::Fill; poplar::Memcpy",
)
def spread_cycles(outputs: Sizes, elements: Sizes, element_bytes: int, workers: int, data_path_bytes: int) -> Sizes:
    """Cycles of putting zeros between the outputs on a tile."""
    fixed, vector = 26 if element_bytes == 2 else 23, data_path_bytes // element_bytes
    copied = copy_cycles(outputs * element_bytes, workers, data_path_bytes)
    return copied + workers * (fixed + ceil_div(elements, workers) // vector)


@formula(
    "plan.rearrange",
    text="workers*23 + 11 + 5/4 cycle per access of a run of elements, at most the data path, rounded up; 0 for none",
    source=f"{_MODEL}:1291 (addTransformCycleEstimate: 5/4 per access of one element)",
)
def rearrange_cycles(elements: Sizes, element_bytes: int, run: int, workers: int, data_path_bytes: int) -> Sizes:
    """Cycles of a copy on the tile that moves `run` elements at a time."""
    run_bytes = run * element_bytes
    accesses = ceil_div(elements * element_bytes, min(data_path_bytes, run_bytes & -run_bytes))
    return where(elements > 0, multi(CALL_CYCLES, workers) + ceil_div(5 * accesses, 4), 0)


@formula(
    "plan.reduce",
    text="ReduceAdd of every step on a tile's share of the outputs; no step, no cycles; fast: from one block of "
    "interleaved memory where the share fills whole vectors",
    source="poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1560; steps: lib/poplin/ConvReducePlan.cpp",
)
def reduce_cycles(
    elements: Sizes,
    depth: Sizes,
    multi_stage: bool,
    partials_type: str,
    out_type: str,
    workers: int,
    data_path_bytes: int,
    fast: bool = False,
) -> Sizes:
    """Cycles of adding up `depth` partials of `elements` results each, spread over the tiles that hold them."""
    total: Sizes = 0
    left = elements
    sums = sums_of(depth, multi_stage)
    add = partial(_add, partials_type=partials_type, fast=fast, workers=workers, data_path_bytes=data_path_bytes)
    for number, together in enumerate(sums):
        left = shared_out(left, together)[0]
        cycles = add(left, together, out_type=out_type)
        if number + 1 < len(sums) and out_type != partials_type:
            # Only the last step of a candidate gives the result's type.
            cycles = where(sums[number + 1] > 1, add(left, together, out_type=partials_type), cycles)
        total = total + where(together > 1, cycles, 0)
    return total


def _add(
    elements: Sizes,
    together: Sizes,
    *,
    partials_type: str,
    out_type: str,
    fast: bool,
    workers: int,
    data_path_bytes: int,
) -> Sizes:
    cycles = partial(
        reduce_add_cycles,
        out_size=elements,
        partials_type=partials_type,
        out_type=out_type,
        workers=workers,
        data_path_bytes=data_path_bytes,
    )
    pointers = cycles(partials=together)
    if not fast:
        return pointers
    block = cycles(partials=together - 1, single_input=True, constrain_partials=True)
    return where(elements % FAST_GRAIN[partials_type] == 0, block, pointers)


def sums_of(depth: Sizes, multi_stage: bool) -> list[Sizes]:
    """How many partials each step of a reduction adds up; 1 for steps that a candidate does not have."""
    if not isinstance(depth, np.ndarray):
        return list(steps(int(depth), multi_stage))
    deepest = int(depth.max(initial=2))
    table = step_table(1 << (deepest - 1).bit_length(), multi_stage)
    return [row[depth] for row in table]


@formula(
    "plan.reduce_exchange",
    text="partials of a tile / rate, rounded up, whether or not they are added up with others; then for every further "
    "step of the reduction what the step before leaves on a tile",
    source=f"{_MODEL}:1079-1130 (addExchangeCycleEstimates: first and remaining stages of the reduction)",
    error_kind="exchange",
)
def reduce_exchange_cycles(elements: Sizes, depth: Sizes, multi_stage: bool, element_bytes: int, rate: int) -> Sizes:
    """Cycles of the exchanges of partials.

    The first is charged without a reduction too: of plans that compute alike the one that spreads its results wins.
    """
    total = ceil_div(elements * element_bytes, rate)
    first, *further = sums_of(depth, multi_stage) or [1]
    left = shared_out(elements, first)[0]
    for together in further:
        total = total + where(together > 1, ceil_div(left * element_bytes, rate), 0)
        left = shared_out(left, together)[0]
    return total


@formula(
    "plan.cast",
    text="Cast1D of the outputs of a tile: 12 + workers*(26 + vectors of a worker's share)",
    source="poplibs@7eac0f26 lib/popops/PerformanceEstimation.cpp (castCycles); vectors of 8 bytes of the wider type",
)
def cast_cycles(elements: Sizes, workers: int, wide_vector: int) -> Sizes:
    """Cycles of converting a tile's outputs from the type of the partials."""
    return where(elements > 0, 12 + workers * (26 + ceil_div(ceil_div(elements, workers), wide_vector)), 0)


@formula(
    "plan.add_in_place",
    text="BinaryOp1DInPlace ADD: 11 + workers*(58 + 3 per vector of a worker's share)",
    source="poplibs@7eac0f26 lib/popops/PerformanceEstimation.cpp, used by lib/poplin/ConvModel.cpp:1761",
)
def add_in_place_cycles(elements: Sizes, workers: int, vector: int) -> Sizes:
    """Cycles of adding one step's outputs to the sum of the steps before."""
    return where(elements > 0, 11 + workers * (58 + 3 * ceil_div(ceil_div(elements, workers), vector)), 0)


@formula(
    "plan.dynamic_slice",
    text="DynamicSlice1D: 25 + workers*(39 + 24 + 2 cycles per vector of a worker's share)",
    source="poplibs@7eac0f26 lib/popops/popopsCycleEstimators.cpp:1755, used by lib/poplin/ConvModel.cpp:1688",
)
def dynamic_slice_cycles(elements: Sizes, workers: int, vector: int) -> Sizes:
    """Cycles of taking one step's share of an operand out of it, or of putting one step's outputs in place."""
    return where(elements > 0, 25 + workers * (63 + 2 * ceil_div(ceil_div(elements, workers), vector)), 0)


@formula(
    "plan.further_steps",
    text="(serial steps - 1) x the cycles of one step",
    source=f"{_MODEL}:2056 (total cycles)",
)
def further_steps_cycles(times: Sizes, step_cycles: Sizes) -> Sizes:
    """Cycles of the serial steps after the first."""
    return (times - 1) * step_cycles
