"""What the machine that computes the numbers can hold."""

from __future__ import annotations

import os

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
