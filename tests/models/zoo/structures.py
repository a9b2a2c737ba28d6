"""Models that are put together in every way Keras allows: subclassed, shared, nested, with several ends, custom."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from tests.models.zoo.case import Case

L = keras.layers
SCC = "sparse_categorical_crossentropy"


def unet() -> Any:
    images = keras.Input((16, 16, 2))

    def block(x: Any, filters: int, name: str) -> Any:
        x = L.Conv2D(filters, 3, padding="same", activation="relu", name=f"{name}_a")(x)
        return L.Conv2D(filters, 3, padding="same", activation="relu", name=f"{name}_b")(x)

    one = block(images, 4, "down_1")
    two = block(L.MaxPooling2D(name="pool_1")(one), 8, "down_2")
    x = block(L.MaxPooling2D(name="pool_2")(two), 8, "bottom")
    x = block(L.Concatenate()([L.Conv2DTranspose(8, 2, strides=2, name="up_2")(x), two]), 8, "up_block_2")
    x = block(L.Concatenate()([L.UpSampling2D(2, interpolation="bilinear", name="up_1")(x), one]), 4, "up_block_1")
    return keras.Model(images, L.Conv2D(1, 1, activation="sigmoid", name="mask")(x), name="unet")


class Residual(keras.layers.Layer):
    """A custom layer of other layers, called with a keyword."""

    def __init__(self, units: int, **options: Any) -> None:
        super().__init__(**options)
        self.inner = L.Dense(units, "gelu", name="inner")
        self.norm = L.LayerNormalization(name="norm")
        self.drop = L.Dropout(0.2, seed=1, name="drop")

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(name="scale", shape=(shape[-1],), initializer="ones")
        self.inner.build(shape)
        self.norm.build(shape)

    def call(self, x: Any, training: bool = False) -> Any:
        y = self.drop(self.inner(self.norm(x)), training=training)
        self.add_loss(0.01 * ops.mean(y * y))
        return x + self.scale * y


class Subclassed(keras.Model):
    """Control flow over a list of layers, built by its first call."""

    def __init__(self) -> None:
        super().__init__(name="subclassed")
        self.blocks = [Residual(6, name=f"block_{i}") for i in range(2)]
        self.head = L.Dense(3, "softmax", name="head")

    def call(self, x: Any, training: bool = False) -> Any:
        for block in self.blocks:
            x = block(x, training=training)
        return self.head(x)


def subclassed() -> Any:
    model = Subclassed()
    model(np.zeros((2, 6), "float32"))
    return model


def shared() -> Any:
    """Two towers of one weight, and a layer called three times."""
    left, right = keras.Input((6,), name="left"), keras.Input((6,), name="right")
    tower = keras.Sequential([L.Dense(5, "relu", name="wide"), L.Dense(4, name="narrow")], name="tower")
    again = L.Dense(4, "tanh", name="again")
    x, y = tower(left), again(again(tower(right)))
    return keras.Model([left, right], L.Dot(axes=1, normalize=True, name="near")([again(x), y]), name="siamese")


def nested() -> Any:
    """A model in a model in a model, one of them twice."""
    inner = keras.Sequential([keras.Input((6,)), L.Dense(6, "relu", name="dense")], name="inner")
    a = keras.Input((6,))
    middle = keras.Model(a, inner(inner(a)) + a, name="middle")
    b = keras.Input((6,))
    return keras.Model(b, L.Dense(2, name="dense")(middle(b)), name="outer")


def several() -> Any:
    """Three inputs of two types in a dictionary, two outputs."""
    inputs = {
        "age": keras.Input((1,), name="age"),
        "town": keras.Input((), dtype="int32", name="town"),
        "image": keras.Input((6, 6, 1), name="image"),
    }
    x = L.Conv2D(3, 3, activation="relu", name="conv")(inputs["image"])
    parts = [inputs["age"], L.Embedding(5, 3, name="towns")(inputs["town"]), L.Flatten(name="flat")(x)]
    x = L.Dense(6, "relu", name="trunk")(L.Concatenate(name="join")(parts))
    outputs = {"price": L.Dense(1, name="price")(x), "kind": L.Dense(2, "softmax", name="kind")(x)}
    return keras.Model(inputs, outputs, name="several")


def weighted_square(y: Any, found: Any) -> Any:
    """A loss as a user writes it."""
    return ops.mean(ops.square(y - found) * ops.where(y > 0.5, 2.0, 1.0), axis=-1)


class MyLoss(keras.losses.Loss):
    def call(self, y: Any, found: Any) -> Any:
        return ops.mean(ops.log(ops.cosh(y - found)), axis=-1)


def plain() -> Any:
    return keras.Sequential([keras.Input((6,)), L.Dense(5, "tanh"), L.Dense(3)], name="plain")


STRUCTURES = {
    "unet": Case(build=unet, loss="binary_crossentropy"),
    "subclassed": Case(build=subclassed, loss=SCC, inputs=(np.zeros((2, 6), "float32"),)),
    "shared": Case(build=shared),
    "nested": Case(build=nested),
    "several": Case(build=several, loss={"price": "mse", "kind": SCC}),
    "loss function": Case(build=plain, loss=weighted_square),
    "loss class": Case(build=plain, loss=MyLoss()),
    "frozen": Case(build=lambda: _frozen()),
    "mixed": Case(build=lambda: _in("mixed_float16"), atol=2e-3, loss=SCC),
    "bfloat16": Case(build=lambda: _in("mixed_bfloat16"), atol=2e-2, loss=SCC),
}


def _frozen() -> Any:
    model = unet()
    for layer in model.layers[:6]:
        layer.trainable = False
    return model


def _in(policy: str) -> Any:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        inputs = keras.Input((6, 6, 2))
        x = L.BatchNormalization()(L.Conv2D(4, 3)(inputs))
        x = L.Dense(3, name="out")(L.Flatten()(L.ReLU()(x)))
        return keras.Model(inputs, L.Activation("softmax", dtype="float32")(x), name="mixed")
    finally:
        keras.config.set_dtype_policy(before)


TABLES = ("STRUCTURES",)
