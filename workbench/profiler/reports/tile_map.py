"""One number per tile on the floor plan: bytes of a category or a variable, or cycles and bytes of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.arrays import IntArray
from workbench.base.units import bytes_text, cycles_text, things_text
from workbench.errors import InputError
from workbench.profiler.memory import footprint
from workbench.profiler.places import ipu_of, step_of
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report

# osmarks/ipu-stack@ce7c7e94 ipu-target topology.rs: 16 columns x 4 lanes x 23 rows of tiles (C600).
COLUMN_ROWS = 23

_STEP_COLUMNS = {"cycles": "cycles_index", "sent": "sent_index", "received": "received_index"}


@report("tile_map")
@dataclass(frozen=True, kw_only=True, eq=False)
class TileMap(Report):
    """`quantity` says what is shown:

    "total" (always-live plus most not-always-live bytes), a name of `.memory_categories` (live at each tile's fullest
    step), "variable" (`item` its name), or "cycles", "sent", "received" of one step (`item` its id).
    """

    kinds: ClassVar[tuple[str, ...]] = ("memory", "compute")
    profile: Profile
    ipu: int = 0
    quantity: str = "total"
    item: str | int | None = None

    def __post_init__(self) -> None:
        ipu_of(self.profile, self.ipu)
        _check(self.profile, self.quantity, self.item)
        if self.ipu not in self.ipus:
            what = "variable" if self.quantity == "variable" else "step"
            places = ", ".join(map(str, self.ipus))
            raise InputError(
                f"{what} {self.item!r} is not of IPU {self.ipu}",
                expected=f"an IPU that has it: {places}",
                todo="give that ipu, or none: the map then moves there",
            )

    @classmethod
    def from_profile(
        cls, profile: Profile, *, ipu: int | None = None, quantity: str = "total", item: str | int | None = None
    ) -> TileMap:
        """The map of one IPU, by default that of the fullest tile; see `of`."""
        return cls(profile=profile, ipu=profile.peak.ipu).of(quantity, item, ipu=ipu)

    def of(self, quantity: str = "total", item: str | int | None = None, *, ipu: int | None = None) -> TileMap:
        """The same map for something else; without `ipu`, of a step or a variable that this IPU does not have, on the
        first that has it."""
        if ipu is None:
            _check(self.profile, quantity, item)
            active = _active(self.profile, quantity, item)
            ipu = self.ipu if self.ipu in active else active[0]
        return TileMap(profile=self.profile, ipu=ipu, quantity=quantity, item=item)

    @cached_property
    def ipus(self) -> list[int]:
        """The IPUs that can be asked for: those that keep the variable, or both ends of the step; else all."""
        return _active(self.profile, "cycles" if self.quantity in _STEP_COLUMNS else self.quantity, self.item)

    @property
    def unit(self) -> str:
        """ "bytes" or "cycles"."""
        return "cycles" if self.quantity == "cycles" else "bytes"

    @property
    def what(self) -> str:
        """What is shown, in words: "total", "variable of weights", "cycles of 12"."""
        if self.item is None:
            return self.quantity
        return f"{self.quantity} of {self.item if isinstance(self.item, str) else f'{self.item:,}'}"

    @cached_property
    def values(self) -> IntArray:
        """int64[tiles]."""
        if self.quantity == "total":
            arrays = self.profile.arrays
            return np.asarray(arrays["always_live"][self.ipu] + arrays["live_peak"][self.ipu], dtype=np.int64)
        if self.quantity == "variable":
            return self.profile.memory.of(ipu=self.ipu).variables([str(self.item)])[str(self.item)]
        if self.quantity in _STEP_COLUMNS:
            return self._of_step(_STEP_COLUMNS[self.quantity])
        found = self.profile.memory.of(ipu=self.ipu).by_category.get(self.quantity)
        return footprint(self.profile, "none")[self.ipu] if found is None else found

    def _of_step(self, column: str) -> IntArray:
        steps = self.profile.tables["steps"]
        if self.ipu not in _active(self.profile, self.quantity, self.item):
            return np.zeros(self.profile.arrays["always_live"].shape[1], dtype=np.int64)  # the other end's
        return self.profile.vector(steps[column][np.flatnonzero(steps["id"] == self.item)[0]])

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """Column and row of each tile on the plan, filled column by column: two int64[tiles].

        Tile numbers are logical: the public sources give the shape of the plan but not which tile stands where.
        """
        tiles = np.arange(len(self.values))
        rows = min(COLUMN_ROWS, max(1, ceil(len(tiles) ** 0.5)))
        return tiles // rows, tiles % rows

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: what is shown, in what unit, and its extremes."""
        return {
            "ipu": self.ipu,
            "quantity": self.quantity,
            "item": self.item,
            "unit": self.unit,
            "tiles": len(self.values),
            "total": int(self.values.sum()),
            "largest": int(self.values.max()),
            "largest_tile": int(self.values.argmax()),
            "smallest": int(self.values.min()),
            "limit": int(self.profile.target["bytes_per_tile"]) if self.unit == "bytes" else None,
        }

    @property
    def sentence(self) -> str:
        """The extremes and the tiles that have any."""
        data = self.data
        text: Mapping[str, Callable[[float], str]] = {"bytes": bytes_text, "cycles": cycles_text}
        show = text[self.unit]
        used = int((self.values > 0).sum())
        return (
            f"Modelled tile map of IPU {self.ipu}, {self.what}: {used:,} of {things_text(data['tiles'], 'tile')}, "
            f"from {show(data['smallest'])} to {show(data['largest'])} on tile {data['largest_tile']:,}, "
            f"{show(data['total'])} in all"
        )

    def to_pandas(self) -> pd.DataFrame:
        """A row per tile: `ipu, tile, column, row`, and the value in its unit."""
        column, row = self.places
        tiles = np.arange(len(self.values))
        return pd.DataFrame({"ipu": self.ipu, "tile": tiles, "column": column, "row": row, self.unit: self.values})

    def to_text(self) -> str:
        """The sentence and the five highest tiles."""
        show = cycles_text if self.unit == "cycles" else bytes_text
        order = np.argsort(-self.values, kind="stable")[:5]
        lines = [f"  tile {tile:>5,}  {show(self.values[tile])}" for tile in order]
        return "\n".join([self.sentence, *lines, *self.errors])


def _check(profile: Profile, quantity: str, item: str | int | None) -> None:
    known = ["total", "variable", *_STEP_COLUMNS, *profile.memory_categories]
    if quantity not in known:
        raise InputError(f"quantity is {quantity!r}", expected=f"one of: {', '.join(known)}")
    if quantity in _STEP_COLUMNS:
        step_of(profile, item)
    elif quantity == "variable" and item not in profile.tables["variables"]["name"]:
        raise InputError(f"item is {item!r}", expected="the name of a variable, a name of profile.variables")


def _active(profile: Profile, quantity: str, item: str | int | None) -> list[int]:
    """The IPUs that keep a variable, or whose tiles are busy with a step, send or receive in it; of the rest all."""
    everywhere = list(range(profile.ipus))
    if quantity == "variable":
        table = profile.tables["variables"]
        return sorted(set(table["ipu"][table["name"] == item].tolist()))
    if quantity not in _STEP_COLUMNS:
        return everywhere
    steps = profile.tables["steps"]
    row = np.flatnonzero(steps["id"] == item)[0]
    ipu, to = int(steps["ipu"][row]), int(steps["to_ipu"][row])
    to = ipu if to < 0 else to
    return everywhere if ipu < 0 else sorted({"sent": {ipu}, "received": {to}}.get(quantity, {ipu, to}))
