"""A pause of Python's garbage collection while libraries are loaded, models compiled and profiles shown."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collection() -> Iterator[None]:
    """Collect nothing meanwhile: traces, graphs and tile programs are hundreds of thousands of objects, all kept.

    Looking through them again and again takes a tenth to a third of ResNet-50's trace, a fifth of its compile and more
    than half of what it takes to show its profile.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
