"""What must hold of every compiled program, each computed apart from what the compiler says of itself."""

from __future__ import annotations

import numpy as np

from tests.engine.memory.checking import check
from workbench.engine.compile import Compiled
from workbench.engine.graph import RESIDENT_ROLES
from workbench.engine.program import DoExchange


def categories_sum_to_the_total(compiled: Compiled, most_steps: int = 60) -> None:
    """On every tile, at evenly chosen steps: variables one by one and code by category = always-live + live."""
    live = compiled.liveness
    for ipu in range(compiled.program.ipus):
        always, curve = live.always_live_bytes(ipu), live.live_bytes(ipu)
        for position in sorted(set(np.linspace(0, len(curve) - 1, most_steps, dtype=int).tolist())):
            parts = live.category_bytes(ipu, position).values()
            np.testing.assert_array_equal(np.sum(list(parts), axis=0), always + curve[position])


def what_a_step_touches_is_live(compiled: Compiled) -> None:
    """At its step, every variable that is read or written is inside one of its intervals."""
    live, program = compiled.liveness, compiled.program
    steps = {step.id: step for step in program.steps}
    for ipu, timeline in enumerate(live.timelines):
        for position, number in enumerate(timeline.tolist()):
            step = steps[number]
            for name in {*step.reads, *step.writes}:
                variable = program.variables[name]
                if variable.ipu == ipu and not variable.always_live:
                    assert any(first <= position <= last for first, last in live.intervals[name]), (step.name, variable)


def nothing_overlaps(compiled: Compiled, more_tiles: int = 2) -> None:
    """The independent checker on the tiles that were allocated, and on a few others."""
    program, allocation = compiled.program, compiled.allocation
    tiles = {(tile.ipu, tile.tile) for tile in allocation.allocated}
    chosen = np.linspace(0, program.target.tiles_per_ipu - 1, more_tiles, dtype=int).tolist()
    tiles |= {(ipu, tile) for ipu in range(program.ipus) for tile in chosen}
    for ipu, tile in sorted(tiles):
        check(allocation.tile(ipu, tile), program.target)


def bytes_sent_are_received(compiled: Compiled) -> None:
    """Sent + multicast = received. A tile receives no more than it has room for in what is written; it sends only if it
    holds something of the sources, and no more than the others receive.
    """
    variables = compiled.program.variables
    for step in compiled.program.steps:
        if not isinstance(step, DoExchange):
            continue
        sent, received = step.exchange.sent_bytes, step.exchange.received_bytes
        assert int(sent.sum()) + step.exchange.multicast_extra_bytes == int(received.sum())
        assert 0 <= int(sent.sum()) <= int(received.sum()), step.name
        held = np.sum([variables[name].bytes_per_tile for name in step.reads], axis=0)
        room = np.sum([variables[name].bytes_per_tile for name in step.writes], axis=0)
        assert (held[sent > 0] > 0).all(), f"{step.name} sends what the tile does not hold"
        assert (sent <= received.sum() - received).all(), f"{step.name} sends more than the others receive"
        assert (received <= room).all(), f"{step.name} receives more than the tile has room for"


def cycles_sum(compiled: Compiled) -> None:
    """The causes of every IPU sum to the total; on one IPU so do steps times executions."""
    trace = compiled.trace
    for spent in trace.cycle_breakdown:
        assert sum(spent.values()) == trace.total_cycles
    if compiled.program.ipus == 1:
        counted = sum(cost.cycles * trace.executions[number] for number, cost in trace.steps.items())
        assert counted == trace.total_cycles


def nothing_is_kept_twice(compiled: Compiled) -> None:
    """Always-live variables of the model are its parameters, slots and states, each once, updated in place."""
    graph = compiled.graph
    expected = {
        described.name: value.size_bytes
        for value, described in zip(graph.body.params, graph.inputs, strict=True)
        if described.role in RESIDENT_ROLES and value.elements
    }
    kinds = ("parameter", "optimizer", "state")
    held = [v for v in compiled.program.variables if v.always_live and v.kind in kinds]
    if compiled.program.ipus == 1:
        constants = {d.name for d in graph.inputs if d.role == "constant"}
        found = {v.name: v.size_bytes for v in held}
        assert len(held) == len(found)
        assert found == {name: size for name, size in expected.items() if name not in constants}
    variables = compiled.program.variables
    # A counter read old and new is two words somewhere; anything larger would be there twice.
    written_back = [
        step.name
        for step in compiled.program.steps
        if "write_back" in step.name and any(variables[name].size_bytes > 8 for name in step.writes)
    ]
    assert not written_back, written_back


def operators_own_their_steps(compiled: Compiled) -> None:
    """Every step names an operator there is, or none."""
    assert compiled.lowered is not None
    names = [operator.id for operator in compiled.lowered.operators]
    assert len(set(names)) == len(names)
    assert {step.operator for step in compiled.program.steps} <= {*names, ""}


def nothing_unmodelled(compiled: Compiled) -> None:
    assert compiled.lowered is not None
    assert compiled.lowered.unmodelled == ()


ALL = (
    categories_sum_to_the_total,
    what_a_step_touches_is_live,
    nothing_overlaps,
    bytes_sent_are_received,
    cycles_sum,
    nothing_is_kept_twice,
    operators_own_their_steps,
    nothing_unmodelled,
)


def reconciles(compiled: Compiled) -> None:
    """All of it."""
    for part in ALL:
        part(compiled)
