"""Collectives on a few tiles, every byte and cycle worked out by hand."""

from __future__ import annotations

from math import ceil
from typing import Any

import pytest

from tests.engine.ops.lowered import Case, lowered_graph
from tests.engine.small_graphs import Draft
from tests.engine.vertices.machine import MACHINE
from workbench.engine import vertices
from workbench.engine.memory.footprint import footprint
from workbench.engine.program import GlobalExchange, StreamCopy, Sync
from workbench.engine.time.execute import execute

CLOCK = 1.33e9
BYTES_PER_CYCLE = 17179869184 * 0.85 / CLOCK


def sums(replicas: int, *sizes: int, together: bool = False, op: str = "psum", **attributes: Any) -> Case:
    """Inputs of so many words, each summed over the replicas, or all at once."""
    draft = Draft()
    values = [draft.param(f"in{number}", (size,)) for number, size in enumerate(sizes)]
    groups = [values] if together else [[value] for value in values]
    results = [
        result
        for group in groups
        for result in draft.nodes(op, group, tuple((value.shape, value.dtype) for value in group), **attributes)
    ]
    return lowered_graph(draft.graph(*results, meta={"replicas": replicas}))


def collectives(case: Case) -> list[GlobalExchange]:
    return [step for step in case.lowered.program.steps if isinstance(step, GlobalExchange)]


def test_an_all_reduce_is_two_rings_and_the_sums_between_them() -> None:
    """512 words lie on 4 tiles, 128 each; of four replicas each sends three quarters, 384 B a tile, both times."""
    case = sums(4, 512)
    scatter, gather = collectives(case)
    assert (scatter.collective, gather.collective) == ("reduce_scatter", "all_gather")
    for step in (scatter, gather):
        assert step.sent is not None
        assert step.received is not None
        assert step.sent.sent_bytes.tolist() == step.received.received_bytes.tolist() == [384] * 4
        assert step.sent.fragments.tolist() == [3] * 4
        assert (step.size_bytes, step.group_size, step.ipus) == (2048, 4, (0,))
    assert case.variable("arriving") == [128] * 4  # a quarter of the tile's 512 B
    (added,) = [step for step in case.computes if step.name.endswith("combine")]
    assert case.trace.executions[added.id] == 3
    one = vertices.cycles(MACHINE, "popops::BinaryOp1DInPlace", op="ADD", type="float", n=32)
    assert case.trace.steps[added.id].cycles == one + 80


def test_a_ring_of_four_single_ipus_has_two_links_to_itself() -> None:
    """IPUs 0, 2, 3, 1: three quarters of 40,000 B at two links, three messages of a hop, and a tile's 7,500 B."""
    case = sums(4, 10_000)
    steps = case.trace.steps
    transfer, latency = ceil(30_000 / (2 * BYTES_PER_CYCLE)), ceil(3 * 15e-9 * CLOCK)
    on_tile = 7500 // 4 + 40
    assert [steps[step.id].cycles for step in collectives(case)] == [transfer + latency + on_tile] * 2
    assert case.trace.cycle_breakdown[0]["collective"] == 2 * (transfer + latency + on_tile)


def test_code_counts_each_end_of_a_ring_once() -> None:
    """Three pieces sent and three received, 3/2 events each at either end, and 384 B in sends of 64 words."""
    case = sums(4, 512)
    code = footprint(case.lowered.program).categories["global_exchange_code"][0]
    sent, received = ceil(1.5 * 3) + 384 // 256, ceil(1.5 * 3)
    assert code.tolist() == [2 * (4 * (sent + received) + 2 * 12)] * 4


def test_every_collective_waits_for_the_other_replicas() -> None:
    program = sums(2, 64).lowered.program
    order = [step for step in program.steps if not isinstance(step, StreamCopy)]
    for place, step in enumerate(order):
        if isinstance(step, GlobalExchange):
            before = order[place - 1]
            assert isinstance(before, Sync)
            assert before.scope == "external"


def test_sums_that_run_together_share_one_buffer_and_two_rings() -> None:
    alone, together = sums(4, 500, 300), sums(4, 500, 300, together=True)
    assert len(collectives(alone)) == 4
    assert len(collectives(together)) == 2
    assert [step.size_bytes for step in collectives(together)] == [3200, 3200]
    held = [one.size_bytes for one in together.lowered.program.variables if one.name.endswith("psum/buffer")]
    assert held == [2000, 1200]
    assert not [name for name in alone.names() if name.endswith("psum/buffer")]


def test_types_are_not_added_to_each_other() -> None:
    draft = Draft()
    values = [draft.param("a", (64,)), draft.param("b", (64,), dtype="float16"), draft.param("c", (64,))]
    results = draft.nodes("psum", values, tuple((value.shape, value.dtype) for value in values))
    case = lowered_graph(draft.graph(*results, meta={"replicas": 2}))
    assert [step.size_bytes for step in collectives(case)] == [128, 128, 512, 512]


def test_groups_make_smaller_rings() -> None:
    case = sums(4, 512, axis_index_groups=((0, 1), (2, 3)))
    assert {step.group_size for step in collectives(case)} == {2}


def test_one_replica_exchanges_nothing() -> None:
    case = sums(1, 512)
    assert collectives(case) == []


@pytest.mark.parametrize(
    ("op", "shape", "result", "moved"),
    [
        ("all_gather", (64,), (4, 64), 768),  # of 1,024 B three quarters arrive
        ("reduce_scatter", (64,), (16,), 192),
        ("all_to_all", (64,), (64,), 192),
    ],
)
def test_gather_scatter_and_exchange_move_what_is_not_there(
    op: str, shape: tuple[int, ...], result: tuple[int, ...], moved: int
) -> None:
    draft = Draft()
    value = draft.param("x", shape)
    made = draft.node(op, (value,), result, "float32")
    case = lowered_graph(draft.graph(made, meta={"replicas": 4}))
    (step,) = collectives(case)
    assert step.sent is not None
    assert int(step.sent.sent_bytes.sum()) == moved
    assert execute(case.lowered.program).steps[step.id].cause == "collective"
