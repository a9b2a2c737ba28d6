"""Addresses on a tile: code, always-live and not-always-live variables placed in the regions of its memory.

Of a program, and of plain data for a profile whose program is gone: the same placement of the same items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from workbench.base.arrays import IntArray, frozen
from workbench.base.categories import CODE_CATEGORIES, FOOTPRINT_CATEGORIES, MEMORY_CATEGORIES
from workbench.base.spans import covered_by_rank
from workbench.engine.memory.footprint import Footprint
from workbench.engine.memory.intervals import Interval, Intervals
from workbench.engine.memory.liveness import Liveness
from workbench.engine.memory.packing import (
    ALIGNMENT_BYTES,
    INTERLEAVED_ALIGNMENT_BYTES,
    REGIONS,
    Conflicts,
    Item,
    Placed,
    conflicts,
    conflicts_of,
    place,
    with_gaps_bytes,
)
from workbench.engine.program import TileProgram, Variable
from workbench.engine.program.columns import columns_of
from workbench.engine.target import MemoryMap
from workbench.errors import InputError

_DECISIVE_LIMIT = 24  # tile classes allocated for the verdict; bounds of a program are close together or far apart


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlacedBlock:
    """One variable (or code block: `variable` is -1) on one tile, at bytes `address` … `address + size_bytes - 1`.

    `category` is a variable kind or a footprint category. `region` is "non_interleaved", "interleaved" or "overflow"
    (addresses from the end of the tile's memory on: it found no place). `lives` are the intervals of all variables.
    """

    variable: int
    label: str
    category: str
    address: int
    size_bytes: int
    region: str
    always_live: bool
    lives: Intervals | None = field(default=None, repr=False)

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """When it is live, by positions of its IPU's timeline; empty when always."""
        return () if self.lives is None or self.always_live else self.lives[self.variable]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TileAllocation:
    """One tile. `total_bytes` counts each allocated address once; `total_with_gaps_bytes` is what the out-of-memory
    message calls used: the spans used in each region, or the end of the last overflowing block.

    `category_bytes` sums to `total_bytes`, by `MEMORY_CATEGORIES`. `not_always_live_bytes` counts the addresses that
    shared variables use. `overflow_bytes` is how far the blocks without a place reach beyond the tile's memory.
    """

    ipu: int
    tile: int
    blocks: tuple[PlacedBlock, ...]
    total_bytes: int
    total_with_gaps_bytes: int
    not_always_live_bytes: int
    overflow_bytes: int
    category_bytes: Mapping[str, int]

    @property
    def fits(self) -> bool:
        """Everything was placed inside its region."""
        return self.overflow_bytes == 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Allocation:
    """Allocated tiles of a program: those that can decide the verdict at once, others by `tile` on demand (kept).

    `bounds` is int64[ipus, tiles]: always-live plus live peak, no tile can do with less.
    `classes[ipu]` is int64[tiles]: the lowest tile whose memory is equal, so one allocation serves both.
    `decisive` are the (ipu, tile) pairs that can decide the verdict; `budget_bytes` is the most one of them uses, gaps
    included, within which every other tile is placed.
    """

    program: TileProgram
    liveness: Liveness
    footprint: Footprint
    bounds: IntArray
    classes: tuple[IntArray, ...]
    decisive: tuple[tuple[int, int], ...] = ()
    budget_bytes: int | None = None
    _made: dict[tuple[int, int], TileAllocation] = field(default_factory=dict)
    _sharing: dict[int, _Sharing] = field(default_factory=dict)

    def tile(self, ipu: int, tile: int) -> TileAllocation:
        """The allocation of one tile, computed at the first call for its class."""
        tiles = self.program.target.tiles_per_ipu
        if not (0 <= ipu < self.program.ipus and 0 <= tile < tiles):
            raise InputError(
                f"no tile {tile!r} on ipu {ipu!r}",
                expected=f"ipu 0 to {self.program.ipus - 1} and tile 0 to {tiles - 1}",
            )
        first = int(self.classes[ipu][tile])
        if (ipu, first) not in self._made:
            self._made[ipu, first] = self._allocate(ipu, first)
        found = self._made[ipu, first]
        return found if tile == first else replace(found, tile=tile)

    @property
    def allocated(self) -> tuple[TileAllocation, ...]:
        """The tiles allocated so far, one per class."""
        return tuple(self._made.values())

    @property
    def worst(self) -> TileAllocation:
        """Of the tiles that could decide the verdict: the one with most bytes, gaps included."""
        made = [self.tile(*place) for place in self.decisive]
        return max(made, key=lambda tile: (tile.total_with_gaps_bytes, tile.total_bytes, -tile.ipu, -tile.tile))

    @property
    def fits(self) -> bool:
        """All tiles that could decide the verdict fit."""
        return all(self.tile(*place).fits for place in self.decisive)

    def _allocate(self, ipu: int, tile: int) -> TileAllocation:
        if ipu not in self._sharing:
            self._sharing[ipu] = _Sharing(self.program, self.liveness, ipu)
        sharing = self._sharing[ipu]
        parts = [
            (name, None, Item(size_bytes=int(self.footprint.categories[name][ipu, tile]), code=name in CODE_CATEGORIES))
            for name in FOOTPRINT_CATEGORIES
        ]
        fixed = [part for part in parts if part[2].size_bytes]
        held: list[_Held] = [*fixed, *sharing.items(tile)]
        items = [item for _, _, item in held]
        memory = self.program.target.memory
        peak_bytes = int(self.bounds[ipu, tile]) - sum(item.size_bytes for item in items if item.life < 0)
        placed = place(memory, items, sharing.conflicts, peak_bytes, self.budget_bytes)
        blocks = [
            _block(label, variable, item, address, REGIONS[region], self.liveness.intervals)
            for (label, variable, item), address, region in zip(
                held, placed.addresses.tolist(), placed.regions.tolist(), strict=True
            )
        ]
        return _summary(ipu, tile, blocks, placed, memory)


_Held: TypeAlias = tuple[str, Variable | None, Item]
"""What a tile holds: a footprint category, or a variable by its name."""


class _Sharing:
    """What the tiles of one IPU have in common: its variables and which of their lifetimes meet."""

    def __init__(self, program: TileProgram, liveness: Liveness, ipu: int) -> None:
        columns, intervals = columns_of(program), liveness.intervals
        held = np.flatnonzero((columns.ipu == ipu) & (columns.always_live | (intervals.counts > 0)))
        shared = ~columns.always_live[held]
        life = np.full(len(held), -1)
        life[shared] = liveness.lives(ipu)
        found = (program.variables[number] for number in held.tolist())
        lives = intervals.take(held)
        self.members = list(zip(found, life.tolist(), lives.lengths.tolist(), strict=True))
        self.conflicts: Conflicts = conflicts_of(liveness.life_changes(ipu), int(life.max(initial=-1)) + 1)
        vectors, self._vector = np.unique(columns.vector[held], return_inverse=True)
        self._vectors = [columns.vectors[place] for place in vectors.tolist()]

    def items(self, tile: int) -> list[_Held]:
        """The variables with bytes on a tile, to be placed."""
        sizes = np.array([vector[tile] for vector in self._vectors], np.int64)[self._vector]
        here = np.flatnonzero(sizes)
        sized = zip(sizes[here].tolist(), [self.members[place] for place in here.tolist()], strict=True)
        return [
            (
                variable.name,
                variable,
                Item(size_bytes=size, life=life, interleaved=variable.interleaved, duration=duration),
            )
            for size, (variable, life, duration) in sized
        ]


def _block(
    label: str, variable: Variable | None, item: Item, address: int, region: str, lives: Intervals
) -> PlacedBlock:
    return PlacedBlock(
        variable=-1 if variable is None else variable.id,
        label=label,
        category=label if variable is None else variable.kind,
        address=address,
        size_bytes=item.size_bytes,
        region=region,
        always_live=item.life < 0,
        lives=lives,
    )


def _summary(ipu: int, tile: int, blocks: Sequence[PlacedBlock], placed: Placed, memory: MemoryMap) -> TileAllocation:
    sizes = np.array([block.size_bytes for block in blocks], dtype=np.int64)
    beyond = int((placed.addresses + sizes)[placed.regions == REGIONS.index("overflow")].max(initial=0))
    by_category = covered(blocks)
    return TileAllocation(
        ipu=ipu,
        tile=tile,
        blocks=tuple(blocks),
        total_bytes=sum(by_category.values()),
        total_with_gaps_bytes=with_gaps_bytes(memory, placed.addresses, sizes),
        not_always_live_bytes=sum(covered([block for block in blocks if not block.always_live]).values()),
        overflow_bytes=max(0, beyond - memory.total_bytes),
        category_bytes=by_category,
    )


def covered(blocks: Sequence[PlacedBlock]) -> dict[str, int]:
    """Addresses per category, each address once, for the first of its categories in `MEMORY_CATEGORIES`."""
    rank_of = {name: rank for rank, name in enumerate(MEMORY_CATEGORIES)}
    rows = np.array([(block.address, block.size_bytes, rank_of[block.category]) for block in blocks], dtype=np.int64)
    start, size, ranks = rows.reshape(-1, 3).T
    found = covered_by_rank(start, size, ranks, len(MEMORY_CATEGORIES))
    return dict(zip(MEMORY_CATEGORIES, found.tolist(), strict=True))


def allocate(
    program: TileProgram, liveness: Liveness, footprint: Footprint, tiles: Iterable[tuple[int, int]] = ()
) -> Allocation:
    """Allocate the tiles that can decide the verdict, and the (ipu, tile) pairs asked for.

    Classes of equal tiles are taken by descending need until the next one needs less than the most bytes found on a
    tile; besides, on every IPU, the tile with the highest bound and the one with most code. A need is a bound with
    every variable rounded up to the alignment of addresses.
    """
    bounds = np.stack([liveness.always_live_bytes(ipu) + liveness.peak_bytes(ipu) for ipu in range(program.ipus)])
    classes = tuple(liveness.tile_classes(ipu) for ipu in range(program.ipus))
    found = Allocation(program=program, liveness=liveness, footprint=footprint, bounds=frozen(bounds), classes=classes)
    decisive = list(dict.fromkeys(place for ipu in range(program.ipus) for place in _first_of(found, ipu)))
    most_bytes = max(found.tile(*place).total_with_gaps_bytes for place in decisive)
    alignments = (ALIGNMENT_BYTES, INTERLEAVED_ALIGNMENT_BYTES)
    needs = np.stack([liveness.aligned_bytes(ipu, *alignments, above=most_bytes) for ipu in range(program.ipus)])
    others = sorted(
        {(ipu, int(tile)) for ipu in range(program.ipus) for tile in np.unique(classes[ipu])} - set(decisive),
        key=lambda place: (-needs[place], place),
    )
    for place_ in others[:_DECISIVE_LIMIT]:
        if needs[place_] <= most_bytes:
            break
        decisive.append(place_)
        most_bytes = max(most_bytes, found.tile(*place_).total_with_gaps_bytes)
    found = replace(found, decisive=tuple(decisive), budget_bytes=most_bytes)
    for ipu, tile in tiles:
        found.tile(ipu, tile)
    return found


def _first_of(found: Allocation, ipu: int) -> list[tuple[int, int]]:
    code = np.sum([found.footprint.categories[name][ipu] for name in CODE_CATEGORIES], axis=0)
    tiles = (int(found.bounds[ipu].argmax()), int(code.argmax()))
    return [(ipu, int(found.classes[ipu][tile])) for tile in tiles]


ALWAYS = -1


def plain_placer(
    memory: MemoryMap, lives: Sequence[tuple[Interval, ...]], interleaved: Sequence[bool], budget_bytes: int
) -> Callable[[IntArray, int], IntArray]:
    """A function that places one tile of an IPU, whose variables have these lives (empty: always live).

    It tries to stay within `budget_bytes`, gaps included: what the tiles that decide the verdict use.

    It takes int64[categories + variables] of bytes, footprint categories first, and the most bytes that are live
    together without the always-live ones. It returns addresses in the same order, 0 where there are no bytes.
    """
    fixed = len(FOOTPRINT_CATEGORIES)
    rows: dict[tuple[Interval, ...], int] = {}
    life = [ALWAYS] * fixed + [rows.setdefault(spans, len(rows)) if spans else ALWAYS for spans in lives]
    duration = [0] * fixed + [sum(last - first + 1 for first, last in spans) for spans in lives]
    code = [name in CODE_CATEGORIES for name in FOOTPRINT_CATEGORIES] + [False] * len(lives)
    wide = [False] * fixed + list(interleaved)
    meets = conflicts(list(rows))

    def place_tile(sizes: IntArray, peak_bytes: int) -> IntArray:
        held = np.flatnonzero(sizes)
        items = [
            Item(size_bytes=size, life=life[row], interleaved=wide[row], code=code[row], duration=duration[row])
            for row, size in zip(held.tolist(), sizes[held].tolist(), strict=True)
        ]
        addresses = np.zeros(len(sizes), np.int64)
        addresses[held] = place(memory, items, meets, peak_bytes, budget_bytes).addresses
        return addresses

    return place_tile
