"""Random networks computed again in stages: what runs how often, and what it does to the bytes that wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.lower.pipeline.networks import SCHEDULES, Network, both, networks
from workbench.engine.compile import Compiled
from workbench.engine.graph import Graph, Node
from workbench.engine.graph.primitives import Kind, names
from workbench.engine.graph.stages import stage_calls

PRODUCTS = names(Kind.PRODUCT)


def products(graph: Graph, function: str) -> Iterator[Node]:
    """The products of a function and of what it calls."""
    for node in graph.functions[function].nodes:
        if node.op in PRODUCTS:
            yield node
        for name in node.calls:
            yield from products(graph, name)


def runs(compiled: Compiled) -> Counter[tuple[int, str]]:
    """By stage and direction, the products that run for a micro-batch; computing again is going forward."""
    graph = compiled.graph
    found: Counter[tuple[int, str]] = Counter()
    for call in stage_calls(graph):
        for node in products(graph, call.function.name) if call.repeated else ():
            found[call.number, "backward" if node.origin.direction == "backward" else "forward"] += 1
    return found


def kept_bytes(compiled: Compiled, ipu: int) -> int:
    """The most bytes that activations and stashes take together on all tiles of an IPU, those that come and go."""
    liveness = compiled.liveness
    change = np.zeros(len(liveness.timelines[ipu]) + 1, np.int64)
    for variable in compiled.program.variables:
        if variable.ipu == ipu and not variable.always_live and variable.kind in ("activation", "stash"):
            for first, last in liveness.intervals[variable.id]:
                change[first] += variable.size_bytes
                change[last + 1] -= variable.size_bytes
    return int(np.cumsum(change).max())


def fullest_tile(compiled: Compiled) -> int:
    liveness = compiled.liveness
    ipus = range(len(liveness.timelines))
    return max(int((liveness.always_live_bytes(ipu) + liveness.peak_bytes(ipu)).max()) for ipu in ipus)


@settings(max_examples=6)
@given(network=networks(), schedule=st.sampled_from(SCHEDULES))
def test_each_forward_product_runs_twice_and_no_more_waits(network: Network, schedule: str) -> None:
    """The last stage, whose backward pass is next, computes nothing again."""
    plain, again = both(network, schedule)
    before, after = runs(plain), runs(again)
    assert set(after) == set(before)
    for (stage, direction), count in before.items():
        most = 2 if direction == "forward" and stage < network.stages - 1 else 1
        assert count <= after[stage, direction] <= most * count
        assert direction == "forward" or after[stage, direction] == count
    for ipu in range(network.stages):
        assert kept_bytes(again, ipu) <= kept_bytes(plain, ipu)
    assert fullest_tile(again) <= 1.05 * fullest_tile(plain)
