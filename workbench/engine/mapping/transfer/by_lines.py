"""Transfers between turned mappings line by line, and between runs and grids by products of axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.engine.mapping.axes import (
    AxisSet,
    Cover,
    Span,
    common_dims,
    copy_tiles,
    cover_of,
    part_index,
    position_of,
    product_below,
    product_within,
)
from workbench.engine.mapping.grid import Cuts, Grid, spread, whole
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatRuns:
    """Flat intervals [lo, hi), each from the end of the last one, each held by a tile."""

    lo: IntArray
    hi: IntArray
    tile: IntArray


def runs_to_grid(runs: FlatRuns, need: Grid, tiles: int) -> Counts:
    """The transfer from runs to a simple grid (see `is_simple`).

    Bytes are exact. Pieces are exact where no tile holds two runs; else a piece also ends where a run does.
    """
    return _Flat(runs, need, tiles).counts()


def grid_to_runs(have: Grid, runs: FlatRuns, tiles: int) -> Counts:
    """The transfer from a simple owner grid to runs that hold every element: the way back, sent for received."""
    back = _Flat(runs, have, tiles).counts()
    return Counts(sent=back.received, received=back.sent, local=back.local, pieces=back.pieces)


def runs_to_runs(have: Linear | Runs, need: Linear | Runs, tiles: int) -> Counts | None:
    """The transfer between two mappings of which no tile has two runs; else None.

    Each element has one receiver, so a piece is a run of the one met by a run of the other, but for a tile's own.
    """
    (starts, owners), (wanted, receivers) = have.runs(), need.runs()
    if not all_distinct(owners) or not all_distinct(receivers):
        return None
    ends, until = np.append(starts[1:], have.size), np.append(wanted[1:], need.size)
    at = position_of(owners, tiles)[receivers]
    met = np.flatnonzero(at >= 0)
    own = np.minimum(ends[at[met]], until[met]) - np.maximum(starts[at[met]], wanted[met])
    local = add_at(receivers[met], np.maximum(own, 0), tiles)
    received = np.searchsorted(starts, until) - np.searchsorted(starts, wanted, side="right") + 1
    sent = np.searchsorted(wanted, ends) - np.searchsorted(wanted, starts, side="right") + 1
    pieces = add_at(receivers, received, tiles) + add_at(owners, sent, tiles) - 2 * (local > 0)
    held = add_at(owners, ends - starts, tiles)
    needed = add_at(receivers, until - wanted, tiles)
    return Counts(sent=held - local, received=needed - local, local=local, pieces=pieces)


class _Flat:
    def __init__(self, runs: FlatRuns, need: Grid, tiles: int) -> None:
        self.runs = runs
        self.need = need
        self.tiles = tiles
        self.axes: Sequence[Cuts] = need.axes or (whole(1),)
        self.dims = tuple(axis.size for axis in self.axes)

    def counts(self) -> Counts:
        runs, tiles = self.runs, self.tiles
        where, copies = copy_tiles(self.need), len(self.need.replicas)
        at = position_of(where, tiles)[runs.tile]
        met = np.flatnonzero(at >= 0)
        local, kept, kept_pieces = self._own(met, at[met] // copies)
        below, inside = product_below(self.edges, self.dims, [cover.covered() for cover in self.covers])
        covered = np.diff(below)
        received_pieces = add_at(where, np.repeat(self._runs_met(), copies), tiles)
        own = add_at(runs.tile[met], (local > 0) + kept_pieces, tiles)
        local_of_tile = add_at(runs.tile[met], local, tiles)
        return Counts(
            sent=add_at(runs.tile, covered, tiles) - add_at(runs.tile[met], kept, tiles),
            received=self.need.elements_per_tile(tiles) - local_of_tile,
            local=local_of_tile,
            pieces=received_pieces + add_at(runs.tile, self._sent_pieces(inside), tiles) - own,
        )

    @cached_property
    def covers(self) -> list[Cover]:
        return [cover_of(axis) for axis in self.axes]

    @cached_property
    def edges(self) -> IntArray:
        """Where the runs begin, and where the last one ends."""
        return np.append(self.runs.lo, self.runs.hi[-1:])

    def _own(self, met: IntArray, parts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Of each run whose tile also needs: elements it needs itself, those only it needs, pieces of the latter."""
        lo, hi = self.runs.lo[met], self.runs.hi[met]
        index = part_index(self.need, parts) or [np.zeros(len(parts), dtype=np.int64)]
        boxes = [Span(axis.lo[i], axis.hi[i]) for axis, i in zip(self.axes, index, strict=True)]
        local = product_within(lo, hi, self.dims, boxes)
        if len(self.need.replicas) > 1:
            return local, np.zeros_like(local), np.zeros_like(local)
        alone = [_alone(axis, i) for axis, i in zip(self.axes, index, strict=True)]
        cut = max((axis for axis, part in enumerate(self.axes) if not part.is_whole), default=0)
        first: list[AxisSet] = [*alone[:cut], Span(alone[cut].lo, np.minimum(alone[cut].lo + 1, alone[cut].hi))]
        first += [Span(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)) for _ in self.axes[cut + 1 :]]
        return local, product_within(lo, hi, self.dims, alone), self._pieces(lo, hi, alone, first)

    def _pieces(self, lo: IntArray, hi: IntArray, sets: Sequence[AxisSet], first: Sequence[AxisSet]) -> IntArray:
        """Pieces of the product of `sets` in each [lo, hi), where `first` are the first elements of its pieces."""
        before, starts = product_below(lo, self.dims, first)
        inside = product_below(lo, self.dims, sets)[1]
        return product_below(hi, self.dims, first)[0] - before + (inside & ~starts)

    def _sent_pieces(self, inside: npt.NDArray[np.bool_]) -> IntArray:
        """Of each run: pieces with one set of receivers, those that stay among them; `inside`: of the edges, needed."""
        cut = max((axis for axis, cover in enumerate(self.covers) if len(cover) > 1), default=0)
        covered = [cover.covered() for cover in self.covers]
        first = [*covered[:cut], *(cover.starts() for cover in self.covers[cut:])]
        before, starts = product_below(self.edges, self.dims, first)
        return np.diff(before) + (inside[:-1] & ~starts[:-1])

    def _runs_met(self) -> IntArray:
        """How many runs have an element of each part.

        A part's elements are walked in hulls [first, last] so wide that every run that meets a hull has an element
        of the part in it: hulls are joined along an axis where no run fits in the gap between them.
        """
        strides = row_major_strides(self.dims)
        level, width = len(self.dims), 1
        while level > 0 and self._joins(strides[level - 1] - width, level - 1):
            level -= 1
            width += (int(self.axes[level].lengths.min()) - 1) * strides[level]
        outer = [_digits(axis) for axis in self.axes[:level]]
        inner = list(zip(self.axes[level:], strides[level:], strict=True))
        start = spread([digit * stride for (digit, _), stride in zip(outer, strides, strict=False)])
        first = np.add.outer(start, spread([axis.lo * stride for axis, stride in inner]))
        last = np.add.outer(start, spread([(axis.hi - 1) * stride for axis, stride in inner]))
        part = np.zeros(1, dtype=np.int64)
        for axis, (_, interval) in zip(self.axes, outer, strict=False):
            part = (part[:, None] * len(axis) + interval).reshape(-1)
        inner_parts = prod(len(axis) for axis, _ in inner)
        part = (part[:, None] * inner_parts + np.arange(inner_parts)).reshape(-1)
        return self._distinct(part, first.reshape(-1), last.reshape(-1))

    def _joins(self, gap: int, axis: int) -> bool:
        if int(self.axes[axis].lengths.max()) == 1:
            return True
        lengths = (self.runs.hi - self.runs.lo)[1:-1]
        return len(lengths) == 0 or int(lengths.min()) > gap

    def _distinct(self, part: IntArray, first: IntArray, last: IntArray) -> IntArray:
        low = np.searchsorted(self.runs.lo, first, side="right") - 1
        high = np.searchsorted(self.runs.lo, last, side="right") - 1
        order = np.argsort(part, kind="stable")
        part, low, high = part[order], low[order], high[order]
        met = high - low + 1
        met[1:] -= (part[1:] == part[:-1]) & (low[1:] == high[:-1])
        return np.bincount(part, weights=met, minlength=prod(self.need.splits)).astype(np.int64)


def _digits(axis: Cuts) -> tuple[IntArray, IntArray]:
    """Positions of every interval in turn, and the interval of each."""
    ends = np.cumsum(axis.lengths)
    within = np.arange(ends[-1]) - np.repeat(ends - axis.lengths, axis.lengths)
    return within + np.repeat(axis.lo, axis.lengths), np.repeat(np.arange(len(axis)), axis.lengths)


def _alone(axis: Cuts, index: IntArray) -> Span:
    """Positions that only interval `index` of an axis with rising intervals covers."""
    lo = np.maximum(axis.lo, np.append(0, axis.hi[:-1]))
    hi = np.minimum(axis.hi, np.append(axis.lo[1:], axis.size))
    return Span(lo[index], np.maximum(hi, lo)[index])
