"""Where the intermediate stages of deep reductions are."""

from __future__ import annotations

import tracemalloc
from functools import cache
from itertools import accumulate
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine import reconcile
from tests.engine.mapping.mapping_cases import linears_of, runs_of, shapes, turned_of
from tests.engine.small_graphs import Draft
from workbench.engine import mapping as m
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.ops.reduce import partials_of
from workbench.engine.options import options
from workbench.engine.target import target

TILES = 256
SHAPES = {"wide": (64, 1024), "same": (64, 1024), "tall": (1024, 64), "more": (128, 1024)}


@cache
def summed() -> Compiled:
    """A sum of all elements of each tensor."""
    draft = Draft()
    sums = []
    for name, shape in SHAPES.items():
        with draft.at(layer=name):
            sums.append(draft.reduce("reduce_sum", draft.point("tanh", draft.param(name, shape)), 0, 1))
    return compile_graph(draft.graph(*sums), target("ipu2", tiles_per_ipu=TILES), options())


def stage_tiles(name: str) -> list[int]:
    """The tiles that hold the partials of a layer's first intermediate stage."""
    (found,) = [v for v in summed().program.variables if v.name == f"{name}/reduce_sum/stage0/partials"]
    return [int(tile) for tile in np.flatnonzero(found.bytes_per_tile)]


def test_stages_begin_at_a_tile_of_their_shapes_so_that_no_tile_has_them_all() -> None:
    tiles = {name: stage_tiles(name) for name in SHAPES}
    assert tiles["wide"] == tiles["same"]
    assert len({tiles[name][0] for name in ("wide", "tall", "more")}) == 3
    for name, held in tiles.items():
        assert held == list(range(held[0], held[0] + len(held))), name
        assert held[-1] < TILES


def test_partials_reach_their_stage_and_leave_it() -> None:
    """All that is left of 65,536 elements on 256 tiles is one float, and every part of the sum is received once."""
    reconcile.reconciles(summed())
    for name in SHAPES:
        (arrived,) = [v for v in summed().program.variables if v.name == f"{name}/reduce_sum/stage0/arranged"]
        assert arrived.size_bytes == 4 * TILES
        assert set(np.flatnonzero(arrived.bytes_per_tile)) == set(stage_tiles(name))


@pytest.mark.parametrize(
    "held",
    [m.linear((6, 4), "float32", 8, vector_bytes=8), m.on_tile((6, 4), 5), m.runs((6, 4), [0, 3, 9, 20], [2, 7, 2, 0])],
)
def test_a_sum_of_everything_has_a_partial_on_each_tile_that_holds_something(held: m.Mapping) -> None:
    found = partials_of(held, (0, 1), ())
    tiles = sorted(set(held.tile_of_elements().tolist()))
    assert found.depth == len(tiles)
    assert found.held.tile_of_elements().tolist() == tiles
    assert found.kept == ()
    if found.first_partial is not None:
        assert found.first_partial.tolist() == [0, len(tiles)]
    else:
        assert len(tiles) == 1


@given(shapes.flatmap(lambda shape: st.one_of(linears_of(shape), runs_of(shape), turned_of(shape))), st.data())
def test_each_tile_has_one_partial_of_every_result_that_it_holds_elements_of(
    held: m.Mapping, data: st.DataObject
) -> None:
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(held.shape) - 1), min_size=1))))
    kept = tuple(size for axis, size in enumerate(held.shape) if axis not in axes)
    owners = held.tile_of_elements().reshape(held.shape)
    rows = np.moveaxis(owners, axes, range(-len(axes), 0)).reshape(prod(kept), -1)
    wanted = [sorted(set(row)) for row in rows.tolist()]
    found = partials_of(held, axes, kept)
    assert found.depth == max(map(len, wanted))
    assert found.held.tile_of_elements().tolist() == [tile for row in wanted for tile in row]
    if found.first_partial is not None:
        assert found.first_partial.tolist() == [0, *accumulate(map(len, wanted))]


@pytest.mark.parametrize(("axis", "wanted"), [(0, [[row // 256] for row in range(4096)]), (1, [[*range(16)]] * 4096)])
def test_a_reduced_transpose_is_not_gone_through_element_by_element(axis: int, wanted: list[list[int]]) -> None:
    """4,096 rows on 16 tiles: a sum of one row is on its tile, one of a column in part on each, in less than the 16 MiB
    that a byte for each element would take.
    """
    rows = m.linear((4096, 4096), "float32", 16, vector_bytes=8)
    tracemalloc.start()
    found = partials_of(m.transpose(rows, (1, 0)), (axis,), (4096,))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.held.tile_of_elements().tolist() == [tile for row in wanted for tile in row]
    assert found.depth == len(wanted[0])
    assert peak_bytes < 4096 * 4096
