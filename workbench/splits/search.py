"""Cuts of a chain, exact: the slowest stage as quick as can be among those whose every stage fits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.base.arrays import FloatArray

Cuts = tuple[int, ...]  # the first layer of each stage but the first


def best_cuts(cycles: Sequence[FloatArray], needs: Sequence[FloatArray], capacity: float) -> Cuts:
    """The cuts whose slowest stage is quickest, among those that keep every stage within `capacity`.

    `cycles[s][first, end]` and `needs[s][first, end]` are what stage s costs and needs with the layers first to
    end - 1, infinite where it has none. Where nothing fits, the least over comes first. Among equals the stages are
    as even as can be (the least sum of squares). Every chain of cuts is considered; O(stages x layers^2).
    """
    least = _worst(needs)
    bound = max(capacity, least)
    allowed = [np.where(need <= bound, cost, np.inf) for cost, need in zip(cycles, needs, strict=True)]
    slowest = _worst(allowed)
    if not np.isfinite(slowest):
        raise ValueError(f"{len(cycles)} stages of {len(cycles[0])} layers")
    even = [np.where(cost <= slowest, cost, np.inf) ** 2 for cost in allowed]
    return _least_sum(even)


def near(cuts: Cuts, layers: int) -> list[Cuts]:
    """The cuts that differ in one place by one layer."""
    found = []
    for place, cut in enumerate(cuts):
        low = cuts[place - 1] if place else 0
        high = cuts[place + 1] if place + 1 < len(cuts) else layers
        found += [(*cuts[:place], moved, *cuts[place + 1 :]) for moved in (cut - 1, cut + 1) if low < moved < high]
    return found


def along(tables: Sequence[FloatArray], cuts: Cuts) -> list[float]:
    """The entry of each stage under these cuts."""
    ends = (*cuts, len(tables[0]))
    return [float(table[first, end]) for table, first, end in zip(tables, (0, *cuts), ends, strict=True)]


def _worst(tables: Sequence[FloatArray]) -> float:
    """The least that the largest entry of a chain of cuts can be."""
    reached = tables[0][0].copy()
    for table in tables[1:]:
        reached = np.min(np.maximum(reached[:-1, None], table), axis=0)
    return float(reached[-1])


def _least_sum(tables: Sequence[FloatArray]) -> Cuts:
    """The chain of cuts with the least sum of entries."""
    reached, came = tables[0][0].copy(), []
    for table in tables[1:]:
        every = reached[:-1, None] + table
        came.append(np.argmin(every, axis=0))
        reached = np.min(every, axis=0)
    place, cuts = len(tables[0]), []
    for origin in reversed(came):
        place = int(origin[place])
        cuts.append(place)
    return tuple(reversed(cuts))
