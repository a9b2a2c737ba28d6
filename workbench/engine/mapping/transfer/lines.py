"""Transfers between flat mappings whose axes are in different orders, line by line along the innermost axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.base.arrays import IntArray
from workbench.engine.mapping.align import common_dims
from workbench.engine.mapping.axes import position_of
from workbench.engine.mapping.grid import spread
from workbench.engine.mapping.transfer.sweep import Counts
from workbench.engine.mapping.turned import Turned, over
from workbench.engine.mapping.types import Linear, Runs, Shape, add_at, all_distinct, row_major_strides, union

SHORTEST_LINE = 8  # below, going through all elements takes no longer


def turned_to_turned(src: Turned, dst: Turned, tiles: int) -> Counts | None:
    """The transfer between two views; None where lines are short, a tile has several runs or the axes do not nest.

    Bytes are exact. Pieces are exact where a step along a line is shorter than all runs of the far side or longer
    than all, else at most a few too many. Each tile's memory is in the order of the base of its view.
    """
    dims = common_dims(src.dims, dst.dims)
    if dims is None or not (_one_run_each(src.base) and _one_run_each(dst.base)):
        return None
    have, need = over(src, dims), over(dst, dims)
    forth, back = _Walk.between(need, have, tiles), _Walk.between(have, need, tiles)
    if min(forth.dims[-1], back.dims[-1]) < SHORTEST_LINE:
        return None
    local, received_pieces = forth.counts()
    _, sent_pieces = back.counts()
    held, needed = src.elements_per_tile(tiles), dst.elements_per_tile(tiles)
    return Counts(sent=held - local, received=needed - local, local=local, pieces=received_pieces + sent_pieces)


def _one_run_each(base: Linear | Runs) -> bool:
    owners = base.runs()[1]
    return isinstance(base, Linear) or all_distinct(owners)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """The elements of `mine` in order, each at `offset` + Σ digit · stride (over `dims`) of `theirs`."""

    mine: Linear | Runs
    theirs: Linear | Runs
    dims: Shape
    strides: tuple[int, ...]
    offset: int
    tiles: int

    @classmethod
    def between(cls, mine: Turned, theirs: Turned, tiles: int) -> _Walk:
        """Walk the base of one view over the base of another, both split to the same dims."""
        steps = row_major_strides(theirs.base.shape)
        strides, offset = [], 0
        for axis, size in enumerate(mine.base.shape):
            seen = theirs.perm[mine.perm.index(axis)]
            backwards = (axis in mine.flipped) != (seen in theirs.flipped)
            strides.append(-steps[seen] if backwards else steps[seen])
            offset += (size - 1) * steps[seen] if backwards else 0
        return cls(
            mine=mine.base, theirs=theirs.base, dims=mine.base.shape, strides=tuple(strides), offset=offset, tiles=tiles
        )

    def counts(self) -> tuple[IntArray, IntArray]:
        """Per tile of mine: elements it also has in theirs, and pieces that are on one other tile in theirs."""
        starts, owners = self.mine.runs()
        far, far_owners = self.theirs.runs()
        row = self.dims[-1]
        at = union(np.arange(0, self.mine.size, row), starts)
        length = np.diff(np.append(at, self.mine.size))
        owner = owners[np.searchsorted(starts, at, side="right") - 1]
        rows = spread([np.arange(n) * step for n, step in zip(self.dims, self.strides[:-1], strict=False)], self.offset)
        first = rows[at // row] + at % row * self.strides[-1]
        last = first + (length - 1) * self.strides[-1]
        begin, end = np.searchsorted(far, first, side="right") - 1, np.searchsorted(far, last, side="right") - 1
        own = position_of(far_owners, self.tiles)[owner]
        local = self._own(own, np.minimum(first, last), length)
        pieces = np.minimum(np.abs(end - begin), length - 1) + 1 - (local > 0)
        goes_on = (owner[1:] == owner[:-1]) & (begin[1:] == end[:-1]) & (begin[1:] != own[1:])
        pieces[1:] -= goes_on
        return add_at(owner, local, self.tiles), add_at(owner, pieces, self.tiles)

    def _own(self, own: IntArray, lowest: IntArray, length: IntArray) -> IntArray:
        """Elements of each line that are in the run of theirs with number `own` (-1: none)."""
        far = np.append(self.theirs.runs()[0], self.theirs.size)
        step = abs(self.strides[-1])
        before = np.clip(-((lowest - far[own]) // step), 0, length)
        until = np.clip(-((lowest - far[own + 1]) // step), 0, length)
        return np.where(own >= 0, until - before, 0)
