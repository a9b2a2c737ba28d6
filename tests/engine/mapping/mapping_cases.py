"""Random small mappings and demands of every kind."""

from __future__ import annotations

from math import prod
from unittest import mock

import numpy as np
from hypothesis import strategies as st

from workbench.engine import mapping as m
from workbench.engine.mapping import turned as mapping_turned

TILES = 24
shapes = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple)


@st.composite
def grids_of(draw: st.DrawFn, shape: tuple[int, ...]) -> m.Grid:
    """A grid over the shape or over a reshape of it, with strides that may put several parts on one tile."""
    dims = draw(st.sampled_from([shape, tuple(reversed(shape)), (prod(shape),), (*shape, 1)]))
    splits, left = [], TILES
    for size in dims:
        splits.append(draw(st.integers(1, max(1, min(size + 1, left, 6)))))
        left //= splits[-1]
    strides = None
    if draw(st.booleans()):
        strides = [draw(st.integers(0, max(0, (TILES - 1) // (len(dims) * s)))) for s in splits]
    grains = [draw(st.integers(1, 3)) for _ in dims]
    first = 0 if strides is None and prod(splits) == TILES else draw(st.integers(0, max(0, TILES - prod(splits))))
    made = m.grid(dims, splits, strides, grains, 0 if strides else first, ceil=draw(st.booleans()))
    reshaped = m.reshape(made, shape)
    assert isinstance(reshaped, m.Grid)
    return reshaped


@st.composite
def runs_of(draw: st.DrawFn, shape: tuple[int, ...]) -> m.Runs:
    """Owners at random, in runs of about three."""
    random = np.random.default_rng(draw(st.integers(0, 999)))
    owners = np.repeat(random.integers(0, TILES, prod(shape)), random.integers(1, 6, prod(shape)))[: prod(shape)]
    return m.runs_of_elements(shape, owners)


@st.composite
def linears_of(draw: st.DrawFn, shape: tuple[int, ...]) -> m.Linear:
    tiles = draw(st.integers(1, TILES))
    grain = draw(st.integers(1, 4))
    return m.linear(
        shape, "float32", tiles, draw(st.integers(1, 40)), draw(st.integers(0, tiles - 1)), grain, vector_bytes=8
    )


@st.composite
def turned_of(draw: st.DrawFn, shape: tuple[int, ...]) -> m.Mapping:
    """A transposed and reversed view of a flat mapping, also of a slice of one, kept as a view though it is small."""
    perm = draw(st.permutations(range(len(shape))))
    back = [perm.index(axis) for axis in range(len(shape))]
    low = [draw(st.integers(0, 1)) for _ in shape]
    flipped = draw(st.sets(st.integers(0, len(shape) - 1)))
    wide = tuple(shape[axis] + low[axis] for axis in perm)
    base = draw(st.one_of(linears_of(wide), runs_of(wide)))
    with mock.patch.object(mapping_turned, "FEW_ELEMENTS", 0):
        whole = m.transpose(base, back)
        part = m.slice_(whole, low, whole.shape)
        return m.reverse(part, sorted(flipped))


def mappings_of(shape: tuple[int, ...]) -> st.SearchStrategy[m.Mapping]:
    kinds = [grids_of(shape), linears_of(shape), runs_of(shape)]
    return st.one_of(*kinds, turned_of(shape)) if prod(shape) else st.one_of(*kinds)


def mappings() -> st.SearchStrategy[m.Mapping]:
    return shapes.flatmap(mappings_of)


@st.composite
def demand_grids_of(draw: st.DrawFn, shape: tuple[int, ...]) -> m.Grid:
    """Boxes that overlap, leave elements out or take every so-maniest, and are needed by several tiles."""
    axes, dims, left = [], list[int](), TILES
    for whole in shape:
        step = draw(st.sampled_from([step for step in (1, 1, 2, 3) if whole % step == 0]))
        size = whole // step
        parts = draw(st.integers(1, min(3, left)))
        lo = [draw(st.integers(0, size)) for _ in range(parts)]
        hi = [draw(st.integers(a, size)) for a in lo]
        left //= parts
        axes.append((lo, hi, [i * left for i in range(parts)]))
        dims.append(size)
        if step > 1:
            first = draw(st.integers(0, step - 1))
            axes.append(([first], [first + 1], [0]))
            dims.append(step)
    copies = draw(st.sets(st.integers(0, left - 1), min_size=1, max_size=3))
    return m.grid_of_cuts(shape, axes, dims=dims, replicas=sorted(copies))


@st.composite
def demands_of(draw: st.DrawFn, shape: tuple[int, ...]) -> m.Demand:
    size = prod(shape)
    pieces = draw(
        st.lists(st.tuples(st.integers(0, TILES - 1), st.integers(0, size), st.integers(0, size)), max_size=9)
    )
    return m.demand(shape, *([piece[k] for piece in pieces] for k in range(3)))


def destinations_of(shape: tuple[int, ...]) -> st.SearchStrategy[m.Placement]:
    return st.one_of(mappings_of(shape), demand_grids_of(shape), demands_of(shape))
