"""Addresses worked out from a profile's data: groups of tiles that share a placement, and bytes by category."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.random_programs import programs
from tests.profiler.measured import compiled
from workbench.base.categories import MEMORY_CATEGORIES
from workbench.engine.program import TileProgram
from workbench.profiler.collect import collect
from workbench.profiler.memory import addresses
from workbench.profiler.memory.addresses import bytes_by_category
from workbench.profiler.profile import Profile
from workbench.profiler.schema import Table


def amounts(vectors: list[list[int]], always: list[int], lives: list[tuple[int, int, int]]) -> addresses.Amounts:
    rows, first, last = (np.array(column, dtype=np.int64) for column in zip(*lives, strict=True))
    return addresses.Amounts(vectors=np.array(vectors), always=np.array(always), rows=rows, first=first, last=last)


def test_the_fullest_position_counts_what_is_live_there() -> None:
    # one vector held throughout, and two lives of the other: bytes 10, 10 + 5, 10 + 2 * 5, 10 + 5
    found = amounts([[10], [5]], [1, 0], [(1, 1, 2), (1, 2, 3)])
    counts, needed = found.fullest(np.array([10, 5]))
    assert counts.tolist() == [1, 2]
    assert needed == 20


def test_tiles_within_a_hundredth_share_and_others_do_not() -> None:
    found = amounts([[1000, 1000, 1005, 500], [0, 4, 0, 0]], [1, 0], [(1, 0, 0)])
    bounds = np.array([1000, 1004, 1005, 500])
    # together tiles 0 to 2 need 1005 + 4 = 1009 <= 1.01 * 1000; tile 3 needs half
    groups = addresses.groups(found, np.arange(4), bounds)
    assert sorted(group.tolist() for group in groups) == [[0, 1, 2], [3]]
    found = amounts([[1000, 1000, 1007, 500], [0, 4, 0, 0]], [1, 0], [(1, 0, 0)])
    groups = addresses.groups(found, np.arange(4), np.array([1000, 1004, 1007, 500]))
    # 1007 + 4 is too much together: the vector that costs most splits them
    assert sorted(group.tolist() for group in groups) == [[0, 1], [2], [3]]


def test_tiles_that_are_full_at_different_times_are_split() -> None:
    found = amounts([[50, 0], [0, 50]], [0, 0], [(0, 0, 1), (1, 1, 2)])
    groups = addresses.groups(found, np.arange(2), np.array([50, 50]))
    assert sorted(group.tolist() for group in groups) == [[0], [1]]


def grouped(whole: Profile, tolerance: float) -> Profile:
    """A profile of which no tile has been placed."""
    none_yet = {**whole.arrays, "total_with_gaps": np.full_like(whole.arrays["total_with_gaps"], -1)}
    profile = replace(whole, arrays=none_yet)
    with patch.object(addresses, "PLACED_BY_THEMSELVES", 0), patch.object(addresses, "TOLERANCE", tolerance):
        assert len(profile.tiles) == whole.arrays["always_live"].size
    return profile


def check(profile: Profile, ipu: int, tile: int, end_bytes: int) -> None:
    """All bytes of the tile, each inside one region, apart in space from what lives at the same time."""
    rows, with_gaps = profile.addresses.tile(ipu, tile)
    table, variables = profile.tables["intervals"], profile.tables["variables"]
    lives: dict[int, set[int]] = {}
    for number, first, last in zip(*(table[name].tolist() for name in ("variable", "first", "last")), strict=True):
        lives.setdefault(number, set()).update(range(first, last + 1))
    blocks = list(zip(*(rows[name].tolist() for name in ("variable", "address", "bytes")), strict=True))
    sizes = profile.arrays["per_tile"][variables["bytes_index"], tile]
    assert all(size == sizes[number] for number, _, size in blocks if number >= 0)
    border = int(profile.target["non_interleaved_bytes"])
    for (one, start, size), (other, begin, extent) in combinations(blocks, 2):
        always = [number < 0 or bool(variables["always_live"][number]) for number in (one, other)]
        if any(always) or lives[one] & lives[other]:
            assert start + size <= begin or begin + extent <= start
    for edge in (border, end_bytes):
        assert not any(start < edge < start + size for _, start, size in blocks)
    over = max((start + size for _, start, size in blocks if start >= end_bytes), default=0)
    assert with_gaps == over or (not over and with_gaps <= end_bytes)
    table_row = profile.tiles.iloc[ipu * profile.arrays["always_live"].shape[1] + tile]
    assert table_row["total_with_gaps_bytes"] == with_gaps
    assert {name: table_row[name] for name in MEMORY_CATEGORIES} == bytes_by_category(rows)


@given(programs(), st.sampled_from([1.0, 1.5, 4.0]))
def test_tiles_that_share_addresses_keep_what_is_live_apart(program: TileProgram, tolerance: float) -> None:
    found = compiled(program)
    profile = grouped(collect(found), tolerance)
    for ipu in range(program.ipus):
        for tile in range(program.target.tiles_per_ipu):
            check(profile, ipu, tile, program.target.bytes_per_tile)
            alone = found.allocation.tile(ipu, tile).total_with_gaps_bytes
            assert profile.addresses.tile(ipu, tile).total_with_gaps <= max(alone, profile.max_tile_bytes)


blocks = st.tuples(st.integers(0, 40), st.integers(1, 20), st.sampled_from(MEMORY_CATEGORIES))


@given(st.lists(blocks, max_size=12))
def test_a_shared_address_counts_for_its_first_category(drawn: list[tuple[int, int, str]]) -> None:
    rows: Table = {
        "address": np.array([address for address, _, _ in drawn], dtype=np.int64),
        "bytes": np.array([size for _, size, _ in drawn], dtype=np.int64),
        "category": np.array([category for _, _, category in drawn], dtype=str),
    }
    expected = dict.fromkeys(MEMORY_CATEGORIES, 0)
    for address in range(60):
        here = [name for start, size, name in drawn if start <= address < start + size]
        if here:
            expected[min(here, key=MEMORY_CATEGORIES.index)] += 1
    assert bytes_by_category(rows) == expected
