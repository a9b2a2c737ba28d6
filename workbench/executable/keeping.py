"""Profiles on their way to disk: written when nobody compiles or looks, so that no slider waits for a file.

Writing takes as long as compiling a model again with another option. A profile waits until nobody has worked for a
moment, then a thread writes it; what still waits at the end of the session is written there. A session that is killed
leaves what waited unwritten, which costs the next one a compile.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
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
    """Profiles that wait, by the file that each is to be."""

    def __init__(self) -> None:
        self._begin()
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
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="profiles to disk", daemon=True)
                self._thread.start()
            self._came.notify()
            is_full = len(self._waiting) > MOST_WAITING
        if is_full:
            self._write_first()

    def write(self, place: Path) -> None:
        """Write what waits for one file, now."""
        with self._came:
            if place in self._waiting:
                self._waiting.move_to_end(place, last=False)
        self._write_first(place)

    def write_all(self) -> None:
        """Write all that waits, now."""
        while self._write_first():
            pass

    def _run(self) -> None:
        while True:
            with self._came:
                self._came.wait_for(lambda: self._waiting)
            rested = resting_seconds()
            if rested < REST_SECONDS:
                time.sleep(REST_SECONDS - rested)
            else:
                self._write_first()

    def _write_first(self, only: Path | None = None) -> bool:
        """Write the one that has waited longest, or wait until it is written; whether there was one."""
        with self._writing:
            with self._came:
                place = next(iter(self._waiting), None)
                if place is None or only not in (None, place):
                    return False
                profile = self._waiting[place]
            _write(place, profile)
            with self._came:
                if self._waiting.get(place) is profile:
                    del self._waiting[place]
        return True


def _write(place: Path, profile: Profile) -> None:
    """Write a profile; a folder that cannot be written to keeps nothing."""
    try:
        made_folder(place.parent, private=True)
        save_profile(profile, place)
        _remove_oldest(place.parent, place)
    except (OSError, RuntimeError, InputError):
        return


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
