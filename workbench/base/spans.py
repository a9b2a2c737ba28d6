"""How much of a line spans cover together: bytes of addresses, each counted once."""

from __future__ import annotations

import numpy as np

from workbench.base.arrays import IntArray


def covered(start: IntArray, stop: IntArray) -> int:
    """Length that at least one of the spans [start, stop) covers; they stand in order of their starts."""
    if not len(start):
        return 0
    reach = np.maximum.accumulate(stop)
    opened = np.maximum(start[1:], reach[:-1])
    return int(stop[0] - start[0] + np.maximum(stop[1:] - opened, 0).sum())


def covered_by_rank(start: IntArray, size: IntArray, ranks: IntArray, count: int) -> IntArray:
    """Length by rank, int64[count]: what is covered by several spans counts for the lowest of their ranks.

    It is what the spans up to a rank cover, less what those below it cover.
    """
    order = start.argsort(kind="stable")
    start, stop, ranks = start[order], (start + size)[order], ranks[order]
    found = np.zeros(count, dtype=np.int64)
    before = 0
    for rank in np.unique(ranks).tolist():
        chosen = ranks <= rank
        together = covered(start[chosen], stop[chosen])
        found[rank] = together - before
        before = together
    return found


def spans_by_rank(start: IntArray, size: IntArray, ranks: IntArray, count: int) -> list[list[tuple[int, int]]]:
    """The spans (start, stop) that count for each rank, in order: what several cover counts for the lowest."""
    stop = start + size
    edges = np.unique(np.concatenate([start, stop]))
    lowest = np.full(max(len(edges) - 1, 0), count)
    for first, last, rank in zip(
        np.searchsorted(edges, start).tolist(), np.searchsorted(edges, stop).tolist(), ranks.tolist(), strict=True
    ):
        lowest[first:last] = np.minimum(lowest[first:last], rank)
    found: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for place, rank in enumerate(lowest.tolist()):
        if rank == count:
            continue
        begin, end = int(edges[place]), int(edges[place + 1])
        if found[rank] and found[rank][-1][1] == begin:
            begin = found[rank].pop()[0]
        found[rank].append((begin, end))
    return found
