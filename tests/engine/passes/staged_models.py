"""Small staged Keras models, traced and compiled for eight tiles an IPU."""

from __future__ import annotations

import functools
from typing import Any

import keras

from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.graph import Graph
from workbench.engine.options import Options
from workbench.engine.target import target

BATCH, WIDTH, FEATURES, CLASSES = 8, 32, 64, 10


def model(skip: bool) -> Any:
    """Three dense layers with ReLU and a softmax; `skip` adds the first one's output to the third's."""
    inputs = keras.Input((FEATURES,), name="x")
    first = keras.layers.Dense(WIDTH, activation="relu", name="a")(inputs)
    second = keras.layers.Dense(WIDTH, activation="relu", name="b")(first)
    third = keras.layers.Dense(WIDTH, activation="relu", name="c")(second)
    if skip:
        third = keras.layers.Add(name="sum")([third, first])
    return keras.Model(inputs, keras.layers.Dense(CLASSES, activation="softmax", name="out")(third), name="digits")


@functools.cache
def graph_of(cuts: tuple[str, ...], steps: int, mode: str = "training", skip: bool = False) -> Graph:
    """The graph before any pass; `cuts` name the layers that end a stage."""
    training = {"optimizer": keras.optimizers.SGD(0.1, momentum=0.9)} if mode == "training" else {}
    return trace_keras(model(skip), BATCH, mode, stages=list(cuts), gradient_accumulation_steps=steps, **training).graph


@functools.cache
def pipeline(
    cuts: tuple[str, ...],
    steps: int,
    schedule: str = "Grouped",
    mode: str = "training",
    skip: bool = False,
    devices: tuple[int, ...] = (),
) -> Compiled:
    return compile_graph(
        graph_of(cuts, steps, mode, skip),
        target("ipu2", tiles_per_ipu=8),
        Options().with_values({"pipeline.schedule": schedule, "pipeline.device_mapping": devices}),
        ipus=max(devices) + 1 if devices else len(cuts) + 1,
    )


class Transposed(keras.layers.Layer):
    """A product with the transposed kernel of another layer."""

    def __init__(self, other: Any, **more: Any) -> None:
        super().__init__(**more)
        self.other = other

    def call(self, x: Any) -> Any:
        return keras.ops.matmul(x, keras.ops.transpose(self.other.kernel))


@functools.cache
def tied_graph() -> Graph:
    """A stage each for a layer, another, and one that uses the kernel of the first."""
    inputs = keras.Input((FEATURES,), name="x")
    first = keras.layers.Dense(WIDTH, activation="relu", name="a")
    second = keras.layers.Dense(WIDTH, activation="relu", name="b")(first(inputs))
    tied = keras.Model(inputs, Transposed(first, name="head")(second), name="tied")
    more: dict[str, Any] = {"optimizer": keras.optimizers.SGD(0.1), "loss": "mean_squared_error"}
    return trace_keras(tied, BATCH, "training", stages=["a", "b"], gradient_accumulation_steps=6, **more).graph


def tied(devices: tuple[int, ...]) -> Compiled:
    """Compiled with its stages on these IPUs."""
    options = Options().with_values({"pipeline.device_mapping": devices})
    return compile_graph(tied_graph(), target("ipu2", tiles_per_ipu=8), options, ipus=max(devices) + 1)
