"""Bytes of tiles at steps: what is live where and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from workbench.base.arrays import IntArray, LateArrays
from workbench.base.categories import FOOTPRINT_CATEGORIES, MEMORY_CATEGORIES, VARIABLE_CATEGORIES
from workbench.profiler.schema import Stored


class Timelines(LateArrays):
    """The table of the timelines of all IPUs, whose columns are made when they are asked for: a pod has millions of
    positions. `steps` are the step ids of each IPU in order, int64[positions].
    """

    def __init__(self, steps: Sequence[IntArray], columns: Mapping[str, Callable[[], IntArray]]) -> None:
        super().__init__(columns)
        self.steps = tuple(steps)


def positions(profile: Stored, ipu: int) -> IntArray:
    """Step ids along the timeline of one IPU: int64[positions]."""
    timeline = profile.tables["timeline"]
    if isinstance(timeline, Timelines):
        return timeline.steps[ipu]
    chosen = _rows_of(timeline["ipu"], ipu)
    position, found = timeline["position"][chosen], timeline["step"][chosen]
    if (position[1:] < position[:-1]).any():
        found = found[np.argsort(position, kind="stable")]
    return np.asarray(found, np.int64)


def _rows_of(ipus: IntArray, ipu: int) -> IntArray | slice:
    """The rows of one IPU; those that lie together, as a program's do, without looking at each."""
    if (ipus[1:] < ipus[:-1]).any():
        return np.flatnonzero(ipus == ipu)
    return slice(*np.searchsorted(ipus, (ipu, ipu + 1)).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """The rows of `intervals` by variable: those of variable v are `rows[starts[v]:starts[v + 1]]`, or, where the table
    has them in that order already and `rows` is None, the places from one start to the next."""

    starts: IntArray
    rows: IntArray | None

    @classmethod
    def of(cls, profile: Stored) -> Lifetimes:
        """Of the tables of a profile."""
        owner, count = profile.tables["intervals"]["variable"], len(profile.tables["variables"]["id"])
        rows = None if (owner[:-1] <= owner[1:]).all() else np.argsort(owner, kind="stable")
        return cls(starts=np.searchsorted(owner if rows is None else owner[rows], np.arange(count + 1)), rows=rows)

    def of_variables(self, variables: IntArray) -> IntArray:
        """The rows of some variables, which are in order, in the order of the table."""
        starts = self.starts[variables]
        counts = self.starts[variables + 1] - starts
        places = np.arange(counts.sum()) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
        return places if self.rows is None else np.sort(self.rows[places])


class Living(Stored, Protocol):
    """A stored profile whose lifetimes are in order."""

    @property
    def lifetimes(self) -> Lifetimes:
        """The lifetimes by variable."""


def intervals(profile: Living, ipu: int) -> tuple[IntArray, IntArray, IntArray]:
    """Variable, first and last position of every lifetime on one IPU that is not always live."""
    table, variables = profile.tables["intervals"], profile.tables["variables"]
    chosen = profile.lifetimes.of_variables(np.flatnonzero((variables["ipu"] == ipu) & ~variables["always_live"]))
    return table["variable"][chosen], table["first"][chosen], table["last"][chosen]


def _over_time(first: IntArray, last: IntArray, amounts: IntArray, length: int) -> IntArray:
    """Sum over lifetimes of `amounts` at each position: shape (length, *amounts.shape[1:])."""
    change = np.zeros((length + 1, *amounts.shape[1:]), dtype=np.int64)
    np.add.at(change, first, amounts)
    np.subtract.at(change, last + 1, amounts)
    return np.cumsum(change[:length], axis=0)


def live_of_tile(profile: Living, ipu: int, tile: int) -> IntArray:
    """Bytes live and not always live on one tile at each position: int64[positions]."""
    owner, first, last = intervals(profile, ipu)
    rows = profile.tables["variables"]["bytes_index"][owner]
    return _over_time(first, last, profile.arrays["per_tile"][rows, tile], len(positions(profile, ipu)))


def by_category_at(profile: Living, ipu: int, position: int) -> dict[str, IntArray]:
    """Bytes on each tile at one position by category; see `by_category`."""
    return by_category(profile, ipu, np.full(profile.arrays["per_tile"].shape[1], position))


def by_category(profile: Living, ipu: int, at: IntArray) -> dict[str, IntArray]:
    """Bytes on each tile by category, each tile at its own position of `at`, int64[tiles].

    Categories come in order, those without bytes left out; they sum to what is live, always or not.
    """
    variables, vectors = profile.tables["variables"], profile.arrays["per_tile"]
    found = {name: np.zeros(vectors.shape[1], dtype=np.int64) for name in VARIABLE_CATEGORIES}
    always = np.flatnonzero(variables["always_live"] & (variables["ipu"] == ipu))
    owner, first, last = intervals(profile, ipu)
    everywhere = np.arange(vectors.shape[1])
    held = [(everywhere, always)]
    for position in np.unique(at):
        held.append((np.flatnonzero(at == position), owner[(first <= position) & (position <= last)]))
    for tiles, numbers in held:
        kinds, rows = variables["kind"][numbers], variables["bytes_index"][numbers]
        for kind in set(kinds.tolist()):
            found[kind][tiles] += vectors[np.ix_(rows[kinds == kind], tiles)].sum(axis=0)
    found |= {name: footprint(profile, name)[ipu] for name in FOOTPRINT_CATEGORIES}
    return {name: found[name] for name in MEMORY_CATEGORIES if found[name].any()}


def footprint(profile: Stored, category: str) -> IntArray:
    """Bytes of one category that is not variables: int64[ipus, tiles]."""
    found = profile.arrays.get(f"category.{category}")
    return np.zeros_like(profile.arrays["always_live"]) if found is None else found


def worst_position(profile: Living, ipu: int, step: int, tile: int | None = None) -> int | None:
    """The position of a step on an IPU at which most is live (on `tile`, else over all); None when it never runs."""
    places = np.flatnonzero(positions(profile, ipu) == step)
    if not len(places):
        return None
    if tile is None:
        table = profile.tables["liveness"]
        chosen = table["ipu"] == ipu
        live = np.zeros(int(chosen.sum()), dtype=np.int64)
        live[table["position"][chosen]] = table["live_bytes"][chosen]
    else:
        live = live_of_tile(profile, ipu, tile)
    return int(places[np.argmax(live[places])])


LIVE_COLUMNS = ("name", "layer", "kind", "dtype", "shape", "bytes", "always_live", "ipu", "first_step", "last_step")


def live_variables(profile: Living, step: int, ipu: int | None, tile: int | None) -> pd.DataFrame:
    """See `Profile.live_variables`; a tile without an IPU is a tile of the step's IPU."""
    variables = profile.tables["variables"]
    ipus = [ipu] if ipu is not None else ipus_of_step(profile, step)
    if tile is not None and ipu is None:
        ipus = ipus[:1]
    live = np.zeros(len(variables["id"]), dtype=bool)
    for place in ipus:
        position = worst_position(profile, place, step, tile)
        live |= variables["always_live"] & (variables["ipu"] == place)
        if position is not None:
            owner, first, last = intervals(profile, place)
            live[owner[(first <= position) & (position <= last)]] = True
    ids = np.flatnonzero(live)
    data: dict[str, Any] = {name: variables[name][ids] for name in LIVE_COLUMNS}
    if tile is not None:
        data["bytes"] = profile.arrays["per_tile"][variables["bytes_index"][ids], tile]
    frame = pd.DataFrame({"id": ids, **data})
    frame = frame[frame["bytes"] > 0].sort_values(["always_live", "bytes", "id"], ascending=[True, False, True])
    return frame.reset_index(drop=True)


def ipus_of_step(profile: Stored, step: int) -> list[int]:
    """The IPUs on whose timeline a step stands, lowest first."""
    timeline = profile.tables["timeline"]
    return sorted({int(ipu) for ipu in timeline["ipu"][timeline["step"] == step]})
