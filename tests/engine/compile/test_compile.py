"""Random training steps through the whole compiler: passes keep their meaning, totals equal their parts."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine import reconcile
from tests.engine.evaluate import assert_same_meaning
from tests.engine.random_graphs import Drawing, graphs
from tests.engine.small_graphs import Draft
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.compile import reuse as prepared_module
from workbench.engine.emit import emitter as emit_module
from workbench.engine.graph import Graph, Node, Value, verify_graph
from workbench.engine.lower.in_place import InPlace
from workbench.engine.memory import allocation as allocation_module
from workbench.engine.memory import liveness as liveness_module
from workbench.engine.memory.liveness import Liveness
from workbench.engine.options import Options
from workbench.engine.passes import PIPELINE
from workbench.engine.target import Target, target
from workbench.engine.time import execute as execute_module
from workbench.errors import Cancelled, VerificationError

EXAMPLES = settings(max_examples=max(30, settings.default.max_examples if settings.default.max_examples > 50 else 0))
MACHINE: Target = target("ipu2", tiles_per_ipu=16)


def compiled(graph: Graph) -> Compiled:
    return compile_graph(graph, MACHINE, Options())


def passed(graph: Graph, **broken: Callable[[Graph, Graph], Graph]) -> Graph:
    """After all passes; one that is `broken` spoils its graph, of which it is given what was before too."""
    for graph_pass in PIPELINE:
        before, graph = graph, graph_pass.apply(graph, Options())
        if graph_pass.name in broken:
            graph = broken[graph_pass.name](before, graph)
        verify_graph(graph)
    return graph


@EXAMPLES
@given(graphs())
def test_passes_keep_the_meaning(drawn: Drawing) -> None:
    assert_same_meaning(drawn.graph, passed(drawn.graph))


@EXAMPLES
@given(graphs(), st.sampled_from([1, 5, 16, 64]))
def test_everything_reconciles(drawn: Drawing, tiles: int) -> None:
    reconcile.reconciles(compile_graph(drawn.graph, target("ipu2", tiles_per_ipu=tiles), Options()))


# -- one pass broken on purpose: each check must be able to fail ----------------------------------------------


def example() -> Graph:
    """Two dense layers with a bias and ReLU, a softmax, gradients and updates with momentum."""
    d = Draft()
    x = d.param("x", (16, 24))
    w, v = d.weight("a/kernel", (24, 32)), d.weight("b/kernel", (32, 16))
    bias, slot = d.weight("a/bias", (32,)), d.param("optimizer/a", (24, 32), "optimizer")
    with d.at(layer="a"):
        made = d.point("add", d.dot(x, w), d.broadcast(bias, (16, 32), (1,)))
        y = d.point("max", made, d.constant(0.0))
        mask = d.point("gt", made, d.constant(0.0))
    with d.at(layer="b"):
        z = d.dot(y, v)
        power = d.point("exp", d.point("sub", z, d.broadcast(d.reduce("reduce_max", z, 1), (16, 16), (0,))))
        out = d.point("div", power, d.broadcast(d.reduce("reduce_sum", power, 1), (16, 16), (0,)))
    with d.at(layer="b", direction="backward"):
        g_v, g_y = d.dot(y, out, (0, 0)), d.dot(out, v, (1, 1))
    with d.at(layer="a", direction="backward"):
        g = d.point("select_n", mask, d.broadcast(d.constant(0.0), (16, 32)), g_y)
        g_w, g_bias = d.dot(x, g, (0, 0)), d.reduce("reduce_sum", g, 0)
    with d.at(layer="a", direction="update"):
        new_slot = d.point("add", d.point("mul", slot, d.constant(0.9)), g_w)
        new_w = d.point("sub", w, d.point("mul", new_slot, d.constant(0.1)))
        new_bias = d.point("sub", bias, d.point("mul", g_bias, d.constant(0.1)))
    with d.at(layer="b", direction="update"):
        new_v = d.point("sub", v, d.point("mul", g_v, d.constant(0.1)))
    new = {"a/kernel": new_w, "b/kernel": new_v, "a/bias": new_bias, "optimizer/a": new_slot}
    return d.graph(out, updates=new)


def test_the_example_is_sound() -> None:
    assert_same_meaning(example(), passed(example()))
    reconcile.reconciles(compiled(example()))


def _with_nodes(graph: Graph, nodes: Iterable[Node]) -> Graph:
    return replace(graph, functions={**graph.functions, graph.entry: replace(graph.body, nodes=tuple(nodes))})


def _shared_by_op(before: Graph, after: Graph) -> Graph:
    """Takes operations for equal that differ in their attributes."""
    first: dict[object, Node] = {}
    taken: dict[Value, Value] = {}
    nodes = []
    for node in after.body.nodes:
        read = node.reading(tuple(taken.get(value, value) for value in node.operands))
        same = first.setdefault((read.op, read.operands, tuple(each.shape for each in read.results)), read)
        if same is read or read.op == "constant":
            nodes.append(read)
        else:
            taken.update(zip(read.results, same.results, strict=True))
    return _with_nodes(after, nodes)


def _reversed_select(before: Graph, after: Graph) -> Graph:
    return _with_nodes(
        after,
        (
            node.reading((*node.operands[:1], *node.operands[:0:-1])) if node.op == "select_n" else node
            for node in after.body.nodes
        ),
    )


def _wrong_recipe(before: Graph, after: Graph) -> Graph:
    """A comparison that is made again, later, is the other way round."""
    again = {node for node in after.body.nodes if node.op == "gt"}.difference(before.body.nodes)
    assert again
    return _with_nodes(
        after,
        (replace(node, op="ge", operands=node.operands[::-1]) if node in again else node for node in after.body.nodes),
    )


@pytest.mark.parametrize(
    ("name", "broken"),
    [("canonicalise", _shared_by_op), ("canonicalise", _reversed_select), ("rematerialise", _wrong_recipe)],
    ids=["equal though different", "cases swapped", "another recipe"],
)
def test_a_pass_that_changes_the_meaning_is_noticed(name: str, broken: Callable[[Graph, Graph], Graph]) -> None:
    d = Draft()
    x = d.param("x", (8, 12))
    both = d.concatenate([d.slice(x, (0, 0), (8, 6)), d.slice(x, (0, 6), (8, 12))], 1)
    graph = example() if broken is not _shared_by_op else d.graph(both)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_same_meaning(graph, passed(graph, **{name: broken}))


def _ends_late(self: Liveness, ipu: int) -> Any:
    """Live bytes with everything a step longer alive."""
    curve = live_bytes(self, ipu)
    return np.maximum(curve, np.roll(curve, 1, axis=0))


def _lives_until_written(program: Any) -> Any:
    found = lifetimes(program)
    short = tuple(tuple((first, first) for first, _ in spans) for spans in found.intervals)
    return replace(found, intervals=short)


def _half_received(*arguments: Any) -> Any:
    moved = transfer(*arguments)
    return replace(moved, received_bytes=moved.received_bytes // 2)


def _all_received(*arguments: Any) -> Any:
    moved = transfer(*arguments)
    return replace(moved, received_bytes=moved.received_bytes * 64)


def _elsewhere(graph: Graph) -> InPlace:
    return InPlace(reuse={}, updated=frozenset())


live_bytes, lifetimes, transfer = Liveness.live_bytes, liveness_module.lifetimes, emit_module.transfer
of_steps = execute_module.Counting.of_steps


def _dearer(self: Any, parts: Any, scope: Any) -> Any:
    return Counter({key: cycles + 1 for key, cycles in of_steps(self, parts, scope).items()})


@pytest.mark.parametrize(
    ("place", "name", "broken", "caught_by"),
    [
        (Liveness, "live_bytes", _ends_late, reconcile.categories_sum_to_the_total),
        (liveness_module, "lifetimes", _lives_until_written, reconcile.what_a_step_touches_is_live),
        (
            allocation_module,
            "conflicts_of",
            lambda changes, count: np.eye(count, dtype=bool),
            reconcile.nothing_overlaps,
        ),
        (emit_module, "transfer", _half_received, reconcile.bytes_sent_are_received),
        (emit_module, "transfer", _all_received, reconcile.bytes_sent_are_received),
        (prepared_module, "find_in_place", _elsewhere, reconcile.nothing_is_kept_twice),
        (execute_module.Counting, "of_steps", _dearer, reconcile.cycles_sum),
    ],
    ids=["liveness", "lifetimes", "allocation", "sent", "received", "in place", "breakdown"],
)
def test_a_broken_pass_is_noticed(
    place: Any, name: str, broken: Any, caught_by: Callable[[Compiled], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    caught_by(compiled(example()))
    monkeypatch.setattr(place, name, broken)
    with pytest.raises((AssertionError, VerificationError)):
        caught_by(compiled(example()))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_values_are_stacked_where_they_lie(axis: int) -> None:
    """Seen along a new axis, nothing moves until it is read as one."""
    d = Draft()
    x = d.param("x", (4, 6))
    with d.at(layer="s"):
        parts = (d.point("neg", x), d.point("exp", x))
        shape = [4, 6]
        shape.insert(axis, 2)
        graph = d.graph(d.node("stack", parts, shape, "float32", axis=axis))
    found = compiled(graph)
    reconcile.reconciles(found)
    assert [step.kind for step in found.program.steps if step.name.startswith("s/stack")] == []


def test_phases_are_timed_and_say_what_changed() -> None:
    phases = compiled(example()).phases
    assert [phase.phase for phase in phases] == [
        *(graph_pass.name for graph_pass in PIPELINE),
        "in_place",
        "lower",
        "footprint",
        "liveness",
        "allocate",
        "execute",
    ]
    assert all(phase.seconds >= 0 for phase in phases)
    told = {phase.phase: phase.changed for phase in phases}
    assert told["in_place"].endswith("4 updates")


def test_an_exception_of_the_listener_stops_the_compile() -> None:
    heard: list[str] = []

    def listen(phase: str) -> None:
        heard.append(phase)
        if phase == "lower":
            raise Cancelled(phase)

    with pytest.raises(Cancelled):
        compile_graph(example(), MACHINE, Options(), progress=listen)
    assert heard[-1] == "lower"


def test_equal_graphs_compile_to_equal_programs() -> None:
    one, other = compiled(example()), compiled(example())
    assert str(one.program) == str(other.program)
    assert one.trace.total_cycles == other.trace.total_cycles


def test_graph_passes_run_once_for_compiles_that_differ_in_what_they_do_not_read() -> None:
    graph = example()
    first = compile_graph(graph, MACHINE, Options())
    planner = Options().with_values({"matmuls.poplar_options.availableMemoryProportion": 0.1})
    other = compile_graph(graph, MACHINE, planner, like=first)
    assert other.prepared is first.prepared
    assert str(other.program) == str(compile_graph(graph, MACHINE, planner).program)
    assert [phase.phase for phase in other.phases] == [phase.phase for phase in first.phases]
    assert other.phases[0].changed == f"{first.phases[0].changed}, as before"

    read = compile_graph(graph, MACHINE, Options().with_values({"scheduling.algorithm": "CLUSTERING"}), like=first)
    assert read.prepared is not first.prepared
    assert compile_graph(example(), MACHINE, Options(), like=first).prepared is not first.prepared


def test_every_pass_says_why_it_is_there() -> None:
    assert all(graph_pass.reason for graph_pass in PIPELINE)
    assert len({graph_pass.name for graph_pass in PIPELINE}) == len(PIPELINE)


def test_a_compile_leaves_nothing_to_the_collector() -> None:
    """Bodies that name each other were rings of 90,000 objects of ResNet-50, there until Python looked for them."""
    graph = example()
    compiled(graph)  # what is made once
    gc.collect()
    gc.disable()
    try:
        kept = compiled(graph)
        rings = gc.collect()
    finally:
        gc.enable()
    nodes = sum(len(function.nodes) for function in kept.graph.functions.values())
    assert rings < nodes
