"""Pipelined models learn as the unpipelined ones that accumulate over the same micro-batches."""

from __future__ import annotations

import functools
from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb

SCHEDULES = ("Grouped", "Interleaved", "Sequential")
EACH = pytest.mark.parametrize("schedule", SCHEDULES)
TOLERANCE = 2e-5


def digits_model() -> Any:
    keras.utils.set_random_seed(7)
    layers = [keras.layers.Dense(64, activation="relu", name=f"d{number}") for number in range(3)]
    model = keras.Sequential([keras.Input((64,)), *layers, keras.layers.Dense(10, activation="softmax", name="out")])
    model.compile(optimizer=keras.optimizers.SGD(0.2, momentum=0.9), loss="sparse_categorical_crossentropy")
    return model


BATCH, STEPS, UPDATES = 8, 16, 5


def curve(**arguments: Any) -> list[float]:
    """The losses of the first updates on the digits."""
    images, labels = wb.datasets.digits()
    size = BATCH * STEPS
    executable = wb.compile(
        digits_model(), batch_size=BATCH, gradient_accumulation_steps=STEPS,
        target=wb.target("ipu2", tiles_per_ipu=32), **arguments,
    )  # fmt: skip
    return [
        executable.run(images[n * size : (n + 1) * size].reshape(size, 64), labels[n * size : (n + 1) * size])["loss"]
        for n in range(UPDATES)
    ]


@functools.cache
def unpipelined() -> list[float]:
    return curve()


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("recomputation", [False, True])
def test_four_stages_on_digits(schedule: str, recomputation: bool) -> None:
    losses = curve(stages=["d0", "d1", "d2"], pipeline_schedule=schedule, recomputation=recomputation)
    assert losses == pytest.approx(unpipelined(), abs=TOLERANCE)
    assert losses[-1] < 0.95 * losses[0]  # it learns


SPLIT = ["conv4_block2_add"]
IMAGES, SIDE = 2, 32


@functools.cache
def resnet_data() -> tuple[Any, Any]:
    draws = np.random.default_rng(3)
    count = IMAGES * 4
    return draws.random((count, SIDE, SIDE, 3), np.float32), draws.integers(0, 10, count).astype("int32")


def resnet() -> Any:
    keras.utils.set_random_seed(7)
    model = keras.applications.ResNet50(weights=None, input_shape=(SIDE, SIDE, 3), classes=10)
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss="sparse_categorical_crossentropy")
    return model


def resnet_curve(**arguments: Any) -> tuple[list[float], Any]:
    executable = wb.compile(resnet(), batch_size=IMAGES, gradient_accumulation_steps=4, **arguments)
    x, y = resnet_data()
    return [executable._runner.run(x, y)["loss"] for _ in range(2)], executable


@functools.cache
def resnet_unpipelined() -> list[float]:
    return resnet_curve()[0]


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("recomputation", [False, True])
def test_resnet50_in_two_stages(schedule: str, recomputation: bool) -> None:
    """Batch normalisation takes its statistics from each micro-batch, and its moving averages in their order."""
    losses, _ = resnet_curve(stages=SPLIT, pipeline_schedule=schedule, recomputation=recomputation)
    assert losses == pytest.approx(resnet_unpipelined(), rel=2e-3)
