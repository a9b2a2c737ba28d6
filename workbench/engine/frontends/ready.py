"""Ready models by name, built with Keras layers at any size: mlp, cnn, resnet50, bert-base, transformer-encoder."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import keras

from workbench.engine.frontends.encoder import NORM_EPSILON, EncoderBlock, PositionEmbedding
from workbench.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyModel:
    """A model that is built when it is traced, without weights.

    `size` holds the chosen sizes and `loss` the name of the loss it is trained with when none is given, and the
    sentence that says so.
    """

    name: str
    size: tuple[tuple[str, int], ...]
    builder: Callable[[], Any]
    loss: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in self.size)})"


def _mlp(*, layers: int, hidden: int, input_size: int, classes: int) -> Any:
    blocks = [keras.layers.Dense(hidden, activation="relu", name=f"hidden_{i}") for i in range(layers)]
    head = keras.layers.Dense(classes, activation="softmax", name="classifier")
    return keras.Sequential([keras.Input((input_size,), name="features"), *blocks, head], name="mlp")


def _cnn(*, layers: int, hidden: int, image_size: int, channels: int, classes: int) -> Any:
    blocks: list[Any] = []
    for i in range(layers):
        blocks.append(keras.layers.Conv2D(hidden * 2**i, 3, padding="same", activation="relu", name=f"conv_{i}"))
        blocks.append(keras.layers.MaxPooling2D(2, name=f"pool_{i}"))
    head = [keras.layers.Flatten(name="flatten"), keras.layers.Dense(classes, activation="softmax", name="classifier")]
    images = keras.Input((image_size, image_size, channels), name="images")
    return keras.Sequential([images, *blocks, *head], name="cnn")


def _resnet50(*, image_size: int, classes: int) -> Any:
    return keras.applications.ResNet50(weights=None, input_shape=(image_size, image_size, 3), classes=classes)


def _transformer_encoder(*, layers: int, hidden: int, heads: int, sequence_length: int, classes: int) -> Any:
    inputs = keras.Input((sequence_length, hidden), name="embeddings")
    x = inputs
    for i in range(layers):
        x = EncoderBlock(hidden, heads, name=f"encoder_{i}")(x)
    x = keras.layers.GlobalAveragePooling1D(name="pooling")(x)
    outputs = keras.layers.Dense(classes, activation="softmax", name="classifier")(x)
    return keras.Model(inputs, outputs, name="transformer_encoder")


def _bert(*, layers: int, hidden: int, heads: int, sequence_length: int, classes: int, vocabulary: int) -> Any:
    tokens = keras.Input((sequence_length,), dtype="int32", name="token_ids")
    x = keras.layers.Embedding(vocabulary, hidden, name="token_embedding")(tokens)
    x = PositionEmbedding(name="position_embedding")(x)
    x = keras.layers.LayerNormalization(epsilon=NORM_EPSILON, name="embedding_norm")(x)
    for i in range(layers):
        x = EncoderBlock(hidden, heads, name=f"encoder_{i}")(x)
    first = x[:, 0, :]
    pooled = keras.layers.Dense(hidden, activation="tanh", name="pooler")(first)
    outputs = keras.layers.Dense(classes, activation="softmax", name="classifier")(pooled)
    return keras.Model(tokens, outputs, name="bert_base")


# Sizes of bert-base: google-research/bert README, BERT-Base (12 layers, 768 hidden, 12 heads, 30,522 word pieces).
_READY: Mapping[str, tuple[Callable[..., Any], Mapping[str, int]]] = {
    "mlp": (_mlp, {"layers": 2, "hidden": 128, "input_size": 64, "classes": 10}),
    "cnn": (_cnn, {"layers": 2, "hidden": 32, "image_size": 32, "channels": 3, "classes": 10}),
    "resnet50": (_resnet50, {"image_size": 224, "classes": 1000}),
    "bert-base": (
        _bert,
        {"layers": 12, "hidden": 768, "heads": 12, "sequence_length": 128, "classes": 2, "vocabulary": 30522},
    ),
    "transformer-encoder": (
        _transformer_encoder,
        {"layers": 6, "hidden": 512, "heads": 8, "sequence_length": 128, "classes": 10},
    ),
}

READY_NAMES: tuple[str, ...] = tuple(_READY)
_LOSS = (
    "sparse_categorical_crossentropy",
    "loss: sparse categorical cross-entropy, the ready model's own, because none was given",
)


def ready(name: str, **size: int) -> ReadyModel:
    """A ready model, in the given sizes (`layers`, `hidden`, `heads`, `sequence_length`, `image_size`, `classes`…).

    Errors: `InputError` for an unknown name or size, or one that is no positive whole number.
    """
    if name not in _READY:
        raise InputError(f"there is no ready model {name!r}", expected="one of: " + ", ".join(READY_NAMES))
    build, defaults = _READY[name]
    for key, value in size.items():
        if key not in defaults:
            raise InputError(f"{name} has no size {key!r}", expected="any of: " + ", ".join(defaults))
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name}: {key} is {value!r}", expected="a whole number of at least 1")
    chosen = {**defaults, **size}
    if "heads" in chosen and chosen["hidden"] % chosen["heads"]:
        raise InputError(
            f"{name}: hidden={chosen['hidden']} does not divide by heads={chosen['heads']}",
            expected="hidden a multiple of heads",
        )
    return ReadyModel(
        name=name, size=tuple(chosen.items()), builder=functools.partial(build, **chosen), loss=_LOSS
    )  # fmt: skip
