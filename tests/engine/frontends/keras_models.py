"""Small Keras models the frontend tests share; every call makes the same weights."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np


def mlp(**compile_arguments: Any) -> Any:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(8, activation="relu", name="hidden"),
            keras.layers.Dense(4, activation="softmax", name="out"),
        ],
        name="tiny",
    )
    if compile_arguments:
        model.compile(**compile_arguments)
    return model


def residual(**compile_arguments: Any) -> Any:
    """Convolutions, batch norm, a skip, a layer called twice, an unnamed sum, dropout, regularisation."""
    keras.utils.set_random_seed(2)
    inputs = keras.Input((6, 6, 2))
    x = keras.layers.Conv2D(4, 3, padding="same", kernel_regularizer="l2", name="conv_a")(inputs)
    x = keras.layers.BatchNormalization(name="norm")(x)
    a = keras.layers.ReLU(name="relu")(x)
    twice = keras.layers.Conv2D(4, 3, padding="same", name="twice")
    x = keras.layers.Add(name="skip")([twice(twice(a)), a])
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    x = keras.layers.Dropout(0.25, name="drop", seed=5)(x)
    x = x + 1.0
    outputs = keras.layers.Dense(3, activation="softmax", name="<script>alert(1)")(x)
    model = keras.Model(inputs, outputs, name="residual")
    if compile_arguments:
        model.compile(**compile_arguments)
    return model


def batch(shape: tuple[int, ...], classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.random(shape, dtype="float32"), rng.integers(0, classes, shape[0])


def furthest(one: Any, other: Any) -> float:
    """The largest difference between the variables of two models and their optimizers."""
    pairs = zip([*one.variables, *one.optimizer.variables], [*other.variables, *other.optimizer.variables], strict=True)
    return max(float(np.abs(np.asarray(a.value) - np.asarray(b.value)).max()) for a, b in pairs)
