"""Builders of the ready models, of Keras layers, at any size."""

from __future__ import annotations

from typing import Any

import keras

from workbench.engine.frontends.ready.decoder import GPT2_EPSILON, LLAMA_EPSILON, DecoderBlock, LlamaBlock, TiedHead
from workbench.engine.frontends.ready.encoder import (
    NORM_EPSILON,
    VISION_EPSILON,
    EncoderBlock,
    PositionEmbedding,
    VisionBlock,
)
from workbench.errors import InputError

_SMALLEST_IMAGE = 32  # of the applications that halve an image five times


def mlp(*, layers: int, hidden: int, input_size: int, classes: int) -> Any:
    """Dense layers with ReLU."""
    blocks = [keras.layers.Dense(hidden, activation="relu", name=f"hidden_{i}") for i in range(layers)]
    head = keras.layers.Dense(classes, activation="softmax", name="classifier")
    return keras.Sequential([keras.Input((input_size,), name="features"), *blocks, head], name="mlp")


def cnn(*, layers: int, hidden: int, image_size: int, channels: int, classes: int) -> Any:
    """Convolutions with ReLU, each followed by max pooling, that double their channels."""
    if image_size >> layers < 1:
        raise InputError(
            f"cnn: layers={layers} halves an image of image_size={image_size} away",
            expected="image_size of at least 2 to the power of layers",
        )
    blocks: list[Any] = []
    for i in range(layers):
        blocks.append(keras.layers.Conv2D(hidden * 2**i, 3, padding="same", activation="relu", name=f"conv_{i}"))
        blocks.append(keras.layers.MaxPooling2D(2, name=f"pool_{i}"))
    head = [keras.layers.Flatten(name="flatten"), keras.layers.Dense(classes, activation="softmax", name="classifier")]
    images = keras.Input((image_size, image_size, channels), name="images")
    return keras.Sequential([images, *blocks, *head], name="cnn")


def application(name: str, *, image_size: int, classes: int) -> Any:
    """A model of `keras.applications`."""
    if image_size < _SMALLEST_IMAGE:
        raise InputError(
            f"{name}: image_size is {image_size}", expected=f"at least {_SMALLEST_IMAGE}, as Keras asks for"
        )
    build = getattr(keras.applications, name)
    return build(weights=None, input_shape=(image_size, image_size, 3), classes=classes)


def lstm(*, layers: int, hidden: int, sequence_length: int, input_size: int, classes: int) -> Any:
    """Stacked LSTMs, of which the last step is classified."""
    steps = keras.Input((sequence_length, input_size), name="steps")
    x = steps
    for i in range(layers):
        x = keras.layers.LSTM(hidden, return_sequences=i + 1 < layers, name=f"lstm_{i}")(x)
    outputs = keras.layers.Dense(classes, activation="softmax", name="classifier")(x)
    return keras.Model(steps, outputs, name="lstm")


def transformer_encoder(*, layers: int, hidden: int, heads: int, sequence_length: int, classes: int) -> Any:
    """Encoder blocks over embeddings, their mean classified."""
    inputs = keras.Input((sequence_length, hidden), name="embeddings")
    x = inputs
    for i in range(layers):
        x = EncoderBlock(hidden, heads, name=f"encoder_{i}")(x)
    x = keras.layers.GlobalAveragePooling1D(name="pooling")(x)
    outputs = keras.layers.Dense(classes, activation="softmax", name="classifier")(x)
    return keras.Model(inputs, outputs, name="transformer_encoder")


def bert(
    name: str, *, layers: int, hidden: int, heads: int, sequence_length: int, classes: int, vocabulary: int
) -> Any:
    """BERT: token and position embeddings, encoder blocks, the first position pooled and classified."""
    tokens = keras.Input((sequence_length,), dtype="int32", name="token_ids")
    x = keras.layers.Embedding(vocabulary, hidden, name="token_embedding")(tokens)
    x = PositionEmbedding(name="position_embedding")(x)
    x = keras.layers.LayerNormalization(epsilon=NORM_EPSILON, name="embedding_norm")(x)
    for i in range(layers):
        x = EncoderBlock(hidden, heads, name=f"encoder_{i}")(x)
    first = x[:, 0, :]
    pooled = keras.layers.Dense(hidden, activation="tanh", name="pooler")(first)
    outputs = keras.layers.Dense(classes, activation="softmax", name="classifier")(pooled)
    return keras.Model(tokens, outputs, name=name)


def gpt2(*, layers: int, hidden: int, heads: int, sequence_length: int, vocabulary: int) -> Any:
    """GPT-2: every token's successor by the table its embedding has."""
    tokens = keras.Input((sequence_length,), dtype="int32", name="token_ids")
    embedding = keras.layers.Embedding(vocabulary, hidden, name="token_embedding")
    x = PositionEmbedding(name="position_embedding")(embedding(tokens))
    for i in range(layers):
        x = DecoderBlock(hidden, heads, name=f"decoder_{i}")(x)
    x = keras.layers.LayerNormalization(epsilon=GPT2_EPSILON, name="final_norm")(x)
    logits = TiedHead(embedding, name="logits")(x)
    return keras.Model(tokens, keras.layers.Softmax(name="next_token")(logits), name="gpt2")


def llama_block(*, layers: int, hidden: int, heads: int, sequence_length: int, classes: int) -> Any:
    """Llama blocks over a whole sequence (prefill), every position classified."""
    inputs = keras.Input((sequence_length, hidden), name="embeddings")
    x = inputs
    for i in range(layers):
        x = LlamaBlock(hidden, heads, name=f"block_{i}")(x)
    return keras.Model(inputs, _llama_head(x, classes), name="llama_block")


def llama_decode(*, layers: int, hidden: int, heads: int, cache_length: int, batch: int, classes: int) -> Any:
    """Llama blocks for one more token, with keys and values of those before in their caches."""
    token = keras.Input((1, hidden), batch_size=batch, name="embedding")
    x = token
    for i in range(layers):
        x = LlamaBlock(hidden, heads, cache_length, name=f"block_{i}")(x)
    return keras.Model(token, _llama_head(x, classes), name="llama_decode")


def _llama_head(x: Any, classes: int) -> Any:
    x = keras.layers.RMSNormalization(epsilon=LLAMA_EPSILON, name="final_norm")(x)
    return keras.layers.Dense(classes, activation="softmax", use_bias=False, name="classifier")(x)


def vit(*, layers: int, hidden: int, heads: int, image_size: int, patch_size: int, classes: int) -> Any:
    """A vision transformer: patches embedded by a convolution, a class token, pre-norm encoder blocks."""
    if image_size % patch_size:
        raise InputError(
            f"vit-b16: image_size={image_size} does not divide by patch_size={patch_size}",
            expected="image_size a multiple of patch_size",
        )
    images = keras.Input((image_size, image_size, 3), name="images")
    x = keras.layers.Conv2D(hidden, patch_size, strides=patch_size, name="patch_embedding")(images)
    x = keras.layers.Reshape(((image_size // patch_size) ** 2, hidden), name="patches")(x)
    x = PositionEmbedding(class_token=True, name="position_embedding")(x)
    for i in range(layers):
        x = VisionBlock(hidden, heads, name=f"encoder_{i}")(x)
    x = keras.layers.LayerNormalization(epsilon=VISION_EPSILON, name="final_norm")(x)
    outputs = keras.layers.Dense(classes, activation="softmax", name="classifier")(x[:, 0, :])
    return keras.Model(images, outputs, name="vit")
