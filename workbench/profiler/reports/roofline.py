"""Operators as points: FLOP per exchanged byte against the achieved rate, under the ceilings of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.units import count_text, percent_text, things_text
from workbench.profiler.operators.rates import peaks
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report, records


@report("roofline")
@dataclass(frozen=True, kw_only=True, eq=False)
class Roofline(Report):
    """Rates are FLOP/s of one IPU. Bytes are those received over the exchange, with a part of a shared body's."""

    kinds: ClassVar[tuple[str, ...]] = ("product", "compute", "exchange")
    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> Roofline:
        """The roofline of a profile."""
        return cls(profile=profile)

    @cached_property
    def ceilings(self) -> dict[str, float]:
        """`compute` in FLOP/s; `exchange` and `host` in bytes/s: at an intensity x the ceiling is bytes/s x x.

        Compute: products of float16 with half partials; `peaks` has that of each type that is used.

        Exchange: tiles x bytes per cycle and tile x clock.
        """
        target = self.profile.target
        exchange = target["tiles_per_ipu"] * target["exchange_bytes_per_cycle"] * target["clock_hz"]
        return {
            "compute": float(target["peak_flops_per_second"]),
            "exchange": float(exchange),
            "host": float(target["host_bytes_per_second"]),
        }

    @cached_property
    def peaks(self) -> dict[str, float]:
        """FLOP/s of products in each type that operators use, modelled as the target's; of float16 where none does.

        A float32 unit does one multiply-accumulate a cycle, a float16 unit four, a float8 unit, if there is one, eight.
        """
        used = set(self.points["type"]) or {"float16"}
        return {name: peak for name, peak in peaks(self.profile.target).items() if name in used}

    @cached_property
    def points(self) -> pd.DataFrame:
        """`name, layer, direction, flops, exchanged_bytes, intensity` (FLOP/byte; inf without exchange)`, rate,
        ceiling, bound` ("compute" or "exchange")`, type` (whose peak the ceiling is, as in `profile.operators`); those
        without flops or cycles, and of integers alone, are left out."""
        known = self.profile.steps_by_caller
        received = self.profile.tables["steps"]["bytes_received"][known.row] * known.times
        frame = self.profile.operators[["name", "layer", "direction", "flops", "cycles", "type"]]
        frame = frame[(frame["flops"] > 0) & (frame["cycles"] > 0) & (frame["type"] != "")].reset_index(drop=True)
        moved = frame["name"].map(lambda name: int(received[known.of_operator(name)].sum())).astype("int64")
        intensity = frame["flops"] / moved.where(moved > 0)
        intensity = intensity.fillna(float("inf"))
        rate = frame["flops"] / frame["cycles"] * float(self.profile.target["clock_hz"])
        peak = frame["type"].map(peaks(self.profile.target)).astype("float64")
        limit = (intensity * self.ceilings["exchange"]).clip(upper=peak)
        bound = np.where(limit < peak, "exchange", "compute").tolist()
        return frame.drop(columns=["cycles", "type"]).assign(
            exchanged_bytes=moved, intensity=intensity, rate=rate, ceiling=limit, bound=bound, type=frame["type"]
        )

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: ceilings and points; an intensity without bound is None."""
        points = [
            {**row, "intensity": None if row["intensity"] == float("inf") else row["intensity"]}
            for row in records(self.points)
        ]
        return {"ceilings": self.ceilings, "peaks": self.peaks, "points": points}

    @property
    def sentence(self) -> str:
        """Under which ceiling operators are, and the best rate; a ceiling binds only who comes near it."""
        points = self.points
        if points.empty:
            return "No operator with floating-point work"
        best = points.iloc[int(points["rate"].to_numpy().argmax())]
        held = int((points["bound"] == "exchange").sum())
        part = percent_text(best["rate"] / self.peaks[best["type"]])
        return (
            f"{things_text(len(points), 'operator')}: the ceiling is that of exchange for {held}, of compute for "
            f"{len(points) - held}; {best['name']} is fastest at {count_text(best['rate'])} FLOP/s (modelled), {part} "
            f"of the {best['type']} peak"
        )

    @property
    def explained_by(self) -> str:
        """The fastest operator."""
        if self.points.empty:
            return ""
        return f"operator={self.points.iloc[int(self.points['rate'].to_numpy().argmax())]['name']!r}"

    def to_pandas(self) -> pd.DataFrame:
        """The points."""
        return self.points.copy(deep=False)
