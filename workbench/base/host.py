"""The machine that computes the numbers: what it can hold, and interrupts that wait for its imports."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workbench.errors import InputError


def host_bytes() -> int | None:
    """Bytes of this machine's memory; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def refuse_beyond_host(what: str, size_bytes: int) -> None:
    """An `InputError` if numbers of so many bytes are more than the machine has, before anything is allocated."""
    most = host_bytes()
    if most is not None and size_bytes > most:
        raise InputError(
            f"{what} takes {size_bytes:,} B of this machine's memory",
            expected=f"at most {most:,} B",
            todo="run a smaller program; a profile needs no numbers",
        )


@contextmanager
def late_interrupt() -> Iterator[None]:
    """An interrupt meanwhile comes at the end. For imports of NumPy, JAX and Keras, a second or two at the first use:
    half imported they cannot be imported again in the same process, and every compile after it would fail.

    Elsewhere than in the main thread, which alone is interrupted, and where Python does not handle interrupts, nothing.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    heard: list[tuple[Any, ...]] = []
    signal.signal(signal.SIGINT, lambda *about: heard.append(about))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard:
            before(*heard[-1])
