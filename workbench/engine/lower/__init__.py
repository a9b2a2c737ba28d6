"""Lower: the scheduled graph becomes a tile program; every value gets a place, every node its steps.

`driver` runs the families node by node, `layout` gives values their places, `in_place` says what shares memory,
`io_tiles` sets tiles apart; `outline`, `pipeline` and `replay` have folders. Imports operators, plans, emit; no pass.
Tests: tests/engine/lower.
"""

from workbench.engine.lower.lower import (
    Lowered,
    lower,
)

__all__ = [
    "Lowered",
    "lower",
]
