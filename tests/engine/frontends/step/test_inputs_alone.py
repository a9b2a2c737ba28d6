"""Models whose own step or loss looks at the inputs alone train on them alone, as `fit(x)` does."""

from __future__ import annotations

from typing import Any

import jax
import keras
import numpy as np
import pytest

import workbench as wb
from workbench.errors import InputError

X = np.arange(12, dtype="float32").reshape(4, 3) / 12


class Rebuilding(keras.Model):
    """An autoencoder; its layer starts at zero, so its first loss is the mean of the squared inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.code = keras.layers.Dense(3, kernel_initializer="zeros", name="code")

    def call(self, x: Any) -> Any:
        """What is rebuilt."""
        return self.code(x)


class ByStep(Rebuilding):
    """A step that takes a batch of one array apart, as programs for `fit(x)` do."""

    def train_step(self, state: Any, data: Any) -> Any:
        """Plain gradient descent."""
        trainable, fixed, slots, metrics = state
        (x,) = data

        def loss_of(weights: Any) -> Any:
            rebuilt, _ = self.stateless_call(weights, fixed, x)
            return keras.ops.mean(keras.ops.square(rebuilt - x))

        loss, gradients = jax.value_and_grad(loss_of)(trainable)
        trainable, slots = self.optimizer.stateless_apply(slots, gradients, trainable)
        return {"loss": loss}, (trainable, fixed, slots, metrics)


class ByLoss(Rebuilding):
    """A loss of its own; targets, where there are any, are rebuilt instead of the inputs."""

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, *_: Any, **__: Any) -> Any:
        """The mean squared error."""
        return keras.ops.mean(keras.ops.square(y_pred - (x if y is None else y)))


def made(kind: type[Rebuilding]) -> Any:
    model = kind()
    model.compile(keras.optimizers.SGD(0.1))
    return model


@pytest.mark.parametrize(("kind", "what"), [(ByStep, "train_step"), (ByLoss, "compute_loss")])
def test_it_trains_on_inputs_alone(kind: type[Rebuilding], what: str) -> None:
    executable = wb.compile(made(kind), X)
    assert executable.run(X)["loss"] == pytest.approx(float(np.mean(X**2)), rel=1e-6)
    assert executable.run(X)["loss"] < float(np.mean(X**2))
    said = f"loss: that of the model's own {what}, of the inputs alone; give an example of targets to train with them"
    assert said in executable.profile.assumptions
    with pytest.raises(InputError, match=r"run was called with 2 arrays"):
        executable.run(X, X)


def test_an_example_of_targets_is_trained_with() -> None:
    executable = wb.compile(made(ByLoss), X, X + 1)
    assert executable.run(X, X + 1)["loss"] == pytest.approx(float(np.mean((X + 1) ** 2)), rel=1e-6)
