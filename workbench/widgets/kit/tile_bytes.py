"""What the two views over tiles send: bytes by category of every tile of every IPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from workbench.base.arrays import IntArray
from workbench.profiler.profile import Profile
from workbench.profiler.reports.memory import Memory
from workbench.widgets.kit.palette import CATEGORIES, paint

MOST_HELD = 8  # IPUs that a view is sent at once; of more it is sent the chosen one, and another when it is chosen


def held(profile: Profile, ipu: int) -> list[int]:
    """The IPUs that a view of one of them is sent."""
    return list(range(profile.ipus)) if profile.ipus <= MOST_HELD else [ipu]


def by_category(memory: Memory, ipus: Sequence[int]) -> tuple[list[str], IntArray]:
    """Categories that have bytes on any IPU, in order, and of `ipus` int64[categories, ipus, tiles]."""
    profile = memory.profile
    found = {ipu: memory.of(ipu=ipu).by_category for ipu in ipus}
    names = _names(memory, found)
    nothing = np.zeros(profile.arrays["always_live"].shape[1], dtype=np.int64)
    rows = [[found[ipu].get(name, nothing) for ipu in ipus] for name in names]
    return names, np.array(rows, dtype=np.int64).reshape(len(names), len(ipus), len(nothing))


# Names of a profile by measure: another IPU is then shown without working out all of them again.
_KNOWN: WeakKeyDictionary[Profile, dict[str, list[str]]] = WeakKeyDictionary()


def _names(memory: Memory, found: Mapping[int, Mapping[str, IntArray]]) -> list[str]:
    """Categories that have bytes on any IPU, of some of which the bytes are `found`."""
    profile, known = memory.profile, _KNOWN.setdefault(memory.profile, {})
    if memory.measure not in known:
        parts = [found[ipu] if ipu in found else memory.of(ipu=ipu).by_category for ipu in range(profile.ipus)]
        known[memory.measure] = [name for name in profile.memory_categories if any(name in part for part in parts)]
    return known[memory.measure]


def described(profile: Profile, ipu: int, names: list[str], measured: str) -> dict[str, Any]:
    """The JSON part that both views share."""
    return {
        "ipu": ipu,
        "held": held(profile, ipu),
        "ipus": profile.ipus,
        "tiles": int(profile.arrays["always_live"].shape[1]),
        "capacity_bytes": int(profile.target["bytes_per_tile"]),
        "categories": [paint(CATEGORIES, name) for name in names],
        "measured": measured,
    }
