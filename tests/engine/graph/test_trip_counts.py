"""Loops whose count nobody can tell run as often as somebody says, and the verdict says what was assumed."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import workbench as wb
from workbench.base.whole import MOST_TURNS
from workbench.engine.frontends.functions import trace_function
from workbench.engine.graph.trip_counts import with_trip_counts

KIND = jax.ShapeDtypeStruct((8, 8), "float32")
UNKNOWN = (
    "loops: how often {0!r} runs depends on numbers, and it counts as running once; "
    "trip_counts={{{0!r}: …}} says otherwise"
)


def grown(x: Any) -> Any:
    with jax.named_scope("first"):
        x = jax.lax.while_loop(lambda held: held.sum() < 10, lambda held: held @ held, x)
    return jax.lax.while_loop(lambda held: held.sum() > 3, lambda held: jnp.sin(held), x)  # here


LINE = f"test_trip_counts.py:{grown.__code__.co_firstlineno + 3}"


def profile(**arguments: Any) -> Any:
    return wb.profile(grown, KIND, target=wb.target("ipu2", tiles_per_ipu=4), **arguments)


def test_an_unknown_count_is_an_assumption() -> None:
    assert profile().assumptions == [UNKNOWN.format("first"), UNKNOWN.format("while_body_1")]
    known = wb.profile(lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * 2, x), KIND, target="ipu2")
    assert known.assumptions == []


@pytest.mark.parametrize("name", ["first", "while_body", "while_body_1", LINE])
def test_each_turn_costs_the_same(name: str) -> None:
    once, five, nine = (profile(trip_counts={name: count}).total_cycles for count in (1, 5, 9))
    assert once == profile().total_cycles
    assert nine - five == five - once > 0
    said = "first" if name in ("first", "while_body") else "while_body_1"
    assert f"loops: {said!r} runs 5 times, as trip_counts says" in profile(trip_counts={name: 5}).assumptions


def test_several_at_once() -> None:
    assert profile(trip_counts={"first": 2, LINE: 3}).assumptions == [
        "loops: 'first' runs 2 times, as trip_counts says",
        "loops: 'while_body_1' runs 3 times, as trip_counts says",
    ]


def test_the_numbers_are_those_of_the_condition() -> None:
    x = np.full((8, 8), 0.25, "float32")
    machine = wb.target("ipu2", tiles_per_ipu=4)
    told, untold = (wb.compile(grown, KIND, target=machine, trip_counts=counts) for counts in ({"first": 7}, None))
    np.testing.assert_array_equal(told.run(x), untold.run(x))


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"second": 2}, f"trip_counts names 'second'. Expected: one of: first, while_body, {LINE[:-1]}"),
        ({"first": 0}, "trip_counts['first'] is 0. Expected: a whole number of at least 1 and at most 4294967295."),
        ({"first": MOST_TURNS + 1}, "trip_counts['first'] is 4294967296. Expected: a whole number"),
        ({"first": True}, "trip_counts['first'] is True. Expected: a whole number"),
        ({"first": 2.0}, "trip_counts['first'] is 2.0. Expected: a whole number"),
        ([5], "trip_counts is [5]. Expected: a count for each name of a loop."),
        (5, "trip_counts is 5. Expected: a count for each name of a loop."),
    ],
)
def test_errors(counts: Any, text: str) -> None:
    with pytest.raises(wb.InputError) as caught:
        profile(trip_counts=counts)
    assert str(caught.value).startswith(text)


def test_a_graph_without_such_loops_is_the_same() -> None:
    graph = trace_function(lambda x: x + 1, KIND).graph
    assert with_trip_counts(graph, {}) is graph
