"""Addresses on tiles: those a profile holds, and those of other tiles worked out from its data when asked for.

A profile holds the tiles that decide the verdict. For another, the engine's placement is called with the sizes and
lifetimes of the profile; a few tiles are kept, so that several views of one tile work it out once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from workbench.errors import InputError
from workbench.profiler.schema import FOOTPRINT_CATEGORIES, MEMORY_CATEGORIES, Table, table

if TYPE_CHECKING:
    from workbench.profiler.profile import Profile

IntArray: TypeAlias = npt.NDArray[np.int64]
KEPT_TILES = 16


class Tile(NamedTuple):
    """Raw "allocation" rows of one tile by address, and the bytes the out-of-memory message calls used."""

    rows: Table
    total_with_gaps: int


# (bytes by footprint category, bytes of each variable, most live together) → (owners, addresses, sizes, with gaps).
Placer: TypeAlias = Callable[[Mapping[str, int], IntArray, int], tuple[Sequence[Any], IntArray, IntArray, int]]


class Addresses:
    """The addresses of one profile. Tiles of an IPU that hold the same bytes of everything share their rows."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._recent: OrderedDict[tuple[int, int], Tile] = OrderedDict()
        self._placers: dict[int, tuple[IntArray, Placer]] = {}
        rows = profile.tables["allocation"]
        self._order = np.lexsort((rows["address"], rows["tile"], rows["ipu"]))
        self._keys = (rows["ipu"] << 32 | rows["tile"])[self._order]

    def check(self, ipu: int, tile: int) -> None:
        """A tile that does not exist is an `InputError`."""
        ipus, tiles = self._profile.arrays["allocated_as"].shape
        if not (0 <= ipu < ipus and 0 <= tile < tiles):
            raise InputError(f"no tile {tile!r} on IPU {ipu!r}", expected=f"tile 0 to {tiles - 1}, IPU 0 to {ipus - 1}")

    def tile(self, ipu: int, tile: int) -> Tile:
        """Addresses of one tile."""
        self.check(ipu, tile)
        first = int(self._profile.arrays["allocated_as"][ipu, tile])
        known = int(self._profile.arrays["total_with_gaps"][ipu, first])
        if known >= 0:
            return Tile(self._stored(ipu, first), known)
        if (ipu, first) not in self._recent:
            self._recent[ipu, first] = self._placed(ipu, first)
            if len(self._recent) > KEPT_TILES:
                self._recent.popitem(last=False)
        return self._recent[ipu, first]

    def _stored(self, ipu: int, tile: int) -> Table:
        key = ipu << 32 | tile
        begin, end = np.searchsorted(self._keys, [key, key + 1])
        chosen = self._order[begin:end]
        return {name: values[chosen] for name, values in self._profile.tables["allocation"].items()}

    def _placed(self, ipu: int, tile: int) -> Tile:
        from workbench.profiler.collect import placer

        if ipu not in self._placers:
            self._placers[ipu] = placer(self._profile, ipu)
        own, place = self._placers[ipu]
        arrays, variables = self._profile.arrays, self._profile.tables["variables"]
        fixed = {name: arrays[f"category.{name}"] for name in FOOTPRINT_CATEGORIES if f"category.{name}" in arrays}
        footprint = {name: int(values[ipu, tile]) for name, values in fixed.items()}
        sizes = arrays["per_tile"][variables["bytes_index"][own], tile]
        owners, addresses, taken, with_gaps = place(footprint, sizes, int(arrays["live_peak"][ipu, tile]))
        order = np.argsort(addresses, kind="stable")
        numbers = [owner if isinstance(owner, int) else -1 for owner in owners]
        labels = [variables["name"][owner] if isinstance(owner, int) else owner for owner in owners]
        kinds = [variables["kind"][owner] if isinstance(owner, int) else owner for owner in owners]
        columns = {
            "ipu": np.full(len(order), ipu),
            "tile": np.full(len(order), tile),
            "variable": np.array(numbers, dtype=np.int64)[order],
            "label": [labels[place] for place in order.tolist()],
            "category": [kinds[place] for place in order.tolist()],
            "address": addresses[order],
            "bytes": taken[order],
        }
        return Tile(table("allocation", columns), with_gaps)


def bytes_by_category(rows: Table) -> Mapping[str, int]:
    """Bytes by category of one tile's allocation rows; a shared address counts for the first category.

    The addresses are cut at every start and end; categories are painted over the pieces, the first one last.
    """
    start, size = rows["address"], rows["bytes"]
    cuts = np.unique(np.concatenate((start, start + size)))
    if len(cuts) < 2:
        return dict.fromkeys(MEMORY_CATEGORIES, 0)
    rank = {name: place for place, name in enumerate(MEMORY_CATEGORIES)}
    ranks = np.array([rank[name] for name in rows["category"]], dtype=np.int64)
    painted = np.full(len(cuts) - 1, len(MEMORY_CATEGORIES), dtype=np.int64)
    begin, end = np.searchsorted(cuts, start), np.searchsorted(cuts, start + size)
    for row in np.argsort(-ranks, kind="stable").tolist():
        painted[begin[row] : end[row]] = ranks[row]
    sums = np.bincount(painted, weights=np.diff(cuts), minlength=len(MEMORY_CATEGORIES) + 1)
    return {name: int(sums[place]) for name, place in rank.items()}
