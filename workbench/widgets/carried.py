"""What is chosen in a profile, found again in another: a compile with other options keeps the view of its user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.profiler.profile import Profile


def carried(chosen: Mapping[str, Any], before: Profile, after: Profile) -> dict[str, Any]:
    """The fields of a selection of `before` that name something in `after`, as `after` numbers it.

    A variable is found by its name and IPU, a step by its name, IPU and turn among those; what is not there is left.
    """
    found: dict[str, Any] = {}
    ipu, tile, layer = chosen.get("ipu"), chosen.get("tile"), chosen.get("layer")
    if ipu is not None and 0 <= ipu < after.ipus:
        found["ipu"] = ipu
    if tile is not None and 0 <= tile < int(after.target["tiles_per_ipu"]):
        found["tile"] = tile
    if layer is not None and _has_layer(after, layer):
        found["layer"] = layer
    if chosen.get("micro_batch") is not None and chosen["micro_batch"] < _micro_batches(after):
        found["micro_batch"] = chosen["micro_batch"]
    variable = _same("variables", chosen.get("variable"), before, after)
    if variable is not None:
        found["variable"] = variable
    step = _same("steps", chosen.get("step"), before, after)
    if step is not None:
        found["step"] = step
        found |= _position(after, step)
    return found


def _has_layer(profile: Profile, layer: str) -> bool:
    names = {*profile.tables["steps"]["layer"].tolist(), *profile.tables["variables"]["layer"].tolist()}
    return any(name == layer or name.startswith(f"{layer}/") for name in names)


def _micro_batches(profile: Profile) -> int:
    return int(profile.meta["pipeline"].get("micro_batches", 0))


def _same(table: str, number: int | None, before: Profile, after: Profile) -> int | None:
    """The id of the row in `after` that is called as the row with this id in `before`."""
    rows, others = before.tables[table], after.tables[table]
    if number is None or number not in rows["id"]:
        return None
    places = np.flatnonzero(rows["id"] == number)
    name, ipu = rows["name"][places[0]], rows["ipu"][places[0]]
    alike = np.flatnonzero((rows["name"] == name) & (rows["ipu"] == ipu))
    turn = int(np.searchsorted(alike, places[0]))
    there = np.flatnonzero((others["name"] == name) & (others["ipu"] == ipu))
    return int(others["id"][there[turn]]) if turn < len(there) else None


def _position(profile: Profile, step: int) -> dict[str, int]:
    """The first place of a step in the program of an IPU that runs it."""
    timeline = profile.tables["timeline"]
    places = np.flatnonzero(timeline["step"] == step)
    return {"position": int(timeline["position"][places[0]])} if len(places) else {}


__all__ = ["carried"]
