"""Products of a vision transformer on a C600: cycles of the compute set of each.

Source: osmarks/ipu-stack@ce7c7e94 docs: SigLIP so400m, 729 positions of 1152, 16 heads of 72, hidden layer of 4304; its
rate is that of half partials.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from tests.fidelity.compiling import config, struct
from tests.fidelity.outcome import Case, NotRun
from workbench import api
from workbench.engine.program import OnTileExecute

POSITIONS, WIDTH, HEADS, HIDDEN = 729, 1152, 16, 4304
HEAD = WIDTH // HEADS
Shape = tuple[int, ...]
PRODUCTS: Mapping[str, tuple[Shape, Shape]] = {
    "QKVprojection": ((POSITIONS, WIDTH), (WIDTH, 3 * WIDTH)),
    "QK": ((HEADS, POSITIONS, HEAD), (HEADS, HEAD, POSITIONS)),
    "score": ((HEADS, POSITIONS, HEAD), (HEADS, HEAD, POSITIONS)),
    "PV": ((HEADS, POSITIONS, POSITIONS), (HEADS, POSITIONS, HEAD)),
    "outprojection": ((POSITIONS, WIDTH), (WIDTH, WIDTH)),
    "MLPup": ((POSITIONS, WIDTH), (WIDTH, HIDDEN)),
    "MLPdown": ((POSITIONS, HIDDEN), (HIDDEN, WIDTH)),
    "MLP1": ((POSITIONS, WIDTH), (WIDTH, HIDDEN)),
    "MLP2": ((POSITIONS, HIDDEN), (HIDDEN, WIDTH)),
}


def vision(case: Case) -> Any:
    """Cycles by type of the operands; float16 is the one the engine has."""
    name = case["id"].removeprefix("SIGLIP-")
    if name not in PRODUCTS:
        return NotRun("the whole vision tower is not built here")
    return {"fp16": _cycles(*PRODUCTS[name])}


@cache
def _cycles(left: Shape, right: Shape) -> int:
    compiled = api.compile(
        lambda a, b: a @ b,
        struct(*left, dtype="float16"),
        struct(*right, dtype="float16"),
        config=config(matmuls={"partialsType": "half"}),
        target="ipu21",
    ).compiled
    steps = [step for step in compiled.program.steps if isinstance(step, OnTileExecute) and "/compute" in step.name]
    return sum(compiled.trace.steps[step.id].cycles * compiled.trace.executions[step.id] for step in steps)
