"""Cycles and peak bytes per line of the user's code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from workbench.base.units import bytes_text, cycles_text, percent_text
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report, records


@report("source")
@dataclass(frozen=True, kw_only=True, eq=False)
class Source(Report):
    """A line's cycles are those of its steps on every IPU they occupy; with waiting and what has no line they sum to
    IPUs x total cycles."""

    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> Source:
        """The lines of a profile."""
        return cls(profile=profile)

    @cached_property
    def lines(self) -> pd.DataFrame:
        """`source` ("model.py:12")`, cycles, fraction, peak_bytes` (the fullest tile at any of its steps)`, steps`
        (ids); the dearest first. Of a body that several lines share each has the cycles of its own runs."""
        steps = self.profile.steps
        ends = np.where(steps["to_ipu"] < 0, 1, 1 + (steps["to_ipu"] != steps["ipu"]))
        frame = pd.DataFrame({"source": steps["source"], "cycles": steps["total_cycles"] * ends, "step": steps["id"]})
        fullest = self.profile.liveness.groupby("step")["worst_tile_bytes"].max()
        frame["peak_bytes"] = frame["step"].map(fullest).fillna(0).astype("int64")
        groups = frame[frame["source"] != ""].groupby("source", sort=False)
        found = groups.agg(cycles=("cycles", "sum"), peak_bytes=("peak_bytes", "max"), steps=("step", _each))
        found = found.reset_index().sort_values("cycles", ascending=False, kind="stable").reset_index(drop=True)
        found.insert(2, "fraction", found["cycles"] / max(1, self.total_cycles))
        return found

    @property
    def total_cycles(self) -> int:
        """IPUs x cycles of one call."""
        return self.profile.ipus * self.profile.total_cycles

    @property
    def unattributed_cycles(self) -> int:
        """Cycles of no line: waiting, synchronisation, and steps without a source."""
        return self.total_cycles - int(self.lines["cycles"].sum())

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: lines, total and unattributed cycles."""
        return {
            "lines": records(self.lines),
            "total_cycles": self.total_cycles,
            "unattributed_cycles": self.unattributed_cycles,
        }

    @property
    def sentence(self) -> str:
        """The dearest line."""
        if self.lines.empty:
            return "No step names a line of code"
        first = self.lines.iloc[0]
        return (
            f"{len(self.lines)} lines; {first['source']} takes {cycles_text(int(first['cycles']))} "
            f"({percent_text(first['fraction'])}) with at most {bytes_text(int(first['peak_bytes']))} on a tile; "
            f"{percent_text(self.unattributed_cycles / max(1, self.total_cycles))} belong to no line"
        )

    def to_pandas(self) -> pd.DataFrame:
        """The lines."""
        return self.lines.copy(deep=False)


def _each(steps: pd.Series) -> list[int]:
    return list(dict.fromkeys(steps.tolist()))
