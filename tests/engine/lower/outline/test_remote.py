"""Runs that load and store variables or sum over replicas, and room for what bodies hold twice."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tests.engine import reconcile
from tests.engine.small_graphs import Draft
from tests.engine.small_programs import Builder
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Graph, GraphBuilder, Input, Node
from workbench.engine.graph.origin import Origin
from workbench.engine.lower.outline.room import Room, held_at_once
from workbench.engine.lower.outline.runs import RunClass, RunFinder
from workbench.engine.options import options
from workbench.engine.program import GlobalExchange, StreamCopy
from workbench.engine.program import Sequence as ProgramSequence
from workbench.engine.target import target

LAYERS, TILES, SHAPE = 4, 8, (64, 8)
STATE, MERGING = "pipeline.offload_weight_update_variables", "optimizations.merge_remote_buffers"
VALUE = (SHAPE, "float32")


@cache
def momentum(replicas: int = 1) -> Graph:
    """In every layer m' = m + g, w' = w - m' / |m'|, with g the sum over the replicas."""
    draft = Draft()
    updates, gradient = {}, draft.param("x", SHAPE)
    for number in range(LAYERS):
        w = draft.weight(f"layer_{number}/w", SHAPE)
        m = draft.param(f"layer_{number}/m", SHAPE, "optimizer")
        with draft.at(layer=f"layer_{number}", direction="backward"):
            gradient = draft.point("tanh", draft.point("mul", w, gradient))
        with draft.at(layer=f"layer_{number}", direction="update"):
            g = draft.node("psum", (gradient,), SHAPE, "float32", axes=("replicas",), axis_index_groups=None)
            m2 = draft.point("add", m, g)
            norm = draft.reduce("reduce_sum", draft.point("mul", m2, m2), 0, 1)
            step = draft.point("mul", m2, draft.broadcast(draft.point("rsqrt", norm), SHAPE))
            w2 = draft.point("sub", w, step)
        updates |= {f"layer_{number}/w": w2, f"layer_{number}/m": m2}
    return draft.graph(gradient, updates=updates, mode="training", meta={"replicas": replicas})


@cache
def compiled(replicas: int = 1, *, outlining: bool = True, merging: str = "MERGE") -> Compiled:
    values = {STATE: True, MERGING: merging, "optimizations.enable_graph_outlining": outlining}
    return compile_graph(momentum(replicas), target("ipu2", tiles_per_ipu=TILES), options(values))


def copies(made: Compiled) -> list[StreamCopy]:
    return [step for step in made.program.steps if isinstance(step, StreamCopy) and step.remote]


def moved_bytes(made: Compiled) -> int:
    return sum(step.size_bytes * made.trace.executions[step.id] for step in copies(made))


def reconciles(made: Compiled) -> None:
    """All that holds of every program, but for variables being on the chip whole."""
    for part in reconcile.ALL:
        if part is not reconcile.nothing_is_kept_twice:
            part(made)


@pytest.mark.parametrize("replicas", [1, 4])
def test_one_body_loads_and_stores_the_rows_of_a_merged_buffer(replicas: int) -> None:
    shared, plain = compiled(replicas), compiled(replicas, outlining=False)
    assert [len(copies(made)) for made in (shared, plain)] == [2, 2 * LAYERS]
    assert [shared.trace.executions[step.id] for step in copies(shared)] == [LAYERS] * 2
    assert moved_bytes(shared) == moved_bytes(plain) == 2 * LAYERS * 4 * 64 * 8
    assert shared.program.remote_buffers != ()
    described = [[(b.name, b.size_bytes, b.group) for b in made.program.remote_buffers] for made in (shared, plain)]
    assert described[0] == described[1]
    slots = [each for each in shared.program.variables if each.name.endswith("/m")]
    assert [each.size_bytes for each in slots] == [0] * LAYERS
    assert shared.footprint.bytes_per_tile(0).max() < plain.footprint.bytes_per_tile(0).max()
    reconciles(shared)


def test_buffers_that_are_not_merged_are_copied_by_code_of_their_own() -> None:
    found = compiled(merging="NO_MERGING")
    assert len(copies(found)) == 2 * LAYERS
    reconciles(found)


def test_sums_over_replicas_are_in_the_body_too() -> None:
    """The tensors of all layers are summed by the same steps: what replicas exchange is told once."""
    shared, plain = compiled(4), compiled(4, outlining=False)
    sums = [[s for s in made.program.steps if isinstance(s, GlobalExchange)] for made in (shared, plain)]
    assert LAYERS * len(sums[0]) == len(sums[1])
    assert {shared.trace.executions[step.id] for step in sums[0]} == {LAYERS}


# What may be in a run


def loading(*stored: bool, key: str = "") -> list[RunClass]:
    """The classes of layers that load a variable, add to it and, where told so, store it."""
    made = GraphBuilder("f")
    for number, is_stored in enumerate(stored):
        layer, variable = Origin(layer=f"layer_{number}"), made.param(*VALUE)
        told = {"key": key or f"f:{number}", "name": "m", "remote": True, "shards": 1}
        made.node("remote_load", (variable,), (), origin=layer, **told)
        (new,) = made.node("exp", (variable,), (VALUE,), origin=layer)
        if is_stored:
            made.node("remote_store", (new,), (), origin=layer, **told)
    function = made.function(())
    return RunFinder(Graph(functions={"f": function}, entry="f", inputs=(), outputs=()), function, {}).classes()


def test_a_run_loads_what_it_stores_and_has_no_argument_of_it() -> None:
    (found,) = loading(True, True, True)
    assert [[node.op for node in run.nodes] for run in found.runs] == [["remote_load", "exp", "remote_store"]] * 3
    assert [run.arguments for run in found.runs] == [()] * 3
    assert found.results == ()


def test_what_stays_loaded_is_in_no_run() -> None:
    found = loading(False, False, False)
    assert [[node.op for node in each.runs[0].nodes] for each in found] == [["exp"]]
    assert [[node.op for node in run.nodes] for run in loading(True, True, True, False)[0].runs] == [
        ["remote_load", "exp", "remote_store"]
    ] * 3


# Room


def placed(**sizes: int) -> tuple[Builder, dict[str, int]]:
    """Variables of so many bytes on each of four tiles, by name."""
    built = Builder()
    return built, {name: built.variable(size) for name, size in sizes.items()}


def lowered(built: Builder, variables: dict[int, int]) -> Lowering:
    """As much of a lowering as rooms read: where values are, by id, and the variables; all were placed at first."""
    return cast(
        Lowering,
        SimpleNamespace(
            has=lambda value: value.id in variables,
            get=lambda value: SimpleNamespace(variables=(variables[value.id],)),
            emit=SimpleNamespace(ipu=0, variables=built.variables),
            tiles=built.tiles,
            bound=[],
        ),
    )


def test_what_a_body_holds_counts_as_far_as_it_rises_over_what_is_needed_anyway() -> None:
    """Bytes a tile: x 100, a 50, b 30. At the product x and a are live, 150; behind it x and b, 130."""
    made = GraphBuilder("f")
    x = made.param(*VALUE)
    (a,) = made.node("exp", (x,), (VALUE,))
    (b,) = made.node("dot_general", (a,), (VALUE,))
    (c,) = made.node("mul", (x, b), (VALUE,))
    function = made.function((c,))
    built, names = placed(x=100, a=50, b=30)
    lowering = lowered(built, {x.id: names["x"], a.id: names["a"], b.id: names["b"]})
    room = Room()
    room.add(Graph(functions={"f": function}, entry="f", inputs=(Input(name="x", role="input"),), outputs=()))
    _, product, behind = function.nodes

    def rises(node: Node, held_bytes: int) -> int:
        """By how much a body that holds so much, all of it twice, rises: the least it fits in."""
        held, kept = np.full(built.tiles, held_bytes), np.zeros(built.tiles, np.int64)
        least = next(most for most in range(held_bytes + 1) if room.fits(node, held, held, kept, most, lowering))
        assert not room.fits(node, held, held, kept + 1, least, lowering)
        return least

    assert rises(behind, 300) == 300  # nothing is known yet
    room.note(product, np.full(built.tiles, 200), lowering)
    assert rises(behind, 300) == 130 + 300 - (150 + 200)
    assert rises(behind, 300 - 250) == 0
    elsewhere = GraphBuilder("g")
    elsewhere.node("exp", (elsewhere.param(*VALUE),), (VALUE,))
    assert rises(elsewhere.nodes[0], 300) == 300


def test_what_runs_once_for_many_micro_batches_may_take_longer() -> None:
    bodies = []
    for name in ("step", "update"):
        inner = GraphBuilder(name)
        (y,) = inner.node("exp", (inner.param(*VALUE),), (VALUE,))
        bodies.append(inner.function((y,)))
    made = GraphBuilder("f")
    (y,) = made.node("call", (made.param(*VALUE),), (VALUE,), calls=("step",), times=16)
    made.node("call", (y,), (VALUE,), calls=("update",))
    entry = made.function(())
    room = Room()
    functions = {body.name: body for body in (entry, *bodies)}
    room.add(Graph(functions=functions, entry="f", inputs=(Input(name="x", role="input"),), outputs=()))
    assert [room.share_of_turns(body.nodes[0]) for body in bodies] == [1, 1 / 16]


def test_a_body_holds_at_a_step_what_was_touched_before_and_is_read_later() -> None:
    """Bytes a tile: a 10 and b 20 while b is made of a, then b and c, 25."""
    built, names = placed(a=10, b=20, c=5, outside=1000)
    a, b, c, outside = names.values()
    program = ProgramSequence(
        children=(
            built.compute(reads=(outside,), writes=(a,)),
            built.compute(reads=(a,), writes=(b,)),
            built.compute(reads=(b,), writes=(c,)),
        )
    )
    assert held_at_once(program, {a, b, c}, lowered(built, {})).tolist() == [30] * 4
