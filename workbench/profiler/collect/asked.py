"""What a profile does not hold and the engine works out for it when it is asked: arithmetic, and where things lie."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from workbench.engine import cost
from workbench.engine.cost import formulas
from workbench.engine.memory.allocation import plain_placer
from workbench.engine.memory.packing import with_gaps_bytes
from workbench.engine.target import MemoryMap
from workbench.engine.time.exchange_cost import parts
from workbench.engine.vertices import load
from workbench.profiler.memory.addresses import Placer
from workbench.profiler.schema import Stored

SPAN = ("variable", "first", "last")


def evaluated(formula: str, inputs: Mapping[str, Any]) -> str:
    """The arithmetic of a formula of the engine on the inputs a profile keeps; "" where this engine has no such."""
    load()
    if formula not in formulas:
        return ""
    try:
        return cost.evaluated(formula, inputs)
    except TypeError:  # of another version, whose formula took other inputs
        return ""


def exchange_parts(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Cycles of a tile, or of every tile, by part of an exchange: sending, receiving, control, staging; {} where this
    engine's formula has other inputs than those a profile keeps."""
    try:
        return parts(**inputs)._asdict()
    except TypeError:
        return {}


def placer(profile: Stored, ipu: int) -> Placer:
    """The engine's placement for one IPU of a profile."""
    variables, spans, target = profile.tables["variables"], profile.tables["intervals"], profile.meta["target"]
    names = ("non_interleaved_bytes", "interleaved_bytes", "executable_bytes")
    apart = bool(target.get("data_apart"))  # files of earlier versions do not say
    highest = int(profile.meta["verdict"]["max_tile_bytes"])
    memory = MemoryMap(**{name: int(target[name]) for name in names}, data_apart=apart)
    lives: dict[int, list[tuple[int, int]]] = {}
    for variable, first, last in zip(*(spans[name].tolist() for name in SPAN), strict=True):
        lives.setdefault(variable, []).append((first, last))
    always = variables["always_live"]
    own = [row for row in np.flatnonzero(variables["ipu"] == ipu).tolist() if always[row] or row in lives]
    periods = [() if always[row] else tuple(lives[row]) for row in own]
    return Placer(
        own=np.array(own, dtype=np.int64),
        place=plain_placer(memory, periods, variables["interleaved"][own].tolist(), highest),
        with_gaps=partial(with_gaps_bytes, memory),
    )
