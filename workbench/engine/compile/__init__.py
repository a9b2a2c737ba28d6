"""Compile: graph → passes → tile program → footprint, liveness, allocation and trace, each phase timed."""

from workbench.engine.compile.compile import (
    Clock,
    Compiled,
    Phase,
    compile_graph,
    measure,
)

__all__ = [
    "Clock",
    "Compiled",
    "Phase",
    "compile_graph",
    "measure",
]
