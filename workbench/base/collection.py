"""A pause of Python's garbage collection while libraries are loaded, models compiled and profiles shown."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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
    try:
        yield
    finally:
        if running:
            _ASIDE.add()
            gc.enable()


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
