"""What crosses between two passes of a stage when both are rewritten as one function."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engine.evaluate import assert_same_meaning
from tests.engine.small_graphs import Draft, all_ops
from workbench.engine.graph import Graph, attrs, verify_graph
from workbench.engine.graph.rewriting import FreshIds
from workbench.engine.passes.rematerialise import rematerialise
from workbench.engine.passes.rematerialise.stages import between_passes

SHAPE = (32, 8)


def norm_stage(direction: str) -> Graph:
    """Halves are centred as floats; the gradient reads the floats, the centred floats and what a product was given."""
    ahead, back = Draft(f"stage0_{direction}"), Draft("stage0_backward")
    x, w = ahead.b.param((32, 16), "float16"), ahead.b.param((16, 8), "float16")
    with ahead.at(layer="a", direction=direction):
        made = ahead.dot(x, w)
    with ahead.at(layer="n", direction=direction):
        wide = ahead.cast(made, "float32")
        mean = ahead.reduce("reduce_sum", wide, 0)
        centred = ahead.point("sub", wide, ahead.broadcast(mean, SHAPE, (1,)))
        out = ahead.cast(ahead.point("mul", centred, centred), "float16")
    wide_kept, centred_kept, x_kept = (
        back.b.param(shape, kind) for shape, kind in ((SHAPE, "float32"), (SHAPE, "float32"), ((32, 16), "float16"))
    )
    g = back.b.param(SHAPE, "float32")
    with back.at(layer="n", direction="backward"):
        slope = back.point("mul", back.point("add", wide_kept, centred_kept), g)
    with back.at(layer="a", direction="backward"):
        weights = back.dot(x_kept, back.cast(slope, "float16"), (0, 0))
    entry = Draft()
    given = (entry.param("x", (32, 16), dtype="float16"), entry.weight("a/kernel", (16, 8), "float16"))
    g_outer = entry.param("g", SHAPE)
    bodies = (ahead.function(out, wide, centred), back.function(weights))
    types = [[(value.shape, value.dtype) for value in body.results] for body in bodies]
    fixed = {"times": 4, "stage": 0}
    first = entry.b.node("call", given, types[0], calls=(bodies[0].name,), direction=direction, **fixed)
    taken = (first[1], first[2], given[0], g_outer)
    second = entry.b.node("call", taken, types[1], calls=(bodies[1].name,), direction="backward", **fixed)
    return entry.graph(first[0], *second, bodies=bodies)


@pytest.mark.parametrize("direction", ["forward", "recompute"])
def test_a_norm_of_halves_keeps_the_halves(direction: str) -> None:
    """Two tensors of floats, 2 x 1,024 B, cross before; after it the product's halves, 512 B, and the means, 32 B."""
    found = verify_graph(rematerialise(norm_stage(direction)))
    first, second = found.body.nodes
    assert [str(value).partition(":")[2] for value in first.results] == [
        "float16[32,8]",
        "float16[32,8]",
        "float32[8]",
    ]
    assert {(value.shape, value.dtype) for value in second.operands} == {
        (SHAPE, "float32"),
        ((32, 16), "float16"),
        (SHAPE, "float16"),
        ((8,), "float32"),
    }
    assert all_ops(found, "stage0_backward").count("sub") == 1


def test_a_body_of_both_passes_gives_both_what_either_reads() -> None:
    """The next stage reads the norm's result of the forward call; the halves and means it gives it nobody reads."""
    alone = norm_stage("recompute")
    again, back = alone.body.nodes
    fresh = FreshIds(alone.body)
    given = tuple(map(fresh.like, again.results))
    forward = replace(again, results=given, attrs=attrs(**{**dict(again.attrs), "direction": "forward"}))
    entry = replace(alone.body, nodes=(forward, again, back), results=(given[0], *back.results))
    before = replace(alone, functions={**alone.functions, entry.name: entry})
    found = verify_graph(rematerialise(before))
    first, second, last = found.body.nodes
    assert first.calls == second.calls
    halves, means = ("float16[32,8]", "float32[8]")
    kept = [halves, halves, means]  # the norm's result, the product's halves and the means
    assert [[str(value).partition(":")[2] for value in node.results] for node in (first, second)] == [kept, kept]
    assert found.body.results[0] is first.results[0]
    assert set(second.results[1:]) <= set(last.operands)
    assert_same_meaning(before, found)


def test_what_no_rewrite_changes_stays_as_it_was() -> None:
    graph = norm_stage("forward")
    assert between_passes(graph, lambda function: function) is graph


def test_bodies_are_cut_where_they_were_joined() -> None:
    """A rewrite that only makes the function anew leaves the same operations on either side."""
    graph = norm_stage("forward")
    found = verify_graph(between_passes(graph, lambda function: replace(function)))
    for name in ("stage0_forward", "stage0_backward"):
        assert all_ops(found, name) == all_ops(graph, name)
    assert [len(node.results) for node in found.body.nodes] == [3, 1]
