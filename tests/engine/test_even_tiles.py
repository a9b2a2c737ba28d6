"""Views and what is made of them lie evenly: no tile is full of a border, or of the part of a tensor that is left."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.view_programs import Viewed, viewed
from workbench.base.arrays import IntArray
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.emit.context import LEAST_BYTES
from workbench.engine.frontends.functions import trace_function
from workbench.engine.options import Options
from workbench.engine.program import DoExchange, OnTileExecute, Sync, TileProgram
from workbench.engine.target import target
from workbench.engine.time.execute import execute
from workbench.tiles import Graph

MOST_OF_MEAN = 1.3
GRAIN_BYTES = LEAST_BYTES  # what a tile gets of a tensor at least, if it gets any
LEAST_CYCLES = 400  # of steps that have next to nothing to do: a fill, a sync and an exchange
MACHINES = {tiles: target("ipu2", tiles_per_ipu=tiles) for tiles in (16, 64, 1472)}
# By the length of the run's properties; the whole length is `make hostile`.
LENGTHS = {"short": (60, 30), "long": (400, 100), "whole": (2_000, 500)}
PROGRAMS, VIEWS = LENGTHS[settings.get_current_profile_name()]


def compiled(function: Viewed | object, specs: list[object], tiles: int) -> Compiled:
    return compile_graph(trace_function(function, *specs, name="viewed").graph, MACHINES[tiles], Options())


def fullest(compiled: Compiled) -> tuple[IntArray, IntArray]:
    """At every step: bytes of live tensors on the fullest tile, and the most they may be; int64[positions] each."""
    live, variables = compiled.liveness, compiled.program.variables
    always = [one for one in variables if one.always_live and one.size_bytes]
    held = live.live_bytes(0) + np.sum([one.bytes_per_tile for one in always], axis=0, dtype=np.int64)
    counts = [
        len(always) + sum(variables[name].size_bytes > 0 for name in live.live_variables(0, position))
        for position in range(len(held))
    ]
    return held.max(axis=1), (MOST_OF_MEAN * held.mean(axis=1) + 2 * GRAIN_BYTES * np.array(counts)).astype(np.int64)


def check_even(program: Viewed, tiles: int) -> None:
    made = compiled(program, program.specs(), tiles)
    most, allowed = fullest(made)
    assert (most <= allowed).all(), f"{most.max()} bytes on a tile, {allowed[np.argmax(most - allowed)]} allowed"


@settings(max_examples=PROGRAMS)
@given(viewed(2e6), st.sampled_from(sorted(MACHINES)))
def test_views_leave_no_tile_much_fuller_than_the_others(program: Viewed, tiles: int) -> None:
    check_even(program, tiles)


@pytest.mark.slow
@settings(max_examples=40)
@given(viewed(1e8, views=2))
def test_views_of_100_megabytes_leave_no_tile_much_fuller(program: Viewed) -> None:
    check_even(program, 1472)


MOVING = {"poplar::Memcpy", "popops::Fill"}


def moving_cycles(program: TileProgram) -> int:
    """Exchanges, syncs before them, copies inside tiles and fills."""
    found = [
        step
        for step in program.steps
        if isinstance(step, DoExchange)
        or (isinstance(step, Sync) and step.scope == "internal")
        or (isinstance(step, OnTileExecute) and {one.vertex for one in step.compute_set.groups} <= MOVING)
    ]
    trace = execute(program)
    return sum(trace.steps[step.id].cycles * trace.executions[step.id] for step in found)


def copy_cycles(elements: int, dtype: str, tiles: int) -> int:
    """A tensor on all tiles to another, of which each tile has what two tiles further on had in the first."""
    graph = Graph("ipu2", tiles=tiles)
    source = graph.variable("source", elements, dtype).map_linearly()
    destination = graph.variable("destination", elements, dtype).map_linearly(first_tile=2)
    return moving_cycles(graph.sequence(graph.copy(source, destination)).compile_program())


@settings(max_examples=VIEWS)
@given(viewed(2e6, views=1), st.sampled_from(sorted(MACHINES)))
def test_a_view_takes_no_longer_than_two_copies(program: Viewed, tiles: int) -> None:
    """Each of a program's views, of the larger of what comes in and what goes out."""
    moved = moving_cycles(compiled(program, program.specs(), tiles).program)
    copied = max(LEAST_CYCLES, copy_cycles(program.most_elements, program.dtype, tiles))
    assert moved <= 2 * copied * program.count, f"{moved} cycles for {program.count} views, a copy takes {copied}"
