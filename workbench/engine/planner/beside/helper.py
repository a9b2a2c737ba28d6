"""What the second interpreter runs: it searches what it is asked, in order, until its questions end or stay away.

    python -m workbench.engine.planner.beside.helper

It reads lines from its input and writes lines to its output, and has nothing else to do with anybody. When who asks is
gone, however that came, its input ends and so does it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections import deque
from typing import Any

from workbench.engine.planner.beside.wire import DROP, FOUND, MACHINE, PLAN, READY, Lines, line, made
from workbench.engine.planner.methods import load
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.planner.search import Settings, search
from workbench.engine.remembered import trim
from workbench.engine.target import Target

IDLE_SECONDS = 600.0  # without a question, after which it ends: what it holds is memory of somebody's machine
PIECE_BYTES = 1 << 16


class Helper:
    """The questions that wait, by number in the order they came."""

    def __init__(self) -> None:
        self.machines: dict[int, Target] = {}
        self.waiting: deque[tuple[int, int, Any, Any]] = deque()
        self.dropped: set[int] = set()

    def hear(self, word: str, number: int, *values: Any) -> None:
        """One line."""
        if word == MACHINE:
            self.machines[number] = made(Target, values[0])
        elif word == PLAN:
            self.waiting.append((number, *values))
        elif word == DROP:
            self.dropped.add(number)

    def answer(self) -> bytes:
        """The line that answers the next question, empty where it was dropped."""
        number, machine, problem, settings = self.waiting.popleft()
        if number in self.dropped:
            self.dropped.remove(number)
            return b""
        order, note = None, ""
        try:
            choice, note = search(made(ConvProblem, problem), self.machines[machine], made(Settings, settings))
            order = choice.order
        except Exception:  # who asked searches for itself then, and hears what is wrong where it can be told
            pass
        return line(FOUND, number, order, note, time.process_time())


def main(questions: int, answers: int) -> None:
    """Read from one file descriptor and write to another until the questions end."""
    helper, lines = Helper(), Lines()
    _write(answers, line(READY, sorted(load())))
    while True:
        heard, _, _ = select.select([questions], [], [], 0.0 if helper.waiting else IDLE_SECONDS)
        if heard:
            piece = os.read(questions, PIECE_BYTES)
            if not piece:
                return
            for each in lines.of(piece):
                helper.hear(*each)
        elif not helper.waiting:
            return
        else:
            _write(answers, helper.answer())
            if not helper.waiting:
                trim()


def _write(answers: int, text: bytes) -> None:
    while text:
        text = text[os.write(answers, text) :]


def _alone() -> int:
    """A descriptor of its own for answers: what somebody's method prints is none, and goes where errors go."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more
        main(0, _alone())
