"""Mapping types and their views, against arrays that hold the owner of every element."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.mapping.mapping_cases import TILES, mappings, mappings_of, shapes
from workbench.engine import mapping as m
from workbench.errors import InputError


def dense(mapping: m.Mapping) -> np.ndarray:
    return mapping.tile_of_elements().reshape(mapping.shape)


def test_a_thousand_floats_over_ten_tiles() -> None:
    # 1000 floats are 500 grains of 2; 50 grains, so 100 floats, to each of 10 tiles.
    x = m.linear((1000,), "float32", 10, vector_bytes=8)
    assert str(x) == "Linear(1000 by 2 on 10 tiles from 0)"
    assert x.elements_per_tile(10).tolist() == [100] * 10
    assert x.bytes_per_tile(4, 10).tolist() == [400] * 10


@pytest.mark.parametrize(
    ("size", "dtype", "tiles", "used", "most"),
    [
        # 4 grains of 2; 128 B are 16 grains; so at most max(1, 4 // 16) = 1 tile.
        (8, "float32", 1472, 1, 8),
        # 500 grains, least 16: at most 31 tiles; 17 grains each; ceil(500 / 17) = 30 tiles, the widest 17 grains.
        (1000, "float32", 1472, 30, 34),
        # 64 halves are 128 B: 4096 / 64 = 64 tiles.
        (4096, "float16", 1472, 64, 64),
        # 1472 tiles of 2000 floats.
        (1472 * 2000, "float32", 1472, 1472, 2000),
        # An odd element fills a grain of its own: 2 grains on one tile.
        (3, "float32", 1472, 1, 3),
    ],
)
def test_linear_rule(size: int, dtype: str, tiles: int, used: int, most: int) -> None:
    x = m.linear((size,), dtype, tiles, vector_bytes=8)
    assert (x.tiles_used, int(x.elements_per_tile(tiles).max())) == (used, most)
    assert x.elements_per_tile(tiles).sum() == size


def test_layout_of_a_strided_slice() -> None:
    """graphcore/tensorflow@b2127bba compiler/plugin/poplar/tests/mapping_test.py:106-172, on 1472 tiles.

    8192 floats are 32 (128 B) on each of 256 tiles, rotated by their width to tiles 256 to 511; one element of
    every 8 leaves 4 on each.
    """
    whole = m.linear((8192,), "float32", 1472, first_tile=256, vector_bytes=8)
    part = m.slice_(whole, (0,), (8192,), (8,))
    per_tile = part.elements_per_tile(1472)
    assert part.shape == (1024,)
    assert np.flatnonzero(per_tile).tolist() == list(range(256, 512))
    assert set(per_tile[256:512].tolist()) == {4}


@pytest.mark.parametrize("rows", [[3, 0, 4], [1, 1, 2, 0, 1], []])
@pytest.mark.parametrize("axes", [[(1, 5), (4, 6)], [(5, 5), (1, 6)], [(2, 5), (3, 6)]])
def test_rows_lie_where_the_table_has_them(rows: list[int], axes: list[tuple[int, int]]) -> None:
    parts = [m.even_cuts(size, count) for count, size in axes]
    strides = (len(parts[1]) - 1, 1)
    cuts = [(at[:-1], at[1:], np.arange(len(at) - 1) * stride) for at, stride in zip(parts, strides, strict=True)]
    table = m.grid_of_cuts((5, 6), cuts)
    taken = m.rows_of(table, np.array(rows, np.int64))
    assert taken.shape == (len(rows), 6)
    assert (taken.tile_of_elements() == table.tile_of_elements().reshape(5, 6)[rows].reshape(-1)).all()


def test_elements_per_tile_of_eight() -> None:
    """graphcore/tensorflow@b2127bba compiler/plugin/poplar/tests/mapping_test.py testSlice, on 8 tiles.

    2048 floats give each of 8 tiles 256 elements; the 4 of a slice and of its operand keep every tile's total
    between 260 and 270 wherever they lie, as no tile can have more than 256 + 4 + 4.
    """
    totals = (
        m.linear((2048,), "float32", 8, vector_bytes=8).elements_per_tile(8)
        + 4
        + m.linear((4,), "float32", 8, vector_bytes=8).elements_per_tile(8)
    )
    assert all(260 <= total <= 270 for total in totals.tolist())


def test_linear_goes_round_the_ipu() -> None:
    x = m.linear((128,), "float32", 4, first_tile=3, vector_bytes=8)  # 4 tiles of 32: tiles 3, 0, 1, 2
    assert [int(x.tile_of_elements()[at]) for at in (0, 32, 64, 96)] == [3, 0, 1, 2]
    assert str(x) == "Linear(128 by 2 on 4 tiles from 3 modulo 4)"


def test_grid_by_hand() -> None:
    # 4 rows in 2 parts, 6 columns in 3: tile = 3 · (row // 2) + column // 2.
    x = m.grid((4, 6), (2, 3))
    assert str(x) == "Grid(4x6 cut 2x3 on tiles 0-5)"
    assert dense(x).tolist() == [[0, 0, 1, 1, 2, 2]] * 2 + [[3, 3, 4, 4, 5, 5]] * 2
    assert x.elements_per_tile(6).tolist() == [4] * 6


def test_text() -> None:
    assert str(m.grid((4, 56, 56, 64), (2, 8, 1, 4))) == "Grid(4x56x56x64 cut 2x8x1x4 on tiles 0-63)"
    assert str(m.reshape(m.grid((4, 6), (2, 3)), (24,))) == "Grid(24 as 4x6 cut 2x3 on tiles 0-5)"
    assert str(m.runs((6,), [0, 2], [4, 1])) == "Runs(6 in 2 runs on tiles 1-4)"
    assert str(m.demand((6,), [0, 1], [0, 0], [6, 3])) == "Demand(6 in 2 intervals on tiles 0-1)"
    assert str(m.needed_by(m.grid((4, 6), (2, 3)), (6,))) == "Grid(6 cut 3 in 2 copies on tiles 0-5)"


def test_replicas() -> None:
    # Two halves of 8 elements; each needed on 2 groups of tiles 10 apart, in each by 3 tiles 2 apart.
    x = m.replicate(m.grid((8,), (2,)), (2, 10), (3, 2))
    assert str(x) == "Grid(8 cut 2 in 6 copies on tiles 0-15)"
    per_tile = x.elements_per_tile(16)
    assert np.flatnonzero(per_tile).tolist() == [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15]
    assert set(per_tile[per_tile > 0].tolist()) == {4}
    assert not x.is_owner


def test_cuts_in_grains_and_by_ceil() -> None:
    # 10 elements are 3 grains of 4; balanced over 2: 1 and 2 grains; by ceil: 2 and 1.
    assert m.even_cuts(10, 2, 4).tolist() == [0, 4, 10]
    assert m.even_cuts(10, 2, 4, ceil=True).tolist() == [0, 8, 10]
    assert m.even_cuts(5, 4, ceil=True).tolist() == [0, 2, 4, 5, 5]


def test_equal_content_is_one_object() -> None:
    assert m.grid((4, 6), (2, 3)) is m.grid([4, 6], [2, 3], strides=[3, 1])
    assert m.linear((1000,), "float32", 1472, vector_bytes=8) is m.linear((1000,), "int32", 1472, vector_bytes=8)
    assert m.runs((4,), [0, 2, 3], [1, 0, 0]) is m.runs((4,), [0, 2], [1, 0])
    assert m.grid((4, 6), (2, 3)) != m.grid((4, 6), (2, 2))
    assert m.grid((4,), (2,)) != m.linear((4,), "float32", 2, vector_bytes=8)


def test_arrays_are_read_only() -> None:
    x = m.grid((4, 6), (2, 3))
    for array in (x.elements_per_tile(6), x.axes[0].lo, m.runs((4,), [0], [1]).starts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_by_hand_leaves_holes_and_refuses_overlap() -> None:
    x = m.by_hand((10,), [(3, 4, 10), (0, 0, 3)])
    assert x.tile_of_elements().tolist() == [0, 0, 0, -1, 3, 3, 3, 3, 3, 3]
    assert not x.is_owner
    assert m.by_hand((10,), [(3, 4, 10), (0, 0, 4)]).is_owner
    with pytest.raises(InputError, match="elements 3 to 10 are given to tile 3") as error:
        m.by_hand((10,), [(0, 0, 4), (3, 3, 10)])
    assert "next free element: 4" in error.value.expected


def test_errors_say_what_was_expected() -> None:
    x = m.grid((4, 6), (2, 3))
    with pytest.raises(InputError, match=r"uses tile 5\. Expected: tiles 0 to 3"):
        x.elements_per_tile(4)
    with pytest.raises(InputError, match="a shape of 24 elements"):
        m.reshape(x, (5, 5))
    with pytest.raises(InputError, match="one split of at least 1 per axis"):
        m.grid((4, 6), (2,))
    with pytest.raises(InputError, match="1 or 4 along 0"):
        m.needed_by(x, (3, 6))
    with pytest.raises(InputError, match="as many elements on both sides"):
        m.transfer(x, m.grid((4, 5), (1, 1)), 4, 6)


def test_grids_stay_grids() -> None:
    x = m.grid((4, 6, 10), (2, 3, 5), first_tile=7)
    views = [
        m.transpose(x, (2, 0, 1)),
        m.reshape(x, (24, 10)),
        m.transpose(m.reshape(x, (24, 10)), (1, 0)),
        m.reshape(m.reshape(x, (240,)), (4, 6, 10)),
        m.slice_(x, (1, 0, 3), (4, 6, 10), (2, 1, 3)),
        m.reverse(x, (0, 2)),
        m.concatenate([x, x], 1),
        m.pad_beside(x, m.padding(x.shape, (1, 0, 2), (0, 3, 1), (1, 0, 0))),
    ]
    assert all(isinstance(view, m.Grid) for view in views)
    assert m.transpose(views[0], (1, 2, 0)) is x
    assert views[3] is x
    assert m.reverse(views[5], (0, 2)) is x


@given(st.data(), mappings())
def test_views_move_owners_as_numpy_moves_elements(data: st.DataObject, x: m.Mapping) -> None:
    rank = len(x.shape)
    perm = data.draw(st.permutations(range(rank)))
    turned = m.transpose(x, perm)
    assert np.array_equal(dense(turned), dense(x).transpose(perm))
    axes = data.draw(st.sets(st.integers(0, rank - 1)))
    assert np.array_equal(dense(m.reverse(turned, sorted(axes))), np.flip(dense(turned), tuple(axes)))
    starts = [data.draw(st.integers(0, size - 1)) for size in turned.shape]
    limits = [data.draw(st.integers(a + 1, size)) for a, size in zip(starts, turned.shape, strict=True)]
    strides = [data.draw(st.integers(1, 3)) for _ in starts]
    cut = tuple(slice(a, b, c) for a, b, c in zip(starts, limits, strides, strict=True))
    part = m.slice_(turned, starts, limits, strides)
    assert np.array_equal(dense(part), dense(turned)[cut])
    flat = m.reshape(part, (part.size,))
    assert np.array_equal(flat.tile_of_elements(), dense(part).reshape(-1))
    assert np.array_equal(part.elements_per_tile(TILES), np.bincount(flat.tile_of_elements(), minlength=TILES))


@given(st.data(), shapes)
def test_concatenate(data: st.DataObject, shape: tuple[int, ...]) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    parts = [data.draw(mappings_of((*shape[:axis], size, *shape[axis + 1 :]))) for size in sizes]
    joined = m.concatenate(parts, axis)
    assert np.array_equal(dense(joined), np.concatenate([dense(part) for part in parts], axis))


@given(st.data(), mappings())
def test_pad(data: st.DataObject, x: m.Mapping) -> None:
    low, high = ([data.draw(st.integers(-1, 2)) for _ in x.shape] for _ in range(2))
    gaps = [data.draw(st.integers(0, 2)) for _ in x.shape]
    spans = [size + (size - 1) * gap for size, gap in zip(x.shape, gaps, strict=True)]
    shape = tuple(max(0, span + a + b) for span, a, b in zip(spans, low, high, strict=True))
    if any(span + a + b < 0 for span, a, b in zip(spans, low, high, strict=True)):
        return
    # Position p of the result holds element (p - low) / (gap + 1) where that is whole and inside.
    inside = [(np.arange(n) - a) / (gap + 1) for n, a, gap in zip(shape, low, gaps, strict=True)]
    holds = [(at == at.astype(int)) & (at >= 0) & (at < size) for at, size in zip(inside, x.shape, strict=True)]
    taken = np.ix_(*(at[hold].astype(int) for at, hold in zip(inside, holds, strict=True)))
    change = m.padding(x.shape, low, high, gaps)
    assert change.shape == shape
    border = data.draw(mappings_of((change.border_elements,)))
    found = dense(m.pad(x, change, border))
    assert np.array_equal(found[np.ix_(*holds)], dense(x)[taken])
    # What is not the operand's is the border's: each of its elements once.
    outside = np.ones(shape, bool)
    outside[np.ix_(*holds)] = False
    assert np.array_equal(np.sort(found[outside]), np.sort(border.tile_of_elements()))
    if change.kept_elements:
        assert np.array_equal(dense(m.pad_beside(x, change))[np.ix_(*holds)], dense(x)[taken])


def test_a_border_is_taken_axis_by_axis_what_is_between_first() -> None:
    """Elements 0, 1 on tiles 10, 11, two between them, one before and one behind, and a row of six above."""
    change = m.padding((1, 2), (1, 1), (0, 1), (0, 2))
    x = m.runs((1, 2), (0, 1), (10, 11))
    border = m.runs_of_elements((10,), np.arange(10))
    assert (change.shape, change.border_elements) == ((2, 6), 10)
    assert dense(m.pad(x, change, border)).tolist() == [[6, 0, 2, 3, 1, 8], [7, 10, 4, 5, 11, 9]]


@given(st.data(), mappings())
def test_needed_by(data: st.DataObject, result: m.Mapping) -> None:
    rank = len(result.shape)
    along = sorted(data.draw(st.sets(st.integers(0, rank - 1))))
    shape = tuple(data.draw(st.sampled_from([1, result.shape[axis]])) for axis in along)
    need = m.needed_by(result, shape, along)
    index = np.arange(prod(shape)).reshape([1 if a not in along else shape[along.index(a)] for a in range(rank)])
    operand = np.broadcast_to(index, result.shape).reshape(-1)
    owner = result.tile_of_elements()
    expected = {(int(tile), int(at)) for tile, at in zip(owner, operand, strict=True)}
    found = [(int(t), at) for t, lo, hi in zip(*need.intervals(), strict=True) for at in range(lo, hi)]
    assert sorted(found) == sorted(expected)
    assert need.elements_per_tile(TILES).sum() == len(expected)
