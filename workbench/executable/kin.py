"""Things that were made like one another: what one of them has is found for the next, whichever it is made like.

They are not kept here: one that nobody holds any more is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar
from weakref import ReferenceType, ref

MOST = 32  # looked at in turn; the options behind one are compared in some microseconds

T = TypeVar("T")


class Kin(Generic[T]):
    """What was made like one another, latest first."""

    def __init__(self) -> None:
        self._held: tuple[ReferenceType[T], ...] = ()

    def join(self, one: T) -> None:
        """One more."""
        alive = [each for each in self._held if each() is not None]
        self._held = (ref(one), *alive[: MOST - 1])

    def __iter__(self) -> Iterator[T]:
        for each in self._held:
            found = each()
            if found is not None:
                yield found
