"""The steps of a program written by hand. `lower` makes the tile program of them, `run` the numbers.

`tensor` and `vertex` are what a user writes, `by_hand` the steps and their checks, `copies` what copies mean. Imports
what emits, maps and stores programs; no graph passes and no frontends. Tests: tests/engine and tests/test_tiles.py.
"""

from workbench.engine.by_hand.by_hand import (
    ComputeSet,
    Copy,
    Function,
    HostCopy,
    If,
    Repeat,
    Sequence,
    Step,
    check_graph,
    check_nesting,
)

__all__ = [
    "ComputeSet",
    "Copy",
    "Function",
    "HostCopy",
    "If",
    "Repeat",
    "Sequence",
    "Step",
    "check_graph",
    "check_nesting",
]
