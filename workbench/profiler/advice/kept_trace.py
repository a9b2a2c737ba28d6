"""How much of the trace a profile keeps: nothing of what ran, the device's, every IPU's, or every tile's.

The levels are those of `ipu.config.ExecutionProfileType`. What they leave out is not in the profile nor in its file:
below tiles the cycles of every tile of a step, below the device the program's tree, from which blocks are unrolled.
Sizes, totals and the static program stay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from workbench.profiler.profile import Profile

WHOLE = "TILE_PROFILE"
LEVELS = ("NO_PROFILE", "DEVICE_PROFILE", "IPU_PROFILE", WHOLE)
OF_TILES = ("cycles_index", "active_tiles", "tile_balance")


def keep_trace(profile: Profile, level: str) -> Profile:
    """The profile with the trace of a level; the same profile for all of it."""
    if level == WHOLE:
        return profile
    meta: dict[str, Any] = {**profile.meta, "execution_profile": level}
    if level == "NO_PROFILE":
        meta["trace"] = {"entry": ["sequence", "", []], "functions": {}}
    steps = profile.tables["steps"]
    steps = {**steps, **{name: np.zeros_like(steps[name]) for name in OF_TILES}}
    return replace(profile, meta=meta, tables={**profile.tables, "steps": steps})


__all__ = ["LEVELS", "keep_trace"]
