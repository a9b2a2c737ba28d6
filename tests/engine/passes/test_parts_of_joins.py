"""What is cut out of a join is cut out of its parts: the same numbers, and parts that nobody reads are dead."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.engine.evaluate import evaluate
from workbench.engine.graph import Graph, GraphBuilder, Input, Output, Value, verify_graph
from workbench.engine.options import options
from workbench.engine.passes.simplify import simplify

F32 = "float32"


def graph_of(builder: GraphBuilder, result: Value) -> Graph:
    main = builder.function((result,))
    inputs = tuple(Input(name=f"in{number}", role="input") for number in range(len(main.params)))
    return verify_graph(Graph(functions={"main": main}, entry="main", inputs=inputs, outputs=(Output(name="out"),)))


@st.composite
def cut_joins(draw: Any) -> tuple[Graph, int, int, list[int]]:
    """Two parts or more, joined; the join seen with an axis of size 1 more, and cut; its range and the parts' ends."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=5))
    axis, width = draw(st.integers(0, 1)), draw(st.integers(1, 3))
    shape = (lambda size: (size, width)) if axis == 0 else (lambda size: (width, size))
    builder, total = GraphBuilder("main"), sum(sizes)
    parts = tuple(builder.param(shape(size), F32) for size in sizes)
    (value,) = builder.node("concatenate", parts, ((shape(total), F32),), dimension=axis)
    if draw(st.booleans()):
        seen = (1, *value.shape)
        (value,) = builder.node("reshape", (value,), ((seen, F32),), new_sizes=seen)
        axis += 1
    low = draw(st.integers(0, total - 1))
    high = draw(st.integers(low + 1, total))
    begin, end = [0] * len(value.shape), list(value.shape)
    begin[axis], end[axis] = low, high
    result = tuple(last - first for first, last in zip(begin, end, strict=True))
    other = axis - 1 if value.shape[axis - 1] > 1 and axis else None
    if other is not None and draw(st.booleans()):
        begin[other], result = 1, (*result[:other], result[other] - 1, *result[other + 1 :])
    attributes = {"start_indices": tuple(begin), "limit_indices": tuple(end), "strides": (1,) * len(begin)}
    (value,) = builder.node("slice", (value,), ((result, F32),), **attributes)
    return graph_of(builder, value), low, high, list(accumulate(sizes))


def numbers(graph: Graph, given: list[Any]) -> Any:
    return evaluate(graph, given)[0]


@given(case=cut_joins())
def test_a_slice_reads_the_parts_it_meets_and_no_others(case: tuple[Graph, int, int, list[int]]) -> None:
    graph, low, high, ends = case
    found = verify_graph(simplify(graph, options()))
    given = [np.random.default_rng(at).random(value.shape, "float32") for at, value in enumerate(graph.body.params)]
    np.testing.assert_array_equal(numbers(found, given), numbers(graph, given))
    met = {at for at, end in enumerate(ends) if low < end and high > (ends[at - 1] if at else 0)}
    read = {value for node in found.body.nodes for value in node.operands} | set(found.body.results)
    assert {at for at, value in enumerate(found.body.params) if value in read} == met
    assert str(simplify(found, options())) == str(found)


@given(
    size=st.integers(64, 400),
    places=st.lists(st.integers(0, 63), min_size=1, max_size=4, unique=True),
)
def test_an_insertion_keeps_no_second_array(size: int, places: list[int]) -> None:
    """The result, its operand, and what is inserted: an array of zeros had stayed live beside them."""
    x, v = np.arange(size, dtype="float32"), np.full(len(places), -1, "float32")
    at = np.array(sorted(places))
    executable = wb.compile(lambda x, v: jnp.insert(x, at, v) * 2, x, v)
    np.testing.assert_array_equal(executable.run(x, v), np.insert(x, at, v) * 2)
    filled = [node for node in executable.graph.body.nodes if node.op == "broadcast_in_dim"]
    assert all(node.results[0].elements <= len(places) for node in filled)


def test_many_rows_apart_stay_one_look_up() -> None:
    places = np.arange(1, 400, 2)
    executable = wb.compile(lambda x: x.at[places].set(jnp.sin(x[:200])), jax.ShapeDtypeStruct((500,), F32))
    assert len(executable.graph.body.nodes) < 20
