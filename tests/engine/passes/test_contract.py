"""What every pass of the pipeline must do: keep the rules and the numbers, be done after one run, and print as kept."""

from __future__ import annotations

from collections.abc import Iterator
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
# But for those of the arithmetic, which round halves otherwise: test_simplify.py has their numbers.
EVERY_CHOICE = options(
    {
        "optimizations.maximum_reduce_many_buffer_size": 1 << 20,
        "optimizations.combine_matmuls": True,
        "optimizations.combine_embedding_lookups": True,
    }
)


def after_each_pass(graph: Graph, chosen: Options) -> Iterator[tuple[GraphPass, Graph, Graph]]:
    """Every pass with a graph as the pipeline gives it to the pass, and what the pass makes of it."""
    for graph_pass in PIPELINE:
        once = verify_graph(graph_pass.apply(graph, chosen))
        yield graph_pass, graph, once
        graph = once


def is_done(graph_pass: GraphPass, once: Graph, chosen: Options) -> bool:
    """Whether a second run changes nothing."""
    return str(verify_graph(graph_pass.apply(once, chosen))) == str(once)


@pytest.mark.parametrize("chosen", [Options(), EVERY_CHOICE], ids=["default", "every choice"])
@settings(max_examples=30)
@given(drawn=graphs())
def test_passes_keep_the_rules_and_the_numbers_and_are_done_after_one_run(chosen: Options, drawn: Drawing) -> None:
    for graph_pass, before, once in after_each_pass(drawn.graph, chosen):
        assert_same_meaning(before, once, tolerance=1e-2)  # products of halves, joined, round otherwise
        assert graph_pass.again or is_done(graph_pass, once, chosen), graph_pass.name


def test_so_they_are_of_a_model_in_stages() -> None:
    done = {
        graph_pass.name: is_done(graph_pass, once, Options())
        for graph_pass, _, once in after_each_pass(graph_of(("b",), 4), Options())
    }
    assert {name for name, is_so in done.items() if not is_so} == {"recognise", "fuse"}
    told = {graph_pass.name for graph_pass in PIPELINE if graph_pass.again}
    assert told == {"recognise", "fuse", "merge", "schedule"}


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
