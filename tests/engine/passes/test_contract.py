"""What every pass of the pipeline must do: keep the rules and the numbers, be done after one run, and print as kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.engine.evaluate import assert_same_meaning
from tests.engine.passes.staged_models import graph_of
from tests.engine.random_graphs import Drawing, graphs
from workbench.engine.graph import Graph, verify_graph
from workbench.engine.options import Options, options
from workbench.engine.passes import PIPELINE, GraphPass

GOLDEN = Path(__file__).parents[2] / "golden" / "passes"
EVERY_CHOICE = options({
    "optimizations.math.fast": True,
    "optimizations.math.dot_strength": True,
    "optimizations.maximum_reduce_many_buffer_size": 1 << 20,
    "optimizations.combine_matmuls": True,
    "optimizations.combine_embedding_lookups": True,
})  # fmt: skip


def as_met(graph: Graph, graph_pass: GraphPass, chosen: Options) -> Graph:
    """A graph as a pass of the pipeline meets it."""
    for earlier in PIPELINE[: PIPELINE.index(graph_pass)]:
        graph = earlier.apply(graph, chosen)
    return graph


def is_done(graph_pass: GraphPass, once: Graph, chosen: Options) -> bool:
    return str(verify_graph(graph_pass.apply(once, chosen))) == str(once)


@pytest.mark.parametrize("graph_pass", PIPELINE, ids=lambda each: each.name)
@pytest.mark.parametrize("chosen", [Options(), EVERY_CHOICE], ids=["default", "every choice"])
@settings(max_examples=10)
@given(drawn=graphs())
def test_a_pass_keeps_the_rules_and_the_numbers_and_is_done_after_one_run(
    graph_pass: GraphPass, chosen: Options, drawn: Drawing
) -> None:
    before = as_met(drawn.graph, graph_pass, chosen)
    once = verify_graph(graph_pass.apply(before, chosen))
    assert_same_meaning(before, once)
    assert graph_pass.again or is_done(graph_pass, once, chosen)


@pytest.mark.parametrize("graph_pass", PIPELINE, ids=lambda each: each.name)
def test_so_it_is_of_a_model_in_stages(graph_pass: GraphPass) -> None:
    before = as_met(graph_of(("b",), 4), graph_pass, Options())
    once = verify_graph(graph_pass.apply(before, Options()))
    assert graph_pass.again or is_done(graph_pass, once, Options())


@pytest.mark.parametrize("graph_pass", PIPELINE, ids=lambda each: each.name)
def test_what_it_does_can_be_read(graph_pass: GraphPass) -> None:
    """A graph before and after it, kept as text."""
    kept = [*GOLDEN.glob(f"{graph_pass.name}.txt"), *GOLDEN.glob(f"{graph_pass.name}.*.txt")]
    assert any("-- becomes --" in path.read_text() for path in kept)


@pytest.mark.parametrize("graph_pass", PIPELINE, ids=lambda each: each.name)
def test_it_is_the_function_of_its_name_in_the_file_of_its_name(graph_pass: GraphPass) -> None:
    made = graph_pass.run or graph_pass.configured
    assert made is not None
    assert made.__name__ == graph_pass.name
    assert made.__module__.rpartition(".")[2] == graph_pass.name
    assert len(graph_pass.reason) > 10
