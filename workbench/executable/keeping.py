"""Profiles on their way to disk: written when nobody compiles or looks, so that no slider waits for a file.

Writing takes as long as compiling a model again with another option. A profile waits until nobody has worked for a
moment, then a thread writes it; what still waits at the end of the session is written there. A session that is killed
leaves what waited unwritten, which costs the next one a compile.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.base.collection import resting_seconds
from workbench.base.files import made_folder
from workbench.errors import InputError
from workbench.profiler.storage import save_profile

if TYPE_CHECKING:
    from workbench.profiler.profile import Profile

REST_SECONDS = 1.0  # without work, before one is written: a slider that is drawn is asked again sooner
MOST_WAITING = 8  # profiles; with more the first is written at once, so that a long sweep holds no more of them
MOST_BYTES = 1 << 30  # of all files together: a thousand profiles of a large model
SUFFIX = ".wbprofile"


class Keeper:
    """Profiles that wait, by the file that each is to be. Each is tried once: what cannot be written is not kept, of
    which the first of a folder warns."""

    def __init__(self) -> None:
        self._warned: set[Path] = set()
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)  # what waits is the parent's to write

    def _begin(self) -> None:
        self._waiting: OrderedDict[Path, Profile] = OrderedDict()
        self._came = threading.Condition()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None

    def keep(self, place: Path, profile: Profile) -> None:
        """Have a profile written, unless another one of the same file comes first."""
        with self._came:
            self._waiting.pop(place, None)
            self._waiting[place] = profile
            self._started()
            self._came.notify()
            is_full = len(self._waiting) > MOST_WAITING
        if is_full:
            self._write_first()

    def has(self, place: Path) -> bool:
        """Whether a file is there, or waits to be."""
        with self._came:
            return place in self._waiting or place.is_file()

    def write(self, place: Path) -> None:
        """Write what waits for one file, now."""
        with self._came:
            if place in self._waiting:
                self._waiting.move_to_end(place, last=False)
        self._write_first(place)

    def write_all(self) -> None:
        """Write all that waits, now; of errors that no file explains the first is raised when all were tried."""
        problems: list[Exception] = []
        while self._waiting:
            try:
                self._write_first()
            except Exception as problem:
                problems.append(problem)
        if problems:
            raise problems[0]

    def _started(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        thread = threading.Thread(target=self._run, name="profiles to disk", daemon=True)
        thread.start()
        self._thread = thread
        workers = sys.modules.get("multiprocessing.util")
        if workers is not None:  # which may end without what `atexit` knows
            workers.Finalize(None, self.write_all, exitpriority=0)

    def _run(self) -> None:
        while True:
            with self._came:
                self._came.wait_for(lambda: self._waiting)
            rested = resting_seconds()
            if rested < REST_SECONDS:
                time.sleep(REST_SECONDS - rested)
                continue
            try:
                self._write_first()
            except Exception:  # is told as any error of a thread, which goes on with the next
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def _write_first(self, only: Path | None = None) -> None:
        """Write the one that has waited longest, or wait until it is written."""
        with self._writing:
            with self._came:
                place = next(iter(self._waiting), None)
                if place is None or only not in (None, place):
                    return
                profile = self._waiting[place]
            try:
                problem = _write(place, profile)
            finally:
                with self._came:
                    if self._waiting.get(place) is profile:
                        del self._waiting[place]
        if problem is not None and place.parent not in self._warned:
            self._warned.add(place.parent)
            warnings.warn(_not_kept(place.parent, problem), RuntimeWarning, stacklevel=2)


def _write(place: Path, profile: Profile) -> Exception | None:
    """Write a profile; a folder that cannot be written to keeps nothing, and why is what comes back."""
    try:
        made_folder(place.parent, private=True)
        save_profile(profile, place)
        _remove_oldest(place.parent, place)
    except (OSError, RuntimeError, InputError, MemoryError) as problem:
        return problem
    return None


def _not_kept(folder: Path, problem: Exception) -> str:
    why = problem.what if isinstance(problem, InputError) else str(problem) or type(problem).__name__
    return (
        f"profiles are not kept for later sessions in {str(folder)!r}: {why}. Set WORKBENCH_CACHE to a folder that can "
        "be written to, or to 'memory', which keeps them for this session alone"
    )


def _remove_oldest(where: Path, newest: Path) -> None:
    kept = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in where.glob(f"*{SUFFIX}"))
    total_bytes = sum(size for _, size, _ in kept)
    for _, size, path in kept:
        if total_bytes <= MOST_BYTES:
            return
        if path != newest:
            path.unlink(missing_ok=True)
            total_bytes -= size


KEEPER = Keeper()
atexit.register(KEEPER.write_all)
