"""A program of steps, measured: what `collect` reads."""

from __future__ import annotations

from workbench.engine.compile import Clock, Compiled, measure
from workbench.engine.options import Options
from workbench.engine.program import TileProgram


def compiled(program: TileProgram) -> Compiled:
    return measure(program, Options(), Clock(lambda phase: None))
