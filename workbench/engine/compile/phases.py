"""The phases of a compile: their rows, and the clock that times them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Progress = Callable[[str], None]
AGAIN = "as before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One row of `.passes`: how long a phase took and what it changed."""

    phase: str
    seconds: float
    changed: str

    def again(self) -> Phase:
        """The row for a compile that takes over what the phase made."""
        made = self.changed.removesuffix(AGAIN).rstrip(", ")
        return Phase(phase=self.phase, seconds=0.0, changed=f"{made}, {AGAIN}" if made else AGAIN)


@dataclass(slots=True)
class Clock:
    """Times phases and tells a listener when each begins; the listener may raise to cancel."""

    progress: Progress
    phases: list[Phase] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[list[str]]:
        """Time what happens inside; what is appended to the list says what changed."""
        self.progress(name)
        changed: list[str] = []
        start = time.perf_counter()
        yield changed
        self.phases.append(Phase(phase=name, seconds=time.perf_counter() - start, changed="; ".join(changed)))
