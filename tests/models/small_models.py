"""Real models at tiny sizes; every call makes the same weights."""

from __future__ import annotations

from typing import Any

import keras


def mlp() -> Any:
    """The digits MLP of the first notebook, narrower."""
    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(48, activation="relu", name="hidden"),
            keras.layers.Dense(32, activation="gelu", name="second"),
            keras.layers.Dense(10, activation="softmax", name="out"),
        ],
        name="digits",
    )


def cnn() -> Any:
    """Convolutions, batch norm, pooling, a skip and dropout."""
    keras.utils.set_random_seed(2)
    layers = keras.layers
    inputs = keras.Input((8, 8, 3))
    x = layers.Conv2D(8, 3, padding="same", use_bias=False, name="conv_a")(inputs)
    x = layers.BatchNormalization(name="norm_a")(x)
    a = layers.ReLU(name="relu_a")(x)
    x = layers.MaxPooling2D(2, name="pool")(a)
    b = layers.Conv2D(8, 3, padding="same", name="conv_b")(x)
    x = layers.Add(name="skip")([layers.BatchNormalization(name="norm_b")(b), x])
    x = layers.Conv2D(16, 1, strides=2, activation="relu", name="conv_c")(x)
    x = layers.GlobalAveragePooling2D(name="mean")(x)
    x = layers.Dropout(0.25, name="drop", seed=5)(x)
    return keras.Model(inputs, layers.Dense(5, activation="softmax", name="out")(x), name="cnn")


def encoder() -> Any:
    """Two layers of a Transformer encoder with dropout behind an embedding."""
    keras.utils.set_random_seed(3)
    layers = keras.layers
    tokens = keras.Input((12,), dtype="int32")
    x = layers.Embedding(50, 16, name="embedding")(tokens)
    for number in range(2):
        with keras.name_scope(f"encoder_{number}"):
            attention = layers.MultiHeadAttention(2, 8, dropout=0.1, seed=number, name=f"attention_{number}")
            y = layers.Dropout(0.1, seed=10 + number, name=f"drop_a{number}")(attention(x, x))
            x = layers.LayerNormalization(name=f"norm_a{number}")(layers.Add(name=f"add_a{number}")([x, y]))
            y = layers.Dense(32, activation="gelu", name=f"wide_{number}")(x)
            y = layers.Dense(16, name=f"narrow_{number}")(y)
            y = layers.Dropout(0.1, seed=20 + number, name=f"drop_b{number}")(y)
            x = layers.LayerNormalization(name=f"norm_b{number}")(layers.Add(name=f"add_b{number}")([x, y]))
    x = layers.GlobalAveragePooling1D(name="mean")(x)
    return keras.Model(tokens, layers.Dense(4, activation="softmax", name="out")(x), name="encoder")
