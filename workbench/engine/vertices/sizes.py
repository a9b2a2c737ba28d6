"""Arithmetic that reads the same for one size and for a numpy array of sizes, and how work splits over workers.

`Sizes` is an integer or a numpy integer array; arrays broadcast together. With plain integers nothing of numpy
is touched, so a single vertex costs a few microseconds and a planner's thousands of candidates one array pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

Sizes: TypeAlias = Any  # int | numpy.ndarray of int64: one element or one per candidate


def where(condition: Any, yes: Sizes, no: Sizes) -> Sizes:
    """`yes` where the condition holds, else `no`; both are evaluated."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)
    return yes if condition else no


def larger(first: Sizes, second: Sizes) -> Sizes:
    """The elementwise maximum."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return np.maximum(first, second)
    return max(first, second)


def smaller(first: Sizes, second: Sizes) -> Sizes:
    """The elementwise minimum."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return np.minimum(first, second)
    return min(first, second)


def whole_number(size: Sizes) -> int:
    """A size as a whole number, rounded down; one that remembers how it was worked out goes on to."""
    rounded: int = math.floor(size)
    return rounded


def worker_row_sums(positions: Sizes, row_width: Sizes, workers: int, per_run: Callable[[Sizes], Sizes]) -> list[Sizes]:
    """Per worker, the sum of `per_run(length)` over the pieces of rows in its equal share of `positions`.

    The positions lie in rows of `row_width`; a worker's contiguous share is cut where a row ends. A worker
    without positions has sum 0. (poplibs@7eac0f26 lib/poplin/ConvUtilInternal.cpp:78)
    """
    whole = per_run(row_width)
    sums = []
    for worker in range(workers):
        begin = worker * positions // workers
        end = (worker + 1) * positions // workers
        rows_between = (end - 1) // row_width - begin // row_width
        head = where(rows_between == 0, end - begin, row_width - begin % row_width)
        tail = per_run((end - 1) % row_width + 1) + (rows_between - 1) * whole
        total = per_run(head) + where(rows_between == 0, 0, tail)
        sums.append(where(end > begin, total, 0))
    return sums


def least_row_sum(positions: Sizes, row_width: Sizes, workers: int, per_run: Callable[[Sizes], Sizes]) -> Sizes:
    """A lower bound of the largest of `worker_row_sums`, in a sixth of the time: the largest share in as few pieces as
    it fits into. `per_run` may not be less than it is along the line through the lengths 3 and 4.
    """
    step = per_run(4) - per_run(3)
    share = -(-positions // workers)
    pieces = -(-share // row_width)
    return pieces * (per_run(3) - 3 * step) + share * step


def slowest(worker_cycles: Sequence[Sizes], workers: int, *, fastest_penalty: int = 0) -> Sizes:
    """Tile cycles until the slowest worker ends: issue slots are shared, so worker cycles count `workers` times.

    `fastest_penalty` is the supervisor's cost that hides behind all but the fastest worker; a worker that was
    given no list at all counts as ending at once. (poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:397)
    """
    last, first = worker_cycles[0], worker_cycles[0]
    for cycles in worker_cycles[1:]:
        last, first = larger(last, cycles), smaller(first, cycles)
    if len(worker_cycles) < workers:
        first = first * 0
    return larger(last * workers, first * workers + fastest_penalty)
