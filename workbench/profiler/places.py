"""Places of a profile as users give them: an IPU, a tile, a step, a window of cycles; what is not there is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.base.whole import whole
from workbench.errors import InputError
from workbench.profiler.schema import Stored


def ipu_of(profile: Stored, ipu: Any) -> int:
    """The number of an IPU; an `InputError` for one the profile does not have."""
    return whole("ipu", ipu, least=0, most=int(profile.meta["ipus"]) - 1)


def tile_of(profile: Stored, tile: Any) -> int:
    """The number of a tile; an `InputError` for one its IPUs do not have."""
    return whole("tile", tile, least=0, most=profile.arrays["always_live"].shape[1] - 1)


def position_of(count: int, position: Any) -> int:
    """A place among so many positions of an IPU's program; an `InputError` for one it does not have."""
    return whole("position", position, least=0, most=count - 1)


def variable_of(profile: Stored, variable: Any) -> int:
    """The id of a variable; an `InputError` for one the profile does not have."""
    return whole("variable", variable, least=0, most=len(profile.tables["variables"]["id"]) - 1)


def step_of(profile: Stored, step: Any) -> int:
    """The id of a step; an `InputError` for one the program does not have."""
    try:
        number = whole("step", step, least=0)
    except InputError:
        number = -1
    steps = profile.tables["steps"]["id"]
    if number not in steps:
        if not len(steps):
            raise InputError(
                f"no step {step!r}; the program runs none, and what lies on a tile always lives",
                expected="no step",
                todo="profile.explain(tile=...) says what lies on a tile",
            )
        raise InputError(f"no step {step!r}", expected="an id of profile.steps")
    return number


def cycle_of(name: str, cycle: Any) -> Any:
    """An end of a window, None where it is open; an `InputError` for what is no number."""
    is_number = isinstance(cycle, int | float | np.integer | np.floating) and not isinstance(cycle, bool)
    if cycle is None or (is_number and not math.isnan(cycle)):
        return cycle
    raise InputError(f"{name} is {cycle!r}", expected="a number of cycles, or None")
