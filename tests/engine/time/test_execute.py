"""Step costs by hand on four tiles (ipu2: launch 80, latency 40, barrier 83, six worker slots, 4 B/cycle)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.engine.small_programs import Builder, sequence
from workbench.engine.cost import formulas
from workbench.engine.mapping.tileset import tile_set
from workbench.engine.program import Call, If, Overlap, Repeat, VertexGroup
from workbench.engine.time.execute import costs_of, execute
from workbench.engine.time.step_cost import longest_slot_cycles
from workbench.errors import VerificationError


def stub(cycles: int, tiles: list[int], count: int = 1) -> VertexGroup:
    return VertexGroup("stub", (("cycles", cycles),), tile_set(tiles), count)


def test_slowest_tile_decides_and_balance_is_mean_over_slowest() -> None:
    b = Builder()
    trace = execute(b.program(b.compute({0: 10, 1: 10, 2: 100})))
    cost = trace.steps[0]
    assert cost.cycles_per_tile.tolist() == [60, 60, 600, 0]
    assert cost.cycles == 600 + 80
    assert (cost.active_tiles, cost.tile_balance) == (3, 720 / 3 / 600)
    assert trace.cycle_breakdown[0]["compute"] == trace.total_cycles == 680


def test_worker_vertices_share_six_slots_longest_first() -> None:
    # 7 of 10 and one of 25: 25 alone, five slots take 10, then two slots 20; the fullest holds 25.
    assert longest_slot_cycles((("stub", 10, 7), ("stub", 25, 1)), 6) == 25
    # 13 equal ones: three rounds.
    assert longest_slot_cycles((("stub", 10, 13),), 6) == 30
    b = Builder()
    step = b.groups(stub(10, [0, 1], 7), stub(25, [1]))
    assert execute(b.program(step)).steps[0].cycles_per_tile.tolist() == [6 * 20, 6 * 25, 0, 0]


def test_multi_vertices_add_before_workers() -> None:
    b = Builder()
    copy = VertexGroup("poplar::Memcpy", (("bytes", 800),), tile_set([0, 2]), 2)
    per_tile = execute(b.program(b.groups(copy, stub(10, [2, 3])))).steps[0].cycles_per_tile
    one = 6 * 23 + 11 + 100
    assert per_tile.tolist() == [2 * one, 0, 2 * one + 60, 60]


def test_what_an_earlier_program_has_costed_is_taken_over() -> None:
    """On the same target only, and only what it has: of two steps one is new, and on another target both are."""
    first, later = Builder(), Builder()
    earlier = first.program(first.compute({0: 10, 2: 100}))
    known = costs_of(earlier)
    before = execute(earlier, known)
    program = later.program(sequence(later.compute({0: 10, 2: 100}), later.compute({1: 7})))
    after = execute(program, costs_of(program, known))
    assert after.steps[0].cost is before.steps[0].cost
    assert execute(program, costs_of(program)).steps[0].cost is not before.steps[0].cost
    assert after.steps[0].cycles_per_tile.tolist() == [60, 0, 600, 0]
    assert after.steps[1].cycles_per_tile.tolist() == [0, 42, 0, 0]
    other = replace(program, target=replace(program.target, launch_cycles=1))
    assert execute(other, costs_of(other, known)).steps[0].cycles == 600 + 1


def test_exchange_takes_the_longest_of_send_receive_and_events() -> None:
    b = Builder()
    sends = b.exchange(b.exchanged([4000], [0, 2000, 2000], [2, 1, 1]))
    receives = b.exchange(b.exchanged([100], [0, 402, 402], [2, 1, 1]))
    shared = b.row([0, 204, 204])  # of 404 bytes: 204 at 8 a cycle and 200 at 4 are 75.5 cycles
    paired = b.exchange(b.exchanged([300], [0, 404, 404], [1, 1, 1], shared_bytes=shared))
    events = b.exchange(b.exchanged([400], [0, 400], [100, 100]))  # 3/2 a piece
    staged = b.exchange(b.exchanged([4000], [0, 4000], [2000, 2000]))  # 3,000 events, or 1,000 + 288 + 1,000
    trace = execute(b.program(sends, receives, paired, events, staged))
    cycles = [trace.steps[step].cycles for step in range(5)]
    assert cycles == [1000 + 40, 101 + 40, 76 + 40, 150 + 40, 2288 + 40]
    assert trace.steps[1].cycles_per_tile.tolist() == [25, 101, 101, 0]


def test_sync_host_and_links() -> None:
    b = Builder(ipus=4)
    clock = 1.33e9
    link = b.link(1_000_000, 0, 3)  # across the rung, then up: two links each
    ring = b.link(1_000_000, 0, 0, collective="all_reduce", group_size=4)
    gather = b.link(1_000_000, 0, 0, collective="all_gather", group_size=4)
    trace = execute(b.program(b.sync(), b.sync("external"), b.stream(7980), link, ring, gather))
    bandwidth = 2 * 17179869184 * 0.85
    per_byte = clock / bandwidth
    expected = [
        83,
        600,
        1330 + (1995 + 40),
        int(np.ceil(1e6 * per_byte)) + int(np.ceil(2 * 15e-9 * clock)),
        # Rings of four replicas of four IPUs, two rows each: even ones up, odd ones down, two streams on every bundle.
        int(np.ceil(3e6 * per_byte)) + int(np.ceil(4 * 6 * 15e-9 * clock)),
        int(np.ceil(1.5e6 * per_byte)) + int(np.ceil(4 * 3 * 15e-9 * clock)),
    ]
    order = [step.program.id for step in trace.entry.children]
    assert [trace.steps[step].cycles for step in order] == expected
    assert [trace.steps[step].cause for step in order] == [
        "sync",
        "sync",
        "host",
        "inter_ipu",
        "collective",
        "collective",
    ]


def test_every_term_is_its_formula_on_its_inputs() -> None:
    b = Builder(ipus=2)
    steps = (
        b.compute({0: 5, 1: 7}),
        b.exchange(b.exchanged([8], [0, 8], 1)),
        b.stream(100, "to_host"),
        b.link(64, 0, 1),
        b.sync(),
    )
    for cost in execute(b.program(*steps)).steps.values():
        for part in cost.cost.terms:
            assert formulas.get(part.formula).evaluate(**dict(part.inputs)) == part.value


def test_control_nodes_add_multiply_and_take_the_dearest() -> None:
    b = Builder()  # a compute of n worker cycles costs 6 n + 80
    b.functions["body"] = sequence(b.compute(10), b.sync())  # 140 + 83
    trace = execute(
        b.program(
            Call(function="body"),
            Repeat(times=5, body=Call(function="body")),
            If(arms=(b.compute(1), b.compute(20), b.compute(2))),
        )
    )
    assert trace.total_cycles == 223 + 5 * 223 + 200
    assert trace.cycle_breakdown[0]["sync"] == 6 * 83
    assert trace.cycle_breakdown[0]["compute"] == 6 * 140 + 200
    assert trace.executions == {0: 6, 1: 6, 2: 0, 3: 1, 4: 0}


def test_an_ipu_waits_for_the_others_by_cause() -> None:
    b = Builder(ipus=2)
    short, long = b.compute(10, ipu=0), b.compute(50, ipu=1)  # 140 and 380
    alone = b.compute(20, ipu=1)  # 200
    trace = execute(
        b.program(
            Overlap(branches=(short, long), phase="fill"),
            Overlap(branches=(alone,), phase="drain"),
            b.stream(7980, ipu=0),  # 3365
            b.sync(ipu=1),
        )
    )
    assert trace.total_cycles == 380 + 200 + 3365 + 83
    first, second = trace.cycle_breakdown
    assert first == dict.fromkeys(first, 0) | {
        "compute": 140,
        "idle_fill": 240,
        "idle_drain": 200,
        "host": 3365,
        "idle_wait_stage": 83,
    }
    assert second == dict.fromkeys(second, 0) | {"compute": 580, "idle_wait_host": 3365, "sync": 83}


def test_branches_on_one_ipu_do_not_overlap() -> None:
    b = Builder()
    with pytest.raises(VerificationError, match=r"^two branches of the overlap 'column' use one IPU.$"):
        execute(b.program(Overlap(branches=(b.compute(), b.compute()), name="column")))


def test_equal_steps_share_terms_and_arrays() -> None:
    b = Builder()
    trace = execute(b.program(b.compute({0: 5}), b.compute({0: 5})))
    assert trace.steps[0].narrow_cycles is trace.steps[1].narrow_cycles
    assert trace.steps[0].cost.terms[0] is trace.steps[1].cost.terms[0]


def test_exchanges_of_an_earlier_program_are_not_costed_again() -> None:
    b = Builder()
    moved = b.exchange(b.exchanged([64], [0, 64], [1, 1]))
    before, renamed = b.program(moved), replace(moved, exchange=replace(moved.exchange, name="later"))
    costs = costs_of(before)
    first = execute(before, costs).steps[0]
    again = execute(b.program(b.compute(), renamed), costs_of(before, costs)).steps[0]
    assert again.cost is first.cost
