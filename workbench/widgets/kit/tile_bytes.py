"""What the two views over tiles send: bytes by category of every tile of every IPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.categories import FOOTPRINT_CATEGORIES
from workbench.profiler.memory import footprint
from workbench.profiler.profile import Profile
from workbench.profiler.reports.memory import Memory
from workbench.widgets.kit.palette import CATEGORIES, paint

MOST_HELD = 8  # IPUs that a view is sent at once; of more it is sent the chosen one, and another when it is chosen


def held(profile: Profile, ipu: int) -> list[int]:
    """The IPUs that a view of one of them is sent."""
    return list(range(profile.ipus)) if profile.ipus <= MOST_HELD else [ipu]


def by_category(memory: Memory, ipus: Sequence[int]) -> tuple[list[str], IntArray]:
    """Categories, in order, and of `ipus` int64[categories, ipus, tiles]."""
    profile = memory.profile
    found = {ipu: memory.of(ipu=ipu).by_category for ipu in ipus}
    names = _names(profile, found)
    nothing = np.zeros(profile.arrays["always_live"].shape[1], dtype=np.int64)
    rows = [[found[ipu].get(name, nothing) for ipu in ipus] for name in names]
    return names, np.array(rows, dtype=np.int64).reshape(len(names), len(ipus), len(nothing))


_MAY_HAVE: WeakKeyDictionary[Profile, frozenset[str]] = WeakKeyDictionary()


def _names(profile: Profile, found: Mapping[int, Mapping[str, IntArray]]) -> list[str]:
    """Categories in order that have bytes on any IPU, where all of them are `found`; else, so that another IPU has the
    same and none is worked out for its names, all that something in the program is of."""
    some = {name for part in found.values() for name in part}
    if len(found) < profile.ipus:
        some |= _may_have(profile)
    return [name for name in profile.memory_categories if name in some]


def _may_have(profile: Profile) -> frozenset[str]:
    """Kinds of variables that there are, and what else any tile holds."""
    if profile not in _MAY_HAVE:
        kinds = set(np.unique(profile.tables["variables"]["kind"]).tolist())
        taken = {name for name in FOOTPRINT_CATEGORIES if footprint(profile, name).any()}
        _MAY_HAVE[profile] = frozenset(kinds | taken)
    return _MAY_HAVE[profile]


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
