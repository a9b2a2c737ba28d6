"""The corpus: programs of every kind, whose profiles a change that means to change nothing leaves as they are."""

from __future__ import annotations

from tests.corpus import by_hand, functions, models, sessions, staged  # noqa: F401  (each registers its own)
from tests.corpus.registry import PROGRAMS, Program

__all__ = ["PROGRAMS", "Program"]
