"""The levers by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from workbench.base.registry import Registry
from workbench.profiler.advice.levers.change import Change
from workbench.profiler.advice.levers.situation import Situation

Proposal: TypeAlias = tuple[tuple[Change, ...], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """A named rule. `propose` gives changes to try, the mildest first, and why there are none where there are none.

    `doubt`: how far its estimates of bytes and of cycles may be off, as natural logarithms of a ratio, for each step.
    """

    name: str
    title: str
    propose: Callable[[Situation], Proposal]
    doubt: tuple[float, float]


LEVERS: Registry[Lever] = Registry("lever")


def lever(
    name: str, title: str, doubt: tuple[float, float]
) -> Callable[[Callable[[Situation], Proposal]], Callable[[Situation], Proposal]]:
    """Register a rule as a lever."""

    def register(propose: Callable[[Situation], Proposal]) -> Callable[[Situation], Proposal]:
        LEVERS.add(name, Lever(name=name, title=title, propose=propose, doubt=doubt))
        return propose

    return register


__all__ = ["LEVERS", "Lever", "Proposal", "lever"]
