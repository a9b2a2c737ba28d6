"""Always-live under not-always-live bytes over the steps of one IPU: all its tiles together, or one of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.arrays import IntArray
from workbench.base.units import bytes_text
from workbench.profiler.memory import live_bytes
from workbench.profiler.places import ipu_of, position_of, tile_of, variable_of
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report, records
from workbench.profiler.timeline.positions import Positions, positions_of


@report("liveness_view")
@dataclass(frozen=True, kw_only=True, eq=False)
class LivenessView(Report):
    """Bytes at each position of the IPU's program; a position is a step at one place, calls expanded, loops once."""

    kinds: ClassVar[tuple[str, ...]] = ("memory",)
    profile: Profile
    ipu: int = 0
    tile: int | None = None

    def __post_init__(self) -> None:
        ipu_of(self.profile, self.ipu)
        if self.tile is not None:
            tile_of(self.profile, self.tile)

    @classmethod
    def from_profile(cls, profile: Profile, *, ipu: int | None = None, tile: int | None = None) -> LivenessView:
        """The report for one IPU (by default that of the fullest tile), over all tiles or for one."""
        return cls(profile=profile, ipu=profile.peak.ipu if ipu is None else ipu, tile=tile)

    def of(self, *, ipu: int | None = None, tile: int | None = None) -> LivenessView:
        """The same report for another IPU or one tile."""
        return LivenessView(profile=self.profile, ipu=self.ipu if ipu is None else ipu, tile=tile)

    @cached_property
    def steps(self) -> IntArray:
        """Step ids: int64[positions]."""
        return live_bytes.positions(self.profile, self.ipu)

    @cached_property
    def there(self) -> Positions:
        """Name, layer and direction of the step at each position; of a shared body those that it is called for."""
        return positions_of(self.profile, self.ipu, self.steps)

    @property
    def step_names(self) -> list[str]:
        """The name of the step at each position."""
        found: list[str] = self.there.name.tolist()
        return found

    @cached_property
    def always_live_bytes(self) -> int:
        """Bytes live throughout, of the tile or of all tiles."""
        always = self.profile.arrays["always_live"][self.ipu]
        return int(always.sum() if self.tile is None else always[self.tile])

    @cached_property
    def live_bytes(self) -> IntArray:
        """Bytes live and not always live: int64[positions]."""
        if self.tile is not None:
            return live_bytes.live_of_tile(self.profile, self.ipu, self.tile)
        return self._raw("live_bytes")

    @cached_property
    def worst_tile(self) -> IntArray:
        """The fullest tile at each position: int64[positions]."""
        return self._raw("worst_tile")

    @cached_property
    def worst_tile_bytes(self) -> IntArray:
        """Bytes on the fullest tile at each position, always-live ones included: int64[positions]."""
        return self._raw("worst_tile_bytes")

    def _raw(self, name: str) -> IntArray:
        table = self.profile.tables["liveness"]
        chosen = table["ipu"] == self.ipu
        found = np.zeros(int(chosen.sum()), dtype=np.int64)
        found[table["position"][chosen]] = table[name][chosen]
        return found

    @cached_property
    def over_ipus(self) -> pd.DataFrame:
        """A row per IPU: `ipu, positions, always_live_bytes`, where most is live on all its tiles together
        (`peak_position, peak_step, peak_name, peak_bytes`) and on one (`fullest_position, fullest_tile,
        fullest_tile_bytes`), always-live bytes included; -1 and "" where nothing runs."""
        return pd.DataFrame([self.of(ipu=ipu)._highest() for ipu in range(self.profile.ipus)])

    def _highest(self) -> dict[str, Any]:
        runs = len(self.steps) > 0
        peak, full = self.peak_position, int(self.worst_tile_bytes.argmax()) if runs else 0
        held = self.profile.arrays["always_live"][self.ipu]
        return {
            "ipu": self.ipu,
            "positions": len(self.steps),
            "always_live_bytes": self.always_live_bytes,
            "peak_position": peak if runs else -1,
            "peak_step": int(self.steps[peak]) if runs else -1,
            "peak_name": self.step_names[peak] if runs else "",
            "peak_bytes": self.always_live_bytes + int(self.live_bytes.max(initial=0)),
            "fullest_position": full if runs else -1,
            "fullest_tile": int(self.worst_tile[full] if runs else held.argmax()),
            "fullest_tile_bytes": int(self.worst_tile_bytes[full] if runs else held.max()),
        }

    @property
    def peak_position(self) -> int:
        """The first position with most live bytes."""
        return int(self.live_bytes.argmax()) if len(self.live_bytes) else 0

    def at(self, position: int) -> pd.DataFrame:
        """Variables live at a position, those that come and go first, then by bytes (on the tile, if one is chosen)."""
        position_of(len(self.steps), position)
        variables = self.profile.tables["variables"]
        owner, first, last = live_bytes.intervals(self.profile, self.ipu)
        live = variables["always_live"] & (variables["ipu"] == self.ipu)
        live[owner[(first <= position) & (position <= last)]] = True
        ids = np.flatnonzero(live)
        size = variables["bytes"][ids]
        if self.tile is not None:
            size = self.profile.arrays["per_tile"][variables["bytes_index"][ids], self.tile]
        columns = ("name", "layer", "kind", "dtype", "shape", "always_live")
        frame = pd.DataFrame({"id": ids, **{name: variables[name][ids] for name in columns}, "bytes": size})
        frame = frame[frame["bytes"] > 0].sort_values(["always_live", "bytes", "id"], ascending=[True, False, True])
        return frame.reset_index(drop=True)

    def lifetime(self, variable: int) -> list[tuple[int, int]]:
        """First and last positions of a variable's lives; the whole program when it is always live."""
        variables = self.profile.tables["variables"]
        variable_of(self.profile, variable)
        if variables["always_live"][variable]:
            return [(0, len(self.steps) - 1)]
        table = self.profile.tables["intervals"]
        chosen = table["variable"] == variable
        return list(zip(table["first"][chosen].tolist(), table["last"][chosen].tolist(), strict=True))

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: the scope, always-live bytes, and the peak."""
        place = self.peak_position
        return {
            "ipu": self.ipu,
            "tile": self.tile,
            "positions": len(self.steps),
            "always_live_bytes": self.always_live_bytes,
            "peak_position": place,
            "peak_step": int(self.steps[place]) if len(self.steps) else -1,
            "peak_step_name": self.step_names[place] if len(self.steps) else "",
            "peak_live_bytes": int(self.live_bytes.max(initial=0)),
        }

    @property
    def sentence(self) -> str:
        """Always-live bytes, the peak and where it is."""
        data = self.data
        where = f"IPU {self.ipu}" if self.tile is None else f"tile {self.tile:,} of IPU {self.ipu}"
        return (
            f"Modelled liveness of {where}: {bytes_text(data['always_live_bytes'])} always live, and at most "
            f"{bytes_text(data['peak_live_bytes'])} more, at step {data['peak_step']:,} ({data['peak_step_name']})"
        )

    @property
    def explained_by(self) -> str:
        """A tile at the step where most is live."""
        if not len(self.steps):
            return ""
        tile = self.tile if self.tile is not None else int(self.worst_tile[self.peak_position])
        return f"tile={tile}, step={self.data['peak_step']}"

    def to_pandas(self) -> pd.DataFrame:
        """A row per position: `position, step, name, always_live_bytes, live_bytes, worst_tile, worst_tile_bytes`."""
        return pd.DataFrame(
            {
                "position": np.arange(len(self.steps)),
                "step": self.steps,
                "name": self.step_names,
                "always_live_bytes": self.always_live_bytes,
                "live_bytes": self.live_bytes,
                "worst_tile": self.worst_tile,
                "worst_tile_bytes": self.worst_tile_bytes,
            }
        )

    def to_text(self) -> str:
        """The sentence and what is live at the peak."""
        if not len(self.steps):
            return self.sentence
        lines = [
            f"  {bytes_text(row['bytes']):>10}  {row['name']} ({row['kind']})"
            for row in records(self.at(self.peak_position).head(10))
        ]
        return "\n".join([self.sentence, "Live there:", *lines, *self.errors])
