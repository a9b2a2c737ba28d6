"""Transfers between two grids axis by axis, and between two owners element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.engine.mapping.axes import (
    Cover,
    common_dims,
    copy_tiles,
    cover_of,
    group,
    is_simple,
    part_index,
    position_of,
    refine,
)
from workbench.engine.mapping.grid import Cuts, Grid, grid_of_cuts
from workbench.engine.mapping.transfer.sweep import Counts
from workbench.engine.mapping.turned import Turned
from workbench.engine.mapping.types import Mapping, TileArray, add_at, all_distinct

Flags: TypeAlias = npt.NDArray[np.bool_]


def grid_to_grid(src: Grid, dst: Grid, tiles: int) -> Counts | None:
    """The transfer, or None where the cuts of one fall across the axes of the other or a tile has several parts."""
    dims = common_dims(src.dims, dst.dims)
    have, need = (refine(src, dims), refine(dst, dims)) if dims is not None else (None, None)
    if have is None or need is None or not is_simple(have) or not is_simple(need):
        return None
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
    for held, sizes in zip(src.axes, group(dims, src.dims), strict=True):
        if not sizes:
            return None
        outer, *inner = (next(left) for _ in sizes)
        if any(len(axis) != 1 or axis.hi[0] - axis.lo[0] != 1 for axis in inner):
            return None
        have_axes.append(held)
        need_axes.append(outer)
        strides.append(Stride(prod(sizes[1:]), int(np.ravel_multi_index([axis.lo[0] for axis in inner], sizes[1:]))))
    shape = [axis.size for axis in need_axes]
    have = grid_of_cuts(src.dims, have_axes, first_tile=src.first_tile, replicas=src.replicas)
    need = grid_of_cuts(shape, need_axes, first_tile=wanted.first_tile, replicas=wanted.replicas)
    if all(stride.step == 1 for stride in strides) or not is_simple(have) or not is_simple(need):
        return None
    return _Pair(have, need, tiles, tuple(strides)).counts(dst.elements_per_tile(tiles))


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

    def cover(self, wanted: Cuts, size: int) -> Cover:
        """The cover of an axis of so many positions by intervals of those that may be needed."""
        if self.step == 1:
            return cover_of(wanted)
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
        where = copy_tiles(self.need)
        at = position_of(copy_tiles(self.have), self.tiles)[where]
        met = np.flatnonzero(at >= 0)
        have, need = part_index(self.have, at[met]), part_index(self.need, met // copies)
        local, kept, own_in, own_out = self._own(have, need)
        covered, sent_pieces = self._sent()
        received_pieces = np.repeat(self._received_pieces(), copies)
        local_of_tile = add_at(where[met], local, self.tiles)
        sent = add_at(copy_tiles(self.have), covered, self.tiles) - add_at(where[met], kept, self.tiles)
        pieces = add_at(where, received_pieces, self.tiles) + add_at(copy_tiles(self.have), sent_pieces, self.tiles)
        own = add_at(where[met], own_in + own_out, self.tiles)
        return Counts(sent=sent, received=needed - local_of_tile, local=local_of_tile, pieces=pieces - own)

    def _own(self, have: list[IntArray], need: list[IntArray]) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Of each tile with both parts: elements in both, those only it needs, and their pieces in either memory."""
        local = np.ones(1, dtype=np.int64)
        shared, alone, have_lengths, need_lengths = [], [], [], []
        rings: list[Flags | None] = []
        axes = zip(self.have.axes, self.need.axes, self.strides, have, need, strict=True)
        for held, wanted, stride, i, k in axes:
            lo = np.maximum(stride.below(held.lo[i]), wanted.lo[k])
            hi = np.maximum(np.minimum(stride.below(held.hi[i]), wanted.hi[k]), lo)
            single = cover_of(wanted).single()
            shared.append(hi - lo)
            alone.append(single.below(hi) - single.below(lo))
            have_lengths.append(held.lengths[i])
            need_lengths.append(wanted.lengths[k])
            local = local * shared[-1]
            ring = None
            if stride.step > 1:
                within = stride.below(held.hi[i]) - stride.below(held.lo[i])
                ring = stride.rings(held.lo[i], held.hi[i]) & (alone[-1] == within)
            rings.append(ring)
        if len(self.need.replicas) > 1:
            alone = [np.zeros_like(length) for length in alone] or [np.zeros(1, dtype=np.int64)]
            have_lengths = have_lengths or [np.ones(1, dtype=np.int64)]
        kept = np.ones(1, dtype=np.int64)
        for length in alone:
            kept = kept * length
        return local, kept, strict_pieces(need_lengths, shared), strict_pieces(have_lengths, alone, rings)

    def _sent(self) -> tuple[IntArray, IntArray]:
        """Of each owned part: elements somebody needs, and pieces of them with one set of receivers."""
        covered = pieces = np.ones(1, dtype=np.int64)
        for held, wanted, stride in zip(self.have.axes, self.need.axes, self.strides, strict=True):
            cover = stride.cover(wanted, held.size)
            marks = cover.covered()
            segments, filled = cover.segments(held.lo, held.hi)
            length = marks.below(held.hi) - marks.below(held.lo)
            several = np.multiply.outer(covered, filled)
            if stride.step > 1:
                several -= np.multiply.outer(covered - pieces, _one_set(stride, held, wanted))
            pieces = np.where(segments > 1, several, pieces[:, None] * (filled > 0)).reshape(-1)
            covered = np.multiply.outer(covered, length).reshape(-1)
        return covered, pieces

    def _received_pieces(self) -> IntArray:
        """Of each needed part: pieces of one owner, in the order of its own memory, its own among them."""
        outer = pieces = np.ones(1, dtype=np.int64)
        for held, wanted, stride in zip(self.have.axes, self.need.axes, self.strides, strict=True):
            begins = np.unique(stride.below(held.lo)) if stride.step > 1 else held.lo
            first = np.searchsorted(begins, wanted.lo, side="right")
            owners = np.searchsorted(begins, wanted.hi, side="left") - first + 1
            pieces = np.where(owners > 1, np.multiply.outer(outer, owners), pieces[:, None]).reshape(-1)
            outer = np.multiply.outer(outer, wanted.lengths).reshape(-1)
        return pieces


def _one_set(stride: Stride, held: Cuts, wanted: Cuts) -> Flags:
    """Whether each interval begins and ends with positions that the same intervals need."""
    cover = cover_of(wanted)
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
