"""What a compiled program's report says, under the names its users ask by."""

from __future__ import annotations

from typing import Any

from tests.fidelity.outcome import NotRun
from workbench.executable import Executable


def total_bytes(executable: Executable) -> int:
    """Bytes of all tiles, every address once."""
    return int(executable.profile.tiles["total_bytes"].sum())


def max_bytes(executable: Executable) -> int:
    """Bytes of the fullest tile, gaps not counted."""
    return int(executable.profile.tiles["total_bytes"].max())


def always_live_bytes(executable: Executable) -> int:
    """Always-live bytes of all tiles as the library says them: without the stacks, which a tile's total does count.

    A stack has 3168 bytes; the figures of wide_const_expansion_test.py have 115 to 2734 bytes a tile, in every SDK.
    """
    tiles = executable.profile.tiles
    return int((tiles["always_live_bytes"] - tiles["stack"]).sum())


def measured(executable: Executable, quantity: str, *, times: int = 1) -> Any:
    """The number a quantity names; cycles are those of `times` calls."""
    if "ycles" in quantity:
        return int(executable.profile.total_cycles) * times
    if "alwaysLive" in quantity:
        return always_live_bytes(executable)
    if quantity.startswith("sum over tiles"):
        return total_bytes(executable)
    if quantity.startswith("max"):
        return max_bytes(executable)
    return NotRun(f"no such quantity: {quantity}")
