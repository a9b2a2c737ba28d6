"""How deep partials are reduced: in one step, or in two or three that each bring fewer messages to a tile."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from workbench.base.arrays import IntArray, ceil_div, frozen
from workbench.engine.remembered import remembered

# Results of one tile that the vertex for one block of partials adds up together, poplibs@7eac0f26 ConvReduce.cpp:49.
FAST_GRAIN = {"float": 4, "half": 8}
TWO_STAGES_FROM = 16
THREE_STAGES_FROM = 125


@remembered(8192)
def stages(depth: int, multi_stage: bool) -> tuple[int, ...]:
    """Partials left after each intermediate stage of reducing `depth` of them to one; empty for a single step.

    Depths from 16 take two stages and from 125 three, each of nearly the n-th root of the depth: of the whole
    numbers beside that root the one is taken that gives fewer messages, depth / next + the rest's.
    Source: poplibs@7eac0f26 lib/poplin/ConvReducePlan.cpp.
    """
    count = 3 if depth >= THREE_STAGES_FROM else 2 if depth >= TWO_STAGES_FROM else 1
    return _best(depth, count if multi_stage else 1)[0]


def _best(depth: int, count: int) -> tuple[tuple[int, ...], float]:
    if count == 1:
        return (), float(depth)
    lower = int(depth ** ((count - 1) / count))
    found = []
    for left in (lower, lower + 1):
        rest, messages = _best(left, count - 1)
        found.append(((left, *rest), messages + depth / left))
    down, up = found
    return down if down[1] < up[1] else up


@remembered(8192)
def steps(depth: int, multi_stage: bool) -> tuple[int, ...]:
    """How many partials each step adds up, one step after the other; their product is at least the depth."""
    sums, left = [], depth
    for after in stages(depth, multi_stage):
        together = ceil_div(left, after)
        sums.append(together)
        left = ceil_div(left, together)
    if left > 1:
        sums.append(left)
    return tuple(sums)


@lru_cache(maxsize=32)
def step_table(deepest: int, multi_stage: bool) -> IntArray:
    """`steps` of every depth up to `deepest` (at least 2), filled up with 1: int64[steps, depth]."""
    found = [steps(depth, multi_stage) for depth in range(deepest + 1)]
    longest = max(map(len, found), default=0)
    return frozen(np.array([(*one, *(1,) * (longest - len(one))) for one in found], np.int64).reshape(-1, longest).T)
