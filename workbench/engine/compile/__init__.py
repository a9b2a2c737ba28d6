"""Compile: graph → passes → tile program → footprint, liveness, allocation and trace, each phase timed."""

from workbench.engine.compile.compile import (
    Compiled,
    compile_graph,
    measure,
)
from workbench.engine.compile.phases import Clock, Phase

__all__ = [
    "Clock",
    "Compiled",
    "Phase",
    "compile_graph",
    "measure",
]
