"""Which tile sends how much to which: two mappings of one tensor held against each other.

Two grids are compared axis by axis, without looking at elements: a box of the one and a box of the other share the
product of what their intervals share. Everything else is compared interval by interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

from workbench.base.arrays import IntArray
from workbench.profiler.exchanges.placements import MOST_ROWS, Axis, Cut, Listed, Placement, is_once, listed, sums


@dataclass(frozen=True, slots=True, eq=False)
class Arrows:
    """Bytes from tile to tile, int64[arrows] each, in order of the sender, then of the receiver; none within a tile."""

    sender: IntArray
    receiver: IntArray
    bytes: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class _Shares:
    """Elements that a holder has of what a tile needs: places (of tiles or intervals) and their number, in any order,
    a pair perhaps several times."""

    held: IntArray
    needed: IntArray
    elements: IntArray


def arrows_of(moves: Sequence[tuple[Placement, Placement, int]], tiles: int) -> Arrows | None:
    """The arrows of an exchange that is made of moves (held, needed, bytes of an element); None where there are too
    many pieces to go through."""
    matrix = np.zeros(tiles * tiles)
    for held, needed, itemsize in moves:
        found = _shares(held, needed, tiles)
        if found is None:
            return None
        # Weights are summed as float64, exact below 2**53 bytes.
        matrix += np.bincount(found.held * tiles + found.needed, found.elements * itemsize, tiles * tiles)
    matrix.reshape(tiles, tiles)[np.diag_indices(tiles)] = 0
    places = np.flatnonzero(matrix)
    return Arrows(places // tiles, places % tiles, matrix[places].astype(np.int64))


def _shares(held: Placement, needed: Placement, tiles: int) -> _Shares | None:
    if not held.size:
        return _Shares(*(np.zeros(0, np.int64) for _ in range(3)))
    if isinstance(needed, Cut) and is_once(needed):
        by_axes = _of_grids(held, needed, tiles) if isinstance(held, Cut) and is_once(held) else None
        one = by_axes or _of_listed(held, Cut(needed.size, needed.axes, needed.first_tile, np.zeros(1, np.int64)))
        return None if one is None else _copied(_summed(one, tiles), needed.replicas)
    return _of_listed(held, needed)


def _copied(found: _Shares, replicas: IntArray) -> _Shares | None:
    copies = len(replicas)
    if len(found.held) * copies > MOST_ROWS:
        return None
    receivers = (found.needed[:, None] + replicas).reshape(-1)
    return _Shares(np.repeat(found.held, copies), receivers, np.repeat(found.elements, copies))


def _summed(found: _Shares, tiles: int) -> _Shares:
    """The same with every pair once, where they are many."""
    if len(found.held) < tiles:
        return found
    places, inverse = np.unique(found.held * tiles + found.needed, return_inverse=True)
    elements = np.bincount(inverse, found.elements, len(places)).astype(np.int64)
    return _Shares(places // tiles, places % tiles, elements)


# Interval by interval


def _of_listed(held: Placement, needed: Placement) -> _Shares | None:
    have, need = listed(held), listed(needed)
    if have is None or need is None:
        return None
    found = _overlaps(_sorted(have), need)
    if found is None:
        return None
    own, wanted, elements = found
    return _Shares(_sorted(have).tile[own], need.tile[wanted], elements)


def _sorted(found: Listed) -> Listed:
    order = np.argsort(found.lo, kind="stable")
    return Listed(found.size, found.tile[order], found.lo[order], found.hi[order])


def _overlaps(have: Listed | Axis, need: Listed | Axis) -> tuple[IntArray, IntArray, IntArray] | None:
    """Places in `have`, which is sorted and disjoint, and in `need`, that share elements, and how many."""
    first = np.searchsorted(have.hi, need.lo, side="right")
    counts = np.searchsorted(have.lo, need.hi, side="left") - first
    total = int(counts.sum())
    if total > MOST_ROWS:
        return None
    wanted = np.repeat(np.arange(len(counts)), counts)
    own = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    elements = np.minimum(have.hi[own], need.hi[wanted]) - np.maximum(have.lo[own], need.lo[wanted])
    return own, wanted, elements


# Axis by axis


def _of_grids(held: Cut, needed: Cut, tiles: int) -> _Shares | None:
    """What boxes share; None where the cuts of one fall across the axes of the other, or are no partition."""
    dims = common_dims([axis.size for axis in held.axes], [axis.size for axis in needed.axes])
    have, need = (None, None) if dims is None else (_refined(held.axes, dims), _refined(needed.axes, dims))
    if have is None or need is None or any((np.diff(axis.lo) <= 0).any() for axis in have):
        return None
    found = _Shares(np.array([held.first_tile]), np.array([needed.first_tile]), np.ones(1, np.int64))
    for mine, theirs in zip(have, need, strict=True):
        shared = _overlaps(mine, theirs)
        if shared is None or len(shared[0]) * len(found.held) > MOST_ROWS:
            return None
        own, wanted, elements = shared
        found = _Shares(
            sums([found.held, mine.offset[own]]),
            sums([found.needed, theirs.offset[wanted]]),
            np.multiply.outer(found.elements, elements).reshape(-1),
        )
    return found


def common_dims(first: Sequence[int], second: Sequence[int]) -> list[int] | None:
    """The sizes that both can be factored along, without those of 1; None where one does not divide the other."""
    ends = sorted({*_inner(first), *_inner(second)})
    if any(after % before for before, after in pairwise(ends)):
        return None
    return [after // before for before, after in pairwise(ends)][::-1]


def _inner(dims: Sequence[int]) -> set[int]:
    """Elements inside each axis and those before it."""
    return {prod(dims[place:]) for place in range(len(dims) + 1)}


def _refined(axes: Sequence[Axis], dims: Sequence[int]) -> list[Axis] | None:
    """Axes along finer dims: those that are split have to be cut between the outer parts of them."""
    left, found = list(dims), []
    for axis in axes:
        sizes: list[int] = []
        while prod(sizes) < axis.size:
            sizes.append(left.pop(0))
        inner = prod(sizes[1:])
        if not sizes:
            if len(axis.lo) != 1 or axis.offset[0]:
                return None
            continue
        if (axis.lo % inner).any() or (axis.hi % inner).any():
            return None
        found.append(Axis(sizes[0], axis.lo // inner, axis.hi // inner, axis.offset))
        found += [Axis(size, *(np.array([each], np.int64) for each in (0, size, 0))) for size in sizes[1:]]
    return found
