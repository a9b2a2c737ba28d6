"""From a tile program to its trace: the cost of every step once, durations by recursion, causes by counting."""

from __future__ import annotations

from workbench.engine.program import TileProgram
from workbench.engine.trace import Trace


def execute(program: TileProgram) -> Trace:
    """Cost every step, and the waiting between them."""
    raise NotImplementedError
