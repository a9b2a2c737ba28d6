"""All changes that may be compiled: each alone, and up to three of different levers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

from workbench.profiler.advice.levers import LEVELS, Change
from workbench.profiler.advice.search.beliefs import Parts

AT_ONCE = 3


def candidates(
    ladders: Sequence[Sequence[Change]], keep_numbers: str, takes: Callable[[Parts], bool] = lambda parts: True
) -> list[Parts]:
    """Combinations of changes, at most one of each lever and `AT_ONCE` in all, that keep the numbers as they must.

    `takes`: whether a compile takes a combination, of which each change alone would be taken.
    """
    allowed = [_allowed(changes, keep_numbers) for changes in ladders]
    allowed = [changes for changes in allowed if changes]
    return [
        parts
        for count in range(1, AT_ONCE + 1)
        for group in combinations(allowed, count)
        for parts in product(*group)
        if _complete(parts) and takes(parts)
    ]


def _allowed(changes: Sequence[Change], keep_numbers: str) -> list[Change]:
    most = LEVELS.index(keep_numbers)
    return [change for change in changes if LEVELS.index(change.numbers) <= most]


def _complete(parts: Parts) -> bool:
    """Whether each change has beside it what it needs."""
    levers = {part.lever for part in parts}
    return all(not part.needs or levers.intersection(part.needs) for part in parts)


def refused(ladders: Sequence[Sequence[Change]], keep_numbers: str) -> Iterator[tuple[str, str]]:
    """Levers without any change that keeps the numbers, and what the mildest does to them."""
    for changes in ladders:
        if changes and not _allowed(changes, keep_numbers):
            yield changes[0].lever, changes[0].effect


__all__ = ["candidates", "refused"]
