"""Why two profiles differ: cycles by layer and cause, bytes of the fullest tile by layer and category.

Parts are rows that a profile has: what its steps take, what an IPU waits, what is live on its fullest tile at its
peak. What they leave of the difference is a row of its own. Beside each stands the layer whose change it comes of, or
through what a layer that did not change takes part in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from workbench.profiler.advice.moved import WORDS, moved
from workbench.profiler.advice.origins import origins

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workbench.profiler.profile import Profile

REMAINDER = "remainder"
COLUMNS = ["profile", "layer", "cause", "category", "cycles", "bytes", "origin", "through"]
# Through what a layer that did not change takes part in a difference, in words.
THROUGH: Mapping[str, str] = {**WORDS, "peak": "another tile or step being the fullest"}
_KEYS = ["layer", "of"]


def why(profiles: Sequence[Profile]) -> pd.DataFrame:
    """Parts of the difference of each later profile from the first: `COLUMNS`, the largest first.

    A row has a cause and cycles, or a category and bytes. The cycles of a profile's rows, those of the remainder among
    them, sum to the difference of `total_cycles`; the bytes to that of `max_tile_bytes`. Rows without a change are left
    out but for the two remainders. `origin` is the layer whose change a row comes of, as `origins` finds it; `through`,
    of a layer that did not change, what of it is different, as `moved` finds it; where nothing is, and another step or
    tile is the fullest, the bytes that it has there come of the "peak".
    """
    first = profiles[0]
    cycles, sizes = _cycles(first), _bytes(first)
    parts = []
    for place, other in enumerate(profiles[1:], start=1):
        found = _moved(cycles, _cycles(other), other.total_cycles - first.total_cycles)
        spent = found.rename(columns={"of": "cause", "change": "cycles"}).assign(profile=place, category="")
        found = _moved(sizes, _bytes(other), float(other.max_tile_bytes - first.max_tile_bytes))
        held = found.rename(columns={"of": "category", "change": "bytes"}).assign(profile=place, cause="")
        of, through = origins(first, other), moved(first, other)
        elsewhere = "peak" if _peak(first) != _peak(other) else ""
        for each, otherwise in ((spent, ""), (held, elsewhere)):
            each["origin"] = [of.get(layer, "") for layer in each["layer"]]
            told = {layer: "" if of.get(layer) else word or otherwise for layer, word in through.items()}
            each["through"] = [told.get(layer, "") for layer in each["layer"]]
            parts.append(each)
    whole = pd.concat(parts, ignore_index=True)
    return whole.fillna({"cycles": 0.0, "bytes": 0.0})[COLUMNS]


def _peak(profile: Profile) -> tuple[int, int, str]:
    """IPU and tile that are the fullest, and the name of the step: its number moves with what is before it."""
    peak, steps = profile.peak, profile.tables["steps"]
    return peak.ipu, peak.tile, "".join(steps["name"][steps["id"] == peak.step].tolist())


def _cycles(profile: Profile) -> pd.Series[float]:
    """Cycles of a call by layer and cause, the mean over the IPUs: of the steps, and of what no step takes.

    All causes of an IPU sum to `total_cycles`, so their mean does.
    """
    steps = profile.steps
    known = steps.groupby(["layer", "cause"])["total_cycles"].sum()
    causes = profile.cycle_breakdown.groupby("cause")["cycles"].sum()
    besides = causes.sub(known.groupby("cause").sum(), fill_value=0)
    besides = besides[besides != 0]
    besides.index = pd.MultiIndex.from_product([[""], besides.index], names=["layer", "cause"])
    return known.add(besides, fill_value=0).rename_axis(_KEYS) / profile.ipus


def _bytes(profile: Profile) -> pd.Series[float]:
    """Bytes of the fullest tile at its peak by layer and category: its variables, its code and state, and the gaps."""
    peak = profile.peak
    live = profile.live_variables(peak.step, peak.ipu, peak.tile)
    known = live.groupby(["layer", "kind"])["bytes"].sum().astype(float)
    tiles = profile.tiles
    own = tiles[(tiles["ipu"] == peak.ipu) & (tiles["tile"] == peak.tile)].iloc[0]
    kinds = {str(kind) for kind in profile.column("variables", "kind")}
    held = {("", name): float(own[name]) for name in profile.memory_categories if name not in kinds}
    held["", "gaps"] = float(own["total_with_gaps_bytes"] - own["total_bytes"])
    index = pd.MultiIndex.from_tuples(list(held), names=_KEYS)
    return known.rename_axis(_KEYS).add(pd.Series(list(held.values()), index=index), fill_value=0)


def _moved(before: pd.Series[float], after: pd.Series[float], whole: float) -> pd.DataFrame:
    """What changed by key, the largest first, and what that leaves of the whole."""
    change = after.sub(before, fill_value=0)
    change = change[change.abs() > 1e-9]
    order = change.abs().sort_values(ascending=False, kind="stable").index
    found = change.loc[order].rename("change").reset_index()
    rest = pd.DataFrame([["", REMAINDER, whole - float(change.sum())]], columns=[*_KEYS, "change"])
    return rest if found.empty else pd.concat([found, rest], ignore_index=True)


__all__ = ["COLUMNS", "REMAINDER", "THROUGH", "why"]
