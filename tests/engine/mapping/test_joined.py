"""Joined tensors: what their parts say together is what a count over their elements says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.mapping.element_walk import check_transfer
from tests.engine.mapping.mapping_cases import TILES, demand_grids_of, grids_of, mappings_of
from workbench.engine import mapping as m
from workbench.engine.mapping.joined import Joined, parts_of
from workbench.engine.mapping.needs import needed_by
from workbench.engine.mapping.transfer import transfer


@st.composite
def joined(draw: st.DrawFn, *, grids: bool = False) -> Joined:
    """Two to four tensors end to end along some axis."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    axis = draw(st.integers(0, len(shape) - 1))
    parts = []
    for size in draw(st.lists(st.integers(1, 5), min_size=2, max_size=4)):
        part = tuple(size if at == axis else length for at, length in enumerate(shape))
        parts.append(draw(grids_of(part) if grids else mappings_of(part)))
    whole = m.concatenate([m.runs_of_elements(part.shape, part.tile_of_elements()) for part in parts], axis)
    assert isinstance(whole, Joined)
    found = m.concatenate(parts, axis)
    assert np.array_equal(found.tile_of_elements(), whole.tile_of_elements())
    return found if isinstance(found, Joined) else whole


def plain(mapping: m.Mapping) -> m.Runs:
    """The same owners without the parts."""
    return m.runs_of_elements(mapping.shape, mapping.tile_of_elements())


@given(st.data())
def test_parts_send_together_what_the_whole_sends(data: st.DataObject) -> None:
    have = data.draw(joined())
    need = data.draw(demand_grids_of(have.shape))
    by_parts, at_once = transfer(have, need, 4, TILES), transfer(plain(have), need, 4, TILES)
    assert np.array_equal(by_parts.sent_bytes, at_once.sent_bytes)
    assert np.array_equal(by_parts.received_bytes, at_once.received_bytes)
    assert np.array_equal(by_parts.local_bytes, at_once.local_bytes)
    check_transfer(have, need, 4, TILES)


@given(st.data())
def test_parts_need_together_what_the_whole_needs(data: st.DataObject) -> None:
    result = data.draw(joined())
    axis = data.draw(st.integers(0, len(result.shape) - 1))
    shape = tuple(size if at == axis else 1 for at, size in enumerate(result.shape))
    found, expected = needed_by(result, shape), needed_by(plain(result), shape)
    for one, other in zip(found.intervals(), expected.intervals(), strict=True):
        assert np.array_equal(one, other)


def test_each_part_is_a_variable_with_pieces_of_its_own() -> None:
    """Tile 2 needs 4 + 4 columns of both rows; each part has its row on tile 0 or 1: a piece from either, a part."""
    rows = m.grid((2, 4), (2, 1))
    other = m.runs_of_elements((2, 4), np.repeat([[0], [1]], 4, axis=1))
    whole = m.concatenate([rows, other], 1)
    assert isinstance(whole, Joined)
    moved = transfer(whole, m.on_tile((2, 8), 2), 4, 3)
    assert moved.received_bytes.tolist() == [0, 0, 64]
    assert moved.fragments.tolist() == [2, 2, 4]


def test_a_part_that_was_joined_gives_its_parts() -> None:
    one, two, three = (m.on_tile((3, size), tile) for tile, size in enumerate((2, 1, 4)))
    runs = [plain(part) for part in (one, two, three)]
    twice = m.concatenate([m.concatenate(runs[:2], 1), runs[2]], 1)
    found = parts_of(twice)
    assert found is not None
    assert found[0] == 1
    assert [(part.mapping, part.first) for part in found[1]] == list(zip(runs, (0, 2, 3), strict=True))
    across = m.concatenate([m.concatenate(runs[:2], 1), plain(m.on_tile((1, 3), 4))], 0)
    found = parts_of(across)
    assert found is not None
    assert [part.mapping.shape for part in found[1]] == [(3, 3), (1, 3)]


def test_under_another_shape_there_are_no_parts() -> None:
    whole = m.concatenate([plain(m.on_tile((2, 2), 0)), plain(m.on_tile((2, 1), 1))], 1)
    assert parts_of(whole) is not None
    flat = m.reshape(whole, (6,))
    assert parts_of(flat) is None
    assert flat.tile_of_elements().tolist() == [0, 0, 1, 0, 0, 1]
