"""What the exchange moves, against a walk over single elements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.mapping_cases import TILES, destinations_of, mappings_of, shapes
from workbench.engine import mapping as m


def test_one_tile_reads_what_it_lacks() -> None:
    # 100 floats (400 B) on each of 10 tiles; tile 3 needs all 1000: 900 come from 9 tiles in 9 pieces.
    x = m.linear((1000,), "float32", 10)
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
def test_every_pair_of_kinds(data: st.DataObject, shape: tuple[int, ...]) -> None:
    src = data.draw(mappings_of(shape))
    dst = data.draw(destinations_of(shape))
    m.check_transfer(src, dst, 4, TILES)
