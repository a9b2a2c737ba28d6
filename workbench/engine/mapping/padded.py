"""Padding and cropping: a tensor with a border around it and gaps inside, each on tiles of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.engine.mapping.axes import axes_of_shape
from workbench.engine.mapping.grid import Cuts, Grid, cuts, whole
from workbench.engine.mapping.joined import concatenate
from workbench.engine.mapping.types import Mapping, Shape, runs_of_elements
from workbench.engine.mapping.views import dense, regrid, reshape, slice_
from workbench.engine.remembered import remembered
from workbench.errors import InputError


@dataclass(frozen=True, slots=True)
class Padding:
    """What padding keeps of an operand, positions `starts` to `limits` - 1, and what it adds to that: none is negative.

    `interior` elements stand between neighbours, `low` and `high` at the ends of each axis.
    """

    starts: Shape
    limits: Shape
    low: Shape
    high: Shape
    interior: Shape

    @property
    def shape(self) -> Shape:
        """Sizes of what is padded."""
        axes = zip(self.starts, self.limits, self.low, self.high, self.interior, strict=True)
        return tuple(low + _span(limit - start, gap) + high for start, limit, low, high, gap in axes)

    @property
    def kept_elements(self) -> int:
        """Elements of the operand that remain."""
        return prod(limit - start for start, limit in zip(self.starts, self.limits, strict=True))

    @property
    def within(self) -> Padding:
        """The part that keeps, and puts elements between others."""
        return replace(self, low=(0,) * len(self.low), high=(0,) * len(self.high))

    @property
    def around(self) -> Padding:
        """The part that puts elements around what `within` made."""
        none, shape = (0,) * len(self.low), self.within.shape
        return replace(self, starts=none, limits=shape, interior=none)

    @property
    def border_elements(self) -> int:
        """Elements that are added, around and between."""
        return prod(self.shape) - self.kept_elements


def _span(size: int, gap: int) -> int:
    return size + max(0, size - 1) * gap


def padding(shape: Sequence[int], low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Padding:
    """XLA's padding of a shape: first what is between elements, then the ends, which cut where they are negative."""
    axes = [_along(*axis) for axis in zip(shape, low, high, interior, strict=True)]
    starts, limits, below, above = (tuple(column) for column in zip(*axes, strict=True)) if axes else ((), (), (), ())
    return Padding(starts, limits, below, above, tuple(interior))


def _along(size: int, low: int, high: int, gap: int) -> tuple[int, int, int, int]:
    """First and last + 1 position kept, and elements added before and behind, along one axis."""
    step, total = gap + 1, _span(size, gap) + low + high
    start = min(size, ceil_div(max(0, -low), step))
    limit = max(start, min(size, (_span(size, gap) + min(0, high) + gap) // step))
    if start == limit:
        return start, limit, total, 0
    before = start * step + low
    return start, limit, before, total - before - _span(limit - start, gap)


@remembered(1024)
def pad(mapping: Mapping, change: Padding, border: Mapping) -> Mapping:
    """The operand with what is added on the tiles of `border`, which has one axis: its elements in the order in which
    the axes take them, of each axis what is between, before and behind.
    """
    if border.shape != (change.border_elements,):
        raise InputError(f"a border {border}", expected=f"one axis of {change.border_elements} elements")
    padded = slice_(mapping, change.starts, change.limits)
    if not padded.size:
        return reshape(border, change.shape)
    taken = 0

    def take(shape: Sequence[int]) -> Mapping:
        nonlocal taken
        first, taken = taken, taken + prod(shape)
        return reshape(slice_(border, (first,), (taken,)), shape)

    for axis, (low, high, gap) in enumerate(zip(change.low, change.high, change.interior, strict=True)):
        if gap and padded.shape[axis] > 1:
            padded = _dilated(padded, axis, gap, take)
        outer, inner = padded.shape[:axis], padded.shape[axis + 1 :]
        before = [take((*outer, low, *inner))] if low else []
        behind = [take((*outer, high, *inner))] if high else []
        padded = concatenate([*before, padded, *behind], axis)
    return padded


def _dilated(mapping: Mapping, axis: int, gap: int, take: Callable[[Sequence[int]], Mapping]) -> Mapping:
    """`gap` elements behind every position of an axis but its last."""
    outer, size, inner = mapping.shape[:axis], mapping.shape[axis], mapping.shape[axis + 1 :]
    zero = [0] * len(mapping.shape)
    first = slice_(mapping, zero, (*outer, size - 1, *inner))
    last = slice_(mapping, [*zero[:axis], size - 1, *zero[axis + 1 :]], mapping.shape)
    gaps = take((*outer, size - 1, gap, *inner))
    pairs = concatenate([reshape(first, (*outer, size - 1, 1, *inner)), gaps], axis + 1)
    return concatenate([reshape(pairs, (*outer, (size - 1) * (gap + 1), *inner)), last], axis)


def pad_beside(mapping: Mapping, change: Padding) -> Mapping:
    """The operand with everything that is added on the tile of the nearest element before it, else behind it."""
    if not change.kept_elements:
        raise InputError(f"padding of {mapping}", expected="an element that what is added may lie beside")
    kept = slice_(mapping, change.starts, change.limits)
    index = [
        np.clip((np.arange(size) - low) // (gap + 1), 0, before - 1)
        for size, low, gap, before in zip(change.shape, change.low, change.interior, kept.shape, strict=True)
    ]
    groups = axes_of_shape(kept) if isinstance(kept, Grid) else None
    if isinstance(kept, Grid) and groups is not None:
        parts: list[tuple[Cuts, ...]] = []
        moved = 0
        for group, where, before in zip(groups, index, kept.shape, strict=True):
            if len(where) == before:
                parts.append(group)
            elif len(group) <= 1:
                part, least = _taken(group[0] if group else whole(1), where)
                parts.append((part,))
                moved += least
        if len(parts) == len(index):
            return regrid(kept, change.shape, parts, moved)
    return runs_of_elements(change.shape, dense(kept)[np.ix_(*index)])


def _taken(axis: Cuts, index: IntArray) -> tuple[Cuts, int]:
    """Cuts of an axis whose element k is element index[k] (rising) of `axis`."""
    lo, hi = np.searchsorted(index, axis.lo), np.searchsorted(index, axis.hi)
    return cuts(len(index), lo, hi, axis.offset)
