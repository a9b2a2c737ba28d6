"""What kind of variable an entry parameter becomes, by its role."""

from __future__ import annotations

from workbench.engine.program import VariableKind

KIND_OF_ROLE: dict[str, VariableKind] = {
    "parameter": "parameter",
    "optimizer": "optimizer",
    "accumulator": "optimizer",
    "state": "state",
    "seed": "state",
    "constant": "constant",
    "input": "input",
    "target": "input",
    "argument": "input",
}
