"""What a view asks of its profile while it is looked at: where a number comes from, and what has a name like this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError
from workbench.profiler.advice.explain import explain
from workbench.profiler.profile import Profile

EXPLAINED = ("ipu", "tile", "step", "variable")
MOST = 12  # names of each kind that are found


def answer(profile: Profile, message: Any) -> dict[str, Any] | None:
    """The answer to `{"explain": {...}}` or `{"find": words, "asked": n}`; None to anything else."""
    asked = message if isinstance(message, dict) else {}
    if isinstance(asked.get("explain"), dict):
        return {"explained": explained(profile, asked["explain"])}
    if isinstance(asked.get("find"), str):
        return {"found": list(found(profile, asked["find"])), "asked": asked.get("asked")}
    return None


def explained(profile: Profile, what: dict[str, Any]) -> dict[str, Any]:
    """The explanation of a tile, a step, both or a variable as JSON data; of nothing that of the fullest tile."""
    given: dict[str, Any] = {name: value for name, value in what.items() if name in EXPLAINED and type(value) is int}
    if not set(given) - {"ipu"}:
        given = {"ipu": int(profile.peak.ipu), "tile": int(profile.peak.tile)}
    try:
        return explain(profile, **given).tree()
    except WorkbenchError as problem:
        return {"problem": str(problem)}


def found(profile: Profile, words: str) -> Iterator[dict[str, Any]]:
    """Layers, steps, variables, tiles and IPUs in whose names every word stands: `kind, label, select`."""
    wanted = words.lower().split()
    steps, variables = profile.tables["steps"], profile.tables["variables"]
    layers = np.array(list(dict.fromkeys([*steps["layer"].tolist(), *variables["layer"].tolist()])), dtype=str)
    for place in _matching(layers, wanted):
        if layers[place]:
            yield {"kind": "layer", "label": str(layers[place]), "select": {"layer": str(layers[place])}}
    for place in _matching(variables["name"], wanted):
        chosen = {"variable": int(variables["id"][place]), "layer": str(variables["layer"][place]) or None}
        yield {"kind": "variable", "label": str(variables["name"][place]), "select": chosen}
    names = np.array([f"{step}: {name}" for step, name in zip(steps["id"], steps["name"], strict=True)], dtype=str)
    for place in _matching(names, wanted):
        chosen = {"step": int(steps["id"][place]), "ipu": int(steps["ipu"][place]), "position": None}
        yield {"kind": "step", "label": f"{steps['id'][place]:,}: {steps['name'][place]}", "select": chosen}
    yield from _places(profile, wanted)


def _places(profile: Profile, wanted: list[str]) -> Iterator[dict[str, Any]]:
    """Tiles and IPUs by their number, as in "tile 12" or "12"."""
    whole = [word.replace(",", "") for word in wanted]  # as numbers are written
    numbers = [int(word) for word in whole if word.isascii() and word.isdigit()]
    kinds = [word for word in whole if not word.isdigit()]
    for number in numbers[:1]:
        if number < int(profile.target["tiles_per_ipu"]) and all("tile".startswith(word) for word in kinds):
            yield {"kind": "tile", "label": f"tile {number:,}", "select": {"tile": number}}
        if number < profile.ipus and all("ipu".startswith(word) for word in kinds):
            yield {"kind": "IPU", "label": f"IPU {number}", "select": {"ipu": number, "tile": None}}


def _matching(names: Any, wanted: list[str]) -> list[int]:
    """Places of the first names that have every word, the shortest names first."""
    lower = [str(name).lower() for name in names]
    mine = [place for place, name in enumerate(lower) if all(word in name for word in wanted)]
    return sorted(mine, key=lambda place: len(lower[place]))[:MOST]
