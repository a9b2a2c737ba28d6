"""The program step by step, as the chip runs it: what lies on each tile then, who computes, and what is exchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.arrays import IntArray
from workbench.base.causes import CAUSE_WORDS
from workbench.base.text import short
from workbench.base.units import bytes_text, cycles_text, things_text
from workbench.errors import InputError
from workbench.profiler.memory import live_bytes
from workbench.profiler.places import ipu_of, position_of
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report
from workbench.profiler.timeline.positions import Positions, positions_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """Of each tile of an IPU in one step, int64[tiles]: the bytes that live there, always-live ones included, the
    cycles it computes, the bytes it sends and receives. `cycles` are the whole step's, with its sync."""

    step: int
    cycles: int
    live_bytes: IntArray
    compute_cycles: IntArray
    sent_bytes: IntArray
    received_bytes: IntArray


@report("playback")
@dataclass(frozen=True, kw_only=True, eq=False)
class Playback(Report):
    """The frames of an IPU's program: a position is a step at one place, calls expanded, loops once.

    Summed over the tiles a frame is the liveness curve's bytes, and the bytes sent and received of its step.
    """

    kinds: ClassVar[tuple[str, ...]] = ("compute", "exchange", "memory")
    profile: Profile
    ipu: int
    position: int

    def __post_init__(self) -> None:
        ipu_of(self.profile, self.ipu)
        if self.position or len(self.steps):
            position_of(len(self.steps), self.position)

    @classmethod
    def from_profile(cls, profile: Profile, *, ipu: int | None = None, position: int | None = None) -> Playback:
        """The playback of an IPU (by default that of the fullest tile) at a position, by default where most is live on
        its fullest tile: on the peak's IPU that is the peak of the other reports."""
        place = ipu_of(profile, profile.peak.ipu if ipu is None else ipu)
        if position is None:
            arrays = profile.arrays
            highest = int((arrays["always_live"][place] + arrays["live_peak"][place]).argmax())
            tile = profile.peak.tile if place == profile.peak.ipu else highest
            position = int(arrays["live_peak_position"][place, tile])
        return cls(profile=profile, ipu=place, position=position)

    def of(self, *, ipu: int | None = None, position: int | None = None) -> Playback:
        """The same playback of another IPU, or at another position, by default where its fullest tile is."""
        return Playback.from_profile(self.profile, ipu=self.ipu if ipu is None else ipu, position=position)

    @cached_property
    def steps(self) -> IntArray:
        """Step ids: int64[positions]."""
        return live_bytes.positions(self.profile, self.ipu)

    @cached_property
    def there(self) -> Positions:
        """Name, layer and direction of the step at each position; of a shared body those that it is called for."""
        return positions_of(self.profile, self.ipu, self.steps)

    @cached_property
    def step_rows(self) -> IntArray:
        """The row of each position's step in the table of steps: int64[positions]."""
        ids = self.profile.tables["steps"]["id"]
        order = np.argsort(ids, kind="stable")
        return np.asarray(order[np.searchsorted(ids[order], self.steps)], dtype=np.int64)

    def frame(self, position: int | None = None) -> Frame:
        """What every tile does and holds at a position, by default this one's."""
        position = self.position if position is None else position
        position_of(len(self.steps), position)
        row, table = self.step_rows[position], self.profile.tables["steps"]
        parts = {name: self.profile.vector(index[row]) for name, index in self.vectors.items()}
        return Frame(
            step=int(self.steps[position]),
            cycles=int(table["cycles"][row]),
            live_bytes=self.live_at([position])[0],
            compute_cycles=parts["compute"],
            sent_bytes=parts["sent"],
            received_bytes=parts["received"],
        )

    @cached_property
    def vectors(self) -> dict[str, IntArray]:
        """Of each row of the table of steps the vector that holds what this IPU's tiles compute, send and receive; 0,
        nothing, where another IPU's do."""
        table = self.profile.tables["steps"]
        here = (table["ipu"] == self.ipu) | (table["ipu"] < 0)
        comes = np.where(table["to_ipu"] < 0, here, table["to_ipu"] == self.ipu)
        return {
            "compute": np.where(here & (table["cause"] == "compute"), table["cycles_index"], 0),
            "sent": np.where(here, table["sent_index"], 0),
            "received": np.where(comes, table["received_index"], 0),
        }

    @cached_property
    def _lives(self) -> tuple[IntArray, IntArray, IntArray]:
        owner, first, last = live_bytes.intervals(self.profile, self.ipu)
        return self.profile.tables["variables"]["bytes_index"][owner], first, last

    def live_at(self, positions: Sequence[int]) -> IntArray:
        """Bytes live on each tile at rising positions, always-live ones included: int64[len(positions), tiles]."""
        places = np.asarray([position_of(len(self.steps), each) for each in positions], dtype=np.int64)
        if np.any(np.diff(places) <= 0):
            raise InputError(f"positions are {short(list(positions))}", expected="rising places of the program")
        vector, first, last = self._lives
        begin, end = np.searchsorted(places, first, side="left"), np.searchsorted(places, last, side="right")
        seen = np.flatnonzero(begin < end)
        tiles = self.profile.arrays["always_live"].shape[1]
        change = np.zeros((len(places) + 1, tiles), dtype=np.int64)
        amounts = self.profile.arrays["per_tile"][vector[seen]]
        np.add.at(change, begin[seen], amounts)
        np.subtract.at(change, end[seen], amounts)
        found: IntArray = np.cumsum(change[:-1], axis=0) + self.profile.arrays["always_live"][self.ipu]
        return found

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: the IPU, the position, and what happens there."""
        if not len(self.steps):
            return {"ipu": self.ipu, "position": 0, "positions": 0}
        found = self.frame()
        table, row = self.profile.tables["steps"], self.step_rows[self.position]
        return {
            "ipu": self.ipu,
            "position": self.position,
            "positions": len(self.steps),
            "step": found.step,
            "name": str(self.there.name[self.position]),
            "layer": str(self.there.layer[self.position]),
            "cause": str(table["cause"][row]),
            "cycles": found.cycles,
            "live_bytes": int(found.live_bytes.sum()),
            "fullest_tile": int(found.live_bytes.argmax()),
            "fullest_tile_bytes": int(found.live_bytes.max()),
            "computing_tiles": int((found.compute_cycles > 0).sum()),
            "sent_bytes": int(found.sent_bytes.sum()),
            "received_bytes": int(found.received_bytes.sum()),
        }

    @property
    def sentence(self) -> str:
        """What happens at the position."""
        told = self.data
        if not told["positions"]:
            return f"Playback of IPU {self.ipu}: nothing runs there"
        does = {
            "compute": _computing(told["computing_tiles"]),
            "exchange": f"{bytes_text(told['sent_bytes'])} are sent and {bytes_text(told['received_bytes'])} received",
        }.get(told["cause"], CAUSE_WORDS[told["cause"]])
        return (
            f"Modelled playback of IPU {self.ipu}, place {told['position']:,} of {told['positions']:,}: "
            f"{told['name']}, {does}, {cycles_text(told['cycles'])}; {bytes_text(told['live_bytes'])} live"
        )

    def to_pandas(self) -> pd.DataFrame:
        """A row per position: `position, step, name, layer, cause, cycles, live_bytes, fullest_tile,
        fullest_tile_bytes, computing_tiles, sent_bytes, received_bytes`, always-live bytes included."""
        table, live = self.profile.tables["steps"], self.profile.liveness_view.of(ipu=self.ipu)
        moved = {name: self.totals[index[self.step_rows]] for name, index in self.vectors.items() if name != "compute"}
        computing = self.profile.arrays["per_tile"] > 0
        return pd.DataFrame(
            {
                "position": np.arange(len(self.steps)),
                "step": self.steps,
                "name": self.there.name,
                "layer": self.there.layer,
                "cause": table["cause"][self.step_rows],
                "cycles": table["cycles"][self.step_rows],
                "live_bytes": live.live_bytes + live.always_live_bytes,
                "fullest_tile": live.worst_tile,
                "fullest_tile_bytes": live.worst_tile_bytes,
                "computing_tiles": computing.sum(axis=1)[self.vectors["compute"][self.step_rows]],
                "sent_bytes": moved["sent"],
                "received_bytes": moved["received"],
            }
        )

    @cached_property
    def totals(self) -> IntArray:
        """The sum over the tiles of each vector of the profile: int64[vectors]."""
        found: IntArray = self.profile.arrays["per_tile"].sum(axis=1)
        return found


def _computing(tiles: int) -> str:
    return f"{things_text(tiles, 'tile')} compute{'s' if tiles == 1 else ''}"
