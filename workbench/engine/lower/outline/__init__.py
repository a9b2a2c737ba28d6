"""Outline: operators that are the same and planned the same are one body, called with copies of their arguments."""

from workbench.engine.lower.outline.outline import (
    Outliner,
    key_of,
    outliner,
)

__all__ = [
    "Outliner",
    "key_of",
    "outliner",
]
