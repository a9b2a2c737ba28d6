"""Transformers in the ways users write them, and the ready models small: the same architecture, fewer and narrower."""

from __future__ import annotations

from typing import Any

import keras

import workbench as wb
from tests.models.zoo.case import Case

L = keras.layers
SCC = "sparse_categorical_crossentropy"
_TEXT = {"layers": 2, "hidden": 16, "heads": 2, "sequence_length": 6}
READY_SIZES: dict[str, dict[str, int]] = {
    "mlp": {"hidden": 16, "input_size": 8},
    "cnn": {"image_size": 8, "hidden": 4},
    "resnet50": {"image_size": 32, "classes": 10},
    "mobilenetv2": {"image_size": 32, "classes": 10},
    "efficientnetb0": {"image_size": 32, "classes": 10},
    "lstm": {"hidden": 8, "sequence_length": 5, "input_size": 4},
    "bert-base": {**_TEXT, "vocabulary": 30},
    "bert-large": {**_TEXT, "vocabulary": 30},
    "gpt2": {**_TEXT, "vocabulary": 30},
    "llama-block": {**_TEXT},
    "llama-decode": {"layers": 2, "hidden": 16, "heads": 2, "cache_length": 6, "batch": 2},
    "vit-b16": {"layers": 2, "hidden": 16, "heads": 2, "image_size": 8, "patch_size": 4, "classes": 4},
    "transformer-encoder": {**_TEXT},
}
# Without the three applications, which are as deep at any size and have cases of fewer blocks.
READY = {
    name: Case(build=lambda name=name: wb.ready(name, **READY_SIZES[name]).builder(), loss=SCC)
    for name in READY_SIZES
    if name not in ("resnet50", "mobilenetv2", "efficientnetb0")
}


def _encoder_block(x: Any, number: int) -> Any:
    y = L.MultiHeadAttention(2, 4, name=f"self_{number}")(x, x)
    x = L.LayerNormalization(name=f"norm_{number}")(L.Add()([x, y]))
    y = L.Dense(8, name=f"narrow_{number}")(L.Dense(16, "relu", name=f"wide_{number}")(x))
    return L.LayerNormalization(name=f"norm_out_{number}")(L.Add()([x, y]))


def translator() -> Any:
    """An encoder, and a decoder that attends to it and to its own past."""
    source = keras.Input((6,), dtype="int32", name="source")
    target = keras.Input((5,), dtype="int32", name="target")
    x = _encoder_block(L.Embedding(9, 8, name="read")(source), 0)
    y = L.Embedding(9, 8, name="write")(target)
    z = L.MultiHeadAttention(2, 4, name="causal")(y, y, use_causal_mask=True)
    y = L.LayerNormalization(name="causal_norm")(L.Add()([y, z]))
    z = L.MultiHeadAttention(2, 4, name="cross")(y, x)
    y = L.LayerNormalization(name="cross_norm")(L.Add()([y, z]))
    return keras.Model([source, target], L.Dense(9, "softmax", name="words")(y), name="translator")


def padded() -> Any:
    """An encoder of padded sentences: the mask of the embedding reaches attention, norm and pooling."""
    tokens = keras.Input((6,), dtype="int32")
    x = L.Embedding(9, 8, mask_zero=True, name="read")(tokens)
    x = _encoder_block(x, 0)
    return keras.Model(tokens, L.Dense(2, "softmax")(L.GlobalAveragePooling1D()(x)), name="padded")


def tagger() -> Any:
    tokens = keras.Input((6,), dtype="int32")
    x = L.Embedding(9, 8, name="read")(tokens)
    x = L.Bidirectional(L.LSTM(4, return_sequences=True), name="both")(x)
    x = L.Bidirectional(L.GRU(4, return_sequences=True), name="again")(x)
    return keras.Model(tokens, L.TimeDistributed(L.Dense(3, "softmax"))(x), name="tagger")


WRITTEN = {
    "translator": Case(build=translator, loss=SCC),
    "padded": Case(build=padded, loss=SCC),
    "tagger": Case(build=tagger, loss=SCC),
}
TABLES = ("READY", "WRITTEN")
