"""Collects variables and steps of a tile program: the only maker of steps for `lower` and its operator families.

`emitter` makes the steps and keeps where they belong, `context` is what a family is handed (values, places, plans),
`links` the copies between IPUs, `loaded` what is loaded and stored around a step. Imports programs, mappings, graphs
and options; no operator family. Tests: tests/engine/ops and tests/engine/lower.
"""

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
