"""Lower: the scheduled graph becomes a tile program; every value gets a place, every node its steps."""

from workbench.engine.lower.lower import (
    Lowered,
    lower,
)

__all__ = [
    "Lowered",
    "lower",
]
