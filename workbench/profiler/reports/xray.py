"""Address by program step of one tile: a rectangle for every life of every variable, regions, gaps and capacity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.arrays import IntArray
from workbench.base.units import bytes_text
from workbench.profiler.fidelity import within_error
from workbench.profiler.memory import live_bytes
from workbench.profiler.memory.addresses import bytes_by_category
from workbench.profiler.places import ipu_of, position_of, tile_of
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report


@report("xray")
@dataclass(frozen=True, kw_only=True, eq=False)
class Xray(Report):
    """The picture that explains an out-of-memory. At every position the live rectangles' bytes sum to what is live."""

    kinds: ClassVar[tuple[str, ...]] = ("memory",)
    profile: Profile
    ipu: int
    tile: int

    def __post_init__(self) -> None:
        ipu_of(self.profile, self.ipu)
        tile_of(self.profile, self.tile)

    @classmethod
    def from_profile(cls, profile: Profile, *, ipu: int | None = None, tile: int | None = None) -> Xray:
        """The picture of one tile, by default the fullest."""
        return cls(
            profile=profile,
            ipu=profile.peak.ipu if ipu is None else ipu,
            tile=profile.peak.tile if tile is None else tile,
        )

    def of(self, ipu: int, tile: int) -> Xray:
        """The same picture of another tile; its addresses are worked out if need be."""
        return Xray(profile=self.profile, ipu=ipu, tile=tile)

    @cached_property
    def positions(self) -> int:
        """The number of positions of the IPU's program."""
        return len(live_bytes.positions(self.profile, self.ipu))

    @cached_property
    def rectangles(self) -> pd.DataFrame:
        """A row per life: `variable` (-1 for code), `label, category, address, bytes, first, last, always_live`.

        It covers addresses [address, address + bytes) at positions first to last, both included.
        """
        rows = self.profile.addresses.tile(self.ipu, self.tile).rows
        owner, first, last = live_bytes.intervals(self.profile, self.ipu)
        variables = rows["variable"]
        always = variables < 0
        always[~always] = self.profile.tables["variables"]["always_live"][variables[~always]]
        order = np.argsort(owner, kind="stable")
        begin = np.searchsorted(owner[order], variables, side="left")
        end = np.searchsorted(owner[order], variables, side="right")
        lives = np.where(always, 1, end - begin)
        row = np.repeat(np.arange(len(variables)), lives)
        within = np.arange(len(row)) - np.repeat(np.cumsum(lives) - lives, lives)
        pick = order[np.minimum(begin[row] + within, max(0, len(order) - 1))] if len(order) else np.zeros_like(row)
        spans = self._spans(always[row], pick, first, last)
        columns = {name: rows[name][row] for name in ("variable", "label", "category", "address", "bytes")}
        return pd.DataFrame({**columns, "first": spans[0], "last": spans[1], "always_live": always[row]})

    def _spans(self, always: Any, pick: IntArray, first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
        if not len(first):
            return np.zeros(len(always), dtype=np.int64), np.full(len(always), self.positions - 1)
        return np.where(always, 0, first[pick]), np.where(always, self.positions - 1, last[pick])

    @cached_property
    def regions(self) -> list[dict[str, Any]]:
        """The regions of the tile: name, first address, address after the last."""
        target = self.profile.target
        middle, end = int(target["non_interleaved_bytes"]), int(target["bytes_per_tile"])
        return [
            {"name": "non-interleaved", "from": 0, "to": middle},
            {"name": "interleaved", "from": middle, "to": end},
        ]

    @property
    def capacity_bytes(self) -> int:
        """The address at which the tile ends."""
        return int(self.profile.target["bytes_per_tile"])

    @cached_property
    def gaps(self) -> list[tuple[int, int]]:
        """Address spans [from, to) below the last used one of their region that nothing ever uses.

        They sum to the bytes with gaps less the bytes. What lies across the border of the regions, or beyond the tile,
        makes all addresses one region.
        """
        frame = self.rectangles
        start = frame["address"].to_numpy()
        end = start + frame["bytes"].to_numpy()
        border, last = int(self.regions[0]["to"]), int(end.max(initial=0))
        is_one = last > self.capacity_bytes or bool(((start < border) & (end > border)).any())
        found: list[tuple[int, int]] = []
        for region in [{"from": 0, "to": last}] if is_one else self.regions:
            inside = (start < region["to"]) & (end > region["from"])
            order = np.argsort(start[inside], kind="stable")
            reach = int(region["from"])
            for low, high in zip(start[inside][order].tolist(), end[inside][order].tolist(), strict=True):
                if low > reach:
                    found.append((reach, low))
                reach = max(reach, high)
        return found

    def bytes_at(self, position: int) -> int:
        """Bytes of the rectangles that cover a position."""
        frame = self.rectangles
        position_of(self.positions, position)
        live = (frame["first"] <= position) & (position <= frame["last"])
        return int(frame["bytes"][live].sum())

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: the tile, its capacity, regions, gaps and counts."""
        rows, with_gaps = self.profile.addresses.tile(self.ipu, self.tile)
        return {
            "ipu": self.ipu,
            "tile": self.tile,
            "positions": self.positions,
            "capacity_bytes": self.capacity_bytes,
            "total_with_gaps_bytes": with_gaps,
            "total_bytes": sum(bytes_by_category(rows).values()),
            "rectangles": len(self.rectangles),
            "regions": self.regions,
            "gaps": self.gaps,
        }

    @property
    def sentence(self) -> str:
        """What the tile uses of its capacity, and how many variables share it."""
        data = self.data
        over = data["total_with_gaps_bytes"] - self.capacity_bytes
        text = f"{bytes_text(over)} over" if over > 0 else f"{bytes_text(-over)} free"
        doubt = within_error(self.known_error("memory"), data["total_with_gaps_bytes"], self.capacity_bytes)
        gap = data["total_with_gaps_bytes"] - data["total_bytes"]
        lives = f"{data['rectangles']:,} {'life' if data['rectangles'] == 1 else 'lives'}"
        return (
            f"Modelled addresses of tile {self.tile:,} of IPU {self.ipu}: {lives} at "
            f"{bytes_text(data['total_with_gaps_bytes'])} of addresses, {bytes_text(gap)} of them gaps, "
            f"{text} of {bytes_text(self.capacity_bytes)}{f', {doubt}' if doubt else ''}"
        )

    @property
    def explained_by(self) -> str:
        """The tile."""
        return f"tile={self.tile}, ipu={self.ipu}"

    def to_pandas(self) -> pd.DataFrame:
        """The rectangles."""
        return self.rectangles.copy(deep=False)
