"""Addresses on a tile: code, always-live and not-always-live variables placed in the regions of its memory.

Of a program, and of plain data for a profile whose program is gone: the same placement of the same items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import overload

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
    Flags,
    Items,
    conflicts,
    conflicts_of,
    place,
    with_gaps_bytes,
)
from workbench.engine.program import TileProgram
from workbench.engine.program.columns import columns_of
from workbench.engine.target import MemoryMap
from workbench.errors import InputError

ALWAYS = -1  # in place of a lifetime
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


class Blocks(Sequence[PlacedBlock]):
    """What lies on a tile, by column: a tile has hundreds of blocks, of which few look at any. `variable` (-1: none),
    `address` and `size_bytes` are int64[blocks], `category` and `region` places in `MEMORY_CATEGORIES` and `REGIONS`.
    Names and lives are those of the `program` and its variables' `lives`.
    """

    def __init__(
        self,
        *,
        variable: IntArray,
        address: IntArray,
        size_bytes: IntArray,
        category: IntArray,
        region: IntArray,
        program: TileProgram,
        lives: Intervals,
    ) -> None:
        self.variable, self.address, self.size_bytes = variable, address, size_bytes
        self.category, self.region = category, region
        self._program, self._lives = program, lives

    @property
    def labels(self) -> list[str]:
        """The names of the variables, and of what is none the category."""
        named = self._program.variables
        pairs = zip(self.variable.tolist(), self.categories, strict=True)
        return [category if number < 0 else named[number].name for number, category in pairs]

    @property
    def categories(self) -> list[str]:
        """The names of the categories."""
        return [MEMORY_CATEGORIES[place] for place in self.category.tolist()]

    @cached_property
    def _made(self) -> tuple[PlacedBlock, ...]:
        named, lives = self._program.variables, self._lives
        numbers = [column.tolist() for column in (self.variable, self.address, self.size_bytes, self.region)]
        return tuple(
            PlacedBlock(
                variable=variable,
                label=label,
                category=category,
                address=address,
                size_bytes=size_bytes,
                region=REGIONS[region],
                always_live=variable < 0 or named[variable].always_live,
                lives=lives,
            )
            for label, category, variable, address, size_bytes, region in zip(
                self.labels, self.categories, *numbers, strict=True
            )
        )

    def __len__(self) -> int:
        return len(self.variable)

    def __iter__(self) -> Iterator[PlacedBlock]:
        return iter(self._made)

    @overload
    def __getitem__(self, place: int) -> PlacedBlock: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[PlacedBlock]: ...
    def __getitem__(self, place: int | slice) -> PlacedBlock | Sequence[PlacedBlock]:
        return self._made[place]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TileAllocation:
    """One tile. `total_bytes` counts each allocated address once; `total_with_gaps_bytes` is what the out-of-memory
    message calls used: the spans used in each region, or the end of the last overflowing block.

    `category_bytes` sums to `total_bytes`, by `MEMORY_CATEGORIES`. `not_always_live_bytes` counts the addresses that
    shared variables use. `overflow_bytes` is how far the blocks without a place reach beyond the tile's memory.
    """

    ipu: int
    tile: int
    blocks: Blocks
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
        parts = [self.footprint.categories[name][ipu, tile] for name in FOOTPRINT_CATEGORIES]
        here, items = sharing.items(tile, np.array(parts, np.int64))
        memory = self.program.target.memory
        peak_bytes = int(self.bounds[ipu, tile]) - int(items.size_bytes[items.life < 0].sum())
        placed = place(memory, items, sharing.conflicts, peak_bytes, self.budget_bytes)
        blocks = Blocks(
            variable=sharing.variable[here],
            address=placed.addresses,
            size_bytes=items.size_bytes,
            category=sharing.category[here],
            region=placed.regions,
            program=self.program,
            lives=self.liveness.intervals,
        )
        return _summary(ipu, tile, blocks, items.life >= 0, memory)


class _Sharing:
    """What the tiles of one IPU have in common: what they hold, footprint categories first and variables after them,
    and which of its lifetimes meet. `variable` (-1: none) and `category` are int64[held].
    """

    def __init__(self, program: TileProgram, liveness: Liveness, ipu: int) -> None:
        columns, intervals = columns_of(program), liveness.intervals
        held = np.flatnonzero((columns.ipu == ipu) & (columns.always_live | (intervals.counts > 0)))
        life = np.full(len(held), ALWAYS)
        life[~columns.always_live[held]] = liveness.lives(ipu)
        self._every = _with_categories(life, columns.interleaved[held], intervals.take(held).lengths)
        self.conflicts: Conflicts = conflicts_of(liveness.life_changes(ipu), int(life.max(initial=-1)) + 1)
        self.variable = np.concatenate((np.full(len(FOOTPRINT_CATEGORIES), -1), held))
        named = [*FOOTPRINT_CATEGORIES, *(program.variables[number].kind for number in held.tolist())]
        rank_of = {name: rank for rank, name in enumerate(MEMORY_CATEGORIES)}
        self.category = np.array([rank_of[name] for name in named], np.int64)
        vectors, self._vector = np.unique(columns.vector[held], return_inverse=True)
        self._vectors = [columns.vectors[place] for place in vectors.tolist()]

    def items(self, tile: int, categories: IntArray) -> tuple[IntArray, Items]:
        """What has bytes on a tile, by its place among what the tiles hold, to be placed; `categories` are int64 bytes
        of the footprint's."""
        sizes = np.array([vector[tile] for vector in self._vectors], np.int64)[self._vector]
        return self._every.sized(np.concatenate((categories, sizes)))


def _with_categories(life: IntArray, interleaved: Flags, duration: IntArray) -> Items:
    """Variables behind the categories of a footprint, without sizes."""
    fixed = len(FOOTPRINT_CATEGORIES)
    code = np.zeros(fixed + len(life), bool)
    code[:fixed] = [name in CODE_CATEGORIES for name in FOOTPRINT_CATEGORIES]
    return Items(
        size_bytes=np.zeros(len(code), np.int64),
        life=np.concatenate((np.full(fixed, ALWAYS), life)),
        interleaved=np.concatenate((np.zeros(fixed, bool), interleaved)),
        code=code,
        duration=np.concatenate((np.zeros(fixed, np.int64), duration)),
    )


def _summary(ipu: int, tile: int, blocks: Blocks, shared: Flags, memory: MemoryMap) -> TileAllocation:
    start, sizes = blocks.address, blocks.size_bytes
    beyond = int((start + sizes)[blocks.region == REGIONS.index("overflow")].max(initial=0))
    by_category = covered_bytes(start, sizes, blocks.category)
    not_always_live = covered_bytes(start[shared], sizes[shared], blocks.category[shared])
    return TileAllocation(
        ipu=ipu,
        tile=tile,
        blocks=blocks,
        total_bytes=sum(by_category.values()),
        total_with_gaps_bytes=with_gaps_bytes(memory, start, sizes),
        not_always_live_bytes=sum(not_always_live.values()),
        overflow_bytes=max(0, beyond - memory.total_bytes),
        category_bytes=by_category,
    )


def covered_bytes(address: IntArray, size_bytes: IntArray, category: IntArray) -> dict[str, int]:
    """Addresses per category, each address once, for the first of its categories in `MEMORY_CATEGORIES`, of which
    `category` are places."""
    found = covered_by_rank(address, size_bytes, category, len(MEMORY_CATEGORIES))
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
        {(ipu, int(tile)) for ipu in range(program.ipus) for tile in classes[ipu][needs[ipu] > most_bytes]}
        - set(decisive),
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


def plain_placer(
    memory: MemoryMap, lives: Sequence[tuple[Interval, ...]], interleaved: Sequence[bool], budget_bytes: int
) -> Callable[[IntArray, int], IntArray]:
    """A function that places one tile of an IPU, whose variables have these lives (empty: always live).

    It tries to stay within `budget_bytes`, gaps included: what the tiles that decide the verdict use.

    It takes int64[categories + variables] of bytes, footprint categories first, and the most bytes that are live
    together without the always-live ones. It returns addresses in the same order, 0 where there are no bytes.
    """
    rows: dict[tuple[Interval, ...], int] = {}
    life = [rows.setdefault(spans, len(rows)) if spans else ALWAYS for spans in lives]
    duration = [sum(last - first + 1 for first, last in spans) for spans in lives]
    every = _with_categories(np.array(life, np.int64), np.array(interleaved, bool), np.array(duration, np.int64))
    meets = conflicts(list(rows))

    def place_tile(sizes: IntArray, peak_bytes: int) -> IntArray:
        held, items = every.sized(sizes)
        addresses = np.zeros(len(sizes), np.int64)
        addresses[held] = place(memory, items, meets, peak_bytes, budget_bytes).addresses
        return addresses

    return place_tile
