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
    cuts: tuple[str, ...], steps: int, schedule: str = "Grouped", mode: str = "training", skip: bool = False
) -> Compiled:
    return compile_graph(
        graph_of(cuts, steps, mode, skip),
        target("ipu2", tiles_per_ipu=8),
        Options().with_values({"pipeline.schedule": schedule}),
        ipus=len(cuts) + 1,
    )
