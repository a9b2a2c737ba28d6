"""What is drawn of a result over the earlier one: headlines, bytes through the program and over tiles, cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.text import shown
from workbench.base.units import bytes_text, count_text, percent_text
from workbench.profiler.advice.diagnose import cycles_per_sample
from workbench.profiler.profile import Profile
from workbench.widgets.kit.palette import CAUSES
from workbench.widgets.kit.payload import pack
from workbench.widgets.views.comparison import tile_bytes

STRETCHES = 480  # of a program, each drawn with the most of its steps


def picture(before: Profile, after: Profile, asked: str) -> tuple[dict[str, Any], bytes]:
    """`(data, buffer)`: two results on the IPU of the later one's fullest tile.

    Columns: bytes of each tile at its own fullest step, and of the fullest tile in each stretch of the program's steps.
    """
    ipu = after.peak.ipu
    columns: dict[str, tuple[str, Any]] = {}
    for side, profile in (("before", before), ("after", after)):
        columns[f"{side}_tiles"] = ("i4", tile_bytes(profile, ipu))
        columns[f"{side}_steps"] = ("i4", through(profile, ipu))
    layout, buffer = pack(columns)
    data = {
        "layout": layout,
        "asked": shown(asked),
        "ipu": ipu,
        "capacity": int(after.target["bytes_per_tile"]),
        "fits": [before.fits, after.fits],
        "heads": heads(before, after),
        "causes": causes(before, after),
    }
    return data, buffer


def through(profile: Profile, ipu: int) -> IntArray:
    """Bytes of the fullest tile in each stretch of the program's steps, the most within it: int64[up to 480]."""
    if ipu >= profile.ipus:
        return np.zeros(0, dtype=np.int64)
    worst = np.asarray(profile.liveness_view.of(ipu=ipu).worst_tile_bytes, dtype=np.int64)
    if len(worst) <= STRETCHES:
        return worst
    edges = np.arange(STRETCHES) * len(worst) // STRETCHES
    return np.asarray(np.maximum.reduceat(worst, edges), dtype=np.int64)


def heads(before: Profile, after: Profile) -> list[dict[str, Any]]:
    """The numbers over the pictures: label, unit, which way is better, before and after."""
    rows = (
        ("Fullest tile", "bytes", -1, before.max_tile_bytes, after.max_tile_bytes),
        ("Spare on it", "bytes", 1, before.margin_bytes, after.margin_bytes),
        ("Cycles a sample", "cycles", -1, cycles_per_sample(before), cycles_per_sample(after)),
        ("Samples a second", "count", 1, before.samples_per_second, after.samples_per_second),
    )
    return [
        {"label": label, "unit": unit, "better": better, "before": float(a), "after": float(b)}
        for label, unit, better, a, b in rows
        if a is not None and b is not None
    ]


def causes(before: Profile, after: Profile) -> list[dict[str, Any]]:
    """Cycles a sample by cause, the mean of the IPUs, before and after; causes that neither has are left out."""
    sides = [_by_cause(profile) for profile in (before, after)]
    return [
        {"paint": CAUSES[name], "before": sides[0][name], "after": sides[1][name]}
        for name in CAUSES
        if sides[0][name] or sides[1][name]
    ]


def _by_cause(profile: Profile) -> dict[str, float]:
    table = profile.tables["cycle_breakdown"]
    samples = (int(profile.meta.get("samples_per_call") or 0) or 1) * max(1, profile.ipus)
    return {name: float(table["cycles"][table["cause"] == name].sum()) / samples for name in CAUSES}


def point(profile: Profile) -> dict[str, Any]:
    """What a curve shows of a result."""
    cycles = cycles_per_sample(profile)
    part = percent_text(profile.max_tile_bytes / int(profile.target["bytes_per_tile"]))
    return {
        "fits": profile.fits,
        "bytes": int(profile.max_tile_bytes),
        "cycles": float(cycles),
        "bytes_text": f"{bytes_text(profile.max_tile_bytes)}, {part} of a tile",
        "cycles_text": f"{count_text(cycles)} cycles",
        "problem": "",
    }


def refused(problem: str) -> dict[str, Any]:
    """What a curve shows of what cannot be compiled."""
    return {"fits": False, "problem": shown(problem)}


def fastest(rows: Sequence[dict[str, Any]]) -> int | None:
    """The place of the fewest cycles a sample, of those that fit; of equal ones that of fewer bytes; None of none."""
    fitting = [row for row in rows if row["fits"]]
    best = min(fitting, key=lambda row: (row["cycles"], row["bytes"], row["at"]), default=None)
    return None if best is None else int(best["at"])


__all__ = ["fastest", "picture", "point", "refused"]
