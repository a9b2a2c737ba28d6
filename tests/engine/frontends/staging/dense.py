"""A stack of dense layers to cut into stages."""

from __future__ import annotations

from typing import Any

import keras


def stack(**compile_arguments: Any) -> Any:
    """Dense layers and nothing that depends on the micro-batch, so that accumulation equals one large batch."""
    keras.utils.set_random_seed(4)
    layers = [keras.layers.Dense(8, activation="gelu", name=f"dense_{i}", kernel_regularizer="l2") for i in range(3)]
    model = keras.Sequential([keras.Input((6,)), *layers, keras.layers.Dense(3, activation="softmax", name="out")])
    if compile_arguments:
        model.compile(**compile_arguments)
    return model
