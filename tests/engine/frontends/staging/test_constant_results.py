"""Results that no stage computes, constants and what is given, leave from a stage all the same."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb
from tests.engine.frontends.staging.dense import stack

DRAWN = np.random.default_rng(3)


class Held(keras.metrics.Metric):
    """A metric that gives a variable of its own, which nothing writes."""

    def __init__(self) -> None:
        super().__init__(name="watched")
        self.held = self.add_weight(name="held", initializer="zeros")

    def update_state(self, *values: Any, **named: Any) -> None:
        """Nothing."""

    def result(self) -> Any:
        """The variable."""
        return self.held.value


class Watched(keras.Model):
    """Two layers, and a metric that this model never updates."""

    def __init__(self, metric: Any) -> None:
        super().__init__()
        self.first, self.last = keras.layers.Dense(4, name="first"), keras.layers.Dense(3, name="last")
        self.watched = metric

    def call(self, x: Any) -> Any:
        """Both layers."""
        return self.last(self.first(x))


@pytest.mark.parametrize("metric", [lambda: keras.metrics.Mean("watched"), Held], ids=["mean", "held"])
def test_a_metric_that_nothing_updates_is_zero_in_stages_too(metric: Any) -> None:
    model = Watched(metric())
    model.compile("sgd", "mse")
    x, y = DRAWN.random((8, 5), dtype="float32"), DRAWN.random((8, 3), dtype="float32")
    executable = wb.compile(model, x[:2], y[:2], stages=["first"], gradient_accumulation_steps=4)
    expected = float(np.mean((np.asarray(model(x)) - y) ** 2))
    logs = executable.run(x, y)
    assert logs["watched"] == 0.0
    np.testing.assert_allclose(logs["loss"], expected, rtol=1e-5)


def test_an_input_that_is_an_output_comes_through_the_stages() -> None:
    base, aside = stack(), keras.Input((2,), name="aside")
    model = keras.Model([base.inputs[0], aside], [base.outputs[0], aside])
    x, given = DRAWN.random((4, 6), dtype="float32"), DRAWN.random((4, 2), dtype="float32")
    executable = wb.compile(model, mode="inference", batch_size=2, stages=["dense_0"], gradient_accumulation_steps=2)
    made, out = executable.run([x, given])
    np.testing.assert_array_equal(out, given)
    np.testing.assert_allclose(made, base(x), rtol=1e-5)
