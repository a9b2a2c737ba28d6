"""Mappings as a profile keeps them (`engine/program/moves.py` writes them): grids, cut along each axis, or intervals.

Whatever a file says is checked before anything is made of it, and what would take too much memory is not made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.base.whole import whole
from workbench.errors import InputError
from workbench.profiler.schema import Table, parsed

MOST_ELEMENTS = 1 << 48  # of a tensor: no sum of bytes is beyond 64 bits
MOST_ROWS = 40_000_000  # of intervals that are listed one by one


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """Intervals [lo, hi) of one axis of `size` elements; each adds its `offset` to the tile number."""

    size: int
    lo: IntArray
    hi: IntArray
    offset: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A tensor cut along each axis: every box is on the tile of `first_tile` and the offsets of its intervals, and
    again at each of `replicas`."""

    size: int
    axes: tuple[Axis, ...]
    first_tile: int
    replicas: IntArray

    def tiles(self) -> IntArray:
        """The tile of each box, row-major over the axes' intervals, without replicas."""
        return sums([axis.offset for axis in self.axes], self.first_tile)


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Intervals [lo, hi) of the flat index of `size` elements, each on a tile."""

    size: int
    tile: IntArray
    lo: IntArray
    hi: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Turned:
    """What `base` holds over `dims`, with the axes in the order of `perm` and those `flipped` read backwards."""

    size: int
    base: Listed
    dims: tuple[int, ...]
    perm: tuple[int, ...]
    flipped: tuple[int, ...]


Placement: TypeAlias = Cut | Listed | Turned


def sums(parts: Sequence[IntArray], start: int = 0) -> IntArray:
    """Sums of one item of each part, flat in row-major order, plus `start`."""
    flat = np.array([start], dtype=np.int64)
    for part in parts:
        flat = (flat[:, None] + part).reshape(-1)
    return flat


def placements_of(table: Table, numbers: IntArray, tiles: int) -> tuple[Placement, ...]:
    """The mappings of the table "placements" and all their numbers; a `ValueError` where they do not hold together."""
    ends = np.cumsum(table["numbers"])
    if (table["numbers"] < 0).any() or int(ends[-1] if len(ends) else 0) != len(numbers):
        raise ValueError("mappings have more or fewer numbers than there are")
    parts = np.split(numbers, ends[:-1]) if len(ends) else []
    return tuple(
        _placement(kind, _head(head), part, tiles)
        for kind, head, part in zip(table["kind"].tolist(), table["head"].tolist(), parts, strict=True)
    )


def _head(text: str) -> dict[str, Any]:
    found = parsed(text)
    if not isinstance(found, dict):
        raise ValueError("a mapping is not described")
    return found


def _placement(kind: str, head: dict[str, Any], numbers: IntArray, tiles: int) -> Placement:
    try:
        size = whole("size", head["size"], least=0, most=MOST_ELEMENTS)
        made: Placement = _KINDS[kind](size, head, numbers, tiles)
    except (InputError, KeyError, TypeError) as problem:
        raise ValueError(f"a mapping cannot be read: {problem}") from problem
    return made


def _linear(size: int, head: dict[str, Any], numbers: IntArray, tiles: int) -> Listed:
    """Grains spread evenly: tile i of t holds grains floor(i G / t) to floor((i + 1) G / t)."""
    grain, used = whole("grain", head["grain"], least=1), whole("tiles", head["tiles"], least=1, most=tiles)
    first, around = whole("first", head["first_tile"], least=0), whole("around", head["tiles_of_ipu"], least=0)
    grains = ceil_div(size, grain)
    bounds = np.minimum(np.arange(used + 1, dtype=np.int64) * grains // used * grain, size)
    tile = first + np.arange(used, dtype=np.int64)
    filled = bounds[1:] > bounds[:-1]
    found = Listed(size, (tile % around if around else tile)[filled], bounds[:-1][filled], bounds[1:][filled])
    return _sound(found, tiles, is_partition=True)


def _runs(size: int, head: dict[str, Any], numbers: IntArray, tiles: int) -> Listed:
    starts, owners = _split(numbers, [whole("runs", head["runs"], least=0)] * 2)
    lo = np.cumsum(starts)
    return _sound(Listed(size, np.cumsum(owners), lo, np.append(lo[1:], size)[: len(lo)]), tiles, is_partition=True)


def _demand(size: int, head: dict[str, Any], numbers: IntArray, tiles: int) -> Listed:
    tile, lo, lengths = _split(numbers, [whole("intervals", head["intervals"], least=0)] * 3)
    lo = np.cumsum(lo)
    return _sound(Listed(size, np.cumsum(tile), lo, lo + lengths), tiles)


def _turned(size: int, head: dict[str, Any], numbers: IntArray, tiles: int) -> Turned:
    dims = tuple(whole("dims", each, least=1) for each in head["dims"])
    perm, flipped = tuple(head["perm"]), tuple(head["flipped"])
    of, base = head["of"], head["base"]
    if of not in ("linear", "runs") or not isinstance(base, dict):
        raise ValueError("a view is of no flat mapping")
    if sorted(perm) != list(range(len(dims))) or not set(flipped) <= set(perm) or prod(dims) != size:
        raise ValueError("a view has other axes than its mapping")
    flat = _placement(of, base, numbers, tiles)
    if not isinstance(flat, Listed) or flat.size != size:
        raise ValueError("a view has another size than its mapping")
    return Turned(size, flat, dims, perm, flipped)


def _cut(size: int, head: dict[str, Any], numbers: IntArray, tiles: int) -> Cut:
    axes = [[whole("axis", each, least=0) for each in pair] for pair in head["axes"]]
    if any(len(pair) != 2 for pair in axes) or prod(pair[0] for pair in axes) != size:
        raise ValueError("a grid has another size than its axes")
    counts = [count for _, count in axes for _ in range(3)]
    *parts, replicas = _split(numbers, [*counts, whole("replicas", head["replicas"], least=1)])
    made = []
    for place, (length, _) in enumerate(axes):
        lo, lengths, offset = parts[3 * place : 3 * place + 3]
        lo = np.cumsum(lo)
        axis = Axis(length, lo, lo + lengths, np.cumsum(offset))
        _within(axis.lo, axis.hi, length)
        made.append(axis)
    found = Cut(size, tuple(made), whole("first_tile", head["first_tile"], least=0), np.cumsum(replicas))
    ends = [(part.min(initial=0), part.max(initial=0)) for part in (*(axis.offset for axis in made), found.replicas)]
    if found.first_tile + sum(low for low, _ in ends) < 0 or found.first_tile + sum(high for _, high in ends) >= tiles:
        raise ValueError("a grid is on a tile that is not there")
    return found


_KINDS: dict[str, Callable[[int, dict[str, Any], IntArray, int], Placement]] = {
    "linear": _linear,
    "runs": _runs,
    "demand": _demand,
    "turned": _turned,
    "grid": _cut,
}


def _split(numbers: IntArray, counts: Sequence[int]) -> list[IntArray]:
    if sum(counts) != len(numbers):
        raise ValueError("a mapping has more or fewer numbers than it says")
    return np.split(numbers, np.cumsum(counts)[:-1])


def _within(lo: IntArray, hi: IntArray, size: int) -> None:
    if len(lo) and (lo.min() < 0 or hi.max() > size or (hi <= lo).any()):
        raise ValueError("an interval of a mapping is not within it")


def _sound(found: Listed, tiles: int, *, is_partition: bool = False) -> Listed:
    _within(found.lo, found.hi, found.size)
    if len(found.tile) and (found.tile.min() < 0 or found.tile.max() >= tiles):
        raise ValueError("a mapping is on a tile that is not there")
    if is_partition and ((found.lo[1:] != found.hi[:-1]).any() or (len(found.lo) and found.lo[0])):
        raise ValueError("a mapping leaves elements out, or has them twice")
    return found


# Intervals of what is cut or turned


def listed(placement: Placement) -> Listed | None:
    """A placement as intervals, those of a tile joined where it would have an element twice; replicas too.

    None where there are more than MOST_ROWS of them.
    """
    if isinstance(placement, Listed):
        return placement
    return _of_turned(placement) if isinstance(placement, Turned) else _of_cut(placement)


def _of_turned(view: Turned) -> Listed | None:
    if view.size > MOST_ROWS:
        return None
    owners = np.repeat(view.base.tile.astype(np.int32), view.base.hi - view.base.lo).reshape(view.dims)
    flat = np.flip(owners, view.flipped).transpose(view.perm).reshape(-1)
    starts = np.flatnonzero(np.append(True, flat[1:] != flat[:-1]))[: len(flat)]
    return Listed(view.size, flat[starts].astype(np.int64), starts, np.append(starts[1:], view.size)[: len(starts)])


def is_once(grid: Cut) -> bool:
    """Whether no tile has two boxes of a grid, which might overlap."""
    if prod(len(axis.lo) for axis in grid.axes) * len(grid.replicas) > MOST_ROWS:
        return False
    where = sums([grid.tiles(), grid.replicas])
    return len(np.unique(where)) == len(where)


def _of_cut(grid: Cut) -> Listed | None:
    inner = max((place for place, axis in enumerate(grid.axes) if not _is_whole(axis)), default=-1)
    rows = [int((axis.hi - axis.lo).sum()) for axis in grid.axes[: max(0, inner)]]
    last = grid.axes[inner] if inner >= 0 else Axis(grid.size, *(np.array([each]) for each in (0, grid.size, 0)))
    if prod(rows) * len(last.lo) * len(grid.replicas) > MOST_ROWS:
        return None
    step = prod(axis.size for axis in grid.axes[inner + 1 :]) if inner >= 0 else 1
    tile, start = np.array([grid.first_tile], np.int64), np.zeros(1, np.int64)
    for place, axis in enumerate(grid.axes[: max(0, inner)]):
        stride = prod(each.size for each in grid.axes[place + 1 :])
        lengths = axis.hi - axis.lo
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        tile = (tile[:, None] + np.repeat(axis.offset, lengths)).reshape(-1)
        start = (start[:, None] + (np.repeat(axis.lo, lengths) + within) * stride).reshape(-1)
    lo, hi = (sums([start, edge * step]) for edge in (last.lo, last.hi))
    tile, copies = sums([tile, last.offset, grid.replicas]), len(grid.replicas)
    return joined(Listed(grid.size, tile, np.repeat(lo, copies), np.repeat(hi, copies)))


def _is_whole(axis: Axis) -> bool:
    return len(axis.lo) == 1 and axis.lo[0] == 0 and int(axis.hi[0]) == axis.size


def joined(found: Listed) -> Listed:
    """Intervals sorted by tile and index, those of one tile that overlap or touch joined."""
    lane = found.tile * (found.size + 1)
    order = np.argsort(lane + found.lo, kind="stable")
    tile, lo, hi, lane = found.tile[order], found.lo[order], found.hi[order], lane[order]
    if not len(tile):
        return found
    reach = np.maximum.accumulate(hi + lane)
    opens = np.append(True, lo[1:] + lane[1:] > reach[:-1])
    closes = np.append(np.flatnonzero(opens)[1:] - 1, len(tile) - 1)
    return Listed(found.size, tile[opens], lo[opens], (reach - lane)[closes])
