"""Arrows between tiles: by hand, and against a walk over single elements for mappings of every kind."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.mapping.mapping_cases import TILES, destinations_of, mappings_of, shapes
from workbench.engine import mapping as m
from workbench.engine.program.moves import described, in_order, numbers_of
from workbench.profiler.exchanges.arrows import Arrows, arrows_of, common_dims
from workbench.profiler.exchanges.placements import Listed, Placement, placements_of
from workbench.profiler.schema import table


def read(*placements: m.Placement, tiles: int = TILES) -> tuple[Placement, ...]:
    """Placements as a profile has them."""
    forms = [(kind, head, numbers_of(parts)) for kind, head, parts in map(described, placements)]
    columns = {
        "kind": [kind for kind, _, _ in forms],
        "head": [json.dumps(head) for _, head, _ in forms],
        "numbers": [len(numbers) for _, _, numbers in forms],
    }
    return placements_of(table("placements", columns), np.concatenate([numbers for _, _, numbers in forms]), tiles)


def listed(found: Arrows | None) -> list[tuple[int, int, int]]:
    assert found is not None
    return list(zip(found.sender.tolist(), found.receiver.tolist(), found.bytes.tolist(), strict=True))


def walked(held: m.Mapping, needed: m.Placement, itemsize: int) -> list[tuple[int, int, int]]:
    """Element by element."""
    owner = held.tile_of_elements()
    wants = np.zeros((TILES, held.size), bool)
    for tile, lo, hi in zip(*needed.intervals(), strict=True):
        wants[tile, lo:hi] = True
    found: dict[tuple[int, int], int] = {}
    for tile, element in np.argwhere(wants).tolist():
        if owner[element] != tile:
            pair = (int(owner[element]), tile)
            found[pair] = found.get(pair, 0) + itemsize
    return [(*pair, size) for pair, size in sorted(found.items())]


def test_a_row_that_two_tiles_hold_goes_to_three() -> None:
    # Tile 0 has elements 0 to 5, tile 1 6 to 11; tiles 1, 2 and 3 need four each: 0-3, 4-7, 8-11, of 4 bytes.
    held = m.runs((12,), [0, 6], [0, 1])
    needed = m.runs((12,), [0, 4, 8], [1, 2, 3])
    have, need = read(held, needed)
    assert listed(arrows_of([(have, need, 4)], TILES)) == [(0, 1, 16), (0, 2, 8), (1, 2, 8), (1, 3, 16)]


def test_moves_of_one_exchange_add_up_and_nothing_goes_to_its_own_tile() -> None:
    held, everywhere = m.on_tile((8,), 2), m.demand((8,), [1, 2], [0, 0], [8, 8])
    have, need = read(held, everywhere)
    assert listed(arrows_of([(have, need, 2), (have, need, 4)], TILES)) == [(2, 1, 8 * 2 + 8 * 4)]


def test_a_grid_is_needed_in_copies() -> None:
    # Rows of a 4 x 6 matrix on tiles 0 and 1, each needed on tiles 0 + 4, 0 + 8 and 1 + 4, 1 + 8.
    held = m.grid((4, 6), (2, 1))
    needed = m.grid_of_cuts((4, 6), held.axes, dims=held.dims, first_tile=4, replicas=[0, 4])
    have, need = read(held, needed)
    assert listed(arrows_of([(have, need, 4)], TILES)) == [(0, 4, 48), (0, 8, 48), (1, 5, 48), (1, 9, 48)]


def test_of_nothing_nothing_moves() -> None:
    have, need = read(m.grid((0, 4), (1, 1)), m.grid((0, 4), (1, 1), first_tile=3))
    assert listed(arrows_of([(have, need, 4)], TILES)) == []


def test_bytes_in_one_order_on_both_sides() -> None:
    sent, received = np.array([6, 0, 4]), np.array([0, 3, 7])
    move = in_order(sent, received)
    have, need = read(move.held, move.needed)
    assert listed(arrows_of([(have, need, move.itemsize_bytes)], TILES)) == [(0, 1, 3), (0, 2, 3)]


@st.composite
def transfers(draw: st.DrawFn) -> tuple[m.Mapping, m.Placement]:
    shape = draw(shapes)
    return draw(mappings_of(shape)), draw(destinations_of(shape))


@given(transfers(), st.sampled_from([1, 2, 4]))
def test_arrows_are_those_of_a_walk_over_elements(pair: tuple[m.Mapping, m.Placement], itemsize: int) -> None:
    held, needed = pair
    have, need = read(held, needed)
    assert listed(arrows_of([(have, need, itemsize)], TILES)) == walked(held, needed, itemsize)
    moved = m.transfer(held, needed, itemsize, TILES)
    found = arrows_of([(have, need, itemsize)], TILES)
    assert found is not None
    into = np.bincount(found.receiver, found.bytes, TILES).astype(np.int64)
    assert into.tolist() == moved.received_bytes.tolist()
    out = np.bincount(found.sender, found.bytes, TILES).astype(np.int64)
    assert (out >= moved.sent_bytes).all()  # what goes to several is sent once
    assert ((out > 0) == (moved.sent_bytes > 0)).all()


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ([4, 6], [24], [4, 6]),
        ([4, 6], [8, 3], [4, 2, 3]),
        ([4, 6], [6, 4], None),
        ([1, 4], [2, 2, 1], [2, 2]),
        ([], [1], []),
    ],
)
def test_dims_that_both_can_be_factored_along(first: list[int], second: list[int], common: list[int] | None) -> None:
    assert common_dims(first, second) == common


def changed(kind: str, head: dict[str, object], numbers: list[int]) -> None:
    columns = {"kind": [kind], "head": [json.dumps(head)], "numbers": [len(numbers)]}
    placements_of(table("placements", columns), np.array(numbers, np.int64), 4)


def test_the_plain_one_that_is_broken_below_is_read() -> None:
    columns = {"kind": ["runs"], "head": ['{"size": 8, "runs": 2}'], "numbers": [4]}
    (found,) = placements_of(table("placements", columns), np.array([0, 4, 1, 2]), 4)
    assert isinstance(found, Listed)
    assert (found.tile.tolist(), found.lo.tolist(), found.hi.tolist()) == ([1, 3], [0, 4], [4, 8])


@pytest.mark.parametrize(
    ("kind", "head", "numbers"),
    [
        ("runs", {"size": 8, "runs": 2}, [0, 4, 1, 3]),  # on tile 4 of four
        ("runs", {"size": 8, "runs": 2}, [1, 4, 1, 2]),  # element 0 is on no tile
        ("runs", {"size": 8, "runs": 3}, [0, 4, 1, 2]),
        ("runs", {"size": 1 << 60, "runs": 1}, [0, 0]),
        ("runs", {"size": True, "runs": 1}, [0, 0]),
        ("stranger", {"size": 8}, []),
        ("grid", {"size": 8, "axes": [[8, 1]], "first_tile": 9, "replicas": 1}, [0, 8, 0, 0]),
        ("grid", {"size": 9, "axes": [[8, 1]], "first_tile": 0, "replicas": 1}, [0, 8, 0, 0]),
        ("grid", {"size": 8, "axes": [[8, 1]], "first_tile": 0, "replicas": 1}, [0, 9, 0, 0]),
        ("grid", {"size": 8, "axes": 3, "first_tile": 0, "replicas": 1}, [0, 8, 0, 0]),
        ("demand", {"size": 8, "intervals": 1}, [0, 3, 6]),
        ("linear", {"size": 8, "grain": 0, "tiles": 2, "first_tile": 0, "tiles_of_ipu": 0}, []),
        ("turned", {"size": 8, "of": "turned", "base": {}, "dims": [2, 4], "perm": [1, 0], "flipped": []}, []),
        (
            "turned",
            {"size": 8, "of": "runs", "base": {"size": 8, "runs": 1}, "dims": [8], "perm": [1], "flipped": []},
            [0, 0],
        ),
    ],
)
def test_a_mapping_that_does_not_hold_together_is_refused(
    kind: str, head: dict[str, object], numbers: list[int]
) -> None:
    with pytest.raises(ValueError, match=r"a |element|interval"):
        changed(kind, head, numbers)
