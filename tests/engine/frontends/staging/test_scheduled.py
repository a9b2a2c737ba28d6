"""Stages executed on the host in the order of a schedule give the numbers of the unpipelined model."""

from __future__ import annotations

import functools
from typing import Any

import keras
import numpy as np
import pytest

from tests.engine.frontends.keras_models import batch, furthest, residual
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.staging.scheduled import HostFifo
from workbench.engine.pipeline_schedule import stash_depth
from workbench.engine.run import Runner

TOLERANCE = 1e-5
SCHEDULES = ("Grouped", "Interleaved", "Sequential")
OFTEN = (("Grouped", "plain"), ("Interleaved", "skip"))


def stack() -> Any:
    """Four layers, a stage each; dropout takes its masks from a seed that every micro-batch advances."""
    keras.utils.set_random_seed(4)
    layers = [
        keras.layers.Dense(8, activation="gelu", name="a"),
        keras.layers.Dense(8, activation="relu", name="b"),
        keras.layers.Dropout(0.3, seed=3, name="c"),
        keras.layers.Dense(3, activation="softmax", name="out"),
    ]
    model = keras.Sequential([keras.Input((6,)), *layers])
    model.compile(
        optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    return model


def source_of(make: Any, stages: Any, steps: int, size: int = 4) -> Any:
    return trace_keras(make(), batch_size=size, stages=stages, gradient_accumulation_steps=steps)


def skipping() -> Any:
    """The first layer's output is added to the third's, two stages later."""
    keras.utils.set_random_seed(4)
    inputs = keras.Input((6,))
    first = keras.layers.Dense(8, activation="relu", name="a")(inputs)
    second = keras.layers.Dense(8, activation="relu", name="b")(first)
    third = keras.layers.Dense(8, activation="relu", name="c")(second)
    total = keras.layers.Add(name="sum")([third, first])
    model = keras.Model(inputs, keras.layers.Dense(3, activation="softmax", name="out")(total))
    model.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="sparse_categorical_crossentropy")
    return model


MODELS = {"plain": stack, "skip": skipping}
STEPS = 8


@functools.cache
def unpipelined(name: str) -> tuple[Any, list[Any]]:
    """The model after two updates that accumulate over the micro-batches, and what each reported."""
    x, y = batch((4 * STEPS, 6), 3)
    source = source_of(MODELS[name], None, STEPS)
    runner = Runner(source)
    return source.model, [runner.run(x, y) for _ in range(2)]


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
