"""Placement by hand on small tiles, and a checker that knows nothing of the allocator."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.memory.checking import check
from tests.engine.random_programs import programs
from tests.engine.small_programs import Builder, small_target
from workbench.base.arrays import IntArray, frozen
from workbench.base.categories import FOOTPRINT_CATEGORIES, MEMORY_CATEGORIES
from workbench.engine.memory import allocation as allocation_module
from workbench.engine.memory import packing as packing_module
from workbench.engine.memory.allocation import Allocation, allocate, covered_bytes
from workbench.engine.memory.footprint import Footprint, footprint
from workbench.engine.memory.liveness import liveness
from workbench.engine.memory.packing import Conflicts, Items, conflicts, conflicts_of, place
from workbench.engine.program import TileProgram
from workbench.engine.target import MemoryMap, target
from workbench.errors import InputError


def no_code(program: TileProgram, **bytes_of: int) -> Footprint:
    """A footprint of stated bytes on every tile."""
    shape = (program.ipus, program.target.tiles_per_ipu)
    return Footprint(categories={name: frozen(np.full(shape, bytes_of.get(name, 0))) for name in FOOTPRINT_CATEGORIES})


def allocated(program: TileProgram, **bytes_of: int) -> Allocation:
    code = no_code(program, **bytes_of)
    return allocate(program, liveness(program, code), code)


def chain(sizes: list[int], **fields: object) -> TileProgram:
    """Each value is read by the step that writes the next: two live at a time."""
    b = Builder()
    names = [b.variable([size], f"x{number}", **fields) for number, size in enumerate(sizes)]
    steps = [b.compute(writes=[names[0]])]
    steps += [b.compute(reads=[old], writes=[new]) for old, new in pairwise(names)]
    return b.program(*steps)


def test_addresses_are_used_again() -> None:
    tile = allocated(chain([80, 40, 80, 40, 80])).tile(0, 0)
    assert tile.not_always_live_bytes == 120 == tile.total_bytes
    # what need not be interleaved is not, while there is room
    assert {block.label: block.address for block in tile.blocks} == {
        "x0": 0,
        "x2": 0,
        "x4": 0,
        "x1": 80,
        "x3": 80,
    }
    check(tile, small_target())


def test_code_comes_first_then_what_is_always_live() -> None:
    b = Builder()
    weight = b.variable([100], "weight", kind="parameter", always_live=True)
    fast = b.variable([64], "fast", kind="parameter", always_live=True, interleaved=True)
    value = b.variable([32], "value")
    program = b.program(b.compute(reads=[weight, fast], writes=[value]))
    tile = allocated(program, vertex_code=20, control_code=12, stack=40).tile(0, 0)
    told = {block.label: (block.region, block.address) for block in tile.blocks}
    assert told == {
        "vertex_code": ("non_interleaved", 0),
        "control_code": ("non_interleaved", 24),  # 20 B, then the next multiple of 8
        "weight": ("non_interleaved", 40),
        "stack": ("non_interleaved", 144),
        "fast": ("interleaved", 8192),
        "value": ("non_interleaved", 184),
    }
    assert tile.total_bytes == 20 + 12 + 100 + 40 + 64 + 32
    assert tile.total_with_gaps_bytes == 216 + 64
    assert tile.category_bytes == dict.fromkeys(MEMORY_CATEGORIES, 0) | {
        "parameter": 164,
        "activation": 32,
        "vertex_code": 20,
        "control_code": 12,
        "stack": 40,
    }


def test_what_does_not_fit_is_reported_beyond_the_end() -> None:
    program = chain([8000, 8000, 100])
    found = allocated(program)
    assert found.fits  # one in each region
    across = allocated(program, stack=300)
    assert across.fits  # 304 + 16,000 B: the second value lies across the border at 8,192
    assert across.worst.total_with_gaps_bytes == 304 + 16000
    over = allocated(program, stack=500)
    assert not over.fits
    worst = over.worst
    assert (worst.ipu, worst.tile) == (0, 0)
    # 500 B of stack, then from 504 two values of 8,000 B: the second reaches 120 B beyond 16,384
    assert worst.overflow_bytes == 120
    assert worst.total_with_gaps_bytes == 16384 + 120
    assert [block.region for block in worst.blocks].count("overflow") == 1
    check(worst, program.target)


def test_code_must_be_executable_and_interleaved_data_interleaved() -> None:
    program = chain([8, 8])
    too_much_code = allocated(program, vertex_code=8300)
    assert not too_much_code.fits
    assert too_much_code.worst.overflow_bytes == 8300
    wide = allocated(chain([8000, 400], interleaved=True))
    assert not wide.fits  # the other region is free, but cannot hold interleaved data
    assert wide.worst.overflow_bytes == 400


def test_several_lifetimes_share_between_them() -> None:
    meets = conflicts([((0, 1), (10, 11)), ((2, 9),), ((11, 12),), ((5, 5), (20, 20))])
    assert meets.astype(int).tolist() == [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]]


@st.composite
def lifetimes_of_many(draw: st.DrawFn) -> list[tuple[tuple[int, int], ...]]:
    """Disjoint ascending intervals of some lifetimes, all of them again some times later, as calls of bodies are."""
    period, times = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    found = []
    for _ in range(draw(st.integers(0, 6))):
        ends = draw(st.lists(st.integers(0, period - 1), unique=True, max_size=6).map(sorted))
        spans = list(zip(ends[::2], ends[1::2], strict=False))
        found.append(tuple((turn * period + a, turn * period + b) for turn in range(times) for a, b in spans))
    return found


@given(lifetimes_of_many())
def test_lifetimes_meet_where_two_of_their_intervals_do(lives: list[tuple[tuple[int, int], ...]]) -> None:
    def meet(one: int, other: int) -> bool:
        return one == other or any(a <= d and c <= b for a, b in lives[one] for c, d in lives[other])

    every = range(len(lives))
    assert conflicts(lives).tolist() == [[meet(one, other) for other in every] for one in every]


@given(programs())
def test_what_states_say_of_lifetimes_is_what_their_intervals_say(program: TileProgram) -> None:
    live = liveness(program, footprint(program))
    for ipu in range(program.ipus):
        shared = [v.id for v in program.variables if v.ipu == ipu and live.intervals[v.id] and not v.always_live]
        spans = [live.intervals[variable] for variable in shared]
        kinds = list(dict.fromkeys(spans))
        assert live.lives(ipu).tolist() == [kinds.index(each) for each in spans]
        found = conflicts_of(live.life_changes(ipu), len(kinds))
        assert found.tolist() == conflicts(kinds).tolist()


def test_conflicts_of_calls_take_what_one_call_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep saw every interval: of 64 stages that took a twentieth of the compile."""
    seen: list[int] = []
    known = packing_module.conflicts_of

    def counted(changes: IntArray, count: int) -> Conflicts:
        seen.append(len(changes))
        return known(changes, count)

    monkeypatch.setattr(packing_module, "conflicts_of", counted)
    body = [(0, 3), (2, 5), (4, 7)]
    for calls in (1, 100):
        conflicts([tuple((10 * call + a, 10 * call + b) for call in range(calls)) for a, b in body])
    assert seen[1] <= seen[0] + 1


def test_blocks_make_their_intervals_when_they_are_asked_for() -> None:
    found = allocated(chain([400, 800, 4]))
    spans = {block.label: block.intervals for block in found.worst.blocks if block.variable >= 0}
    assert spans == {"x0": ((0, 1),), "x1": ((1, 2),), "x2": ((2, 2),)}
    assert all(not block.intervals for block in found.worst.blocks if block.always_live)


def test_equal_tiles_are_allocated_once_and_others_on_demand() -> None:
    b = Builder()
    big, small = b.variable([100, 100, 8, 0]), b.variable([0, 0, 0, 4])
    found = allocated(b.program(b.compute(writes=[big, small])))
    assert found.classes[0].tolist() == [0, 0, 2, 3]
    assert [(tile.ipu, tile.tile) for tile in found.allocated] == [(0, 0)]
    assert found.tile(0, 1).blocks is found.tile(0, 0).blocks
    assert found.tile(0, 1).tile == 1
    assert found.tile(0, 3).total_bytes == 4
    assert len(found.allocated) == 2
    with pytest.raises(InputError, match=r"^no tile 4 on ipu 0\. Expected: ipu 0 to 0 and tile 0 to 3\.$"):
        found.tile(0, 4)


def test_sums_beyond_32_bits_are_exact() -> None:
    gib = 1 << 30
    found = allocated(chain([3 * gib, 3 * gib, gib]))  # 6 GiB live at a time, 7 GiB of variables
    assert found.bounds[0].tolist() == [6 * gib, 0, 0, 0]
    assert found.liveness.step_peaks(0).live_bytes.tolist() == [3 * gib, 6 * gib, 4 * gib]


def test_an_address_of_two_categories_counts_for_the_first() -> None:
    names = ("temporary", "activation", "gradient")
    category = np.array([MEMORY_CATEGORIES.index(name) for name in names])
    found = covered_bytes(np.array([0, 50, 140]), np.array([100, 100, 20]), category)
    assert {name: size for name, size in found.items() if size} == {
        "temporary": 50,
        "activation": 100,
        "gradient": 10,
    }


# -- properties ------------------------------------------------------------------------------------------


@given(programs())
def test_nothing_overlaps_and_totals_are_bounded(program: TileProgram) -> None:
    code = footprint(program)
    found = allocate(program, liveness(program, code), code)
    for ipu in range(program.ipus):
        for number in range(4):
            tile = found.tile(ipu, number)
            check(tile, program.target)
            assert tile.total_bytes == sum(tile.category_bytes.values())
            assert found.bounds[ipu, number] <= tile.total_bytes <= tile.total_with_gaps_bytes
            assert tile.fits == (tile.total_with_gaps_bytes <= program.target.bytes_per_tile)
            held = {block.variable for block in tile.blocks if block.variable >= 0}
            for variable in program.variables:
                used = variable.always_live or found.liveness.intervals[variable.id]
                here = variable.ipu == ipu and variable.bytes_per_tile[number] > 0
                assert (variable.id in held) == bool(used and here)


@given(programs(max_ipus=1))
def test_no_tile_is_worse_than_the_worst(program: TileProgram) -> None:
    code = footprint(program)
    found = allocate(program, liveness(program, code), code)
    everywhere = max(found.tile(0, tile).total_with_gaps_bytes for tile in range(4))
    # Bounds decide which tiles are looked at; gaps from alignment can make a lighter tile a few bytes longer.
    assert everywhere - found.worst.total_with_gaps_bytes <= 16 * len(found.worst.blocks)


def test_the_checker_fails_on_an_allocator_that_forgets_time(monkeypatch: pytest.MonkeyPatch) -> None:
    program = chain([80, 40, 80])
    check(allocated(program).tile(0, 0), program.target)
    monkeypatch.setattr(allocation_module, "conflicts_of", lambda changes, count: np.eye(count, dtype=bool))
    with pytest.raises(AssertionError, match="overlap in space and time"):
        check(allocated(program).tile(0, 0), program.target)


def test_the_checker_fails_on_a_block_outside_its_region() -> None:
    program = chain([80], interleaved=True)
    tile = allocated(program).tile(0, 0)
    moved = replace(tile, blocks=tuple(replace(block, address=block.address - 8) for block in tile.blocks))
    with pytest.raises(AssertionError):
        check(moved, program.target)


# -- size ------------------------------------------------------------------------------------------------


def items_of(*rows: dict[str, int]) -> Items:
    """Things to place, each by what is not usual of it."""
    usual = {"size_bytes": 0, "life": -1, "interleaved": False, "code": False, "duration": 0}
    return Items(**{name: np.array([row.get(name, value) for row in rows]) for name, value in usual.items()})


def residual_network(layers: int, rng: np.random.Generator) -> tuple[Items, np.ndarray, int]:
    """A training step as a tile sees it: activations live until their backward step, temporaries for a few steps."""
    lives: list[tuple[tuple[int, int], ...]] = []
    sizes: list[int] = []
    total = 40 * layers
    for layer in range(layers):
        forward, backward = 20 * layer, total - 20 * layer - 20
        width = int(16000 / (1 + layer // 12)) // 4
        for kind in range(28):
            size = int(rng.integers(width // 4, width + 1)) * 4
            if kind == 0:
                interval = (forward + 5, backward + int(rng.integers(5, 18)))
            else:
                first = (forward if kind % 2 else backward) + int(rng.integers(0, 16))
                interval = (first, first + int(rng.integers(1, 5)))
            lives.append((interval,))
            sizes.append(size)
    live = np.zeros(total + 30, np.int64)
    for size, ((first, last),) in zip(sizes, lives, strict=True):
        live[first : last + 1] += size
    rows = {life: index for index, life in enumerate(dict.fromkeys(lives))}
    durations = [last - first + 1 for ((first, last),) in lives]
    columns = zip(sizes, [rows[life] for life in lives], durations, strict=True)
    items = items_of(*(dict(zip(("size_bytes", "life", "duration"), row, strict=True)) for row in columns))
    return items, conflicts(list(rows)), int(live.max())


@pytest.mark.parametrize("seed", range(3))
def test_a_training_step_is_packed_within_a_tenth_of_its_peak_in_time(seed: int) -> None:
    items, meets, peak = residual_network(53, np.random.default_rng(seed))
    assert len(items) == 1484
    memory = MemoryMap(non_interleaved_bytes=212_992, interleaved_bytes=425_984, executable_bytes=212_992)
    start = time.process_time()
    placed = place(memory, items, meets, peak)
    seconds = time.process_time() - start
    used = [
        int((placed.addresses + items.size_bytes)[placed.regions == region].max(initial=base)) - base
        for region, base in ((0, 0), (1, 212_992), (2, 638_976))
    ]
    assert sum(used) <= 1.10 * peak
    assert seconds < 0.12  # 0.04 s measured


def test_what_need_not_be_interleaved_takes_only_what_interleaved_pieces_leave_there() -> None:
    memory = MemoryMap(non_interleaved_bytes=16384, interleaved_bytes=16384, executable_bytes=16384)
    meets = conflicts([((0, 1),), ((2, 3),), ((2, 3),)])
    partials = {"size_bytes": 640, "life": 0, "interleaved": True}
    later, more = {"size_bytes": 600, "life": 1}, {"size_bytes": 80, "life": 2}
    # the partials are dead: the larger value lies where they did, the other finds no 80 B behind it
    placed = place(memory, items_of(partials, later, more), meets, 680)
    assert placed.addresses.tolist() == [16384, 16384, 0]
    # nothing is interleaved: nothing lies there
    assert place(memory, items_of(later, more), meets, 680).addresses.tolist() == [0, 600]


def test_on_mk1_data_begin_at_the_element_behind_the_code_where_they_fit() -> None:
    memory = target("ipu1").memory
    code, stack = {"size_bytes": 1180, "code": True}, {"size_bytes": 3168}
    meets = conflicts([((0, 1),)])
    assert place(memory, items_of(code, stack), meets, 0).addresses.tolist() == [0, 16384]
    # 131,072 + 131,072 B of data end at 262,144 only without a gap: they follow the code's 1,184 B
    large = {"size_bytes": 262_144 - 1184, "life": 0}
    assert place(memory, items_of(code, large), meets, large["size_bytes"]).addresses.tolist() == [0, 1184]
    assert place(target("ipu2").memory, items_of(code, stack), meets, 0).addresses.tolist() == [0, 1184]
