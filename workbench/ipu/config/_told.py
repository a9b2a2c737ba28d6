"""What the environment asks for and nothing here does: told once a process, for a variable is no call to refuse."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.base.text import meant, shown
from workbench.ipu.config._attributes import LOGGER

_told: set[str] = set()


def without_effect(variable: str, given: Iterable[str], known: Iterable[str], mark: str = "") -> None:
    """Warn of each name in a variable that is none of those with an effect here; `mark` is written before a name."""
    acting = sorted(known)
    for name in given:
        if name in acting:
            continue
        close = meant(name, acting)
        listed = ", ".join(f"{mark}{each}" for each in acting)
        said = f"{variable} has {mark}{name}, which has no effect here"
        tell_once(f"{said}{close and f': {close}'}. Those that act are: {listed}")


def tell_once(said: str) -> None:
    """Warn, unless this was said before."""
    if said not in _told:
        _told.add(said)
        LOGGER.warning("%s", shown(said))


__all__ = ["tell_once", "without_effect"]
