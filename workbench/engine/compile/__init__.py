"""Compile: graph → passes → tile program → footprint, liveness, allocation and trace, each phase timed.

`compile` runs the phases, `phases` names and times them, `reuse` notes which options a phase read, so that a later
compile takes over what another option cannot touch, `bounds` refuses what no table could tell. Imports all of the
engine but the frontends. Tests: tests/engine/compile.
"""

from workbench.engine.compile.compile import (
    Compiled,
    compile_graph,
    measure,
    plan_ahead,
    products_ahead,
)
from workbench.engine.compile.phases import Clock, Phase

__all__ = [
    "Clock",
    "Compiled",
    "Phase",
    "compile_graph",
    "measure",
    "plan_ahead",
    "products_ahead",
]
