"""A command that runs the user's code, in a process of its own: only what this process wrote down is a verdict.

A module may end its process by any of `os._exit`, `exec`, a signal or a handler at exit, with any code. The command
waits for the process to end and then reads a file in a folder that only the two know: with no outcome in it, there was
no verdict, and the exit code is not 0. A file, since code that becomes a daemon closes every pipe it finds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from workbench.cli.commands import outcome_of
from workbench.cli.outcome import DEFECT, INTERRUPTED, MISUSE, Outcome
from workbench.cli.parser import parser
from workbench.cli.terminal import complaint, prepare

GRACE_SECONDS = 3  # for a process that heard of Ctrl-C as we did
_ENDING = [each for name in ("SIGTERM", "SIGHUP") if (each := getattr(signal, name, None)) is not None]
_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); from workbench.cli.judged import run; run()"


def judged(options: argparse.Namespace, arguments: Sequence[str] | None) -> Outcome:
    """The outcome of a command that another process runs."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
            place = Path(folder) / "outcome.json"
            code = _ended(place, words)
            return Outcome.read(place) or _without_verdict(code, options.model)
    except OSError as error:
        return Outcome(code=DEFECT, complaint=complaint(f"cannot start a process to compile in: {error}"))


def _ended(place: Path, words: list[str]) -> int:
    """Start the process, wait for its end, and see to it that it does not outlive us."""
    command = [sys.executable, "-P", "-c", _BOOT, json.dumps(sys.path), str(place), *words]
    process = None
    try:
        with held_back():  # until it can say that it was interrupted; it takes the held signal over from us
            process = subprocess.Popen(command)
        return process.wait()
    except BaseException as error:
        if process is not None:
            _end(process, heard=isinstance(error, KeyboardInterrupt))
        raise


def _end(process: subprocess.Popen[bytes], *, heard: bool) -> None:
    """End the process, at once or, where it heard what we heard, when it had its time; a second Ctrl-C kills."""
    try:
        if heard:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
        process.terminate()
        process.wait(GRACE_SECONDS)
    except (KeyboardInterrupt, SystemExit, subprocess.TimeoutExpired):
        process.kill()
        process.wait()


def _without_verdict(code: int, model: str) -> Outcome:
    if code == INTERRUPTED:
        return Outcome(code=INTERRUPTED)
    if code >= 0:
        ended = f"the code of {model!r} ended its process with exit code {code}, before a verdict"
        return Outcome(code=MISUSE, complaint=complaint(ended))
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = "; look whether this machine ran out of memory" if name == "SIGKILL" else ""
    ended = f"the process that compiled {model!r} was ended by {name}, before a verdict{hint}"
    return Outcome(code=DEFECT, complaint=complaint(ended))


def run() -> NoReturn:
    """The other process: run the command in `sys.argv`, behind the place of the outcome, and write that down."""
    place = Path(sys.argv.pop(1))
    sys.argv[0] = "workbench"
    prepare()
    try:
        released()
        outcome = outcome_of(parser().parse_args(sys.argv[1:]))
        outcome.write(place)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(outcome.code)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Ctrl-C waits meanwhile; what is started within has it waiting too, until `released`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def released() -> None:
    """Hear Ctrl-C from here on, and at once where it came before."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """SIGTERM, and the end of the terminal, leave by `SystemExit`: whatever was started is ended on the way out."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _: object) -> NoReturn:
        sys.exit(128 + number)

    before = {each: signal.signal(each, leave) for each in _ENDING if signal.getsignal(each) is signal.SIG_DFL}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
