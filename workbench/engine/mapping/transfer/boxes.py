"""Flat intervals as boxes of a row-major index space."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.engine.mapping.types import row_major_strides

Boxes = tuple[IntArray, IntArray, IntArray]


def boxes(lo: IntArray, hi: IntArray, dims: Sequence[int]) -> list[Boxes]:
    """Flat intervals [lo, hi) as disjoint boxes: at most 2 rank - 1 each, in groups of (first, last + 1, interval).

    First and last + 1 are int64[boxes, rank]; every box has single outer indices, one range, and whole inner axes.
    """
    found = []
    piece = np.arange(len(lo), dtype=np.int64)
    for axis in range(len(dims) - 1, 0, -1):
        row = prod(dims[axis:])
        up = np.minimum(ceil_div(lo, row) * row, hi)
        down = np.maximum(hi // row * row, up)
        found += [_one_range(first, last, piece, axis, dims) for first, last in ((lo, up), (down, hi))]
        lo, hi = up, down
    found.append(_one_range(lo, hi, piece, 0, dims))
    return [group for group in found if len(group[2])]


def _one_range(lo: IntArray, hi: IntArray, piece: IntArray, axis: int, dims: Sequence[int]) -> Boxes:
    """Intervals inside one row of `axis`, which begin and end where its inner axes do."""
    filled = hi > lo
    lo, hi, piece = lo[filled], hi[filled], piece[filled]
    first = np.zeros((len(dims), len(lo)), dtype=np.int64)  # an axis behind the other: each is filled as a whole
    last = np.empty_like(first)
    last.T[:] = dims
    if not len(dims):
        return first.T, last.T, piece
    stride = row_major_strides(dims)[axis]
    outer, length = (lo // stride, (hi - lo) // stride) if stride != 1 else (lo, hi - lo)
    for each in range(axis, -1, -1):
        place = outer
        if each:  # one division an axis: they are what this takes its time for
            outer = outer // dims[each]
            place = place - outer * dims[each]
        first[each] = place
        np.add(place, 1, out=last[each])
    np.add(first[axis], length, out=last[axis])
    return first.T, last.T, piece


def box_rows(lo: IntArray, hi: IntArray, dims: Sequence[int]) -> Boxes:
    """Boxes [lo, hi) (int64[boxes, rank]) as contiguous flat intervals: (box, first, last + 1) of each."""
    box = np.arange(len(lo), dtype=np.int64)
    whole = (lo == 0) & (hi == np.array(dims, dtype=np.int64))
    cut = max((axis for axis in range(len(dims)) if not whole[:, axis].all()), default=0)
    first = np.zeros(len(lo), dtype=np.int64)
    strides = row_major_strides(dims)
    for axis in range(cut):
        count = (hi - lo)[box, axis]
        row = np.repeat(np.arange(len(box)), count)
        within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        first = first[row] + (lo[box[row], axis] + within) * strides[axis]
        box = box[row]
    if not len(dims):
        return box, first, first + 1
    return box, first + lo[box, cut] * strides[cut], first + hi[box, cut] * strides[cut]
