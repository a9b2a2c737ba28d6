"""How far work is: its phases as a bar, the seconds, and how it ended; an error as what, expected and what to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import traitlets

from workbench.base.text import shown
from workbench.base.units import things_text
from workbench.errors import Cancelled, WorkbenchError
from workbench.widgets.kit import assets
from workbench.widgets.kit.library import Drawn

# The browser is told of each new phase, and in between no oftener than this.
SECONDS_BETWEEN = 0.2


class AppProgress(Drawn):
    """`data` holds: state (idle, running, done, failed, cancelled, shown), title, turn, phases, text, problem.

    Work of several compiles says before each phase which of them it is of, `"split 2 of at most 8: lower"`: the bar is
    of the phases of that one, `turn`, as nobody knows how many there will be. Where compiles are counted, the bar is of
    `most` of them, of which `over` are.

    `mend()` is called when the button of a problem that has a cure is pressed.
    """

    _esm = assets.stub("app/progress.js")
    _css = assets.style("app/app", "app/progress")
    data = traitlets.Dict({"state": "idle"}).tag(sync=True)

    def __init__(self, mend: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.on_msg(lambda _, message, buffers: mend() if message == "mend" else None)

    def begin(self, title: str, phases: Sequence[str] = (), most: int = 0, left: str = "") -> None:
        """Work begins; with the names of its phases, or how many compiles it makes at most, where they are known.

        `left`: what stays of it once it is cancelled, where that is to be said otherwise than of a compile."""
        self._phases: list[dict[str, Any]] = [{"name": name, "seconds": None} for name in phases]
        self._title, self._turn, self._current, self._count, self._refused = shown(title), "", "", 0, ""
        self._most, self._over, self._left = most, 0, left
        self._started = self._phase_started = self._told = time.perf_counter()
        self._tell("running", "")

    def count(self, over: int) -> None:
        """So many of the compiles are over."""
        self._over = over
        self._tell("running", self.data["text"])

    def hear(self, phase: str) -> None:
        """A phase begins, or goes on with its next part."""
        now = time.perf_counter()
        turn, phase = self._turn_of(phase)
        fresh = (turn, phase) != (self._turn, self._current)
        self._count = 1 if fresh else self._count + 1
        if fresh:
            self._close(now)
            if turn != self._turn:
                self._phases = [{**each, "seconds": None} for each in self._phases]
            self._turn, self._current, self._phase_started = turn, phase, now
        if fresh or now - self._told > SECONDS_BETWEEN:
            self._told = now
            parts = f", part {self._count}" if self._count > 1 else ""
            self._tell("running", f"{phase}{parts}")

    def _turn_of(self, heard: str) -> tuple[str, str]:
        """Which of several compiles a phase is of, and the phase; what is no phase of one is of the last of them."""
        turn, _, phase = heard.rpartition(": ")
        known = any(each["name"] == phase for each in self._phases)
        return (turn, phase) if turn and known else (self._turn, heard)

    def refuse(self, what: str) -> None:
        """Say that something else was asked for, which is not done while this runs."""
        self._refused = shown(
            f"{what} was not done: {self._title or 'work'} goes on. Wait for its end, or press Cancel"
        )
        self.data = {**self.data, "refused": self._refused}

    def end(self, text: str, shows: Mapping[str, str] | None = None) -> None:
        """All went well; `shows` is what came of it, `{"text": ..., "name": ...}`: a button of this text brings the
        part of this CSS class into sight."""
        self._close(time.perf_counter())
        self._turn = ""
        self._tell("done", text)
        self.data = {**self.data, "shows": dict(shows or {})}

    def fail(self, error: BaseException) -> None:
        """It ended with an error, told in the user's words."""
        if not isinstance(error, Cancelled):
            self._tell("failed", "", problem=problem_of(error))
        else:
            self._tell("cancelled", "", problem=self._cancelled(error))

    def _cancelled(self, error: Cancelled) -> dict[str, str]:
        """What was left off, and what stays of it."""
        if not self._most and not self._left:
            return problem_of(error)
        over = f" after {things_text(self._over, 'compile')}" if self._most else ""
        left = self._left or ("what was measured stays below" if self._over else "")
        todo = "; ".join(each for each in (f"press {'Diagnose' if self._most else 'Try'} again", left) if each)
        return {"what": f"{self._title} was cancelled{over}", "expected": "", "todo": todo, "cure": ""}

    def bring(self, name: str) -> None:
        """Scroll the app's part of this CSS class into sight, where it is not: a press has made it below the window."""
        self.send({"bring": name})

    def rest(self, text: str) -> None:
        """Something else is shown: how the last work ended is no longer said. What runs, and an error, stays."""
        if self.data["state"] not in ("running", "failed"):
            self.data = {"state": "shown", "title": "", "turn": "", "phases": [], "current": -1, "text": shown(text)}

    def _close(self, now: float) -> None:
        for phase in self._phases:
            if phase["name"] == self._current:
                phase["seconds"] = round(now - self._phase_started, 3)

    def _tell(self, state: str, text: str, problem: dict[str, str] | None = None) -> None:
        elapsed = time.perf_counter() - self._started
        known = [phase["name"] for phase in self._phases]
        self.data = {
            "state": state,
            "title": self._title,
            "turn": self._turn,
            "phases": [dict(phase) for phase in self._phases],
            "current": known.index(self._current) if self._current in known else -1,
            "most": self._most,
            "over": self._over,
            "text": shown(text),
            "refused": self._refused,
            "seconds": round(elapsed, 2),
            "problem": problem and {name: shown(part, keep="\n\t") for name, part in problem.items()},
        }


def problem_of(error: BaseException) -> dict[str, str]:
    """What was wrong, what was expected and what to do; one line of what we did not foresee."""
    if isinstance(error, WorkbenchError):
        mends = ", ".join(f"{name.replace('_', ' ')} to {value}" for name, value in error.mends.items())
        cure = f"Set {mends}, and compile" if mends else ""
        return {"what": error.what, "expected": error.expected, "todo": error.todo, "cure": cure}
    if isinstance(error, SystemExit):
        return {
            "what": f"the model's own code ended with exit({error.code!r})",
            "expected": "code that returns its model",
            "todo": "take the call of exit out of it",
        }
    first = (str(error).splitlines() or [""])[0]
    return {
        "what": f"{type(error).__name__}: {first}",
        "expected": "",
        "todo": "app.error holds the whole error",
    }
