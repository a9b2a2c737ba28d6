"""Sorting networks and running operations on four tiles, worked out by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.ops.lowered import F32, single
from workbench.engine.ops.running import cut_rows
from workbench.engine.ops.sort import bitonic_steps, compared_together, pairs_per_tile

I32 = "int32"


def test_eight_elements_take_six_steps_of_four_pairs() -> None:
    """log2 8 = 3 merges of 1, 2 and 3 steps at distances 1 | 2 1 | 4 2 1; a pair a tile."""
    case = single("sort", [((8,), F32)], [((8,), F32)], dimension=0, num_keys=1)
    groups = case.vertices()
    assert [arguments["distance"] for _, arguments, _, _ in groups] == [1, 2, 1, 4, 2, 1]
    assert all(arguments["pairs"] == 1 and tiles == [0, 1, 2, 3] for _, arguments, tiles, _ in groups)
    assert all(vertex == "popops::CompareAndSwapAtDistance" for vertex, *_ in groups)
    # All on tile 1 at first; then neighbours swap partners: from pairs 01|23|45|67 to 02|13|46|57 one element each.
    assert [list(step.exchange.received_bytes) for step in case.exchanges[:2]] == [[8, 0, 8, 8], [4, 4, 4, 4]]


def test_values_move_with_their_keys() -> None:
    types = [((8,), F32), ((8,), I32)]
    case = single("sort", types, types, dimension=0, num_keys=1, is_stable=True)
    for vertex, arguments, _, _ in case.vertices():
        assert vertex == "popops::CompareAndSwapAtDistanceKeyVal"
        assert (arguments["key_type"], arguments["value_type"]) == ("float", "int")
        assert arguments["values_are_secondary_key"] is True


def test_the_largest_two_of_eight_drop_half_twice() -> None:
    """Sequences of 2 are sorted (1 step), then merged twice: 8 to 4 to 2 elements, each merge sorted again."""
    steps = list(bitonic_steps(8, 2))
    assert [(step.size, step.distance, step.keep) for step in steps] == [
        (8, 1, 8),
        (8, 2, 4),
        (4, 1, 4),
        (4, 2, 2),
        (2, 1, 2),
    ]
    case = single("top_k", [((8,), F32)], [((2,), F32), ((2,), I32)], k=2)
    assert case.vertices()[0][0] == "popops::Iota"
    assert case.streamed() == [8, 8]


@given(size=st.integers(2, 40), k=st.integers(1, 40))
def test_a_network_sorts(size: int, k: int) -> None:
    """The steps leave k sorted elements: the sizes shrink to the next power of two of k, and sorting has all steps."""
    k = min(k, size)
    steps = list(bitonic_steps(size, k))
    whole = 1 << (k - 1).bit_length()
    assert steps[-1].keep == min(size, whole)
    if k == size:
        levels = (size - 1).bit_length()
        assert len(steps) == levels * (levels + 1) // 2


@given(size=st.integers(2, 60), distance=st.sampled_from([1, 2, 4, 8]), tiles=st.integers(1, 7))
def test_pairs_are_brought_together(size: int, distance: int, tiles: int) -> None:
    owner = compared_together(size, distance, tiles).tile_of_elements()
    counted = np.zeros(tiles, np.int64)
    for element in range(size):
        if element // distance % 2 == 0 and element + distance < size:
            assert owner[element] == owner[element + distance]
            counted[owner[element]] += 1
    assert counted.tolist() == pairs_per_tile(size, distance, tiles).tolist()


def test_a_cut_row_takes_over_what_came_before() -> None:
    """Two rows of 128 on four tiles: each in two pieces of 64; the second piece gets one total of 4 B."""
    case = single("cumsum", [((2, 128), F32)], [((2, 128), F32)], axis=1, reverse=False)
    assert case.received() == [0, 4, 0, 4]
    pieces, applied = [group for group in case.vertices() if group[0] == "popops::MapExpression"]
    assert (pieces[1]["n"], pieces[2]) == (64, [0, 1, 2, 3])
    assert (applied[1]["n"], applied[2]) == (64, [1, 3])
    assert case.lowered.operators[0].flops == 256


def test_whole_rows_need_no_second_pass() -> None:
    case = single("cumprod", [((4, 64), F32)], [((4, 64), F32)], axis=1, reverse=True)
    assert len(case.vertices()) == 1
    assert case.received() == []


def test_rows_are_cut_only_into_long_pieces() -> None:
    assert cut_rows(1, 64, 4).splits == (1, 2)  # pieces of at least 32
    assert cut_rows(3, 64, 4).splits == (3, 1)  # one tile left: no row gets two


def test_the_place_of_an_extreme_is_found_on_each_tile_then_compared() -> None:
    """Four rows of 64 floats, a row a tile: one gather each. Cut rows compare what the tiles found."""
    whole = single("argmax", [((4, 64), F32)], [((4,), I32)], axes=(1,))
    arguments, tiles, count = whole.vertex("popnn::ReduceMaxClassGather")
    assert (arguments["size"], tiles, count) == (64, [0, 1, 2, 3], 1)
    assert whole.received() == []
    cut = single("argmin", [((256,), F32)], [((), I32)], axes=(0,))
    arguments, tiles, _ = cut.vertex("popnn::ReduceMinClassGather")
    assert (arguments["size"], tiles) == (64, [0, 1, 2, 3])
    (sparse, _, _) = cut.vertex("popnn::ReduceMinClassSparse")
    assert sparse["size"] == 4
    assert sum(cut.received()) == 3 * (4 + 4)  # values and places of the three other tiles
    assert cut.lowered.operators[0].flops == 256


def test_matrices_are_factorised_whole() -> None:
    """Eight 4x4 matrices, two a tile; three right-hand sides of each are six problems a tile."""
    case = single("cholesky", [((8, 4, 4), F32)], [((8, 4, 4), F32)])
    arguments, tiles, count = case.vertex("poplin::Cholesky")
    assert (arguments["dim"], tiles, count) == (4, [0, 1, 2, 3], 2)
    assert case.lowered.operators[0].flops == 8 * (4 + 5 * 4 + 5 * 4 * 3 // 3)
    types = [((8, 4, 4), F32), ((8, 4, 3), F32)]
    solved = single("triangular_solve", types, types[1:], lower=True, transpose_a=True)
    arguments, tiles, count = solved.vertex("poplin::TriangularSolve")
    assert (arguments["an"], arguments["lower"], count) == (4, False, 6)
