"""Executables that were made like one another: what one of them has is found for the next, whichever it is made like.

They are not kept here: one that nobody holds any more is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

if TYPE_CHECKING:
    from workbench.executable.executable import Executable

MOST = 32  # looked at in turn; the options behind one are compared in some microseconds


class Kin:
    """Executables made like one another, latest first."""

    def __init__(self) -> None:
        self._held: tuple[ReferenceType[Executable], ...] = ()

    def join(self, executable: Executable) -> None:
        """One more."""
        alive = [each for each in self._held if each() is not None]
        self._held = (ref(executable), *alive[: MOST - 1])

    def __iter__(self) -> Iterator[Executable]:
        for each in self._held:
            found = each()
            if found is not None:
                yield found
