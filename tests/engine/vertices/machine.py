"""The machine that PopLibs' estimators and the published cycles are of."""

from typing import Any

from workbench.engine import vertices
from workbench.engine.target import targets

MACHINE, RATES = targets["ipu2"].machine, targets["ipu2"].rates


def flops_of(name: str, arguments: dict[str, Any]) -> int:
    """Floating-point operations of a vertex."""
    codelet = vertices.find(name)
    return codelet.flops(**codelet.inputs(MACHINE, arguments))
