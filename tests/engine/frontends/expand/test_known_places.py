"""Slices and updates at known places are views and copies, and mean what JAX says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jax import lax
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from tests.engine.evaluate import evaluate
from tests.engine.frontends.expand.indexed import Indexing, Placed, indexings, placed
from workbench.engine.compile import compile_graph
from workbench.engine.compile.compile import Compiled
from workbench.engine.frontends.expand.expansions import Expander
from workbench.engine.frontends.functions import trace_function
from workbench.engine.frontends.trace import index_values
from workbench.engine.graph import Graph, walk
from workbench.engine.graph.primitives import Kind, kind, names
from workbench.engine.options import Options
from workbench.engine.target import target

BY_INDEX = (Kind.LOOKUP, Kind.SCATTER, Kind.UPDATE)
SCATTERS = names(Kind.SCATTER)
MACHINE = target("ipu2", tiles_per_ipu=16)


def by_index(graph: Graph) -> list[str]:
    return [node.op for _, node in walk(graph) if kind(node) in BY_INDEX]


@given(indexings())
@example(Indexing((4, 6), (slice(None),), "set"))
@example(Indexing((4, 6), np.ix_([0, 2], [1, 3]), "set"))
@example(Indexing((4, 6), (np.array([0, -1]),), "multiply"))
@example(Indexing((4, 6), (slice(1, 3),), "apply"))
@example(Indexing((5, 2, 3), (np.array([4, 0, 3]), slice(None), np.array([2, 2, 0])), "get"))
def test_what_is_known_means_what_jax_says(drawn: Indexing) -> None:
    graph = trace_function(drawn, *drawn.specs(), name="drawn").graph
    left = by_index(graph)
    values = drawn.values()
    if not left:
        constants = [np.asarray(each) for each in values]
        (found,) = evaluate(graph, constants)
        np.testing.assert_array_equal(found, drawn(*map(jnp.asarray, values)))
        return
    # What stays by index: rows written in no order, where the driver makes an update of rows, and sums that meet.
    rows = np.arange(int(np.prod(drawn.shape))).reshape(drawn.shape)[drawn.index].reshape(-1)
    meet = len(np.unique(rows)) < len(rows)
    assert left == ["scatter"] if drawn.method == "set" else meet
    if left == ["scatter"]:
        assert len(drawn.shape) > 1


@given(placed())
@example(Placed((100_000,), ((1000, 1, 50_000),), "set"))
@example(Placed((256, 100), ((3, 2, 100), (7, 3, 20)), "set"))
def test_they_cost_what_the_concatenation_costs(drawn: Placed) -> None:
    one, other = (compiled(fn, *drawn.specs()) for fn in (drawn.given, drawn.end_to_end))
    assert cycles(one) <= 1.1 * cycles(other)
    assert cycles(other) <= 1.1 * cycles(one)
    assert fullest(one) <= 1.1 * fullest(other)
    assert fullest(other) <= 1.1 * fullest(one)


def compiled(fn: Callable[..., Any], *specs: Any) -> Compiled:
    return compile_graph(trace_function(fn, *specs, name="f").graph, MACHINE, Options())


def cycles(found: Compiled) -> int:
    return found.trace.total_cycles


def fullest(found: Compiled) -> int:
    return int((found.liveness.always_live_bytes(0) + found.liveness.peak_bytes(0)).max())


@pytest.mark.parametrize("loop", ["scan", "fori", "cond"])
def test_an_index_is_known_in_a_body_too(loop: str) -> None:
    rows = np.array([5, 0, 3])

    def turn(carried: Any) -> Any:
        return carried.at[1:4, ::2].set(0).at[rows].add(carried[rows[::-1]])

    def run(x: Any) -> Any:
        if loop == "scan":
            return lax.scan(lambda carried, _: (turn(carried), None), x, None, length=3)[0]
        if loop == "fori":
            return lax.fori_loop(0, 3, lambda _, carried: turn(carried), x)
        return lax.cond(x[0, 0] > 0, turn, lambda carried: carried, x)

    graph = trace_function(run, jax.ShapeDtypeStruct((8, 6), "float32"), name="f").graph
    assert by_index(graph) == []
    assert "known_rows" in {node.op for _, node in walk(graph)}


# Indices that are arithmetic on what is known.
MADE: dict[str, Callable[[], Any]] = {
    "every second twice": lambda: jnp.arange(8) // 2,
    "from the end": lambda: 7 - jnp.arange(6),
    "remainders": lambda: (jnp.arange(10) * 3) % 8,
    "of negatives": lambda: (jnp.arange(5) - 7) % 8,
    "bits": lambda: (jnp.arange(8) ^ 1) & 6 | 1,
    "chosen": lambda: jnp.where(jnp.arange(8) > 3, 7 - jnp.arange(8), jnp.arange(8)),
    "held": lambda: jnp.clip(jnp.arange(12) - 2, 0, 7),
    "joined": lambda: jnp.concatenate([jnp.arange(3), jnp.array([7, 5])])[::-1],
    "turned": lambda: jnp.arange(8).reshape(2, 4).T.reshape(-1)[1:6],
    "absolute": lambda: jnp.abs(jnp.arange(8) - 4),
    "running sums": lambda: jnp.cumsum(jnp.array([1, 2, 0, 3])),
    "running from the end": lambda: lax.cumsum(jnp.array([1, 2, 0, 3]), reverse=True),
    "largest so far": lambda: lax.cummax(jnp.array([1, 5, 0, 7])),
    "sorted": lambda: jnp.sort(jnp.array([3, 0, 7, 1])),
    "in their order": lambda: jnp.argsort(jnp.array([3, 0, 3, 1])),
    "counted": lambda: jnp.zeros(5, int).at[jnp.array([1, 1, 3])].add(1),
    "parts of floats": lambda: (jnp.arange(8) / jnp.array([2.0] * 4 + [1.5] * 4)).astype(int),
    "one byte": lambda: jnp.arange(8, dtype=jnp.uint8),
}


@pytest.mark.parametrize("name", sorted(MADE))
def test_arithmetic_on_what_is_known_is_known(name: str) -> None:
    x = np.arange(24, dtype="float32").reshape(8, 3)
    graph = trace_function(lambda x: x[MADE[name]()] + 1, x, name="f").graph
    assert by_index(graph) == []
    (found,) = evaluate(graph, [x])
    np.testing.assert_array_equal(found, x[np.asarray(MADE[name]())] + 1)


@st.composite
def deletions(draw: st.DrawFn) -> tuple[tuple[int, ...], int, slice]:
    shape = tuple(draw(st.lists(st.integers(2, 60), min_size=1, max_size=2)))
    axis = draw(st.integers(0, len(shape) - 1))
    first = draw(st.integers(0, shape[axis] - 1))
    return shape, axis, slice(first, draw(st.integers(first, shape[axis])), draw(st.sampled_from([1, 1, 2])))


@pytest.mark.parametrize("kept", [index_values.MOST_ELEMENTS, 100])
@given(drawn=deletions())
def test_what_is_deleted_is_left_out(kept: int, drawn: tuple[tuple[int, ...], int, slice]) -> None:
    """However large the table is that says which entries move by how much: here 900 elements at most."""
    shape, axis, deleted = drawn
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_values, "MOST_ELEMENTS", kept)
        graph = trace_function(lambda x: jnp.delete(x, deleted, axis) + 1, x, name="f").graph
    assert by_index(graph) == []
    if 0 not in np.delete(x, deleted, axis).shape:
        np.testing.assert_array_equal(evaluate(graph, [x])[0], np.delete(x, deleted, axis) + 1)


def test_a_large_deletion_costs_what_the_concatenation_costs() -> None:
    x = jax.ShapeDtypeStruct((60_000,), "float32")
    one = compiled(lambda x: jnp.delete(x, slice(100, 9000)), x)
    other = compiled(lambda x: jnp.concatenate([x[:100], x[9000:]]), x)
    assert (cycles(one), fullest(one)) == (cycles(other), fullest(other))


@given(shape=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4)), data=st.data())
def test_where_something_is_inserted_is_known(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, 2))
    places = np.array(data.draw(st.lists(st.integers(0, shape[axis]), min_size=1, max_size=4)))
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    graph = trace_function(lambda x: jnp.insert(x, places, -1.0, axis), x, name="f").graph
    made = {node.op for _, node in walk(graph)}
    assert not made & {"sort", "cumsum", "scatter-add", "rem", "select_n"}
    if not by_index(graph):
        np.testing.assert_array_equal(evaluate(graph, [x])[0], np.insert(x, places, -1.0, axis))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jnp.insert(x[:1, :1], np.array([1]), -1.0, axis=1),
        lambda x: x.at[np.array([7, 9])].add(-1.0, mode="drop"),
        lambda x: x.at[np.array([], int)].set(-1.0),
        lambda x: x[np.array([], int)],
    ],
)
def test_what_is_nowhere_or_outside_changes_nothing(fn: Callable[[Any], Any]) -> None:
    x = np.arange(12, dtype="float32").reshape(4, 3)
    graph = trace_function(fn, x, name="f").graph
    np.testing.assert_array_equal(evaluate(graph, [x])[0], np.asarray(fn(jnp.asarray(x))))


def test_a_large_update_at_a_known_place_is_no_update_of_single_elements() -> None:
    specs = [jax.ShapeDtypeStruct((size,), "float32") for size in (100_000, 50_000)]
    chip = target("ipu2")

    def cost(fn: Callable[..., Any]) -> tuple[int, int]:
        found = compile_graph(trace_function(fn, *specs, name="f").graph, chip, Options())
        return cycles(found), fullest(found)

    joined = cost(lambda x, u: jnp.concatenate([x[:1000], u, x[51_000:]]))
    assert cost(lambda x, u: x.at[1000:51_000].set(u)) == joined
    assert cost(lambda x, u: lax.dynamic_update_slice(x, u, (1000,))) == joined
    assert cost(lambda x, u: keras.ops.slice_update(x, (1000,), u)) == joined


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.floats(0, 1)), min_size=3, max_size=3),
)
def test_of_a_slice_the_axes_whose_place_is_known_are_a_view(
    shape: list[int], drawn: list[tuple[int, bool, float]]
) -> None:
    drawn = drawn[: len(shape)]
    sizes = [max(1, int(size * share)) for size, (_, _, share) in zip(shape, drawn, strict=True)]
    x = jnp.arange(int(np.prod(shape)), dtype="float32").reshape(shape)
    starts = [jnp.int32(start) for start, _, _ in drawn]
    closed = jax.make_jaxpr(lambda x, *starts: lax.dynamic_slice(x, starts, sizes))(x, *starts)
    (eqn,) = [each for each in closed.eqns if each.primitive.name == "dynamic_slice"]
    known = [None, *(np.asarray(start) if told else None for start, (_, told, _) in zip(starts, drawn, strict=True))]
    found = Expander().at_places(eqn, known)
    if found is None:
        assert all(size == whole or not told for size, whole, (_, told, _) in zip(sizes, shape, drawn, strict=True))
        return
    for each in found.jaxpr.eqns:
        if each.primitive.name == "dynamic_slice":
            left = zip(each.invars[0].aval.shape, sizes, drawn, strict=True)
            assert all(whole == size for whole, size, (_, told, _) in left if told)
    (result,) = jaxpr_as_fun(ClosedJaxpr(found.jaxpr, found.consts))(x, *starts)
    np.testing.assert_array_equal(result, jnp.asarray(lax.dynamic_slice(x, _held(starts, shape, sizes), sizes)))


def _held(starts: list[Any], shape: list[int], sizes: list[int]) -> list[Any]:
    return [jnp.clip(start, 0, whole - size) for start, whole, size in zip(starts, shape, sizes, strict=True)]


@pytest.mark.parametrize(
    ("method", "rows", "shape", "left"),
    [
        ("set", [5, 0, 3], (8, 6), ["scatter"]),  # an update of rows there
        ("set", [0, 2, 4], (8, 6), []),  # a slice with steps
        ("set", [5, 0, 3], (8,), []),  # of single elements
        ("add", [5, 0, 3], (8, 6), []),  # an addition to a view there
        ("add", [5, 0, 5], (8, 6), ["scatter-add"]),  # two meet in a row
        ("set", [9, 0, 3], (8,), []),  # what lies outside is dropped
    ],
)
def test_what_stays_an_update_by_index(method: str, rows: list[int], shape: tuple[int, ...], left: list[str]) -> None:
    def fn(x: Any) -> Any:
        return getattr(x.at[np.array(rows)], method)(1.0)

    spec = jax.ShapeDtypeStruct(shape, "float32")
    assert by_index(trace_function(fn, spec, name="f").graph) == left


# How windows are read, or written, at places nobody knows: the operand's shape, that of the places, and the function.
WINDOWS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Callable[..., Any]]] = {
    "one function": ((6, 5), (), lambda x, at: x.at[at, 1:4].apply(lambda each: each * 2 + 1)),
    "one slice": ((6, 5), (), lambda x, at: x.at[at, 1:4].get()),
    "one update": ((6, 5), (), lambda x, at: x.at[at, 1:4].set(x[0, :3] + 1)),
    "one sum": ((6, 5), (), lambda x, at: x.at[1:4, at].add(x[:3, 0])),
    "slices of a batch": ((4, 9), (4,), jax.vmap(lambda x, at: lax.dynamic_slice(x, (at,), (3,)))),
    "updates of a batch": ((4, 9), (4,), jax.vmap(lambda x, at: lax.dynamic_update_slice(x, x[2:5], (at,)))),
    "slices of one": ((6, 5), (3,), lambda x, at: jax.vmap(lambda at: lax.dynamic_slice(x, (at, at), (2, 3)))(at)),
    "products": ((6, 5), (), lambda x, at: x.at[2:5, at].mul(3.0)),
}


@pytest.mark.parametrize("name", sorted(WINDOWS))
@given(seed=st.integers(0, 99))
def test_windows_at_unknown_places_go_one_after_another(name: str, seed: int) -> None:
    shape, places, fn = WINDOWS[name]
    numbers = np.random.default_rng(seed)
    x = jnp.asarray(numbers.integers(-9, 9, shape).astype("float32"))
    at = jnp.asarray(numbers.integers(0, 3, places).astype("int32"))
    closed = jax.make_jaxpr(fn)(x, at)
    values = dict(zip(closed.jaxpr.invars, (x, at), strict=True))
    for eqn in closed.jaxpr.eqns:
        operands = [each.val if isinstance(each, Literal) else values[each] for each in eqn.invars]
        known = [None] * len(operands)
        found = Expander().at_places(eqn, known) if eqn.primitive.name in ("gather", *SCATTERS) else None
        run = eqn.primitive.bind
        if found is None:
            assert eqn.primitive.name not in ("gather", *SCATTERS)
            results = run(*operands, **eqn.params)
        else:
            assert not {each.primitive.name for each in found.jaxpr.eqns} & {"gather", *SCATTERS}
            results = jaxpr_as_fun(ClosedJaxpr(found.jaxpr, found.consts))(*operands)
        results = results if isinstance(results, list | tuple) else [results]
        values.update(zip(eqn.outvars, results, strict=True))
    np.testing.assert_array_equal(values[closed.jaxpr.outvars[0]], fn(x, at))
