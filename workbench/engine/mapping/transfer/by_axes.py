"""Transfers between two grids axis by axis, and between two owners element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, ceil_div
from workbench.engine.mapping.axes import (
    Cover,
    Marks,
    common_dims,
    group,
    in_memory_order,
    is_simple,
    part_index,
    position_of,
    refine,
    tiles_of_copies,
)
from workbench.engine.mapping.grid import Cuts, Grid, cuts, grid_of_cuts
from workbench.engine.mapping.transfer.sweep import Counts
from workbench.engine.mapping.turned import Turned
from workbench.engine.mapping.types import Mapping, TileArray, all_distinct
from workbench.engine.remembered import remembered

Flags: TypeAlias = npt.NDArray[np.bool_]


def grid_to_grid(src: Grid, dst: Grid, tiles: int) -> Counts | None:
    """The transfer, or None where the cuts of one fall across the axes of the other or a tile has several parts."""
    ordered = in_memory_order(src, dst) if is_simple(src) and is_simple(dst) else None
    if ordered is None:
        return None
    have, need = ordered
    return _Pair(have, need, tiles, (EACH,) * len(need.axes)).counts(dst.elements_per_tile(tiles))


def grid_to_strided(src: Grid, dst: Grid, tiles: int) -> Counts | None:
    """The transfer to what needs every so-maniest position of some axes, as a convolution with strides does.

    The cuts of `src` may fall anywhere: they are seen among the positions needed. None where nothing is strided so.
    """
    dims = common_dims(src.dims, dst.dims)
    wanted = refine(dst, dims) if dims is not None and src.size else None
    if dims is None or wanted is None or len(wanted.axes) != len(dims):
        return None
    left = iter(wanted.axes)
    have_axes: list[Cuts] = []
    need_axes: list[Cuts] = []
    strides: list[Stride] = []
    first_tile = wanted.first_tile
    for held, sizes in zip(src.axes, group(dims, src.dims), strict=True):
        if not sizes:
            return None
        outer, *inner = (next(left) for _ in sizes)
        if any(len(axis) != 1 or axis.hi[0] - axis.lo[0] != 1 for axis in inner):
            return None
        if inner:
            step, first = prod(sizes[1:]), int(np.ravel_multi_index([axis.lo[0] for axis in inner], sizes[1:]))
            stride, least = Stride(step, first), 0
        else:
            outer, stride, least = _single_positions(outer)
        first_tile += least
        have_axes.append(held)
        need_axes.append(outer)
        strides.append(stride)
    shape = [axis.size for axis in need_axes]
    have = grid_of_cuts(src.dims, have_axes, first_tile=src.first_tile, replicas=src.replicas)
    need = grid_of_cuts(shape, need_axes, first_tile=first_tile, replicas=wanted.replicas)
    if all(stride.step == 1 for stride in strides) or not is_simple(have) or not is_simple(need):
        return None
    return _Pair(have, need, tiles, tuple(strides)).counts(dst.elements_per_tile(tiles))


def _single_positions(axis: Cuts) -> tuple[Cuts, Stride, int]:
    """An axis of which intervals of one position are needed, every so-maniest, as cuts of these alone, with what that
    takes out of the tile numbers; any other axis as it is. So are strides that do not divide the axis.
    """
    step = int(np.gcd.reduce(np.diff(axis.lo), initial=0)) if (axis.lengths == 1).all() else 0
    if step < 2:
        return axis, EACH, 0
    first = int(axis.lo[0]) % step
    place = (axis.lo - first) // step
    part, least = cuts(ceil_div(axis.size - first, step), place, place + 1, axis.offset)
    return part, Stride(step, first), least


@dataclass(frozen=True, slots=True)
class Stride:
    """The positions of an axis that somebody may need: every `step`-th from `first` on."""

    step: int
    first: int

    def below(self, at: IntArray) -> IntArray:
        """How many of them are less than each of `at`."""
        return at if self.step == 1 else (at - self.first + self.step - 1) // self.step

    def rings(self, lo: IntArray, hi: IntArray) -> Flags:
        """Whether each [lo, hi) begins with one of them and ends with another."""
        ends = (self.below(lo + 1) > self.below(lo)) & (self.below(hi) > self.below(hi - 1))
        return np.asarray(ends & (hi - lo > 1))

    def spread(self, wanted: Cuts, size: int) -> Cover:
        """The cover of an axis of so many positions by intervals of those that may be needed."""
        ranges = [np.arange(lo, hi) for lo, hi in zip(wanted.lo.tolist(), wanted.hi.tolist(), strict=True)]
        at = np.concatenate(ranges) * self.step + self.first
        return Cover(Cuts(size=size, lo=np.sort(at), hi=np.sort(at) + 1, offset=np.zeros_like(at)))


EACH = Stride(1, 0)


def strict_pieces(part: Sequence[IntArray], box: Sequence[IntArray], rings: Sequence[Flags | None] = ()) -> IntArray:
    """Contiguous pieces of a part's memory that a box in it fills: the elements of its axes outside the last cut one.

    `part` and `box` are lengths along each axis; a box without elements has no piece. Of an axis with `rings` the box
    has no two neighbours: each is a piece, but the last of a row and the first of the next, where it has both, are one.
    """
    pieces = outer = np.ones(1, dtype=np.int64)
    for whole, length, ring in zip(part, box, rings or (None,) * len(part), strict=True):
        if ring is None and len(whole) == len(length) == 1:
            pieces = outer if length[0] < whole[0] else pieces
            outer = outer if length[0] == 1 else outer * length
            continue
        if ring is None:
            pieces = np.where(length < whole, outer, pieces)
        else:
            pieces = np.where(whole > 1, outer * length - (outer - pieces) * ring, pieces)
        outer = outer * length
    return np.where(outer > 0, pieces, 0)


@dataclass(frozen=True, slots=True)
class _Pair:
    """An owner grid and a simple grid that needs, whose axes are those positions of the owner's that have the strides.

    Pieces that a tile sends are of its own memory, which has the positions between as well; what it receives lies
    together.
    """

    have: Grid
    need: Grid
    tiles: int
    strides: tuple[Stride, ...]

    def counts(self, needed: IntArray) -> Counts:
        copies = len(self.need.replicas)
        owners, where = tiles_of_copies(self.have), tiles_of_copies(self.need)
        at = position_of(owners, self.tiles)[where]
        met = np.flatnonzero(at >= 0)
        pairs = zip(self.have.axes, self.need.axes, self.strides, strict=True)
        axes = [_axis_of(_bounds(held), _bounds(wanted), stride) for held, wanted, stride in pairs]
        have, need = part_index(self.have, at[met]), part_index(self.need, met // copies)
        local, kept, own = self._own(axes, have, need)
        covered, sent_pieces = _sent(axes)
        here = where[met]  # no tile comes twice: neither grid has two parts on one
        local_of_tile, sent, pieces = np.zeros((3, self.tiles), dtype=np.int64)
        local_of_tile[here] = local
        sent[owners] = covered
        sent[here] -= kept
        received_pieces = _received_pieces(axes)
        pieces[where] = np.repeat(received_pieces, copies) if copies > 1 else received_pieces
        pieces[owners] += sent_pieces
        pieces[here] -= own
        return Counts(sent=sent, received=needed - local_of_tile, local=local_of_tile, pieces=pieces)

    def _own(
        self, axes: Sequence[_Axis], have: list[IntArray], need: list[IntArray]
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Of each tile with both parts: elements in both, those only it needs, and their pieces in either memory; one
        number where all are alike."""
        local = kept = np.ones(1, dtype=np.int64)
        shared, alone, have_lengths, need_lengths = [], [], [], []
        rings: list[Flags | None] = []
        for axis, i, k in zip(axes, have, need, strict=True):
            met = axis.met(i, k)
            shared.append(met.shared)
            alone.append(met.alone)
            rings.append(met.ring)
            have_lengths.append(axis.held[i] if len(axis.held) > 1 else axis.held)
            need_lengths.append(axis.wanted[k] if len(axis.wanted) > 1 else axis.wanted)
            local = local * met.shared
        if len(self.need.replicas) > 1:
            alone = [np.zeros_like(length) for length in alone] or [np.zeros(1, dtype=np.int64)]
            have_lengths = have_lengths or [np.ones(1, dtype=np.int64)]
        for length in alone:
            kept = kept * length
        return local, kept, strict_pieces(need_lengths, shared) + strict_pieces(have_lengths, alone, rings)


def _sent(axes: Sequence[_Axis]) -> tuple[IntArray, IntArray]:
    """Of each owned part: elements somebody needs, and pieces of them with one set of receivers."""
    covered = pieces = np.ones(1, dtype=np.int64)
    for axis in axes:
        if len(axis.filled) == 1 and axis.one_set is None:
            pieces = covered * axis.filled if axis.is_cut[0] else pieces * (axis.filled > 0)
            covered = covered if axis.covered[0] == 1 else covered * axis.covered
            continue
        several = np.multiply.outer(covered, axis.filled)
        if axis.one_set is not None:
            several -= np.multiply.outer(covered - pieces, axis.one_set)
        pieces = np.where(axis.is_cut, several, pieces[:, None] * (axis.filled > 0)).reshape(-1)
        covered = np.multiply.outer(covered, axis.covered).reshape(-1)
    return covered, pieces


def _received_pieces(axes: Sequence[_Axis]) -> IntArray:
    """Of each needed part: pieces of one owner, in the order of its own memory, its own among them."""
    outer = pieces = np.ones(1, dtype=np.int64)
    for axis in axes:
        if len(axis.owners) == 1:
            pieces = outer * axis.owners if axis.owners[0] > 1 else pieces
            outer = outer if axis.wanted[0] == 1 else outer * axis.wanted
            continue
        pieces = np.where(axis.owners > 1, np.multiply.outer(outer, axis.owners), pieces[:, None]).reshape(-1)
        outer = np.multiply.outer(outer, axis.wanted).reshape(-1)
    return pieces


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Met:
    """Where a held interval meets a needed one: positions of both, those nobody else needs, and whether these go round
    from one row of the memory to the next (None: rows are whole).
    """

    shared: IntArray
    alone: IntArray
    ring: Flags | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Axis:
    """What the cuts of an axis, held and needed, have in common, whatever tiles they are on.

    `held` and `wanted` are lengths of intervals. Of each that is held: positions somebody needs, the segments of one
    set of receivers that they are in, whether it has others too, and whether its ends have one set (None: no
    matter). `owners` of each that is needed. `table` is of all pairs, flat, unless they are many.
    """

    held: IntArray
    wanted: IntArray
    covered: IntArray
    filled: IntArray
    is_cut: Flags
    one_set: Flags | None
    owners: IntArray
    table: _Met | None
    meet: Callable[[IntArray, IntArray], _Met]

    def met(self, i: IntArray, k: IntArray) -> _Met:
        """Held intervals with the needed ones beside them; one element where all are alike."""
        if self.table is None:
            return self.meet(i, k)
        if len(self.table.shared) == 1:
            return self.table
        at = k if len(self.held) == 1 else i if len(self.wanted) == 1 else i * len(self.wanted) + k
        ring = None if self.table.ring is None else self.table.ring[at]
        return _Met(shared=self.table.shared[at], alone=self.table.alone[at], ring=ring)


MOST_PAIRS = 4096  # of intervals of an axis that are all worked out; each tile asks for one of them
Bounds: TypeAlias = tuple[int, bytes, bytes]


def _bounds(axis: Cuts) -> Bounds:
    """Size and intervals of an axis as what can be looked up."""
    return axis.size, *(axis.content[:2] if axis.content else (axis.lo.tobytes(), axis.hi.tobytes()))


def _cuts(bounds: Bounds) -> Cuts:
    size, lo, hi = bounds
    first = np.frombuffer(lo, dtype=np.int64)
    return Cuts(size=size, lo=first, hi=np.frombuffer(hi, dtype=np.int64), offset=np.zeros_like(first))


@remembered(4096)
def _axis_of(held_bounds: Bounds, wanted_bounds: Bounds, stride: Stride) -> _Axis:
    """The axis; grids that are cut alike along one are met again and again."""
    held, wanted = _cuts(held_bounds), _cuts(wanted_bounds)
    needed = Cover(wanted)
    cover = stride.spread(wanted, held.size) if stride.step > 1 else needed
    marks = cover.covered()
    segments, filled = cover.segments(held.lo, held.hi)
    begins = np.unique(stride.below(held.lo)) if stride.step > 1 else held.lo
    first = np.searchsorted(begins, wanted.lo, side="right")
    meet = partial(_meet, held, wanted, stride, needed.single())
    few = len(held) * len(wanted) <= MOST_PAIRS
    table = (
        meet(np.repeat(np.arange(len(held)), len(wanted)), np.tile(np.arange(len(wanted)), len(held))) if few else None
    )
    return _Axis(
        held=held.lengths,
        wanted=wanted.lengths,
        covered=marks.below(held.hi) - marks.below(held.lo),
        filled=filled,
        is_cut=segments > 1,
        one_set=_one_set(stride, held, needed) if stride.step > 1 else None,
        owners=np.searchsorted(begins, wanted.hi, side="left") - first + 1,
        table=table,
        meet=meet,
    )


def _meet(held: Cuts, wanted: Cuts, stride: Stride, single: Marks, i: IntArray, k: IntArray) -> _Met:
    """Held intervals with the needed ones beside them."""
    begin, end = stride.below(held.lo[i]), stride.below(held.hi[i])
    lo = np.maximum(begin, wanted.lo[k])
    hi = np.maximum(np.minimum(end, wanted.hi[k]), lo)
    alone = single.below(hi) - single.below(lo)
    ring = stride.rings(held.lo[i], held.hi[i]) & (alone == end - begin) if stride.step > 1 else None
    return _Met(shared=hi - lo, alone=alone, ring=ring)


def _one_set(stride: Stride, held: Cuts, cover: Cover) -> Flags:
    """Whether each interval begins and ends with positions that the same intervals of the cover need."""
    first, last = stride.below(held.lo), stride.below(held.hi) - 1
    segment = np.searchsorted(cover.edges, first, side="right") - 1
    same = segment == np.searchsorted(cover.edges, last, side="right") - 1
    return np.asarray(stride.rings(held.lo, held.hi) & same & (np.append(cover.cover, 0)[segment] > 0))


def owner_to_owner(src: Mapping, dst: Mapping, tiles: int) -> Counts:
    """The transfer; each tile's memory is walked in the order of the base of its mapping."""
    have, need = src.tile_of_elements(), dst.tile_of_elements()
    local = np.bincount(have[have == need], minlength=tiles)
    pieces = _pieces(_stored(have, src), _stored(need, src), tiles) + _pieces(
        _stored(need, dst), _stored(have, dst), tiles
    )
    return Counts(
        sent=src.elements_per_tile(tiles) - local,
        received=dst.elements_per_tile(tiles) - local,
        local=local,
        pieces=pieces,
    )


def _stored(of_elements: TileArray, mapping: Mapping) -> TileArray:
    """Values of all elements, in the order in which the mapping's tiles keep them."""
    if not isinstance(mapping, Turned):
        return of_elements
    back = np.argsort(mapping.perm)
    return np.flip(of_elements.reshape(mapping.dims).transpose(back), mapping.flipped).reshape(-1)


def _pieces(owner: TileArray, other: TileArray, tiles: int) -> IntArray:
    """Pieces of each tile's memory that are on one other tile on the far side."""
    changes = np.flatnonzero(owner[1:] != owner[:-1]) + 1
    first = owner[np.append(0, changes)]
    if not all_distinct(first):
        small: npt.NDArray[np.uint16] = owner.astype(np.uint16)  # sorts by radix
        order = np.argsort(small, kind="stable")
        owner, other = owner[order], other[order]
    opens = np.append(True, (owner[1:] != owner[:-1]) | (other[1:] != other[:-1]))
    return np.bincount(owner[opens & (owner != other)], minlength=tiles)
