"""Cuts of small chains, against every way there is."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.partition import ChainLayer, Wire, best_partitions, carried_elements, transfer_cycles
from workbench.errors import InputError

GIB = 1024**3


def test_two_equal_halves() -> None:
    assert best_partitions([ChainLayer(cycles=5)] * 4, 2, 1, lambda *_: 0) == [(0, 2, 4)]


def test_layers_that_share_a_variable_stay_together() -> None:
    layers = [ChainLayer(cycles=1, variable=name) for name in "aabbbb"]
    assert best_partitions(layers, 2, 1, lambda *_: 0) == [(0, 2, 6)]


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=7),
    st.integers(2, 3),
    st.integers(5, 40),
)
def test_no_other_way_is_better(rows: list[tuple[int, int, int]], stages: int, memory: int) -> None:
    layers = [ChainLayer(cycles=a, memory_bytes=b, output_bytes=c) for a, b, c in rows]

    def cost(way: tuple[int, ...]) -> int | None:
        parts = [layers[a:b] for a, b in pairwise(way)]
        if any(sum(layer.memory_bytes for layer in part) > memory for part in parts):
            return None
        return max(sum(layer.cycles for layer in part) for part in parts) + max(part[-1].output_bytes for part in parts)

    every = [(0, *cut, len(layers)) for cut in combinations(range(1, len(layers)), stages - 1)]
    costs = {way: found for way in every if (found := cost(way)) is not None}
    if not costs:
        with pytest.raises(InputError, match="do not fit"):
            best_partitions(layers, stages, memory, lambda ipu, first, last: layers[last].output_bytes)
        return
    found = best_partitions(layers, stages, memory, lambda ipu, first, last: layers[last].output_bytes)
    least = min(costs.values())
    assert found
    assert {costs[way] for way in found} == {least}


def test_a_transfer_by_hand() -> None:
    """1 GiB/s at 2^30 Hz is a byte a cycle: host 10 + 100 in, 10 + 300 out; the first IPU sends 5 + 200 / 2."""
    layers = [ChainLayer(cycles=1, input_bytes=100, output_bytes=200), ChainLayer(cycles=1, output_bytes=300)]
    host, link = Wire(gib_per_second=1, idle_cycles=10), Wire(gib_per_second=2, idle_cycles=5)
    assert transfer_cycles(layers, [host, link], [link, host], 0, 0, 0, GIB) == 110 + 310 + 105
    assert transfer_cycles(layers, [host, link], [link, host], 1, 1, 1, GIB) == 110 + 310 + 5


def test_what_is_carried_past_a_layer_is_read_behind_it() -> None:
    """Three layers; the third reads what the first made as well."""
    assert carried_elements([4, 5, 6, 7], [[0], [1], [2, 1]]) == {
        "carry": [0, 5, 0],
        "input": [4, 5, 11],
        "output": [5, 11, 7],
    }
