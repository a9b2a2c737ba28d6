"""What the exchange moves so that every tile gets what it needs, per tile in bytes and pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from workbench.base.arrays import IntArray, shared
from workbench.engine.mapping.axes import grid_rows, is_simple
from workbench.engine.mapping.grid import Grid
from workbench.engine.mapping.joined import clipped, parts_of
from workbench.engine.mapping.transfer.by_axes import grid_to_grid, grid_to_strided, owner_to_owner
from workbench.engine.mapping.transfer.by_lines import (
    FlatRuns,
    grid_to_runs,
    runs_to_grid,
    runs_to_runs,
    turned_to_turned,
)
from workbench.engine.mapping.transfer.sweep import Counts, sweep
from workbench.engine.mapping.turned import Turned, as_turned, pulled
from workbench.engine.mapping.types import Demand, Linear, Mapping, Placement, Runs, all_distinct, owned
from workbench.engine.remembered import remembered
from workbench.errors import InputError

# Above so many rows a sweep takes longer than a tenth of a second.
MOST_ROWS = 300_000
MOST_RUNS = 1_000_000
FEW_ROWS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transfer:
    """One exchange, per tile: read-only int64[tiles], in bytes unless said otherwise.

    `sent_bytes` counts an element once however many tiles receive it (the exchange broadcasts); `received_bytes`
    counts it once per receiver; `local_bytes` is what a tile needs and already holds. `fragments` are contiguous
    pieces of a tile's own memory: those it receives (each from one tile) plus those it sends (each to one set of
    tiles). A tile keeps its elements in the order of the tensor's flat index; for a turned view, in that of its base;
    between two grids, in groups of channels (`in_memory_order`); of a joined tensor, part by part.
    """

    sent_bytes: IntArray
    received_bytes: IntArray
    local_bytes: IntArray
    fragments: IntArray

    @property
    def total_bytes(self) -> int:
        """Bytes received over all tiles."""
        return int(self.received_bytes.sum())

    @property
    def empty(self) -> bool:
        """Whether nothing crosses the exchange."""
        return not self.received_bytes.any()

    def __str__(self) -> str:
        return (
            f"Transfer({self.total_bytes} B received, {int(self.sent_bytes.sum())} B sent, "
            f"{int(self.local_bytes.sum())} B local, at most {int(self.received_bytes.max(initial=0))} B into a tile)"
        )


def transfer(src: Mapping, dst: Placement, itemsize: int, tiles: int) -> Transfer:
    """Move a tensor from where `src` holds it to where `dst` (an owner or a demand) needs it; cached.

    `itemsize` is in bytes, `tiles` is the number of tiles of the IPU. Both are over one flat index space; their
    shapes may differ by a reshape. Raises InputError if their sizes differ, a tile is outside the IPU, or an element
    of `src` has no owner or several.
    """
    if src.size != dst.size:
        raise InputError(f"a transfer from {src} to {dst}", expected="as many elements on both sides")
    return _transfer(src, dst, itemsize, tiles)


@remembered(2048)
def _transfer(src: Mapping, dst: Placement, itemsize: int, tiles: int) -> Transfer:
    if not src.is_owner:
        raise InputError(f"a transfer from {src}", expected="a mapping in which every element has one owner")
    if isinstance(dst, Runs) and not dst.is_owner:
        raise InputError(f"a transfer to {dst}", expected="a mapping in which every element has a tile")
    counts = _known_counts(src, dst, tiles)
    return Transfer(
        sent_bytes=shared(counts.sent * itemsize),
        received_bytes=shared(counts.received * itemsize),
        local_bytes=shared(counts.local * itemsize),
        fragments=shared(counts.pieces),
    )


@lru_cache(maxsize=64)
def _known_counts(src: Mapping, dst: Placement, tiles: int) -> Counts:
    """The counts for tensors of other types that lie alike too."""
    return transfer_counts(src, dst, tiles)


def transfer_counts(src: Mapping, dst: Placement, tiles: int) -> Counts:
    """`transfer` in elements and pieces, by the fastest exact method for the two placements."""
    if src == dst or not src.size:
        none = np.zeros(tiles, dtype=np.int64)
        return Counts(sent=none, received=none, local=dst.elements_per_tile(tiles), pieces=none)
    for method in METHODS:
        counts = method(src, dst, tiles)
        if counts is not None:
            return counts
    return sweep(src.runs(), dst.intervals(), src.size, tiles)


def by_parts(src: Mapping, dst: Placement, tiles: int) -> Counts | None:
    """What every part of a joined tensor sends: each is a variable, whose elements lie together."""
    pairs = pairs_of_parts(src, dst)
    if pairs is None:
        return None
    counts = [transfer_counts(have, need, tiles) for have, need in pairs]
    return Counts(
        sent=_total([each.sent for each in counts]),
        received=_total([each.received for each in counts]),
        local=_total([each.local for each in counts]),
        pieces=_total([each.pieces for each in counts]),
    )


def pairs_of_parts(src: Mapping, dst: Placement) -> list[tuple[Mapping, Grid]] | None:
    """The parts of a joined tensor and what is needed of each, where this is a grid."""
    found = parts_of(src)
    if found is None or not isinstance(dst, Grid) or dst.shape != src.shape:
        return None
    axis, parts = found
    needs = [clipped(dst, axis, part.first, part.size(axis)) for part in parts]
    pairs = [(part.mapping, need) for part, need in zip(parts, needs, strict=True) if need is not None]
    return pairs if len(pairs) == len(parts) else None


def _total(per_tile: Sequence[IntArray]) -> IntArray:
    total: IntArray = np.sum(per_tile, axis=0)
    return total


def by_axes(src: Mapping, dst: Placement, tiles: int) -> Counts | None:
    """Between grids, axis by axis: no element is looked at."""
    return grid_to_grid(src, dst, tiles) if isinstance(src, Grid) and isinstance(dst, Grid) else None


def by_strides(src: Mapping, dst: Placement, tiles: int) -> Counts | None:
    """Between grids where the axes of the one are strides of those of the other, in the order of the flat index."""
    return grid_to_strided(src, dst, tiles) if isinstance(src, Grid) and isinstance(dst, Grid) else None


def by_turning(src: Mapping, dst: Placement, tiles: int) -> Counts | None:
    """What a view needs or holds, seen in the order of its base."""
    if isinstance(src, Turned) and isinstance(dst, Turned):
        same = (src.dims, src.perm, src.flipped) == (dst.dims, dst.perm, dst.flipped)
        return transfer_counts(src.base, dst.base, tiles) if same else None
    if isinstance(src, Turned) and isinstance(dst, Grid):
        seen = pulled(dst, src)
        return None if seen is None else transfer_counts(seen[1], seen[0], tiles)
    if isinstance(src, Grid) and isinstance(dst, Turned):
        seen = pulled(src, dst)
        return None if seen is None else transfer_counts(seen[0], seen[1], tiles)
    return None


def by_products(src: Mapping, dst: Placement, tiles: int) -> Counts | None:
    """Between runs and a grid: each run cuts the axes of the grid."""
    if isinstance(dst, Grid) and is_simple(dst) and _goes_flat(src, dst):
        return runs_to_grid(_flat(src), dst, tiles)
    if isinstance(src, Grid) and is_simple(src) and isinstance(dst, Mapping) and _goes_flat(dst, src):
        return grid_to_runs(src, _flat(dst), tiles)
    return None


def by_runs(src: Mapping, dst: Placement, tiles: int) -> Counts | None:
    """Between runs in the order of the flat index, one a tile."""
    if isinstance(src, Linear | Runs) and isinstance(dst, Linear | Runs):
        return runs_to_runs(src, dst, tiles)
    return None


def by_lines(src: Mapping, dst: Placement, tiles: int) -> Counts | None:
    """Where one side is turned: line by line."""
    if not isinstance(dst, Mapping) or not (isinstance(src, Turned) or isinstance(dst, Turned)):
        return None
    have, need = as_turned(src, flat=True), as_turned(dst, flat=True)
    return None if have is None or need is None else turned_to_turned(have, need, tiles)


def by_elements(src: Mapping, dst: Placement, tiles: int) -> Counts | None:
    """Element by element, where that is quicker than by rows."""
    if not isinstance(dst, Mapping):
        return _by_owned_elements(src, dst, tiles)
    quicker = dst.is_owner and is_dense(_row_count(src) + _row_count(dst), src)
    return owner_to_owner(src, dst, tiles) if quicker else None


def _by_owned_elements(src: Mapping, dst: Placement, tiles: int) -> Counts | None:
    """The same where every element is needed by just one tile; a turned view is swept in the order of its index."""
    if not isinstance(dst, Demand) or isinstance(src, Turned):
        return None
    need = owned(dst) if is_dense(_row_count(src) + len(dst.tile), src) else None
    return None if need is None else owner_to_owner(src, need, tiles)


def is_dense(rows: int, src: Mapping) -> bool:
    """Whether going through the elements takes less time than going through so many rows of runs."""
    return rows > FEW_ROWS and rows * 20 > src.size


# Fastest first; the sweep takes what they leave.
METHODS = (by_parts, by_axes, by_strides, by_turning, by_runs, by_products, by_lines, by_elements)


def _row_count(mapping: Mapping) -> int:
    """Runs of a mapping, or a bound of them, without making them."""
    if isinstance(mapping, Turned):
        return mapping.size
    return grid_rows(mapping) if isinstance(mapping, Grid) else len(mapping.runs()[0])


def _flat(mapping: Mapping) -> FlatRuns:
    starts, owners = mapping.runs()
    return FlatRuns(lo=starts, hi=np.append(starts[1:], mapping.size), tile=owners)


def _goes_flat(mapping: Mapping, grid: Grid) -> bool:
    """Whether runs and parts are to be counted as products: exact if each tile has one run, else for size."""
    if not isinstance(mapping, (Linear, Runs)):
        return False
    owners = mapping.runs()[1]
    return len(owners) <= MOST_RUNS and (all_distinct(owners) or grid_rows(grid) > MOST_ROWS)
