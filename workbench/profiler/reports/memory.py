"""Bytes over tiles by category, liveness or region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd

from workbench.base.arrays import IntArray
from workbench.base.categories import CATEGORY_WORDS
from workbench.base.spans import covered
from workbench.base.units import bytes_text
from workbench.errors import InputError
from workbench.profiler.memory import live_bytes as bytes_of
from workbench.profiler.memory.addresses import bytes_by_category
from workbench.profiler.places import ipu_of
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report

Measure: TypeAlias = Literal["peak", "allocated"]
REGIONS = ("non_interleaved", "interleaved", "beyond the tile")  # of a tile's memory, from address 0 on


@report("memory")
@dataclass(frozen=True, kw_only=True, eq=False)
class Memory(Report):
    """Bytes of every tile of one IPU.

    `measure` "peak": what is live at the tile's own fullest step, which sums to always-live plus not-always-live
    bytes; exact, and no address has to be worked out. "allocated": all allocated addresses, each once, which sums to
    `total_bytes` of `.tiles`.
    """

    kinds: ClassVar[tuple[str, ...]] = ("memory",)
    profile: Profile
    ipu: int = 0
    measure: Measure = "peak"

    def __post_init__(self) -> None:
        ipu_of(self.profile, self.ipu)

    @classmethod
    def from_profile(cls, profile: Profile, *, ipu: int | None = None, measure: Measure = "peak") -> Memory:
        """The report for one IPU, by default that of the fullest tile."""
        return cls(profile=profile, ipu=profile.peak.ipu if ipu is None else ipu, measure=measure)

    def of(self, *, ipu: int | None = None, measure: Measure | None = None) -> Memory:
        """The same report for another IPU or measure."""
        return replace(self, ipu=self.ipu if ipu is None else ipu, measure=measure or self.measure)

    @cached_property
    def by_category(self) -> dict[str, IntArray]:
        """int64[tiles] per category that has bytes, in the order of `.memory_categories`."""
        if self.measure == "allocated":
            chosen = self.profile.tiles.query("ipu == @self.ipu")
            columns = {name: chosen[name].to_numpy() for name in self.profile.memory_categories}
            return {name: np.asarray(values) for name, values in columns.items() if values.any()}
        return self._at_own_peaks()

    def _at_own_peaks(self) -> dict[str, IntArray]:
        peaks = self.profile.arrays["live_peak_position"][self.ipu]
        return bytes_of.by_category(self.profile, self.ipu, peaks)

    @cached_property
    def by_liveness(self) -> dict[str, IntArray]:
        """int64[tiles] of always-live and of the most not-always-live bytes."""
        arrays = self.profile.arrays
        return {
            "always_live_bytes": arrays["always_live"][self.ipu],
            "not_always_live_bytes": arrays["live_peak"][self.ipu],
        }

    @cached_property
    def with_gaps(self) -> dict[str, IntArray]:
        """int64[tiles] per category as allocated, each address once, and `gaps` between addresses: together
        `total_with_gaps_bytes` of `.tiles`."""
        *sums, whole = self.profile.addresses.sums(self.ipu)
        found = dict(zip(self.profile.memory_categories, sums, strict=True))
        return {name: amount for name, amount in {**found, "gaps": whole - sum(sums)}.items() if amount.any()}

    @cached_property
    def by_region(self) -> dict[str, IntArray]:
        """int64[tiles] of allocated bytes per region of a tile's memory; tiles that hold the same are asked once."""
        alike = self.profile.arrays["allocated_as"][self.ipu]
        known = {first: self.tile(first)["by_region"] for first in np.unique(alike).tolist()}
        found = {name: np.array([known[first].get(name, 0) for first in alike.tolist()]) for name in REGIONS}
        return {name: amount for name, amount in found.items() if amount.any()}

    @cached_property
    def total(self) -> IntArray:
        """int64[tiles]: the sum of the categories."""
        return np.asarray(np.sum(list(self.by_category.values()), axis=0), dtype=np.int64)

    def variables(self, names: Sequence[str]) -> dict[str, IntArray]:
        """int64[tiles] of chosen variables of this IPU by name."""
        table = self.profile.tables["variables"]
        found: dict[str, IntArray] = {}
        for name in names:
            rows = np.flatnonzero((table["name"] == name) & (table["ipu"] == self.ipu))
            if not len(rows):
                raise InputError(f"no variable {name!r} on IPU {self.ipu}", expected="a name of profile.variables")
            found[name] = self.profile.arrays["per_tile"][table["bytes_index"][rows]].sum(axis=0)
        return found

    def tile(self, tile: int) -> dict[str, Any]:
        """Details of one tile as allocated: bytes by category and by region, gaps (addresses below the last one in use
        that nothing ever uses), and its largest blocks."""
        rows, with_gaps = self.profile.addresses.tile(self.ipu, tile)
        by_category = {name: size for name, size in bytes_by_category(rows).items() if size}
        order = np.argsort(-rows["bytes"], kind="stable")[:10]
        columns = ("label", "category", "address", "bytes")
        return {
            "ipu": self.ipu,
            "tile": tile,
            "by_category": by_category,
            "by_region": self._by_region(rows["address"], rows["bytes"]),
            "total_bytes": sum(by_category.values()),
            "total_with_gaps_bytes": with_gaps,
            "gap_bytes": with_gaps - sum(by_category.values()),
            "largest": [{name: _plain(rows[name][row]) for name in columns} for row in order],
        }

    def _by_region(self, address: IntArray, size: IntArray) -> dict[str, int]:
        order = address.argsort(kind="stable")
        start, stop = address[order], (address + size)[order]
        target = self.profile.target
        first, end = int(target["non_interleaved_bytes"]), int(target["bytes_per_tile"])
        found = {}
        edges = (0, first, end, max(end, int(stop.max(initial=0))))
        for name, low, high in zip(REGIONS, edges, edges[1:], strict=False):
            found[name] = covered(np.clip(start, low, high), np.clip(stop, low, high))
        return {name: amount for name, amount in found.items() if amount}

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: bytes by category over all tiles, and the fullest tile."""
        return {
            "ipu": self.ipu,
            "measure": self.measure,
            "bytes_per_tile": int(self.profile.target["bytes_per_tile"]),
            "by_category": {name: int(amount.sum()) for name, amount in self.by_category.items()},
            "total_bytes": int(self.total.sum()),
            "fullest_tile": int(self.total.argmax()),
            "fullest_tile_bytes": int(self.total.max()),
        }

    @property
    def sentence(self) -> str:
        """The fullest tile, the average, and the two largest categories."""
        data = self.data
        largest = sorted(data["by_category"].items(), key=lambda item: -item[1])[:2]
        parts = " and ".join(f"{CATEGORY_WORDS[name]} {bytes_text(size)}" for name, size in largest)
        most = "the largest parts are" if len(largest) > 1 else "the largest part is"
        what = "at each tile's fullest step" if self.measure == "peak" else "allocated"
        return (
            f"Modelled memory of IPU {self.ipu} {what}: tile {data['fullest_tile']:,} is fullest with "
            f"{bytes_text(data['fullest_tile_bytes'])}{self._besides()} of {bytes_text(data['bytes_per_tile'])}, "
            f"the average is {bytes_text(data['total_bytes'] / len(self.total))}; of "
            f"{bytes_text(data['total_bytes'])} in all {most} {parts}{self._by_verdict}"
        )

    @property
    def _by_verdict(self) -> str:
        """The tile that the verdict names where gaps or other steps make it the fuller one."""
        peak = self.profile.peak
        same = self.ipu != peak.ipu or self.data["fullest_tile"] == peak.tile
        return "" if same else f"; with gaps tile {peak.tile:,} is fullest, {bytes_text(peak.bytes)}"

    def _besides(self) -> str:
        """What the verdict counts besides on the fullest tile, where its addresses are known: those that hold data at
        other steps alone, and gaps, which never do."""
        tile = self.data["fullest_tile"]
        if self.profile.arrays["total_with_gaps"][self.ipu, tile] < 0:
            return ""
        found = self.tile(tile)
        other = found["total_bytes"] - self.data["fullest_tile_bytes"]
        parts = [f"{bytes_text(other)} that hold data at other steps"] if other > 0 else []
        parts += [f"{bytes_text(found['gap_bytes'])} of gaps"] if found["gap_bytes"] > 0 else []
        return f", {parts[0]} and {parts[1]}," if len(parts) > 1 else "".join(f" and {part}," for part in parts)

    @property
    def explained_by(self) -> str:
        """The fullest tile."""
        return f"tile={self.data['fullest_tile']}, ipu={self.ipu}"

    def to_pandas(self) -> pd.DataFrame:
        """A row per tile: `ipu, tile`, a byte column per category, `total_bytes`."""
        tiles = np.arange(len(self.total))
        return pd.DataFrame({"ipu": self.ipu, "tile": tiles, **self.by_category, "total_bytes": self.total})

    def to_text(self) -> str:
        """The sentence and the categories over all tiles."""
        lines = [
            f"  {name.replace('_', ' '):<30} {bytes_text(amount.sum()):>12}  "
            f"at most {bytes_text(amount.max())} on tile {int(amount.argmax()):,}"
            for name, amount in self.by_category.items()
        ]
        return "\n".join([self.sentence, *lines, *self.errors])


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
