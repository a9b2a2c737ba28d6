"""What the two views over tiles send: bytes by category of every tile of every IPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.base.arrays import IntArray
from workbench.profiler.profile import Profile
from workbench.profiler.reports.memory import Memory
from workbench.widgets.kit.palette import CATEGORIES, paint


def by_category(memory: Memory) -> tuple[list[str], IntArray]:
    """Categories that have bytes on any IPU, in order, and int64[categories, ipus, tiles]."""
    profile = memory.profile
    found = [memory.of(ipu=ipu).by_category for ipu in range(profile.ipus)]
    names = [name for name in profile.memory_categories if any(name in part for part in found)]
    nothing = np.zeros(profile.arrays["always_live"].shape[1], dtype=np.int64)
    rows = [[part.get(name, nothing) for part in found] for name in names]
    return names, np.array(rows, dtype=np.int64).reshape(len(names), profile.ipus, len(nothing))


def described(profile: Profile, ipu: int, names: list[str], measured: str) -> dict[str, Any]:
    """The JSON part that both views share."""
    return {
        "ipu": ipu,
        "ipus": profile.ipus,
        "tiles": int(profile.arrays["always_live"].shape[1]),
        "capacity_bytes": int(profile.target["bytes_per_tile"]),
        "categories": [paint(CATEGORIES, name) for name in names],
        "measured": measured,
    }
