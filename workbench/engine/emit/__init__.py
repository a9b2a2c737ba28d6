"""Collects variables and steps of a tile program: the only maker of steps for `lower` and its operator families."""

from workbench.engine.emit.emitter import (
    Emitter,
    total_of,
    vertex_groups,
)

__all__ = [
    "Emitter",
    "total_of",
    "vertex_groups",
]
