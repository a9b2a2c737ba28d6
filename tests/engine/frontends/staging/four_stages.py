"""Models of four stages, and what they report when they are trained without a pipeline."""

from __future__ import annotations

import functools
from typing import Any

import keras

from tests.engine.frontends.keras_models import batch
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.run import Runner

TOLERANCE = 1e-5


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
