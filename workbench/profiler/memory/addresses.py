"""Addresses on tiles: those a profile holds, and those of other tiles worked out from its data when asked for.

A profile holds the tiles that decide the verdict. For another, the engine's placement is called with the sizes and
lifetimes of the profile. Where an IPU has many different tiles, those that are nearly alike share one placement, made
with the largest size of each variable; a tile that this would show above the fullest one is placed by itself.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.categories import FOOTPRINT_CATEGORIES, MEMORY_CATEGORIES
from workbench.base.spans import covered_by_rank, spans_by_rank
from workbench.errors import InputError
from workbench.profiler.schema import Stored, Table, table

KEPT_TILES = 16
PLACED_BY_THEMSELVES = 64
"""Different tiles of an IPU that are placed one by one; when there are more, those that are nearly alike share."""

TOLERANCE = 1.01
"""Most that the largest of each variable may need together, over what the least needy tile of a group needs."""

_RANKS = {name: place for place, name in enumerate(MEMORY_CATEGORIES)}


class Tile(NamedTuple):
    """Raw "allocation" rows of one tile by address, and the bytes the out-of-memory message calls used."""

    rows: Table
    total_with_gaps: int


class Placer(NamedTuple):
    """The engine's placement for one IPU whose variables with addresses are `own`, int64[variables].

    `place` takes int64[footprint categories + variables] of bytes and the most live together, and returns addresses
    in the same order; `with_gaps` takes those addresses and bytes.
    """

    own: IntArray
    place: Callable[[IntArray, int], IntArray]
    with_gaps: Callable[[IntArray, IntArray], int]


Placing: TypeAlias = Callable[[Stored, int], Placer]
"""The engine's placement for an IPU of a profile."""


def _is_one_of(number: object, count: int) -> bool:
    """Whether something is a whole number below a count."""
    return hasattr(number, "__index__") and not isinstance(number, bool) and 0 <= operator.index(number) < count


class Addresses:
    """The addresses of one profile. Tiles of an IPU that hold the same bytes of everything share their rows."""

    def __init__(self, profile: Stored, placing: Placing) -> None:
        self._profile, self._placing = profile, placing
        self._recent: OrderedDict[tuple[int, int], Tile] = OrderedDict()
        self._placements: dict[int, _Placement] = {}
        rows = profile.tables["allocation"]
        self._order = np.lexsort((rows["address"], rows["tile"], rows["ipu"]))
        self._keys = (rows["ipu"] << 32 | rows["tile"])[self._order]

    def check(self, ipu: int, tile: int) -> None:
        """A tile that does not exist is an `InputError`."""
        ipus, tiles = self._profile.arrays["allocated_as"].shape
        if not (_is_one_of(ipu, ipus) and _is_one_of(tile, tiles)):
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
        placement, variables = self._placement(ipu), self._profile.tables["variables"]
        owners, addresses, sizes, with_gaps = placement.tile(tile)
        order = np.argsort(addresses, kind="stable")
        numbers = placement.numbers[owners[order]].tolist()
        categories = [MEMORY_CATEGORIES[rank] for rank in placement.ranks[owners[order]].tolist()]
        labels = [
            category if number < 0 else variables["name"][number]
            for number, category in zip(numbers, categories, strict=True)
        ]
        columns = {
            "ipu": np.full(len(order), ipu),
            "tile": np.full(len(order), tile),
            "variable": numbers,
            "label": labels,
            "category": categories,
            "address": addresses[order],
            "bytes": sizes[order],
        }
        return Tile(table("allocation", columns), with_gaps)

    def _placement(self, ipu: int) -> _Placement:
        if ipu not in self._placements:
            self._placements[ipu] = _Placement(self._profile, ipu, self._placing(self._profile, ipu))
        return self._placements[ipu]

    def sums(self, ipu: int) -> IntArray:
        """Bytes by category, a shared address for the first one, then bytes with gaps: int64[categories + 1, tiles]."""
        arrays = self._profile.arrays
        classes, known = arrays["allocated_as"][ipu], arrays["total_with_gaps"][ipu]
        sums = np.zeros((len(MEMORY_CATEGORIES) + 1, len(classes)), dtype=np.int64)
        firsts = np.unique(classes)
        for first in firsts[known[firsts] >= 0].tolist():
            sums[:, first] = [*bytes_by_category(self._stored(ipu, first)).values(), known[first]]
        left = firsts[known[firsts] < 0]
        if len(left):
            placement = self._placement(ipu)
            for first in left[np.argsort(placement.group_of[left], kind="stable")].tolist():
                owners, addresses, sizes, with_gaps = placement.tile(first)
                sums[:-1, first] = covered_by_rank(addresses, sizes, placement.ranks[owners], len(MEMORY_CATEGORIES))
                sums[-1, first] = with_gaps
        return sums[:, classes]


class _Placement:
    """Addresses on the tiles of one IPU. An owner is a footprint category, then a variable: a row of `ranks` and
    `numbers`, int64[owners]: place in `MEMORY_CATEGORIES`, and number of the variable or -1.
    """

    def __init__(self, profile: Stored, ipu: int, placer: Placer) -> None:
        self._profile, self._placer = profile, placer
        self._highest = int(profile.meta["verdict"]["max_tile_bytes"])
        own, arrays, variables = self._placer.own, profile.arrays, profile.tables["variables"]
        fixed = [_RANKS[name] for name in FOOTPRINT_CATEGORIES]
        self.numbers = np.concatenate((np.full(len(fixed), -1), own))
        self.ranks = np.array(fixed + [_RANKS[kind] for kind in variables["kind"][own].tolist()], dtype=np.int64)
        held, row_of = np.unique(variables["bytes_index"][own], return_inverse=True)
        empty = np.zeros_like(arrays["allocated_as"])
        costs = [arrays.get(f"category.{name}", empty)[ipu] for name in FOOTPRINT_CATEGORIES]
        self._vectors = np.concatenate((np.stack(costs), arrays["per_tile"][held]))
        self._rows = np.concatenate((np.arange(len(fixed)), row_of.reshape(-1) + len(fixed)))
        self._always = np.concatenate((np.ones(len(fixed), bool), variables["always_live"][own]))
        self._bounds = arrays["always_live"][ipu] + arrays["live_peak"][ipu]
        self._groups = self._grouped(np.unique(arrays["allocated_as"][ipu]))
        self.group_of = np.zeros(self._vectors.shape[1], dtype=np.int64)
        for number, group in enumerate(self._groups):
            self.group_of[group] = number
        self._recent: OrderedDict[int, IntArray] = OrderedDict()

    def _grouped(self, tiles: IntArray) -> list[IntArray]:
        if len(tiles) <= PLACED_BY_THEMSELVES:
            return [tiles[[place]] for place in range(len(tiles))]
        return groups(self._amounts(), tiles, self._bounds)

    def _amounts(self) -> Amounts:
        spans, count = self._profile.tables["intervals"], len(self._vectors)
        row_of = np.full(len(self._profile.tables["variables"]["id"]), -1)
        row_of[self._placer.own[~self._always[len(FOOTPRINT_CATEGORIES) :]]] = self._rows[~self._always]
        rows = row_of[spans["variable"]]
        here = rows >= 0
        always = np.bincount(self._rows[self._always], minlength=count)
        return Amounts(
            vectors=self._vectors, always=always, rows=rows[here], first=spans["first"][here], last=spans["last"][here]
        )

    def tile(self, tile: int) -> tuple[IntArray, IntArray, IntArray, int]:
        """Owners with bytes on a tile that stands for its equals, their addresses and bytes; bytes with gaps."""
        sizes = self._vectors[self._rows, tile]
        addresses = self._shared(int(self.group_of[tile]))
        with_gaps = self._placer.with_gaps(addresses, sizes)
        if len(self._groups[self.group_of[tile]]) > 1 and with_gaps > self._highest:
            addresses = self._placer.place(sizes, int(self._bounds[tile] - sizes[self._always].sum()))
            with_gaps = self._placer.with_gaps(addresses, sizes)
        owners = np.flatnonzero(sizes)
        return owners, addresses[owners], sizes[owners], with_gaps

    def _shared(self, group: int) -> IntArray:
        """Addresses that hold for all tiles of a group; the last few are kept."""
        if group not in self._recent:
            tiles = self._groups[group]
            sizes = self._vectors[:, tiles].max(axis=1)
            needed = int(self._bounds[tiles[0]]) if len(tiles) == 1 else self._amounts().fullest(sizes)[1]
            held = sizes[self._rows]
            self._recent[group] = self._placer.place(held, needed - int(held[self._always].sum()))
            if len(self._recent) > KEPT_TILES:
                self._recent.popitem(last=False)
        return self._recent[group]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Amounts:
    """Bytes on the tiles of one IPU. `vectors` is int64[vectors, tiles]; `always` counts for each vector what holds it
    throughout, int64[vectors]; `rows`, `first` and `last` are the vector and the positions of each other lifetime.
    """

    vectors: IntArray
    always: IntArray
    rows: IntArray
    first: IntArray
    last: IntArray

    def fullest(self, sizes: IntArray) -> tuple[IntArray, int]:
        """When vectors hold these bytes: how many of each are live at the fullest position, and all bytes there."""
        changes = sizes[self.rows].astype(np.float64)
        places = np.concatenate((self.first, self.last + 1))
        live = np.cumsum(np.bincount(places, np.concatenate((changes, -changes)), minlength=1))
        at = int(live.argmax())
        here = (self.first <= at) & (at <= self.last)
        counts = self.always + np.bincount(self.rows[here], minlength=len(self.always))
        return counts, int(counts @ sizes)


def groups(amounts: Amounts, tiles: IntArray, bounds: IntArray) -> list[IntArray]:
    """Split tiles into groups within `TOLERANCE`; `bounds` are the bytes each tile needs at least, int64[all tiles].

    A group that needs too much together is split at the middle of the vector that costs it most.
    """
    by_tile = np.ascontiguousarray(amounts.vectors.T)
    found: list[IntArray] = []
    left = [tiles] if len(tiles) else []
    while left:
        group = left.pop()
        held = by_tile[group]
        largest = held.max(axis=0)
        counts, needed = amounts.fullest(largest)
        if len(group) == 1 or needed <= TOLERANCE * bounds[group].min():
            found.append(group)
            continue
        values = held[:, int((counts * (largest - held.mean(axis=0))).argmax())]
        high = 2 * values > values.max() + values.min()
        if not high.any():  # bytes are equal at the fullest position: the bounds differ by lifetimes alone
            high = np.arange(len(group)) < len(group) // 2
        left += [group[high], group[~high]]
    return found


def bytes_by_category(rows: Table) -> Mapping[str, int]:
    """Bytes by category of one tile's allocation rows; a shared address counts for the first category."""
    ranks = np.array([_RANKS[name] for name in rows["category"].tolist()], dtype=np.int64)
    found = covered_by_rank(rows["address"], rows["bytes"], ranks, len(MEMORY_CATEGORIES))
    return dict(zip(MEMORY_CATEGORIES, found.tolist(), strict=True))


def addresses_by_category(rows: Table) -> Mapping[str, list[tuple[int, int]]]:
    """The addresses (from, to) of one tile that count for each category; their lengths are `bytes_by_category`."""
    ranks = np.array([_RANKS[name] for name in rows["category"].tolist()], dtype=np.int64)
    found = spans_by_rank(rows["address"], rows["bytes"], ranks, len(MEMORY_CATEGORIES))
    return dict(zip(MEMORY_CATEGORIES, found, strict=True))
