"""A pause of Python's garbage collection while a model is traced."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collection() -> Iterator[None]:
    """Collect nothing meanwhile: a trace makes hundreds of thousands of objects and keeps them.

    Looking through them again and again takes a tenth to a third of ResNet-50's trace.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
