"""What was worked out once and is kept for who asks again, held to a budget of bytes between compiles.

Within a compile nothing is forgotten but by the counts of `lru_cache`; between compiles what is kept is weighed, and
where all of it weighs more than `BUDGET_BYTES`, what has long outgrown a compile's own use is forgotten.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import _lru_cache_wrapper, lru_cache, wraps
from typing import ParamSpec, TypeVar

import numpy as np

BUDGET_BYTES = 64 << 20  # of everything kept
OUTGROWN = 2  # forgotten is what holds this many times what one compile put into it
ALL_WEIGHED, THEN_EACH = 8, 64  # of a function's results the first, and each so many later, as weighing takes time

OBJECT_BYTES = 64  # a small object of Python's with its place in a container
LINK_BYTES = 160  # the links of an entry
_DEEPEST = 4

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Kept:
    """One function's results: how many came, the weight of those that were weighed, and how many there were after the
    compile that began them."""

    results: _lru_cache_wrapper[object]
    came: int = 0
    weighed: int = 0
    weight_bytes: int = 0
    first: int = 0

    def is_weighed(self) -> bool:
        """A result came; whether it is one of those that are weighed."""
        self.came += 1
        return self.came <= ALL_WEIGHED or self.came % THEN_EACH == 0

    def weigh(self, kept: tuple[object, ...]) -> None:
        """A result with its arguments."""
        self.weighed += 1
        self.weight_bytes += LINK_BYTES + _weight(kept)

    def held_bytes(self) -> float:
        """Bytes of the results that are still held, by the mean of those that were weighed."""
        return self.weight_bytes * self.results.cache_info().currsize / self.weighed if self.weighed else 0.0

    def forget(self) -> None:
        """Begin anew."""
        self.results.cache_clear()
        self.came, self.weighed, self.weight_bytes, self.first = 0, 0, 0, 0


EVERY: list[_Kept] = []


def remembered(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keep the latest `most` results of a function of hashable arguments, inside the budget of all that is kept."""

    def keep(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def weighed(*arguments: P.args, **named: P.kwargs) -> T:
            result = function(*arguments, **named)
            if held.is_weighed():
                held.weigh((arguments, tuple(named.values()), result))
            return result

        results = lru_cache(maxsize=most)(weighed)
        held = _Kept(results)
        EVERY.append(held)
        return results  # type: ignore[return-value]  # typeshed's wrapper takes any hashable arguments

    return keep


def remembered_bytes() -> int:
    """What everything kept weighs, about: arrays by their bytes, other objects by their count."""
    return round(sum(each.held_bytes() for each in EVERY))


def trim() -> None:
    """Between two compiles: where all weighs more than the budget, forget what outgrew a compile, heaviest first."""
    weights = sorted(((each.held_bytes(), each) for each in EVERY), key=lambda pair: pair[0], reverse=True)
    total = sum(weight for weight, _ in weights)
    for weight, each in weights:
        count = each.results.cache_info().currsize
        each.first = each.first or count
        if total > BUDGET_BYTES and count >= OUTGROWN * each.first:
            each.forget()
            total -= weight


def _weight(value: object, depth: int = 0) -> int:
    """Bytes of a result, about."""
    if isinstance(value, np.ndarray):
        return value.nbytes + OBJECT_BYTES
    if depth == _DEEPEST:
        return OBJECT_BYTES
    if isinstance(value, tuple | list):
        return OBJECT_BYTES + sum([_weight(item, depth + 1) for item in value])
    total = OBJECT_BYTES
    for name in _fields_of(type(value)):  # type: ignore[arg-type]  # of typeshed, to which no type hashes
        total += _weight(getattr(value, name, None), depth + 1)
    return total


@lru_cache(maxsize=1024)
def _fields_of(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, none of another type."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
