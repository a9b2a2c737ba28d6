"""Who asks the second interpreter: it is started, asked ahead, and what it has not come to is searched here."""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from workbench.engine.planner.beside import helper
from workbench.engine.planner.beside.wire import DROP, FOUND, MACHINE, PLAN, READY, Lines, Order, Question, line, plain
from workbench.engine.planner.methods import load
from workbench.engine.planner.plan import ConvPlan
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.planner.search import Choice, Settings, choice_of, finished, plan
from workbench.engine.remembered import remembered
from workbench.engine.target import Target
from workbench.errors import InputError

LEAST = 12  # questions at once that are worth asking: a search takes some ten milliseconds, all of it maybe a second
MOST_SENT = 128  # questions under way: a third of what a pipe holds, so that nobody waits for who waits for him
MOST_DONE = 4096
HANGING_SECONDS = 10.0  # without an answer, where a search takes a hundredth of it
PIECE_BYTES = 1 << 16
ROOT = Path(__file__).parents[4]
COMMAND = (sys.executable, "-P", "-m", helper.__name__)  # -P: no module of a notebook's folder is taken


class Second:
    """The second interpreter, if one runs. Every method may be called from any thread.

    `command` is what it runs, `seconds` are those of processor time it has said to have taken.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self.seconds = 0.0
        self._command = list(command)
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._begin()

    def _begin(self) -> None:
        self._lines, self._is_ready = Lines(), False
        self._machines: dict[Target, int] = {}
        self._numbers: dict[int, Question] = {}
        self._asked: dict[Question, int] = {}  # not answered yet, in order; those of number 0 were not sent
        self._known: dict[Question, tuple[Order, str]] = {}
        self._done: dict[Question, None] = {}
        self._met: dict[ConvProblem, None] = {}
        self._sent, self._count = 0, 0

    @property
    def is_alive(self) -> bool:
        """Whether there is one, which this process has started."""
        return self._process is not None and self._owner == os.getpid()

    @property
    def pid(self) -> int | None:
        """The number of its process, None without one."""
        return self._process.pid if self._process is not None and self.is_alive else None

    @property
    def waiting(self) -> tuple[Question, ...]:
        """What it was asked for and has not answered."""
        return tuple(self._asked)

    @property
    def answers(self) -> tuple[Question, ...]:
        """What it has answered, and nobody has needed yet."""
        return tuple(self._known)

    def start(self) -> None:
        """Start one, where there is none and a processor would be idle; it is ready in a fraction of a second."""
        with self._lock:
            if self.is_alive or not _has_place():
                return
            path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
            threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
            self._begin()
            try:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    env={**os.environ, **threads, "PYTHONPATH": path},
                    start_new_session=True,  # a kernel's interrupt is not its
                )
            except OSError:  # without it everything is searched here
                self._process = None
            self._owner = os.getpid()

    def end(self) -> None:
        """End it, if there is one; what it was asked is searched here."""
        with self._lock:
            process, self._process = self._process, None
            self._begin()
            if process is None or self._owner != os.getpid():
                return
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            try:
                process.wait(timeout=1.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def ask(self, wanted: Sequence[Question]) -> None:
        """Ask for plans that are going to be needed, and no more for others."""
        if not self.is_alive:
            return
        with self._lock:
            needed = set(wanted)
            for question in [each for each in self._asked if each not in needed]:
                self._drop(question)
            self._known = {each: answer for each, answer in self._known.items() if each in needed}
            new = [each for each in wanted if not (each in self._asked or each in self._known or each in self._done)]
            if len(new) >= LEAST:
                self._asked.update(dict.fromkeys(new, 0))
            self.hear(0.0)

    def choice(self, question: Question) -> tuple[Choice, str] | None:
        """What a search chooses, with its note, where it was asked for; None: it is to be searched here.

        While the answer is not there, the last questions of all are searched here.
        """
        if not self.is_alive:  # before the lock, which another thread may have held when this process was forked
            return None
        with self._lock:
            for kept in (self._done, self._met):
                if len(kept) >= MOST_DONE:
                    kept.clear()
            self._done[question] = None
            while question in self._asked:
                self.hear(0.0)
                if question in self._asked:
                    self._go_on()
            order, note = self._known.pop(question, (None, ""))
        return None if order is None else (choice_of(*question, order), note)

    def _go_on(self) -> None:
        """While an answer is not there: search the last question here, or wait for the answer."""
        last = self._last_to_search_here()
        if last is not None:
            self._drop(last)
            planned(*last)
        elif not self.hear(HANGING_SECONDS):
            self.end()

    def _last_to_search_here(self) -> Question | None:
        """Of what it has not come to the last, but for what it is at, and for problems that it knows: what it keeps of
        a search makes one with another bound short."""
        first = next(iter(self._asked))
        return next((each for each in reversed(self._asked) if each[0] not in self._met and each is not first), None)

    def _drop(self, question: Question) -> None:
        """It need not be answered any more."""
        number = self._asked.pop(question)
        if number:
            self._sent -= 1
            del self._numbers[number]
            self._write(line(DROP, number))

    def hear(self, seconds: float) -> bool:
        """Take what was answered, after at most so long, and send what there is room for; whether anything came."""
        with self._lock:
            return self._hear(seconds)

    def _hear(self, seconds: float) -> bool:
        came, process = False, self._process
        try:
            while process is not None and process.stdout is not None:
                there, _, _ = select.select([process.stdout], [], [], 0.0 if came else seconds)
                if not there:
                    break
                piece = os.read(process.stdout.fileno(), PIECE_BYTES)
                if not piece:
                    self.end()
                    return True
                came = True
                for each in self._lines.of(piece):
                    self._take(*each)
            self._send()
        except (OSError, ValueError, TypeError):  # it died, or what it says is not understood
            self.end()
            return True
        return came

    def _take(self, word: str, *values: Any) -> None:
        if word == READY:
            (methods,) = values
            if methods != sorted(load()):  # some were added here that it does not know
                raise ValueError(methods)
            self._is_ready = True
            return
        number, order, note, self.seconds = values
        question = self._numbers.pop(number, None)
        if word != FOUND or question is None:
            return
        self._sent -= 1
        del self._asked[question]
        self._met[question[0]] = None
        if order is not None:
            self._known[question] = (tuple(order), note)

    def _send(self) -> None:
        """Send the next questions, as many as may be under way."""
        if not self._is_ready:
            return
        for question, number in list(self._asked.items()):
            if self._sent >= MOST_SENT:
                return
            if not number:
                self._asked[question] = number = self._number(question)
                problem, target, settings = question
                machine = self._machines.get(target)
                if machine is None:
                    machine = self._machines[target] = len(self._machines)
                    self._write(line(MACHINE, machine, plain(target)))
                self._write(line(PLAN, number, machine, plain(problem), plain(settings)))
                self._sent += 1

    def _number(self, question: Question) -> int:
        self._count += 1
        self._numbers[self._count] = question
        return self._count

    def _write(self, text: bytes) -> None:
        process = self._process
        with contextlib.suppress(OSError):  # it died: whoever hears it next finds its output ended
            while text and process is not None and process.stdin is not None:
                text = text[os.write(process.stdin.fileno(), text) :]


def processes() -> int:
    """How many processes may take part in a compile: `WORKBENCH_PROCESSES`, 1 or 2; 2 where it is not said."""
    said = os.environ.get("WORKBENCH_PROCESSES", "2")
    if said not in ("1", "2"):
        raise InputError(
            f"WORKBENCH_PROCESSES is {said!r}", expected="1 or 2", todo="1: no process is started beside this one"
        )
    return int(said)


def _has_place() -> bool:
    """Whether another process can be started here that runs beside this one."""
    if processes() < 2 or os.name != "posix" or not sys.executable or multiprocessing.parent_process() is not None:
        return False
    try:
        return len(os.sched_getaffinity(0)) > 1
    except AttributeError:  # not told on every system
        return (os.cpu_count() or 1) > 1


def start_for(kernels: Iterable[tuple[int, ...]]) -> None:
    """Start it for a model with weights of these shapes, before it is traced, if many of its products will differ."""
    if len({shape for shape in kernels if len(shape) > 1}) >= LEAST:
        SECOND.start()


SECOND = Second()
atexit.register(SECOND.end)


@remembered(4096)
def planned(problem: ConvProblem, target: Target, settings: Settings) -> ConvPlan:
    """`plan`, by whoever has searched it."""
    found = SECOND.choice((problem, target, settings))
    return plan(problem, target, settings) if found is None else finished(problem, *found)
