"""Random programs over the operator set, from JAX to a profile: nothing crashes, everything reconciles."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine import reconcile
from tests.engine.random_functions import OPERATIONS, Drawn, functions
from workbench.engine.compile import compile_graph
from workbench.engine.frontends.functions import trace_function
from workbench.engine.options import Options
from workbench.engine.target import target

# By the length of the run's properties; the whole length is `make hostile`.
PROGRAMS = {"short": 300, "long": 2_000, "whole": 10_000}[settings.get_current_profile_name()]
MACHINES = {tiles: target("ipu2", tiles_per_ipu=tiles) for tiles in (1, 4, 16)}


def check(drawn: Drawn, tiles: int) -> None:
    graph = trace_function(drawn, *drawn.specs(), name="drawn").graph
    reconcile.reconciles(compile_graph(graph, MACHINES[tiles], Options()))


@settings(max_examples=PROGRAMS)
@given(functions(), st.sampled_from(sorted(MACHINES)))
def test_random_programs_compile_and_reconcile(drawn: Drawn, tiles: int) -> None:
    check(drawn, tiles)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_of_random_programs_compiles_alone(name: str) -> None:
    for number, (shape, dtype) in enumerate([((2, 4, 4, 3), "float32"), ((5,), "int32"), ((), "bool")]):
        check(Drawn(((shape, dtype),), ((name, 0, 0, number),)), 4)
