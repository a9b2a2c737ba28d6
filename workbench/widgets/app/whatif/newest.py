"""The work that was asked for last, in a thread: what waits is replaced by what is newer.

Work that may take no longer than a given time stops itself at its next phase when it does; work without a limit is
stopped by the next that is asked for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.widgets.app.task import Outcome, Progress, Task


class TooSlow(Exception):
    """Work took longer than it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Work, what is told of its end, and the seconds it may take; None for as long as it takes."""

    work: Callable[[Progress], Any]
    ended: Callable[[Outcome], None]
    within: float | None = None

    def run(self, progress: Progress) -> Any:
        """The work, which is stopped at a phase that begins too late."""
        began = time.perf_counter()

        def heard(phase: str) -> None:
            if self.within is not None and time.perf_counter() - began > self.within:
                raise TooSlow(phase)
            progress(phase)

        return self.work(heard)


class Newest:
    """`ask` runs work now, or behind what runs; `stop` ends what runs and forgets what waits."""

    def __init__(self) -> None:
        self._changing = threading.RLock()
        self._running: tuple[Asked, Task] | None = None
        self._waiting: Asked | None = None

    @property
    def busy(self) -> bool:
        """Whether work runs or waits."""
        return self._running is not None

    def ask(self, asked: Asked) -> None:
        """Run this; what waits is forgotten, and what runs without a limit is stopped."""
        with self._changing:
            if self._running is None:
                return self._start(asked)
            self._waiting = asked
            now, task = self._running
            if now.within is None:
                task.cancel()
        return None

    def stop(self) -> None:
        """End what runs at its next phase, and forget what waits."""
        with self._changing:
            self._waiting = None
            if self._running is not None:
                self._running[1].cancel()

    def wait(self, seconds: float) -> bool:
        """Wait until nothing runs or waits; False when something still does after so many seconds."""
        end = time.perf_counter() + seconds
        while (running := self._running) is not None:
            if not running[1].wait(max(0.0, end - time.perf_counter())):
                return False
        return True

    def _start(self, asked: Asked) -> None:
        task = Task(asked.run, lambda phase: None, lambda outcome: self._ended(asked, outcome))
        self._running = (asked, task)
        task.start()

    def _ended(self, asked: Asked, outcome: Outcome) -> None:
        try:
            asked.ended(outcome)
        finally:
            with self._changing:
                self._running = None
                following, self._waiting = self._waiting, None
                # What waits for no longer than this had would be too slow, too.
                hopeless = isinstance(outcome.error, TooSlow) and following is not None and following.within is not None
                if following is not None and not hopeless:
                    self._start(following)


__all__ = ["Asked", "Newest", "TooSlow"]
