"""An exchange seen: which tile sends how much to which in one step, in how many pieces, and the cycles that takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.arrays import IntArray
from workbench.base.units import bytes_text, cycles_text, things_text
from workbench.errors import InputError
from workbench.profiler.advice.explain import explain_term
from workbench.profiler.advice.explanation import Explanation
from workbench.profiler.exchanges.arrows import Arrows
from workbench.profiler.exchanges.kept import kept_arrows
from workbench.profiler.fidelity import as_much, within_error
from workbench.profiler.places import step_of, tile_of
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report

TRANSFER = "exchange.transfer"  # the engine's formula of a tile in an exchange
LATENCY = "exchange.latency"
OF_TILE = {"sent_bytes": "sent", "received_bytes": "received", "shared_bytes": "shared", "pieces": "pieces"}
NOT_RECORDED = "not recorded: the profile is of a version before, or of too many pieces to be kept"
ELSEWHERE = {"host": "the host", "inter_ipu": "another IPU", "collective": "the other replicas"}


@report("exchange")
@dataclass(frozen=True, kw_only=True, eq=False)
class Exchange(Report):
    """One tile in one step that moves bytes; `step` -1 where no step of the program does.

    Summed over the arrows, the bytes into each tile are those the step's tables say it receives. What a tile sends to
    several at once it sends once, so that its arrows may sum to more than it sends.
    """

    kinds: ClassVar[tuple[str, ...]] = ("exchange", "latency")
    profile: Profile
    step: int
    tile: int

    def __post_init__(self) -> None:
        tile_of(self.profile, self.tile)
        if self.step == -1 and not len(self.rows):
            return
        step_of(self.profile, self.step)
        if self._row not in self.rows:
            raise InputError(
                f"step {self.step:,} moves nothing between tiles",
                expected="a step that does, one of profile.exchange.steps",
            )

    @classmethod
    def from_profile(cls, profile: Profile, *, step: int | None = None, tile: int | None = None) -> Exchange:
        """A tile in a step: by default the exchange that takes most cycles, of the IPU with the fullest tile, which the
        other views begin with too; and the tile it waits for."""
        rows = moving(profile)
        if step is None:
            step = dearest(profile, rows)
        found = cls(profile=profile, step=step, tile=0 if tile is None else tile)
        return found if tile is not None else cls(profile=profile, step=step, tile=found.busiest_tile)

    def of(self, *, step: int | None = None, tile: int | None = None) -> Exchange:
        """The same of another step, by default this one, or another tile: of another step by default its busiest."""
        if step is None:
            tile = self.tile if tile is None else tile
        return Exchange.from_profile(self.profile, step=self.step if step is None else step, tile=tile)

    @cached_property
    def rows(self) -> IntArray:
        """Rows of the table of steps that move bytes: int64[exchanges]."""
        return moving(self.profile)

    @cached_property
    def _row(self) -> int:
        found = np.flatnonzero(self.profile.tables["steps"]["id"] == self.step)
        return int(found[0]) if len(found) else -1

    def _of_step(self, column: str) -> Any:
        """What the table of steps says of this one."""
        return self.profile.tables["steps"][column][self._row]

    @property
    def ipu(self) -> int:
        """The IPU of the step."""
        return int(self._of_step("ipu")) if self.step >= 0 else 0

    @cached_property
    def vectors(self) -> dict[str, IntArray]:
        """Of each tile, int64[tiles]: bytes `sent`, `received`, `shared` (received alike by neighbours over one bus),
        `pieces` it sends or receives them in, and its `cycles`."""
        names = {"sent": "sent", "received": "received", "shared": "shared", "pieces": "fragments", "cycles": "cycles"}
        if self.step < 0:
            return {name: np.zeros(self.profile.arrays["always_live"].shape[1], np.int64) for name in names}
        return {name: self.profile.vector(int(self._of_step(f"{column}_index"))) for name, column in names.items()}

    @cached_property
    def busiest_tile(self) -> int:
        """The tile that takes most cycles; where these are not known, that moves most bytes."""
        known = self.vectors
        return int((known["cycles"] if known["cycles"].any() else known["sent"] + known["received"]).argmax())

    @cached_property
    def arrows(self) -> Arrows | None:
        """Which tile sends how much to which; None where `untold` says why."""
        return kept_arrows(self.profile).of(int(self._of_step("moves"))) if self.step >= 0 else None

    @property
    def untold(self) -> str:
        """Why there are no arrows; "" where there are."""
        if self.step < 0:
            return "no step of this program moves bytes between tiles"
        if cause := ELSEWHERE.get(str(self._of_step("cause"))):
            return f"the other end is {cause}, not a tile of this IPU"
        return "" if self.arrows is not None else NOT_RECORDED

    def partners(self, way: str) -> pd.DataFrame:
        """The other ends of this tile's arrows that come `in` or go `out`, `tile` and `bytes`, most first."""
        if way not in ("in", "out"):
            raise InputError(f"way is {way!r}", expected="'in' or 'out'")
        found = self.arrows
        if found is None:
            return pd.DataFrame({"tile": np.zeros(0, np.int64), "bytes": np.zeros(0, np.int64)})
        mine, others = (found.receiver, found.sender) if way == "in" else (found.sender, found.receiver)
        here = np.flatnonzero(mine == self.tile)
        here = here[np.argsort(-found.bytes[here], kind="stable")]
        return pd.DataFrame({"tile": others[here], "bytes": found.bytes[here]})

    @cached_property
    def _inputs(self) -> Mapping[str, Any] | None:
        """The inputs of the formula of a tile, as kept for the busiest; None where the step has no such."""
        terms = self.profile.tables["terms"]
        rows = np.flatnonzero((terms["step"] == self.step) & (terms["formula"] == TRANSFER))
        found = json.loads(terms["inputs"][rows[0]]) if len(rows) else None
        return found if found and int(self._of_step("fragments_index")) else None

    @property
    def latency_cycles(self) -> int:
        """Cycles of the step besides those of its busiest tile: from a send to its arrival."""
        terms = self.profile.tables["terms"]
        return int(terms["value"][(terms["step"] == self.step) & (terms["formula"] == LATENCY)].sum())

    def inputs(self) -> dict[str, Any] | None:
        """What goes into the formula of this tile; None where it is not recorded."""
        if self._inputs is None:
            return None
        return {**self._inputs, **{name: int(self.vectors[vector][self.tile]) for name, vector in OF_TILE.items()}}

    @cached_property
    def costs(self) -> dict[str, IntArray]:
        """Cycles of each tile, int64[tiles], by part: `sending`, `receiving`, `control` of the pieces, which run at
        once, `staging`, and what the two ways come to, `direct` and `staged`; {} where that is not recorded."""
        if self._inputs is None:
            return {}
        found = _parts({**self._inputs, **{name: self.vectors[vector] for name, vector in OF_TILE.items()}})
        if not found:
            return {}
        streamed = np.maximum(found["sending"], found["receiving"])
        return {**found, "direct": np.maximum(streamed, found["control"]), "staged": streamed + found["staging"]}

    @cached_property
    def cost(self) -> dict[str, int]:
        """The same of this tile."""
        return {name: int(values[self.tile]) for name, values in self.costs.items()}

    @property
    def cycles(self) -> int:
        """Cycles of this tile in one execution, without latency."""
        return min(self.cost["direct"], self.cost["staged"]) if self.cost else int(self.vectors["cycles"][self.tile])

    @property
    def decided_by(self) -> str:
        """The part that this tile waits for: sending, receiving, control, or staging; "" where not recorded."""
        if not self.cost:
            return ""
        if self.cost["staged"] < self.cost["direct"]:
            return "staging"
        return max(("receiving", "sending", "control"), key=lambda name: self.cost[name])

    @property
    def _or_by(self) -> str:
        """In words what takes as long, or less by no more than such numbers usually are off."""
        known = self.known_error("exchange")
        if self.decided_by == "staging":
            near = ["sending as it lies"] if within_error(known, self.cost["staged"], self.cost["direct"]) else []
        else:
            parts = ("receiving", "sending", "control")
            near = [parts[place] for place in as_much(known, [self.cost[name] for name in parts])]
        others = [name for name in near if name != self.decided_by]
        return f" ({' and '.join(others)} within the typical error)" if others else ""

    def explained(self) -> Explanation:
        """The cycles of this tile taken apart: formula, arithmetic, inputs, source, typical error."""
        inputs = self.inputs()
        if inputs is None:
            raise InputError(f"the cycles of step {self.step:,} on tile {self.tile:,} are {NOT_RECORDED}")
        return explain_term(self.profile, f"tile {self.tile:,} in step {self.step:,}", self.cycles, TRANSFER, inputs)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """A row per step that moves bytes: `step, name, layer, direction, ipu, cause, times, cycles, total_cycles,
        bytes_sent, bytes_received, senders, receivers, pieces` (most at a tile), in the order of the program."""
        table, vectors = self.profile.tables["steps"], self.profile.arrays["per_tile"]
        names = ("name", "layer", "direction", "ipu", "cause", "times", "cycles", "total_cycles")
        used, most = (vectors > 0).sum(axis=1), vectors.max(axis=1)
        return pd.DataFrame(
            {
                "step": table["id"][self.rows],
                **{name: table[name][self.rows] for name in (*names, "bytes_sent", "bytes_received")},
                "senders": used[table["sent_index"][self.rows]],
                "receivers": used[table["received_index"][self.rows]],
                "pieces": most[table["fragments_index"][self.rows]],
            }
        )

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: the tile in the step, who it exchanges with, and its cycles."""
        if self.step < 0:
            return {"step": -1, "tile": self.tile, "untold": self.untold}
        known, tile = self.vectors, self.tile
        ways = {way: self.partners(way) for way in ("in", "out")}
        return {
            "ipu": self.ipu,
            "step": self.step,
            "tile": tile,
            "name": str(self._of_step("name")),
            "layer": str(self._of_step("layer")),
            "cause": str(self._of_step("cause")),
            "step_cycles": int(self._of_step("cycles")),
            "latency_cycles": self.latency_cycles,
            "times": int(self._of_step("times")),
            "busiest_tile": self.busiest_tile,
            **{f"{name}_bytes": int(known[name][tile]) for name in ("sent", "received", "shared")},
            "pieces": int(known["pieces"][tile]),
            "cycles": self.cycles,
            "cost": self.cost,
            "decided_by": self.decided_by,
            "senders": len(ways["in"]),
            "receivers": len(ways["out"]),
            "arriving_bytes": int(ways["out"]["bytes"].sum()),
            "untold": self.untold,
        }

    @property
    def sentence(self) -> str:
        """Who sends how much to the tile, whom it sends to, and what that takes."""
        told = self.data
        if self.step < 0:
            return f"Exchange: {self.untold}"
        ends = f"tile {told['tile']:,} of IPU {told['ipu']} receives {bytes_text(told['received_bytes'])}"
        if not told["untold"]:
            ends += f" from {things_text(told['senders'], 'tile')}"
        ends += f" and sends {bytes_text(told['sent_bytes'])}"
        if not told["untold"]:
            ends += f" to {things_text(told['receivers'], 'tile')}"
        by = f", decided by {told['decided_by']}{self._or_by}" if told["decided_by"] else ""
        return (
            f"Modelled exchange {told['name']} (step {told['step']:,}, {cycles_text(told['step_cycles'])}): {ends}, "
            f"in {things_text(told['pieces'], 'piece')}, {cycles_text(told['cycles'])}{by}"
            + (f"; {told['untold']}" if told["untold"] else "")
        )

    @property
    def explained_by(self) -> str:
        """The step."""
        return f"step={self.step}" if self.step >= 0 else ""

    def to_pandas(self) -> pd.DataFrame:
        """A row per arrow of the tile: `way` (in, out), `tile` at its other end, `bytes`, most first."""
        parts = [self.partners(way).assign(way=way) for way in ("in", "out")]
        found = pd.concat(parts, ignore_index=True)[["way", "tile", "bytes"]]
        return found.sort_values("bytes", ascending=False, kind="stable", ignore_index=True)


def moving(profile: Profile) -> IntArray:
    """Rows of the table of steps that move bytes: int64[exchanges]."""
    table = profile.tables["steps"]
    return np.flatnonzero((table["bytes_received"] > 0) | (table["bytes_sent"] > 0))


def dearest(profile: Profile, rows: IntArray) -> int:
    """The exchange between tiles of these rows that takes most cycles in all; without one any step of theirs; -1.

    Of the IPU with the fullest tile, unless nothing moves there.
    """
    table = profile.tables["steps"]
    fullest = rows[table["ipu"][rows] == profile.peak.ipu]
    rows = fullest if len(fullest) else rows
    between = rows[table["cause"][rows] == "exchange"]
    rows = between if len(between) else rows
    return int(table["id"][rows[table["total_cycles"][rows].argmax()]]) if len(rows) else -1


def _parts(inputs: Mapping[str, Any]) -> dict[str, IntArray]:
    """Cycles by part; the engine is loaded only for who asks."""
    from workbench.profiler.collect import exchange_parts

    return exchange_parts(inputs)
