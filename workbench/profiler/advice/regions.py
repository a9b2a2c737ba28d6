"""Memory regions of a tile: which one is full where a program does not fit although another has room."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.base.spans import covered
from workbench.base.units import bytes_text
from workbench.profiler.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class FullRegion:
    """A region that has no room for `missing_bytes` which must lie in it, while the other has `free_bytes` left."""

    name: str
    size_bytes: int
    missing_bytes: int
    free_bytes: int

    def __str__(self) -> str:
        full = f"its {self.name} memory ({bytes_text(self.size_bytes)}) is full"
        missing = f"{bytes_text(self.missing_bytes)} that must lie there have no place"
        return f"{full}: {missing}, though {bytes_text(self.free_bytes)} are free elsewhere"


def full_region(profile: Profile) -> FullRegion | None:
    """The region that is full on the fullest tile, where what found no place would have had one in the other.

    Interleaved data lie in the upper region alone, and code in what is executable; all else may lie in both.
    """
    target, peak = profile.target, profile.peak
    border, end = int(target["non_interleaved_bytes"]), int(target["bytes_per_tile"])
    rows, _ = profile.addresses.tile(peak.ipu, peak.tile)
    start, stop = rows["address"], rows["address"] + rows["bytes"]
    beyond = start >= end
    if profile.fits or not beyond.any():
        return None
    variable = rows["variable"][beyond]
    code = variable < 0
    wide = ~code & profile.tables["variables"]["interleaved"][np.maximum(variable, 0)]
    if wide.all():
        name, size, low, high = "interleaved", end - border, 0, border
    elif code.all():
        name, size, low, high = "executable", int(target["executable_bytes"]), int(target["executable_bytes"]), end
    else:
        return None
    placed = np.flatnonzero(~beyond)[start[~beyond].argsort(kind="stable")]
    free = high - low - covered(np.clip(start[placed], low, high), np.clip(stop[placed], low, high))
    missing = int(rows["bytes"][beyond].sum())
    return FullRegion(name=name, size_bytes=size, missing_bytes=missing, free_bytes=free) if free >= missing else None
