"""Operators that take more temporary memory than their options allow, said as a warning of the profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

NO_PLAN = "no plan within"  # how a plan says that its planner found none
REASONS = {
    True: "the planner found no plan within the bound and doubled it, as PopLibs' does",
    False: "copies of rearranged operands live together that PopLibs' planner does not count",
}


def beyond_bounds(described: Sequence[Mapping[str, Any]], taken: Callable[[str, int], int]) -> list[str]:
    """A sentence for each reason why products of a program take more than availableMemoryProportion allows.

    `described` are the lowered operators; their `bound_bytes` is the bound, 0 where there is none. `taken(id, bound)`
    is what the program takes for one on its fullest tile, at least where that is more than the bound.
    """
    found: dict[bool, list[tuple[int, int, str]]] = {}
    for operator in described:
        bound_bytes = operator["bound_bytes"]
        temporary_bytes = taken(operator["id"], bound_bytes) if bound_bytes > 0 else 0
        if temporary_bytes > bound_bytes:
            unplanned = NO_PLAN in operator["plan"]
            found.setdefault(unplanned, []).append((temporary_bytes, operator["bound_bytes"], operator["id"]))
    return [_sentence(rows, REASONS[unplanned]) for unplanned, rows in sorted(found.items(), reverse=True)]


def _sentence(rows: list[tuple[int, int, str]], reason: str) -> str:
    taken, bound, name = max(rows, key=lambda row: row[0] / row[1])
    many = f"{len(rows):,} operators take" if len(rows) > 1 else "1 operator takes"
    return (
        f"{many} more temporary memory on a tile than availableMemoryProportion allows, furthest {name} with "
        f"{taken:,} B for {bound:,} B: {reason}"
    )
