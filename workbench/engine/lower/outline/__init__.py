"""Outline: operators that are the same and planned the same are one body, called with copies of their arguments.

`room` keeps arguments where a body expects them, `runs` finds sequences that repeat, `calls` makes the calls. Imports
operators and emit. Tests: tests/engine/lower/outline.
"""

from workbench.engine.lower.outline.outline import (
    Outliner,
    Outlining,
    key_of,
    outlining,
)

__all__ = [
    "Outliner",
    "Outlining",
    "key_of",
    "outlining",
]
