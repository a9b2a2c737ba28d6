"""Models compiled with an optimizer and no loss are trained by their own, as Keras trains them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb
from workbench.errors import InputError

ONES, ZEROS = np.ones((4, 3), "float32"), np.zeros((4, 2), "float32")


class SevenTimes(keras.Model):
    """Its loss is seven times the mean distance."""

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """Seven times the mean distance."""
        return 7.0 * keras.ops.mean(keras.ops.abs(y - y_pred))


class Squares(keras.layers.Layer):
    """Adds the mean of the squares of what goes through."""

    def call(self, x: Any) -> Any:
        """What came in."""
        self.add_loss(keras.ops.mean(x**2))
        return x


def seven_times(**compiled: Any) -> Any:
    x = keras.Input((3,))
    model = SevenTimes(x, keras.layers.Dense(2, kernel_initializer="ones")(x))
    model.compile("sgd", **compiled)
    return model


def squares(**compiled: Any) -> Any:
    x = keras.Input((3,))
    dense = keras.layers.Dense(2, kernel_initializer="ones", name="dense")
    model = keras.Model(x, keras.layers.Activation("linear", name="end")(Squares(name="squares")(dense(x))))
    model.compile("sgd", **compiled)
    return model


@pytest.mark.parametrize("compiled", [{}, {"loss": "mean_squared_error"}])
def test_a_compute_loss_of_its_own(compiled: dict[str, Any]) -> None:
    # Each output is 3 away from its target.
    assert float(wb.compile(seven_times(**compiled), batch_size=4).run(ONES, ZEROS)["loss"]) == 7 * 3


def test_a_compute_loss_of_its_own_under_another_optimizer() -> None:
    with pytest.raises(InputError, match="has a compute_loss of its own, which is trained with the optimizer it is"):
        wb.compile(seven_times(), batch_size=4, optimizer="adam")
    executable = wb.compile(seven_times(), batch_size=4, optimizer="adam", loss="mean_squared_error")
    assert float(executable.run(ONES, ZEROS)["loss"]) == 3**2


@pytest.mark.parametrize(
    "asked",
    [
        {"batch_size": 4},
        {"batch_size": 4, "optimizer": "adam"},
        {"batch_size": 2, "stages": ["squares"], "gradient_accumulation_steps": 4, "pipeline_schedule": "Sequential"},
    ],
)
def test_losses_that_layers_add(asked: dict[str, Any]) -> None:
    executable = wb.compile(squares(), mode="training", **asked)
    images = np.ones((asked["batch_size"] * asked.get("gradient_accumulation_steps", 1), 3), "float32")
    # Every output is 3, and there is nothing to compare them with.
    assert float(executable.run(images)["loss"]) == 3**2
    assert "loss: what layers add by add_loss, because the model was compiled with no other" in (
        executable.profile.assumptions
    )
    with pytest.raises(
        InputError, match=r"^run was called with 2 arrays\. Expected: run\(x\)\. To mend it: leave targets"
    ):
        executable.run(images, images)


def test_losses_that_layers_add_beside_metrics_of_targets() -> None:
    logs = wb.compile(squares(metrics=["mean_absolute_error"]), batch_size=4).run(ONES, ZEROS)
    assert {name: float(value) for name, value in logs.items()} == {"loss": 9, "mean_absolute_error": 3}


def test_regularised_weights_alone_are_no_loss() -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, kernel_regularizer="l2")])
    model.compile("sgd")
    assert any("mean squared error" in each for each in wb.compile(model, batch_size=4).profile.assumptions)
