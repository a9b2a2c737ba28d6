"""Writing a grid over other dimensions of the same flat index space, where its cuts allow it exactly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import gcd, prod

import numpy as np

from workbench.engine.mapping.grid import Cuts, Grid, cuts, grid_of_cuts, whole
from workbench.engine.mapping.types import Shape


def common_dims(first: Sequence[int], second: Sequence[int]) -> Shape | None:
    """The coarsest dims that refine both: (12, 5) and (3, 20) → (3, 4, 5); None if they cannot be nested."""
    marks = {prod(dims[axis:]) for dims in (first, second) for axis in range(len(dims) + 1)}
    chain = sorted(marks, reverse=True)
    if any(outer % inner for outer, inner in pairwise(chain)):
        return None
    return tuple(outer // inner for outer, inner in pairwise(chain))


def _split(axis: Cuts, sizes: Sequence[int]) -> list[Cuts] | None:
    """One axis as several, outermost first; None where its intervals are no product of intervals."""
    if len(sizes) <= 1:
        return [axis] if sizes else []
    if axis.is_whole:
        return [whole(size) for size in sizes]
    inner = prod(sizes[1:])
    if not (axis.lo % inner).any() and not (axis.hi % inner).any():
        outer = cuts(sizes[0], axis.lo // inner, axis.hi // inner, axis.offset)[0]
        return [outer, *(whole(size) for size in sizes[1:])]
    if len(axis) != 1 or axis.lo[0] // inner != (axis.hi[0] - 1) // inner:
        return None
    digit = int(axis.lo[0] // inner)
    outer = cuts(sizes[0], [digit], [digit + 1], [0])[0]
    rest = _split(cuts(inner, axis.lo - digit * inner, axis.hi - digit * inner, [0])[0], sizes[1:])
    return None if rest is None else [outer, *rest]


def group(dims: Sequence[int], coarse: Sequence[int]) -> list[Shape]:
    """The consecutive dims that make up each coarse dim, which they must refine; sizes of 1 are dropped."""
    groups, at = [], 0
    kept = [size for size in dims if size != 1]
    for size in coarse:
        first = at
        while prod(kept[first:at]) < size:
            at += 1
        groups.append(tuple(kept[first:at]))
    return groups


@lru_cache(maxsize=8192)
def refine(grid: Grid, dims: Shape) -> Grid | None:
    """The same grid over `dims`, which refine its own; None where a cut falls across them."""
    if grid.dims == dims:
        return grid
    axes: list[Cuts] = []
    for axis, sizes in zip(grid.axes, group(dims, grid.dims), strict=True):
        parts = _split(axis, sizes) if axis.size != 1 or len(axis) else None
        if parts is None:
            return None
        axes += parts
    return grid_of_cuts(grid.shape, axes, dims=dims, first_tile=grid.first_tile, replicas=grid.replicas)


@lru_cache(maxsize=8192)
def axes_of_shape(grid: Grid) -> tuple[tuple[Cuts, ...], ...] | None:
    """The cuts that make up each axis of the grid's shape (none for an axis of size 1), or None."""
    if not grid.size:
        return None
    dims = common_dims(grid.shape, grid.dims)
    refined = None if dims is None else refine(grid, dims)
    if dims is None or refined is None:
        return None
    left = iter(refined.axes)
    return tuple(tuple(next(left) for _ in sizes) for sizes in group(dims, grid.shape))


@lru_cache(maxsize=8192)
def folded_axes(grid: Grid) -> tuple[tuple[int, ...], ...] | None:
    """The axes of the grid's shape that are folded into each of its dims (size 1 axes left out); None if none nest."""
    axes = [axis for axis, size in enumerate(grid.shape) if size != 1]
    sizes = [grid.shape[axis] for axis in axes]
    folded: list[tuple[int, ...]] = []
    at = 0
    for size in grid.dims:
        first, product = at, 1
        while product < size and at < len(sizes):
            product *= sizes[at]
            at += 1
        if product != size:
            return None
        folded.append(tuple(axes[first:at]))
    return tuple(folded) if at == len(sizes) else None


CHANNEL_GROUP = 16  # elements; the widest channel group PopLibs' plans use (conv units of half inputs)


def in_memory_order(first: Grid, second: Grid) -> tuple[Grid, Grid] | None:
    """Both grids over dims in the order of a tile's memory: `[channels / group][batch, field][group]`.

    PopLibs keeps activations and weights in groups of channels (poplibs@7eac0f26 lib/poplin/ConvUtil.cpp,
    lib/poputil/VarStructure.cpp), so that a block of channels of neighbouring positions is one piece. The group is the
    largest up to 16 that no cut of the last axis falls into; all channels where neither grid cuts them. None where the
    grids cannot be written over common dims.
    """
    dims = common_dims(first.dims, second.dims)
    have, need = (refine(first, dims), refine(second, dims)) if dims is not None else (None, None)
    if dims is None or have is None or need is None or len(dims) < 2:
        return None if have is None or need is None else (have, need)
    if all(len(grid.axes[-1]) == 1 and grid.axes[-1].is_whole for grid in (have, need)):
        return have, need
    bounds = [bound for grid in (have, need) for bound in (grid.axes[-1].lo, grid.axes[-1].hi)]
    group = int(np.gcd.reduce(np.concatenate(bounds), initial=gcd(CHANNEL_GROUP, dims[-1])))
    return _grouped(have, dims, group), _grouped(need, dims, group)


def _grouped(grid: Grid, dims: Shape, group: int) -> Grid:
    last = grid.axes[-1]
    groups = cuts(last.size // group, last.lo // group, last.hi // group, last.offset)[0]
    axes = [groups, *grid.axes[:-1], *([whole(group)] if group > 1 else [])]
    shape = (last.size // group, *dims[:-1], *([group] if group > 1 else []))
    return grid_of_cuts(shape, axes, first_tile=grid.first_tile, replicas=grid.replicas)
