"""Transfers between two grids axis by axis, and between two owners element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.engine.mapping.axes import common_dims, copy_tiles, cover_of, is_simple, part_index, position_of, refine
from workbench.engine.mapping.grid import Grid
from workbench.engine.mapping.transfer.sweep import Counts
from workbench.engine.mapping.turned import Turned
from workbench.engine.mapping.types import Mapping, TileArray, add_at, all_distinct


def grid_to_grid(src: Grid, dst: Grid, tiles: int) -> Counts | None:
    """The transfer, or None where the cuts of one fall across the axes of the other or a tile has several parts."""
    dims = common_dims(src.dims, dst.dims)
    have, need = (refine(src, dims), refine(dst, dims)) if dims is not None else (None, None)
    if have is None or need is None or not is_simple(have) or not is_simple(need):
        return None
    held, needed = src.elements_per_tile(tiles), dst.elements_per_tile(tiles)
    return _Pair(have, need, tiles).counts(held, needed)


def strict_pieces(part: Sequence[IntArray], box: Sequence[IntArray]) -> IntArray:
    """Contiguous pieces of a part's memory that a box in it fills: the elements of its axes outside the last cut one.

    `part` and `box` are lengths along each axis; a box without elements has no piece.
    """
    pieces = outer = np.ones(1, dtype=np.int64)
    for whole, length in zip(part, box, strict=True):
        pieces = np.where(length < whole, outer, pieces)
        outer = outer * length
    return np.where(outer > 0, pieces, 0)


@dataclass(frozen=True, slots=True)
class _Pair:
    """An owner grid and a simple grid that needs, over the same dims."""

    have: Grid
    need: Grid
    tiles: int

    def counts(self, held: IntArray, needed: IntArray) -> Counts:
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
        for held, wanted, i, k in zip(self.have.axes, self.need.axes, have, need, strict=True):
            lo = np.maximum(held.lo[i], wanted.lo[k])
            hi = np.maximum(np.minimum(held.hi[i], wanted.hi[k]), lo)
            single = cover_of(wanted).single()
            shared.append(hi - lo)
            alone.append(single.below(hi) - single.below(lo))
            have_lengths.append(held.lengths[i])
            need_lengths.append(wanted.lengths[k])
            local = local * shared[-1]
        if len(self.need.replicas) > 1:
            alone = [np.zeros_like(length) for length in alone] or [np.zeros(1, dtype=np.int64)]
            have_lengths = have_lengths or [np.ones(1, dtype=np.int64)]
        kept = np.ones(1, dtype=np.int64)
        for length in alone:
            kept = kept * length
        return local, kept, strict_pieces(need_lengths, shared), strict_pieces(have_lengths, alone)

    def _sent(self) -> tuple[IntArray, IntArray]:
        """Of each owned part: elements somebody needs, and pieces of them with one set of receivers."""
        covered = pieces = np.ones(1, dtype=np.int64)
        for held, wanted in zip(self.have.axes, self.need.axes, strict=True):
            cover = cover_of(wanted)
            marks = cover.covered()
            segments, filled = cover.segments(held.lo, held.hi)
            length = marks.below(held.hi) - marks.below(held.lo)
            pieces = np.where(segments > 1, np.multiply.outer(covered, filled), pieces[:, None] * (filled > 0)).reshape(
                -1
            )
            covered = np.multiply.outer(covered, length).reshape(-1)
        return covered, pieces

    def _received_pieces(self) -> IntArray:
        """Of each needed part: pieces of one owner, in the order of its own memory, its own among them."""
        outer = pieces = np.ones(1, dtype=np.int64)
        for held, wanted in zip(self.have.axes, self.need.axes, strict=True):
            first = np.searchsorted(held.lo, wanted.lo, side="right")
            owners = np.searchsorted(held.lo, wanted.hi, side="left") - first + 1
            pieces = np.where(owners > 1, np.multiply.outer(outer, owners), pieces[:, None]).reshape(-1)
            outer = np.multiply.outer(outer, wanted.lengths).reshape(-1)
        return pieces


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
