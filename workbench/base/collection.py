"""A pause of Python's garbage collection while libraries are loaded, models compiled and profiles shown."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, local

MANY = 20_000  # objects: what a pause made is set aside from so many on
MOST_ASIDE = 3_000_000  # objects that pauses set aside, 300 MB at most: with more, a whole collection comes first


@contextmanager
def paused_collection() -> Iterator[None]:
    """Collect nothing meanwhile: traces, graphs and tile programs are hundreds of thousands of objects, all kept.

    Looking through them again and again takes a tenth to a third of ResNet-50's trace, a fifth of its compile and more
    than half of what it takes to show its profile. Nor are they looked through at the end: what lives on then is old.
    """
    running = gc.isenabled()
    gc.disable()
    _WORK.begin()
    try:
        yield
    finally:
        _WORK.end()
        if running:
            _ASIDE.add()
            gc.enable()


def resting_seconds() -> float:
    """How long nobody has paused the collection, in any thread: what can wait is done while nobody compiles or looks.

    0.0 while somebody does.
    """
    return 0.0 if _WORK.under_way else time.monotonic() - _WORK.ended


class _Work:
    """How many pauses there are now, and when the last one ended, by `time.monotonic`."""

    def __init__(self) -> None:
        self.under_way = 0
        self.ended = time.monotonic()
        self._changing = Lock()
        self._own = local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._alone)

    def begin(self) -> None:
        """Somebody begins."""
        self._own.pauses = getattr(self._own, "pauses", 0) + 1
        with self._changing:
            self.under_way += 1

    def end(self) -> None:
        """Somebody is done."""
        self._own.pauses -= 1
        with self._changing:
            self.under_way -= 1
            self.ended = time.monotonic()

    def _alone(self) -> None:
        """After a fork, which has no thread but the one that forked."""
        self._changing = Lock()
        self.under_way = getattr(self._own, "pauses", 0)


@dataclass(slots=True)
class _Aside:
    """How many objects pauses have made since the last whole collection, and how many of those there were then."""

    objects: int = 0
    collections: int = 0

    def add(self) -> None:
        """Many objects that are young now, Python's next collections would look through two or three times.

        They are made old unseen, which is what freezing and thawing does; whoever freezes objects himself keeps them.
        """
        young, collections = gc.get_count()[0], gc.get_stats()[-1]["collections"]
        if young < MANY or gc.get_freeze_count():
            return
        if collections != self.collections:
            self.objects, self.collections = 0, collections
        self.objects += young
        if self.objects > MOST_ASIDE:
            gc.collect()
        else:
            gc.freeze()
            gc.unfreeze()


_ASIDE = _Aside()
_WORK = _Work()
