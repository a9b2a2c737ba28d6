"""The largest things in a profile, what is live at its peak, and tips that follow from its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.arrays import IntArray
from workbench.base.categories import CATEGORY_WORDS
from workbench.base.units import bytes_text, cycles_text, percent_text, some_text
from workbench.profiler.advice.tips import (
    WORTH_CYCLES,
    gaps_tip,
    mapping_advice,
    memory_tips,
    tile_text,
    tips_of_causes,
)
from workbench.profiler.memory import live_bytes
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report, records

HIGHEST = 5
LARGEST = 10
BINS = 20
CODE_LABELS = ("vertex_code", "vertex_instance_state", "internal_exchange_code")


@report("insights")
@dataclass(frozen=True, kw_only=True, eq=False)
class Insights(Report):
    """Bytes on a tile at its own fullest step unless said otherwise."""

    kinds: ClassVar[tuple[str, ...]] = ("memory", "cycles")
    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> Insights:
        """The insights of a profile."""
        return cls(profile=profile)

    @cached_property
    def _needed(self) -> IntArray:
        arrays = self.profile.arrays
        return np.asarray(arrays["always_live"] + arrays["live_peak"], dtype=np.int64)

    @cached_property
    def highest_tiles(self) -> pd.DataFrame:
        """The five tiles that need most, the fullest among them: `ipu, tile, needed_bytes, total_with_gaps_bytes`.

        Needed is what is live at the tile's fullest step; bytes with gaps are missing where no address is known yet.
        """
        order = np.argsort(-self._needed, axis=None, kind="stable")[:HIGHEST]
        pairs = [divmod(int(place), self._needed.shape[1]) for place in order]
        peak = self.profile.peak
        if (peak.ipu, peak.tile) not in pairs:
            pairs[-1] = (peak.ipu, peak.tile)
        known = self.profile.arrays["total_with_gaps"]
        rows = [(ipu, tile, int(self._needed[ipu, tile]), int(known[ipu, tile])) for ipu, tile in pairs]
        frame = pd.DataFrame(rows, columns=["ipu", "tile", "needed_bytes", "total_with_gaps_bytes"])
        with_gaps = frame["total_with_gaps_bytes"].astype("Int64")
        frame["total_with_gaps_bytes"] = with_gaps.mask(with_gaps < 0)
        return frame.sort_values("needed_bytes", ascending=False, kind="stable").reset_index(drop=True)

    @cached_property
    def histogram(self) -> pd.DataFrame:
        """Tiles by the bytes they need: `from_bytes, to_bytes, tiles`, up to the tile's size or the most needed."""
        limit = max(int(self.profile.target["bytes_per_tile"]), int(self._needed.max()))
        counts, edges = np.histogram(self._needed, bins=BINS, range=(0, limit))
        return pd.DataFrame({"from_bytes": edges[:-1].astype(int), "to_bytes": edges[1:].astype(int), "tiles": counts})

    @cached_property
    def largest_code(self) -> pd.DataFrame:
        """Vertex code, vertex state and exchange code: `category, ipu, tile, bytes` of the tile that has most."""
        rows = []
        for name in CODE_LABELS:
            sizes = live_bytes.footprint(self.profile, name)
            place = int(sizes.argmax())
            rows.append((name, *divmod(place, sizes.shape[1]), int(sizes.flat[place])))
        return pd.DataFrame(rows, columns=["category", "ipu", "tile", "bytes"])

    @cached_property
    def largest_variables(self) -> pd.DataFrame:
        """The largest variables over all tiles: `name, layer, kind, bytes, tiles, used_by` (names of their steps)."""
        variables = self.profile.variables
        top = variables.sort_values("bytes", ascending=False, kind="stable").head(LARGEST)
        columns = ["id", "name", "layer", "kind", "bytes", "tiles"]
        frame = top[columns].reset_index(drop=True)
        return frame.assign(used_by=[self._used_by(int(variable)) for variable in frame["id"]])

    def _used_by(self, variable: int) -> str:
        accesses, steps = self.profile.tables["accesses"], self.profile.steps
        used = np.unique(accesses["step"][accesses["variable"] == variable])
        return some_text(steps["name"][steps["id"].isin(used)].tolist(), 3)

    @cached_property
    def at_peak(self) -> pd.DataFrame:
        """What is live on the fullest tile at its peak, those that come and go first, then by bytes."""
        peak = self.profile.peak
        return live_bytes.live_variables(self.profile, peak.step, peak.ipu, peak.tile)

    @cached_property
    def peak_categories(self) -> dict[str, int]:
        """Bytes by category on the fullest tile at its fullest step, the largest first."""
        peak = self.profile.peak
        position = int(self.profile.arrays["live_peak_position"][peak.ipu, peak.tile])
        found = live_bytes.by_category_at(self.profile, peak.ipu, position)
        sizes = {name: int(amount[peak.tile]) for name, amount in found.items()}
        return {name: size for name, size in sorted(sizes.items(), key=lambda item: -item[1]) if size}

    @cached_property
    def tips(self) -> list[str]:
        """What to look at, each with the number that says so."""
        return [text for text, _ in self.told]

    @cached_property
    def told(self) -> list[tuple[str, dict[str, int]]]:
        """The tips, each with what it is about: an IPU, tile, step and its position, or nothing in particular."""
        peak = self.profile.peak
        position = int(self.profile.arrays["live_peak_position"][peak.ipu, peak.tile])
        fullest = {"ipu": int(peak.ipu), "tile": int(peak.tile), "step": int(peak.step), "position": position}
        return [*((text, fullest) for text in self._memory_tips()), *self._cycle_tips()]

    def _memory_tips(self) -> Iterator[str]:
        yield from memory_tips(self.profile, self.peak_categories)
        needed = self._needed
        if needed.max() > 1.5 * needed.mean():
            sizes = f"the fullest tile needs {bytes_text(needed.max())}, the average one {bytes_text(needed.mean())}"
            advice = mapping_advice(self.profile)
            yield f"{sizes}: {advice}" if advice else sizes
        if self.profile.fragmentation >= 0.1:
            yield gaps_tip(self.profile)

    def _cycle_tips(self) -> Iterator[tuple[str, dict[str, int]]]:
        for cause, text in tips_of_causes(self.profile):
            yield text, self._dearest(cause)
        yield from self._balance_tips(max(1, self.profile.total_cycles * self.profile.ipus))

    def _dearest(self, cause: str) -> dict[str, int]:
        """The step of a cause that takes most; nothing where no step has it, as of waiting."""
        steps = self.profile.steps
        mine = steps[steps["cause"] == cause]
        if mine.empty:
            return {}
        sums = mine.groupby("id")["total_cycles"].sum()
        step = int(sums.index.to_numpy()[sums.to_numpy().argmax()])
        return {"ipu": int(mine["ipu"][mine["id"] == step].iloc[0]), "step": step}

    def _balance_tips(self, whole: int) -> Iterator[tuple[str, dict[str, int]]]:
        """The step that loses most over all its callers, named for them."""
        steps = self.profile.steps
        compute = steps[steps["cause"] == "compute"]
        lost = (compute["total_cycles"] * (1.0 - compute["tile_balance"])).groupby(compute["id"]).sum()
        if lost.empty or lost.max() < WORTH_CYCLES / 2 * whole:
            return
        mine = compute[compute["id"] == lost.idxmax()]
        balance = percent_text(mine["tile_balance"].iloc[0])
        told = (
            f"step {lost.idxmax():,} {some_text(mine['name'].unique().tolist(), 1)} waits for its slowest tile: "
            f"balance {balance}, {cycles_text(lost.max())} lost in all"
        )
        yield told, {"ipu": int(mine["ipu"].iloc[0]), "step": int(mine["id"].iloc[0])}

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: everything above."""
        return {
            "highest_tiles": records(self.highest_tiles.astype(object).where(self.highest_tiles.notna(), None)),
            "histogram": records(self.histogram),
            "largest_code": records(self.largest_code),
            "largest_variables": records(self.largest_variables),
            "peak_categories": self.peak_categories,
            "at_peak": records(self.at_peak),
            "tips": self.tips,
        }

    @property
    def sentence(self) -> str:
        """The largest category at the peak, and the first tip."""
        if not self.peak_categories:
            return "No memory is used"
        name, size = next(iter(self.peak_categories.items()))
        whole = bytes_text(sum(self.peak_categories.values()))
        return (
            f"At the modelled peak on {tile_text(self.profile)} the largest part is {CATEGORY_WORDS[name]}, "
            f"{bytes_text(size)} of {whole}{self._first(f'{bytes_text(size)} of {CATEGORY_WORDS[name]},')}"
        )

    def _first(self, said: str) -> str:
        """The first tip, to stand behind its place, which is named once, and how many bytes of what are `said`."""
        if not self.tips:
            return ""
        tip = self.tips[0].replace(f" on {tile_text(self.profile)} at the peak", "", 1)
        return f", {tip.removeprefix(said).strip()}" if tip.startswith(said) else f"; {tip}"

    @property
    def explained_by(self) -> str:
        """The fullest tile."""
        return f"tile={self.profile.peak.tile}, ipu={self.profile.peak.ipu}"

    def to_pandas(self) -> pd.DataFrame:
        """The largest variables."""
        return self.largest_variables.copy(deep=False)

    def to_text(self) -> str:
        """Highest tiles, what is at the peak, largest variables and tips."""
        lines = [self.sentence + ".", "Highest tiles, at their fullest step:"]
        lines += [
            f"  tile {row['tile']:,} of IPU {row['ipu']}  {bytes_text(row['needed_bytes'])}"
            for row in records(self.highest_tiles)
        ]
        lines.append("At the peak:")
        lines += [f"  {name.replace('_', ' '):<30} {bytes_text(size)}" for name, size in self.peak_categories.items()]
        lines.append("Largest variables:")
        lines += [
            f"  {bytes_text(row['bytes']):>10}  {row['name']} ({row['kind']}), used by {row['used_by'] or 'nothing'}"
            for row in records(self.largest_variables)
        ]
        return "\n".join([*lines, *(["Tips:"] if self.tips else []), *(f"  {tip}" for tip in self.tips), *self.errors])
