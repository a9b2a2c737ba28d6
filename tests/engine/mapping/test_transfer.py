"""What the exchange moves, against a walk over single elements."""

from __future__ import annotations

import time
from math import prod
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.mapping.element_walk import check_transfer
from tests.engine.mapping.mapping_cases import TILES, destinations_of, linears_of, mappings_of, shapes, turned_of
from workbench.engine import mapping as m
from workbench.engine.mapping import types as mapping_types
from workbench.engine.mapping.transfer import by_lines as mapping_lines
from workbench.engine.mapping.transfer import methods as mapping_transfer
from workbench.engine.mapping.transfer import sweep as mapping_sweep
from workbench.engine.mapping.transfer.by_axes import owner_to_owner
from workbench.engine.mapping.transfer.sweep import sweep
from workbench.errors import InputError


def test_one_tile_reads_what_it_lacks() -> None:
    # 100 floats (400 B) on each of 10 tiles; tile 3 needs all 1000: 900 come from 9 tiles in 9 pieces.
    x = m.linear((1000,), "float32", 10, vector_bytes=8)
    moved = m.transfer(x, m.on_tile((1000,), 3), 4, 10)
    assert moved.sent_bytes.tolist() == [400, 400, 400, 0, 400, 400, 400, 400, 400, 400]
    assert moved.received_bytes.tolist() == [0, 0, 0, 3600, 0, 0, 0, 0, 0, 0]
    assert moved.local_bytes.tolist() == [0, 0, 0, 400, 0, 0, 0, 0, 0, 0]
    assert moved.fragments.tolist() == [1, 1, 1, 9, 1, 1, 1, 1, 1, 1]
    assert moved.total_bytes == 3600
    assert str(moved) == "Transfer(3600 B received, 3600 B sent, 400 B local, at most 3600 B into a tile)"


def test_a_broadcast_is_sent_once() -> None:
    # 8 halves on tile 0, needed by tiles 0 to 3: sent once, received three times.
    x = m.on_tile((8,), 0)
    moved = m.transfer(x, m.needed_by(m.grid((4, 8), (4, 1)), (8,)), 2, 4)
    assert moved.sent_bytes.tolist() == [16, 0, 0, 0]
    assert moved.received_bytes.tolist() == [0, 16, 16, 16]
    assert moved.local_bytes.tolist() == [16, 0, 0, 0]
    assert moved.fragments.tolist() == [1, 1, 1, 1]


def test_rows_to_columns() -> None:
    # 4x4 floats, a row each to a column each: every tile keeps 1 of 4 and gets 3 single elements; its row leaves
    # as 4 columns, its own one staying.
    moved = m.transfer(m.grid((4, 4), (4, 1)), m.grid((4, 4), (1, 4)), 4, 4)
    assert moved.received_bytes.tolist() == [12] * 4
    assert moved.sent_bytes.tolist() == [12] * 4
    assert moved.local_bytes.tolist() == [4] * 4
    assert moved.fragments.tolist() == [6] * 4


def test_halo() -> None:
    # 6 rows of 10 floats, 2 on each of 3 tiles; each needs a row above and below its own.
    rows = m.grid((6, 10), (3, 1))
    need = m.grid_of_cuts((6, 10), [([0, 1, 3], [3, 5, 6], [0, 1, 2]), ([0], [10], [0])])
    moved = m.transfer(rows, need, 4, 3)
    assert moved.received_bytes.tolist() == [40, 80, 40]
    assert moved.sent_bytes.tolist() == [40, 80, 40]
    assert moved.fragments.tolist() == [2, 4, 2]


def test_the_same_place_moves_nothing() -> None:
    x = m.grid((4, 6), (2, 3))
    moved = m.transfer(x, m.reshape(x, (24,)), 4, 6)
    assert moved.empty
    assert moved.local_bytes.tolist() == [16] * 6
    assert moved.fragments.tolist() == [0] * 6


def test_results_are_kept_and_read_only() -> None:
    x, y = m.grid((4, 6), (2, 3)), m.grid((4, 6), (3, 2))
    assert m.transfer(x, y, 4, 6) is m.transfer(x, y, 4, 6)
    with pytest.raises(ValueError, match="read-only"):
        m.transfer(x, y, 4, 6).sent_bytes[0] = 1


@given(st.data(), shapes)
def test_every_method_agrees_with_the_sweep(data: st.DataObject, shape: tuple[int, ...]) -> None:
    src = data.draw(mappings_of(shape))
    dst = data.draw(destinations_of(shape))
    expected = sweep(src.runs(), dst.intervals(), src.size, TILES)
    turned = isinstance(src, m.Turned) or isinstance(dst, m.Turned)
    one_run_each = all(
        len(set(x.intervals()[0])) == len(x.intervals()[0]) for x in (src, dst) if not isinstance(x, m.Grid)
    )
    short_lines = mock.patch.object(mapping_lines, "SHORTEST_LINE", 1)
    with mock.patch.multiple(mapping_transfer, FEW_ROWS=-1, MOST_ROWS=-1), short_lines:
        for method in mapping_transfer.METHODS:
            found = method(src, dst, TILES)
            if found is None:
                continue
            for name in ("sent", "received", "local"):
                assert np.array_equal(getattr(found, name), getattr(expected, name)), (method, name)
            if method.__name__ == "by_axes":
                continue  # pieces in the order of memory, not of the index: check_transfer counts them
            if not turned and (one_run_each or method.__name__ in ("by_elements", "by_strides")):
                assert np.array_equal(found.pieces, expected.pieces), method
            elif not turned:
                assert (found.pieces >= expected.pieces).all()


def test_every_second_column_is_counted_by_axes() -> None:
    # Rows of 6 on two tiles, 3 columns each; tile 2 needs columns 0, 2 and 4 of both rows. Tile 0 sends 0 and 2 of
    # each: its memory is 0 1 2 0 1 2, where the last of one row and the first of the next are neighbours.
    src = m.grid((2, 6), (1, 2))
    dst = m.grid_of_cuts((2, 6), [([0], [2], [0]), ([0], [3], [0]), ([0], [1], [0])], dims=(2, 3, 2), first_tile=2)
    found = mapping_transfer.by_strides(src, dst, 3)
    assert found is not None
    assert found.sent.tolist() == [4, 2, 0]
    assert found.received.tolist() == [0, 0, 6]
    assert found.pieces.tolist() == [3, 2, 4]  # tile 2 has 2 of tile 0, 1 of tile 1, and both again
    assert mapping_transfer.by_axes(src, dst, 3) is None


@given(st.data())
def test_strides_that_do_not_divide_an_axis_are_counted_by_axes(data: st.DataObject) -> None:
    """A convolution with stride 2 reads 7 of 13 positions, of which a tile has several: no sweep over all elements."""
    rows, step, chans = data.draw(st.integers(5, 13)), data.draw(st.integers(2, 3)), data.draw(st.integers(2, 4))
    first = data.draw(st.integers(0, step - 1))
    at = np.arange(first, rows, step)
    parts = data.draw(st.integers(1, min(3, len(at))))
    src = m.grid((rows, chans), (data.draw(st.integers(1, min(3, rows))), data.draw(st.integers(1, chans))))
    tile = np.arange(len(at)) * parts // len(at)
    copies = data.draw(st.sampled_from([(0,), (0, 3)]))
    whole = (np.array([0]), np.array([chans]), np.array([0]))
    dst = m.grid_of_cuts((rows, chans), [(at, at + 1, tile), whole], replicas=copies)
    found = mapping_transfer.by_strides(src, dst, TILES)
    expected = sweep(src.runs(), dst.intervals(), src.size, TILES)
    assert found is not None or len(at) < 2
    for name in ("sent", "received", "local", "pieces") if found is not None else ():
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@given(st.data(), shapes)
def test_what_every_element_is_needed_by_one_tile_goes_by_elements(data: st.DataObject, shape: tuple[int, ...]) -> None:
    src, dst = data.draw(mappings_of(shape)), data.draw(mappings_of(shape))
    needed = m.demand(shape, *dst.intervals())
    expected = sweep(src.runs(), needed.intervals(), src.size, TILES)
    # However few its runs are: the choice is one of time alone.
    with mock.patch.object(mapping_transfer, "is_dense", lambda _rows, source: source.size > 0):
        found = mapping_transfer.by_elements(src, needed, TILES)
    if isinstance(src, m.Turned) or not src.size:
        assert found is None
        return
    assert found is not None
    for name in ("sent", "received", "local", "pieces"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def test_what_two_tiles_need_is_not_owned() -> None:
    whole = m.demand((6,), [0, 1], [0, 4], [4, 6])
    assert mapping_types.owned(whole) == m.runs((6,), [0, 4], [0, 1])
    for lo, hi in (([0, 3], [4, 6]), ([0, 4], [3, 6]), ([1, 4], [4, 6]), ([0, 4], [4, 5])):
        assert mapping_types.owned(m.demand((6,), [0, 1], lo, hi)) is None


@given(st.data(), shapes)
def test_marks_and_lookups_sweep_alike(data: st.DataObject, shape: tuple[int, ...]) -> None:
    src, dst = data.draw(mappings_of(shape)), data.draw(destinations_of(shape))
    found = []
    for dense in (0, 1 << 40):  # all by lookup, all by marks
        with mock.patch.object(mapping_sweep, "DENSE", dense):
            counts = sweep(src.runs(), dst.intervals(), src.size, TILES)
        found.append([values.tolist() for values in (counts.sent, counts.received, counts.local, counts.pieces)])
    assert found[0] == found[1]


def test_a_turned_view_is_moved_in_the_order_of_its_base() -> None:
    # 200 x 300 floats over 100 tiles, two rows each, seen transposed; needed 200 rows by 100 blocks of 3 columns.
    x = m.linear((200, 300), "float32", 100, vector_bytes=8)
    turned = m.transpose(x, (1, 0))
    assert str(turned) == "Turned(300x200 as ba of Linear(200x300 by 2 on 100 tiles from 0))"
    moved = m.transfer(turned, m.grid((300, 200), (100, 1)), 4, 100)
    straight = m.transfer(x, m.grid((200, 300), (1, 100)), 4, 100)
    # Each tile gets 2 x 3 floats from each of 99 others: one piece in, as its rows are 3 floats of its own memory;
    # out go 99 blocks of 3 floats from each of its two rows.
    assert moved.received_bytes.tolist() == [99 * 6 * 4] * 100
    assert moved.fragments.tolist() == [99 + 2 * 99] * 100
    assert moved.fragments.tolist() == straight.fragments.tolist()
    back = m.transfer(m.grid((300, 200), (100, 1)), turned, 4, 100)
    assert back.sent_bytes.tolist() == moved.received_bytes.tolist()
    assert (
        m.transfer(
            turned, m.transpose(m.linear((200, 300), "float32", 100, first_tile=1, vector_bytes=8), (1, 0)), 4, 100
        ).sent_bytes.tolist()
        == [2400] * 100
    )


def test_large_transfers_do_not_list_elements() -> None:
    """31 million elements with the innermost axis cut: counted by tiles (a sweep over rows would take minutes)."""
    src = m.linear((30522, 1024), "float32", 1472, vector_bytes=8)
    dst = m.grid((30522, 1024), (1, 1024))
    began = time.perf_counter()
    moved = m.transfer(src, dst, 4, 1472)
    assert time.perf_counter() - began < 5
    assert moved.total_bytes + int(moved.local_bytes.sum()) == 30522 * 1024 * 4
    assert int(moved.sent_bytes.sum()) == moved.total_bytes
    with (
        mock.patch.object(m.Grid, "runs", side_effect=AssertionError),
        mock.patch.object(m.Grid, "intervals", side_effect=AssertionError),
    ):
        m.transfer(m.transpose(src, (1, 0)), m.grid((1024, 30522), (1024, 1)), 4, 1472)
        m.transfer(m.grid((30522, 1024), (1472, 1)), dst, 4, 1472)


def test_sources_must_own() -> None:
    need = m.needed_by(m.grid((4, 8), (4, 1)), (8,))
    with pytest.raises(InputError, match="in which every element has one owner"):
        m.transfer(need, m.on_tile((8,), 0), 4, 4)
    half = m.by_hand((8,), [(0, 0, 4)])
    with pytest.raises(InputError, match="has one owner"):
        m.transfer(half, m.on_tile((8,), 0), 4, 4)
    with pytest.raises(InputError, match="has a tile"):
        m.transfer(m.on_tile((8,), 0), half, 4, 4)


@given(st.data(), shapes.filter(lambda shape: prod(shape) > 1))
def test_lines_agree_with_elements(data: st.DataObject, shape: tuple[int, ...]) -> None:
    src, dst = data.draw(turned_of(shape)), data.draw(st.one_of(turned_of(shape), linears_of(shape)))
    with mock.patch.object(mapping_lines, "SHORTEST_LINE", 1):
        found = mapping_transfer.by_lines(src, dst, TILES)
    if found is None:
        return
    exact = owner_to_owner(src, dst, TILES)
    for name in ("sent", "received", "local"):
        assert np.array_equal(getattr(found, name), getattr(exact, name)), name
    assert (found.pieces >= exact.pieces).all()
    assert (found.pieces <= src.elements_per_tile(TILES) + dst.elements_per_tile(TILES)).all()


@given(st.data(), shapes)
def test_every_pair_of_kinds(data: st.DataObject, shape: tuple[int, ...]) -> None:
    src = data.draw(mappings_of(shape))
    dst = data.draw(destinations_of(shape))
    check_transfer(src, dst, 4, TILES)


def test_channels_are_kept_in_groups() -> None:
    # 6 positions of 32 channels on 2 tiles, 3 positions each; to 2 tiles of 16 channels each. In memory order
    # [2 groups][3 positions][16] a tile keeps one group and sends the other as one piece, and gets one piece.
    moved = m.transfer(m.grid((6, 32), (2, 1)), m.grid((6, 32), (1, 2)), 4, 2)
    assert moved.received_bytes.tolist() == [3 * 16 * 4] * 2
    assert moved.fragments.tolist() == [2, 2]


def test_a_cut_inside_a_group_makes_pieces() -> None:
    # The same, but cut after channel 8: groups of 8. Tile 0 needs group 0 of tile 1's positions (1 piece in) and
    # sends groups 1 to 3 of its own, which follow each other in memory (1 piece out).
    need = m.grid_of_cuts((6, 32), [([0], [6], [0]), ([0, 8], [8, 32], [0, 1])])
    moved = m.transfer(m.grid((6, 32), (2, 1)), need, 4, 2)
    assert moved.received_bytes.tolist() == [3 * 8 * 4, 3 * 24 * 4]
    check_transfer(m.grid((6, 32), (2, 1)), need, 4, 2)
