"""All IPUs of a program side by side: how full each one's fullest tile is, and how long it waits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.arrays import IntArray
from workbench.base.units import percent_text, plural, some_text
from workbench.profiler.fidelity import TypicalError, as_much
from workbench.profiler.profile import Profile, replicas_text
from workbench.profiler.registry import report
from workbench.profiler.report import Report


@report("chips")
@dataclass(frozen=True, kw_only=True, eq=False)
class Chips(Report):
    """A row per IPU of one replica. A tile is as full as the verdict has it, gaps included; the cycles in which an IPU
    is busy and in which it waits sum to the call's."""

    kinds: ClassVar[tuple[str, ...]] = ("memory", "cycles")
    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> Chips:
        """The IPUs of a profile."""
        return cls(profile=profile)

    @property
    def capacity_bytes(self) -> int:
        """Bytes of a tile."""
        return int(self.profile.target["bytes_per_tile"])

    @cached_property
    def rows(self) -> pd.DataFrame:
        """`ipu, fullest_tile, tile_bytes` (of that tile, with gaps)`, bytes` (over its tiles, each at its own fullest
        step and without gaps)`, stages, busy_cycles, waiting_cycles`."""
        arrays, spent = self.profile.arrays, self.profile.tables["cycle_breakdown"]
        needed = arrays["always_live"] + arrays["live_peak"]
        tiles, sizes = self._fullest(needed)
        waits = np.array([str(cause).startswith("idle_") for cause in spent["cause"]], bool)
        by_ipu = [
            np.bincount(spent["ipu"][chosen], spent["cycles"][chosen], self.profile.ipus).astype(np.int64)
            for chosen in (~waits, waits)
        ]
        stages = self.profile.tables["stages"]
        on: list[list[str]] = [[] for _ in range(self.profile.ipus)]
        for stage, ipu in zip(stages["stage"].tolist(), stages["ipu"].tolist(), strict=True):
            on[ipu].append(str(stage))
        return pd.DataFrame(
            {
                "ipu": np.arange(self.profile.ipus),
                "fullest_tile": tiles,
                "tile_bytes": sizes,
                "bytes": needed.sum(axis=1),
                "stages": [", ".join(each) for each in on],
                "busy_cycles": by_ipu[0],
                "waiting_cycles": by_ipu[1],
            }
        )

    def _fullest(self, needed: IntArray) -> tuple[IntArray, IntArray]:
        """The fullest tile of every IPU and its bytes, gaps included: int64[ipus] each.

        Without gaps where addresses are not known, which is of tiles that cannot be the fullest of all.
        """
        placed, peak = self.profile.arrays["total_with_gaps"], self.profile.peak
        held = np.where(placed < 0, needed, placed)
        tiles = held.argmax(axis=1)
        if held[peak.ipu, peak.tile] == held[peak.ipu].max():  # of several that are as full, the verdict's
            tiles[peak.ipu] = peak.tile
        return tiles, held.max(axis=1)

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: the columns by name, and what they are held against."""
        columns = {str(name): self.rows[name].tolist() for name in self.rows.columns}
        return {"capacity_bytes": self.capacity_bytes, "total_cycles": self.profile.total_cycles, **columns}

    @property
    def sentence(self) -> str:
        """The fullest IPU, and the one that waits longest."""
        rows, total = self.rows, max(1, self.profile.total_cycles)
        full, near = _most(rows["tile_bytes"].tolist(), self.known_error("memory"))
        idle, as_idle = _most(rows["waiting_cycles"].tolist(), self.known_error("cycles"))
        memory = percent_text(rows["tile_bytes"][full] / self.capacity_bytes)
        waiting = percent_text(rows["waiting_cycles"][idle] / total)
        each = replicas_text(self.profile.meta)
        if len(rows) == 1:
            return f"One IPU{each}, modelled: its fullest tile is {memory} full; it waits for {waiting} of the call"
        return (
            f"{len(rows)} IPUs{each}, modelled: IPU {full} is fullest{near}, its fullest tile {memory} full; "
            f"IPU {idle} waits longest{as_idle}, for {waiting} of the call"
        )

    @property
    def explained_by(self) -> str:
        """The fullest tile."""
        return f"tile={self.profile.peak.tile}, ipu={self.profile.peak.ipu}"

    def to_pandas(self) -> pd.DataFrame:
        """The rows."""
        return self.rows.copy(deep=False)


def _most(amounts: list[int], known: TypicalError | None) -> tuple[int, str]:
    """The first IPU with the largest amount, and in words which others have as much or are below by less than such
    numbers usually are off."""
    first = amounts.index(max(amounts))
    others = [str(ipu) for ipu in as_much(known, amounts) if ipu != first] if max(amounts) else []
    return first, f" ({plural(len(others), 'IPU')} {some_text(others, 4)} within the typical error)" if others else ""
