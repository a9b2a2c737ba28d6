"""Small models made inside and outside a strategy's scope, with the same seeds."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from workbench import ipu
from workbench.ipu.config import IPUConfig
from workbench.ipu.ipu_strategy import IPUStrategy


@dataclass(eq=False)
class Twins:
    """`ours` and `theirs` are made alike, one in the scope; `x`, `y` are 48 samples of three classes."""

    strategy: IPUStrategy = field(default_factory=IPUStrategy)
    x: Any = field(default_factory=lambda: np.random.default_rng(3).normal(size=(48, 6)).astype("float32"))
    y: Any = field(default_factory=lambda: np.random.default_rng(4).integers(0, 3, 48).astype("int32"))

    def made(self, build: Callable[[], Any], *, here: bool, **compiled: Any) -> Any:
        keras.utils.set_random_seed(11)
        with self.strategy.scope() if here else nullcontext():
            model = build()
            arguments = {"optimizer": keras.optimizers.SGD(0.1), "metrics": ["accuracy"], **compiled}
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile(**{"loss": loss, **arguments})
        return model

    def fitted(self, model: Any, **arguments: Any) -> dict[str, float]:
        keras.utils.set_random_seed(12)
        history = model.fit(self.x, self.y, **{"batch_size": 8, "epochs": 2, "verbose": 0, **arguments}).history
        return {f"{name} of epoch {number}": each for name in history for number, each in enumerate(history[name])}


def sequential() -> Any:
    return keras.Sequential([keras.layers.Dense(5, activation="relu"), keras.layers.Dense(3)])


def functional() -> Any:
    inputs = keras.Input((6,))
    hidden = keras.layers.Dense(5, activation="relu")(inputs)
    return keras.Model(inputs, keras.layers.Dense(3)(hidden))


class Subclassed(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.last = keras.layers.Dense(5, activation="relu"), keras.layers.Dense(3)

    def call(self, inputs: Any) -> Any:
        return self.last(self.hidden(inputs))


def four_layers() -> Any:
    layers = [
        keras.layers.Dense(5, activation="relu"),
        keras.layers.Dense(4),
        keras.layers.Dense(6),
        keras.layers.Dense(3),
    ]
    return keras.Sequential([keras.Input((6,)), *layers])


def in_scopes() -> Any:
    inputs = keras.Input((6,))
    with ipu.keras.PipelineStage(0):
        x = keras.layers.Dense(5, activation="relu", name="first")(inputs)
        x = keras.layers.Dense(4, name="second")(x)
    with ipu.keras.PipelineStage(1):
        x = keras.layers.Dense(6, name="third")(x)
        x = keras.layers.Dense(3, name="fourth")(x)
    return keras.Model(inputs, x)


def configure(ipus: int) -> None:
    config = IPUConfig()
    config.auto_select_ipus = ipus
    config.ipu_model.tiles_per_ipu = 16
    config.configure_ipu_system()


def assert_alike(ours: Any, theirs: Any, rtol: float = 1e-5) -> None:
    for own, other in zip(ours.variables, theirs.variables, strict=True):
        np.testing.assert_allclose(np.asarray(own.value), np.asarray(other.value), rtol=rtol, atol=1e-6)
