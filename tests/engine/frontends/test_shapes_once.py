"""Norms traced once for each shape: the graph, its layers and its source lines are those of separate traces."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from typing import Any

import jax
import keras
import pytest

from workbench.engine.frontends import keras as frontend
from workbench.engine.graph import Graph, walk


class TwoNorms(keras.Model):
    """Two batch normalisations of one shape, called on two lines."""

    def __init__(self) -> None:
        super().__init__(name="two_norms")
        self.first = keras.layers.BatchNormalization(name="first")
        self.second = keras.layers.BatchNormalization(name="second")
        self.head = keras.layers.Dense(2, name="head")

    def call(self, x: Any, training: bool = False) -> Any:
        x = self.first(x, training=training)
        x = self.second(x * 2.0, training=training)
        return self.head(x)


def traced(mode: str) -> Graph:
    inputs = [jax.ShapeDtypeStruct((4, 3), "float32")]
    loss = "sparse_categorical_crossentropy" if mode == "training" else None
    model = TwoNorms()
    model(keras.ops.ones((4, 3)))
    return frontend.trace_keras(model, 4, mode, loss=loss, inputs=inputs).graph


def told(graph: Graph) -> Counter[tuple[Any, ...]]:
    """How many nodes of each kind come from each place; the order within a norm's backward pass is JAX's."""
    return Counter(
        (function.name, node.op, node.attrs, node.origin, *((value.shape, value.dtype) for value in node.operands))
        for function, node in walk(graph)
    )


@pytest.mark.parametrize("mode", ["training", "inference"])
def test_graphs_are_those_of_separate_traces(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = traced(mode)
    monkeypatch.setattr(frontend, "shapes_once", nullcontext)
    assert told(shared) == told(traced(mode))
    places = [node.origin for _, node in walk(shared) if node.origin.source]
    lines = {layer: {place.source for place in places if place.layer == layer} for layer in ("first", "second")}
    assert len(lines["second"]) == 1
    assert lines["first"] - lines["second"]


def test_keras_has_its_own_functions_back_after_an_error() -> None:
    from keras.src.backend import nn

    before = nn.moments, nn.batch_normalization
    with pytest.raises(ZeroDivisionError), frontend.shapes_once():
        _ = 1 / (nn.moments is before[0])
    assert (nn.moments, nn.batch_normalization) == before
