"""Recomputing stages as tile programs: what they read, what waits, what it costs."""

from __future__ import annotations

import functools
from typing import Any

import keras
import pytest

from tests.engine import reconcile
from tests.engine.passes.owners import Owners
from tests.engine.passes.staged_models import BATCH, FEATURES, WIDTH, model
from tests.engine.unrolled import unrolled
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.staging.recompute import Recomputation
from workbench.engine.frontends.staging.staged_program import with_recomputation
from workbench.engine.options import Options
from workbench.engine.target import target
from workbench.engine.time.trace import Trace

THEN, INTERLEAVED = "RecomputeThenBackpropagate", "RecomputeAndBackpropagateInterleaved"
CASES = [("Grouped", THEN), ("Interleaved", THEN), ("Grouped", INTERLEAVED), ("Sequential", INTERLEAVED)]
STEPS = 12


@functools.cache
def source(skip: bool) -> Source:
    return trace_keras(
        model(skip),
        BATCH,
        "training",
        stages=["a", "b"],
        gradient_accumulation_steps=STEPS,
        optimizer=keras.optimizers.SGD(0.1, momentum=0.9),
    )


@functools.cache
def compiled(schedule: str, mode: str = "", skip: bool = False) -> Compiled:
    found = with_recomputation(source(skip), Recomputation(mode=mode)) if mode else source(skip)
    options = Options().with_values({"pipeline.schedule": schedule})
    return compile_graph(found.graph, target("ipu2", tiles_per_ipu=8), options, ipus=3)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(("schedule", "mode"), CASES)
def test_every_pass_reads_values_of_its_own_micro_batch(schedule: str, mode: str, skip: bool) -> None:
    result = compiled(schedule, mode, skip)
    Owners(result.program).run(result.program.entry)
    reconcile.reconciles(result)
    for spent in result.trace.cycle_breakdown:
        assert sum(spent.values()) == result.trace.total_cycles


def stash_bytes(result: Compiled, ipu: int) -> int:
    """Of the slots of FIFOs, less what leaves them."""
    return sum(v.size_bytes for v in result.program.variables if v.name.endswith("/stash") and v.ipu == ipu)


@pytest.mark.parametrize(("schedule", "depths"), [("Grouped", (4, 2)), ("Interleaved", (2, 1))])
def test_what_waits_is_what_the_stage_was_given(schedule: str, depths: tuple[int, int]) -> None:
    """Without: its input and the ReLU mask of its layer. With: its input alone, at the same depth."""
    given, masks = (BATCH * FEATURES * 4, BATCH * WIDTH * 4), BATCH * WIDTH
    for stage, depth in enumerate(depths):
        assert stash_bytes(compiled(schedule), stage) == depth * (given[stage] + masks)
        assert stash_bytes(compiled(schedule, THEN), stage) == depth * given[stage]


def busy(trace: Trace, ipu: int) -> int:
    return sum(trace.cycle_breakdown[ipu][cause] for cause in ("compute", "exchange", "sync"))


@pytest.mark.parametrize(("schedule", "mode"), CASES[:2])
def test_time_rises_by_the_recomputations(schedule: str, mode: str) -> None:
    """Under Interleaved they run where an IPU would wait for a backward pass, so that the call may take no longer."""
    plain, again = compiled(schedule).trace, compiled(schedule, mode).trace
    assert schedule != "Grouped" or again.total_cycles > plain.total_cycles
    for ipu in (0, 1):
        body = again.functions[f"stage{ipu}_recompute"].cycles
        assert 0 < body < plain.functions[f"stage{ipu}_forward"].cycles
        spent = [
            sum(t.cycle_breakdown[ipu][cause] for cause in ("compute", "exchange", "sync")) for t in (plain, again)
        ]
        assert spent[1] > spent[0]


def directions(result: Compiled, ipu: int) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for row in unrolled(result.trace, ipu):
        if row.step >= 0 and row.layer and row.micro_batch is not None:
            found.setdefault(row.direction, set()).add(row.micro_batch)
    return found


@pytest.mark.parametrize(("schedule", "mode"), CASES)
def test_blocks_say_their_direction_and_every_micro_batch_has_each(schedule: str, mode: str) -> None:
    every = set(range(STEPS))
    assert directions(compiled(schedule, mode), 1) == dict.fromkeys(("forward", "recompute", "backward"), every)
    assert directions(compiled(schedule, mode), 2) == dict.fromkeys(("forward", "backward"), every)


@functools.cache
def single(checkpoints: tuple[str, ...]) -> Compiled:
    """Eight layers on one IPU, wide in their batch."""
    layers: list[Any] = [keras.layers.Dense(WIDTH, activation="gelu", name=f"d{number}") for number in range(8)]
    deep = keras.Sequential([keras.Input((WIDTH,)), *layers])
    traced = trace_keras(
        deep, 64, "training", stages=[0] * 8, loss="mean_squared_error", optimizer=keras.optimizers.SGD(0.1)
    )
    found = (
        with_recomputation(traced, Recomputation(mode=INTERLEAVED, checkpoints=checkpoints)) if checkpoints else traced
    )
    return compile_graph(found.graph, target("ipu2", tiles_per_ipu=8), Options())


def peak(result: Compiled) -> int:
    """Largest not-always-live bytes of a tile."""
    return int(result.liveness.peak_bytes(0).max())


def test_checkpoints_lower_the_peak_of_one_ipu_and_cost_time() -> None:
    """Kept without: the inputs of eight GELUs and the error of the loss. With: three results, two inputs, the error."""
    plain, again = single(()), single(("d1", "d3", "d5"))
    assert again.trace.total_cycles > plain.trace.total_cycles
    assert peak(plain) - peak(again) == (8 + 1 - (3 + 2 + 1)) * 64 * WIDTH * 4 // 8
