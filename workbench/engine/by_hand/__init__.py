"""The steps of a program written by hand. `by_hand_lower` makes the tile program of them, `by_hand_run` the numbers."""

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
]
