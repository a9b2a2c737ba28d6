"""Compiled metrics are those of a batch alone, and a model compiled again is the same program."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

import workbench as wb

X, Y = np.ones((4, 3), "float32"), np.array([[0], [1], [0], [1]], "float32")


def one_class(*metrics: Any) -> Any:
    """A model whose output is one half for all it is given."""
    layers = [keras.layers.SimpleRNN(3, name="cell"), keras.layers.Dense(1, "sigmoid", kernel_initializer="zeros")]
    model = keras.Sequential([keras.Input((2, 3)), *layers])
    model.compile("rmsprop", "binary_crossentropy", metrics=list(metrics))
    return model


def test_a_metric_that_was_used_before_starts_anew() -> None:
    error = keras.metrics.MeanAbsoluteError(name="error")
    error.update_state([0.0], [100.0])
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", "mse", metrics=[error])
    assert wb.compile(model, batch_size=4).run(X, Y)["error"] == 0.5  # outputs are 0, and half of the targets are 1
    assert float(error.result()) == 100.0  # and what it held is kept


def test_a_second_compile_of_a_model_with_metrics_is_the_same() -> None:
    target = wb.target("ipu2", tiles_per_ipu=32)
    model = one_class("AUC", keras.metrics.Precision())
    first, second = (wb.profile(model, batch_size=4, mode=mode, target=target) for mode in (None, "training"))
    assert list(first.operators["cycles"]) == list(second.operators["cycles"])
    assert first.total_cycles == second.total_cycles
