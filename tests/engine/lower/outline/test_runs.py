"""Equal runs of operators are one body: what makes runs equal, what a body saves and costs, and that all reconciles."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.engine import reconcile
from tests.engine.unrolled import unrolled
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.frontends.functions import trace_function
from workbench.engine.graph import Function, Graph, GraphBuilder, Node
from workbench.engine.graph.origin import Origin
from workbench.engine.lower.outline.calls import CODE
from workbench.engine.lower.outline.runs import RunClass, RunFinder
from workbench.engine.memory.footprint import footprint
from workbench.engine.memory.lifetimes import lifetimes
from workbench.engine.options import options
from workbench.engine.program import Call, OnTileExecute, leaves
from workbench.engine.program import Sequence as ProgramSequence
from workbench.engine.target import target

LAYERS = 4
ROW = ((8,), "float32")
WIDE = ((8, 4), "float32")


# What makes runs equal


def _runs(made: GraphBuilder, results: tuple[int, ...] = (), reuse: dict[int, int] | None = None) -> list[RunClass]:
    """The classes of a function that returns some values; `reuse` maps values to those they overwrite, by id."""
    values = {value.id: value for node in made.nodes for value in node.results} | {v.id: v for v in made.params}
    function = made.function(tuple(values[number] for number in results))
    graph = Graph(functions={"f": function}, entry="f", inputs=(), outputs=())
    over = {values[new]: values[old] for new, old in (reuse or {}).items()}
    return RunFinder(graph, function, over).classes()


def _layers(*kinds: str) -> GraphBuilder:
    """A sum of squares for each kind: "plain", or "cosine" and "late" with something else in it."""
    made = GraphBuilder("f")
    given = [made.param(*WIDE) for _ in kinds]
    for number, (kind, x) in enumerate(zip(kinds, given, strict=True)):
        origin = Origin(layer=f"layer_{number}", direction="backward" if kind == "late" else "forward")
        (squared,) = made.node("cos" if kind == "cosine" else "square", (x,), (WIDE,), origin=origin)
        (seen,) = made.node("transpose", (squared,), (((4, 8), "float32"),), origin=origin, permutation=(1, 0))
        made.node("reduce_sum", (seen,), (ROW,), origin=origin, axes=(0,))
    return made


def _ops(nodes: tuple[Node, ...]) -> list[str]:
    return [node.op for node in nodes]


def test_neighbours_of_one_layer_are_a_run_and_equal_runs_a_class() -> None:
    made = _layers("plain", "plain", "plain")
    (found,) = _runs(made, results=(5, 8, 11))
    assert [_ops(run.nodes) for run in found.runs] == [["square", "transpose", "reduce_sum"]] * 3
    assert [run.arguments for run in found.runs] == [(param,) for param in made.params]
    assert found.results == (2,)  # the sum; the square and its view are not read outside
    assert not found.shown
    assert not found.common


def test_what_differs_leaves_the_class_and_its_operators_are_looked_at_one_by_one() -> None:
    """Two plain runs are too few for a class of their own; of single operators there are three sums, two squares."""
    (found,) = _runs(_layers("plain", "cosine", "plain"))
    assert [_ops(run.nodes) for run in found.runs] == [["reduce_sum"]] * 3
    assert _runs(_layers("plain", "late", "plain")) == []


def test_a_view_that_is_read_outside_is_shown_of_what_it_is_a_view_of() -> None:
    """Values 3 + 3k: the square, its view and the sum of layer k. The view of one layer is returned."""
    (found,) = _runs(_layers("plain", "plain", "plain"), results=(7,))
    assert found.results == (0,)
    assert found.shown == (1,)


def test_a_value_all_runs_read_is_common_and_a_constant_belongs_to_the_run() -> None:
    made = GraphBuilder("f")
    scale = made.param((), "float32")
    for number in range(3):
        origin = Origin(layer=f"layer_{number}")
        (one,) = made.node("constant", (), (((), "float32"),), value=1.0)
        x = made.param(*ROW)
        (moved,) = made.node("add", (x, one), (ROW,), origin=origin)
        made.node("mul", (moved, scale), (ROW,), origin=origin)
    (found,) = _runs(made)
    assert [run.arguments for run in found.runs] == [(x, scale) for x in made.params[1:]]
    assert found.common == {1}


def test_runs_that_overwrite_differently_are_not_equal() -> None:
    """Parameters 0 to 2; each run's first value, 3, 6 and 9, may overwrite its parameter or not."""
    kinds = ("plain",) * 3
    (found,) = _runs(_layers(*kinds), reuse={3: 0, 6: 1, 9: 2})
    assert len(found.runs) == 3
    (single,) = _runs(_layers(*kinds), reuse={3: 0, 6: 1})
    assert _ops(single.runs[0].nodes) == ["reduce_sum"]


def test_what_a_run_does_not_know_it_cannot_overwrite() -> None:
    """The square of layer 0 over the parameter of layer 1: that run is no run."""
    found = _runs(_layers("plain", "plain", "plain"), reuse={3: 1})
    assert [_ops(each.runs[0].nodes) for each in found] == [["reduce_sum"]]


# What a body saves and costs


def _normed(x: jax.Array, weights: jax.Array) -> jax.Array:
    for layer in range(LAYERS):
        with jax.named_scope(f"layer_{layer}"):
            x = x @ weights[layer]
            centred = x - jnp.mean(x, axis=-1, keepdims=True)
            x = centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + 1e-3)
    return x


@cache
def _compiled(*, outlining: bool, training: bool = False) -> Compiled:
    def slopes(x: jax.Array, weights: jax.Array) -> jax.Array:
        return weights - 0.1 * jax.grad(lambda w: jnp.sum(_normed(x, w) ** 2))(weights)

    shapes = (jax.ShapeDtypeStruct((16, 32), "float32"), jax.ShapeDtypeStruct((LAYERS, 32, 32), "float32"))
    graph = trace_function(slopes if training else _normed, *shapes).graph
    values = {"optimizations.enable_graph_outlining": outlining}
    return compile_graph(graph, target("ipu2", tiles_per_ipu=16), options(values))


def _calls(compiled: Compiled) -> list[Call]:
    entry = compiled.program.entry
    assert isinstance(entry, ProgramSequence)
    return [child for child in entry.children if isinstance(child, Call)]


def _run_bodies(compiled: Compiled) -> dict[str, int]:
    """Calls of each body that is no matrix product."""
    names = [call.function for call in _calls(compiled) if not call.function.endswith("matmul")]
    return {name: names.count(name) for name in dict.fromkeys(names)}


def _state_bytes(compiled: Compiled, name: str) -> int:
    """Code and vertex state on the fullest tile that belong to the steps of a body."""
    program = compiled.program
    empty = replace(program, functions={}, entry=ProgramSequence(children=()))
    alone = replace(empty, entry=program.functions[name])
    parts = [footprint(alone).categories[each].astype(np.int64) - footprint(empty).categories[each] for each in CODE]
    return int(np.sum(parts, axis=0).max())


@pytest.mark.parametrize("training", [False, True])
def test_the_norms_of_equal_layers_are_one_body(training: bool) -> None:
    shared, plain = _compiled(outlining=True, training=training), _compiled(outlining=False, training=training)
    bodies = _run_bodies(shared)
    assert max(bodies.values()) >= LAYERS - training  # the slope of the last layer comes from the loss, as no other
    assert not plain.program.functions
    assert shared.footprint.bytes_per_tile(0).max() < plain.footprint.bytes_per_tile(0).max()


def test_outlining_saves_the_bodies_that_are_not_kept_and_costs_the_copies() -> None:
    """Vertex cycles: the same work, and the copies beside it. Memory: three of four bodies are more than arguments."""
    shared, plain = _compiled(outlining=True), _compiled(outlining=False)

    def work(compiled: Compiled, *, copies: bool) -> int:
        trace = compiled.trace
        return sum(
            trace.steps[step.id].cycles * trace.executions[step.id]
            for step in compiled.program.steps
            if ("/arguments/" in step.name or "/results/" in step.name) == copies and isinstance(step, OnTileExecute)
        )

    assert work(plain, copies=True) == 0
    assert work(shared, copies=False) == work(plain, copies=False)
    assert work(shared, copies=True) > 0
    for name, count in _run_bodies(shared).items():
        assert count == LAYERS, name
        held = [v.bytes_per_tile for v in shared.program.variables if v.function == name and "/argument" in v.name]
        assert int(np.sum(held, axis=0).max()) < (LAYERS - 1) * _state_bytes(shared, name)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("outlining", [False, True])
def test_everything_reconciles(outlining: bool, training: bool) -> None:
    reconcile.reconciles(_compiled(outlining=outlining, training=training))


def test_a_body_reads_nothing_that_was_not_written_before() -> None:
    program = _compiled(outlining=True, training=True).program
    exposed = [program.variables[name] for name in lifetimes(program).exposed]
    assert not [variable for variable in exposed if variable.function]


def test_operators_are_the_same_with_and_without_bodies() -> None:
    from workbench.profiler.collect import collect

    shared, plain = (collect(_compiled(outlining=each, training=True)) for each in (True, False))
    columns = ["name", "layer", "direction", "op", "flops"]
    assert shared.operators[columns].values.tolist() == plain.operators[columns].values.tolist()
    owned = shared.steps["operator"] != ""
    inside = shared.steps["parent"].str.startswith("shared")
    assert int(shared.operators["cycles"].sum()) == int(shared.steps["total_cycles"][owned | inside].sum())


def test_blocks_name_the_layer_of_their_call() -> None:
    """Every layer normalises, in the engine's trace and in the profile's, and no longer than the first."""
    from workbench.profiler.collect import collect

    compiled = _compiled(outlining=True)
    body = next(iter(_run_bodies(compiled)))
    inside = {step.id for step in leaves(compiled.program.functions[body])}
    layers = [call.origin.layer for call in _calls(compiled) if call.function == body]
    assert layers == [f"layer_{number}" for number in range(LAYERS)]
    blocks = [block.layer for block in unrolled(compiled.trace, 0) if block.step in inside]
    assert list(dict.fromkeys(blocks)) == layers
    profile = collect(compiled)
    rows = profile.blocks()
    assert list(dict.fromkeys(rows[rows["step"].isin(inside)]["layer"])) == layers


def test_layers_have_the_cycles_of_their_calls() -> None:
    """Equal layers cost the same, but for the first product's operands, which come from the host's layout."""
    from workbench.profiler.collect import collect
    from workbench.profiler.reports.operations import Operations

    profile = collect(_compiled(outlining=True))
    layers = Operations.from_profile(profile).layers.set_index("layer")
    assert int(layers["cycles"].sum()) == int(profile.steps["total_cycles"].sum())
    cycles = [int(layers["cycles"][f"layer_{number}"]) for number in range(LAYERS)]
    assert cycles[1] == cycles[2] == cycles[3]
    assert cycles[0] < 2 * cycles[1]


def test_inputs_that_come_one_by_one_leave_the_runs_where_they_are() -> None:
    graph = _compiled(outlining=True).graph
    values = {"optimizations.merge_infeed_io_copies": False}
    compiled = compile_graph(graph, target("ipu2", tiles_per_ipu=16), options(values))
    assert all(name.endswith("matmul") for name in compiled.program.functions)
    reconcile.reconciles(compiled)


def test_a_function_without_equal_runs_has_no_class() -> None:
    empty = Function("f", (), (), ())
    assert RunFinder(Graph(functions={"f": empty}, entry="f", inputs=(), outputs=()), empty, {}).classes() == []
