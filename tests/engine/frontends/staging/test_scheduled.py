"""Stages executed on the host in the order of a schedule give the numbers of the unpipelined model."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.frontends.keras_models import batch, furthest, residual
from tests.engine.frontends.staging.four_stages import MODELS, STEPS, TOLERANCE, skipping, source_of, stack, unpipelined
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.staging.scheduled import HostFifo
from workbench.engine.pipeline_schedule import stash_depth
from workbench.engine.run import Runner

SCHEDULES = ("Grouped", "Interleaved", "Sequential")
OFTEN = (("Grouped", "plain"), ("Interleaved", "skip"))


@pytest.mark.parametrize(
    ("schedule", "name"),
    [
        pytest.param(schedule, name, marks=[pytest.mark.slow] * ((schedule, name) not in OFTEN))
        for schedule in SCHEDULES
        for name in MODELS
    ],
)
def test_four_stages_train_as_the_unpipelined_model_over_the_same_micro_batches(schedule: str, name: str) -> None:
    x, y = batch((4 * STEPS, 6), 3)
    source = source_of(MODELS[name], ["a", "b", "c"], STEPS)
    runner = Runner(source, schedule=schedule)
    model, reports = unpipelined(name)
    for expected in reports:
        assert runner.run(x, y) == pytest.approx(expected, abs=TOLERANCE)
    assert furthest(source.model, model) < TOLERANCE


@pytest.mark.parametrize("devices", [(0, 1, 1, 0), pytest.param((0, 0, 0, 0), marks=pytest.mark.slow)])
def test_stages_on_shared_ipus_give_the_same_numbers(devices: tuple[int, ...]) -> None:
    x, y = batch((4 * STEPS, 6), 3)
    source = source_of(skipping, ["a", "b", "c"], STEPS)
    assert Runner(source, schedule="Grouped", devices=devices).run(x, y) == pytest.approx(
        unpipelined("skip")[1][0], abs=TOLERANCE
    )


WRONG = [
    pytest.param("Grouped", -1, marks=()),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (("Grouped", 1), ("Interleaved", -1), ("Interleaved", 1))
    ),
]


@pytest.mark.parametrize(("schedule", "wrong"), WRONG)
def test_a_wrong_depth_changes_the_loss(schedule: str, wrong: int) -> None:
    x, y = batch((4 * STEPS, 6), 3)
    source = source_of(stack, ["a", "b", "c"], STEPS)

    def depth(name: str, stages: int, stage: int) -> int:
        known = stash_depth(name, stages, stage)
        return known + wrong if stage == 1 else known

    runner = Runner(source, schedule=schedule, depth=depth)
    model, (first, second) = unpipelined("plain")
    assert runner.run(x, y) == pytest.approx(first, abs=TOLERANCE)  # before any update
    assert furthest(source.model, model) > 1e-4
    assert abs(runner.run(x, y)["loss"] - second["loss"]) > 1e-4


def test_inference_in_order_of_a_schedule() -> None:
    model = residual()
    x, _ = batch((24, 6, 6, 2), 3)
    source = trace_keras(model, batch_size=4, mode="inference", stages=["relu", "twice"], gradient_accumulation_steps=6)
    expected = model.predict(x, verbose=0)
    for schedule in SCHEDULES:
        np.testing.assert_allclose(Runner(source, schedule=schedule).run(x), expected, atol=TOLERANCE)


def test_a_fifo_hands_out_what_came_in_so_many_turns_before() -> None:
    """As the driver's fifo in a loop fed by itself: depth 5 of zeros, begun with ones: zeros five times, then ones."""
    fifo, value, seen = HostFifo(5, 0), 1, []
    for _ in range(6):
        value = fifo.turn(value)
        seen.append(value)
    assert seen == [0, 0, 0, 0, 0, 1]
    assert HostFifo(0, 0).turn(7) == 7
