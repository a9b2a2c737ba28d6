"""Work in a thread that reports its phases and can be stopped, with its end told on the kernel's own loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.errors import Cancelled

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How work ended: a result, or the error that ended it."""

    result: Any = None
    error: BaseException | None = None

    @property
    def cancelled(self) -> bool:
        """Whether it was stopped on request."""
        return isinstance(self.error, Cancelled)


class Task:
    """One piece of work. `work(progress)` calls `progress` often; after `cancel()` that call raises `Cancelled`."""

    def __init__(
        self, work: Callable[[Progress], Any], heard: Callable[[str], None], ended: Callable[[Outcome], None]
    ) -> None:
        self._work, self._heard, self._ended = work, heard, ended
        self._stop = threading.Event()
        self._telling = threading.Lock()
        self._told = False
        self._outcome: Outcome | None = None
        self._loop = _running_loop()
        self._thread = threading.Thread(target=self._run, name="workbench compile", daemon=True)

    def start(self) -> Task:
        """Begin."""
        self._thread.start()
        return self

    @property
    def running(self) -> bool:
        """Whether the thread lives."""
        return self._thread.is_alive()

    def cancel(self) -> None:
        """Ask it to stop at its next phase or operator."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended and told so; False when it has not by then. A cell may wait too."""
        self._thread.join(seconds)
        if self.running:
            return False
        if self._outcome is not None:
            self._tell(self._outcome)
        return True

    def _progress(self, phase: str) -> None:
        if self._stop.is_set():
            raise Cancelled(phase)
        self._heard(phase)

    def _run(self) -> None:
        try:
            outcome = Outcome(result=self._work(self._progress))
        except BaseException as error:
            # Whatever it is, a call of exit() too, the user is told by whoever listens; a thread has nobody above it.
            outcome = Outcome(error=error)
        self._outcome = outcome
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._tell, outcome)
        else:
            self._tell(outcome)

    def _tell(self, outcome: Outcome) -> None:
        with self._telling:
            if not self._told:
                self._told = True
                self._ended(outcome)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
