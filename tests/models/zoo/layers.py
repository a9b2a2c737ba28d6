"""Every layer of Keras that computes with tensors, in a model of its own, trained where it has something to train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from tests.models.zoo.case import Case

L = keras.layers
VECTOR, SEQUENCE, IMAGE, VOLUME = (12,), (6, 4), (8, 8, 4), (4, 4, 4, 4)


def after(make: Callable[[], Any], shape: tuple[int, ...], **options: Any) -> Case:
    """A layer behind one with weights of its shape, so that gradients flow through it."""

    def build() -> Any:
        inputs = keras.Input(shape)
        x = L.Dense(shape[-1], name="before")(inputs)
        return keras.Model(inputs, make()(x), name="model")

    return Case(build=build, **options)


def merging(make: Callable[[], Any], *shapes: tuple[int, ...]) -> Case:
    """A layer of several inputs."""

    def build() -> Any:
        inputs = [keras.Input(shape) for shape in shapes]
        before = [L.Dense(x.shape[-1], name=f"before_{number}")(x) for number, x in enumerate(inputs)]
        return keras.Model(inputs, make()(before), name="model")

    return Case(build=build)


def tokens(make: Callable[[], Any], *behind: Callable[[], Any]) -> Case:
    """A layer of whole numbers."""

    def build() -> Any:
        inputs = keras.Input((6,), dtype="int32")
        x = make()(inputs)
        for each in behind:
            x = each()(x)
        return keras.Model(inputs, x, name="model")

    return Case(build=build)


def made(name: str, *arguments: Any) -> Callable[[], Any]:
    """What makes the layer of this name."""
    return lambda: getattr(L, name)(*arguments)


def fixed(make: Callable[[], Any], shape: tuple[int, ...], **options: Any) -> Case:
    """A layer without anything to train."""
    return Case(build=lambda: keras.Sequential([keras.Input(shape), make()], name="model"), trains=False, **options)


def _self_attention(layer: Any, count: int = 2) -> Case:
    def build() -> Any:
        inputs = keras.Input(SEQUENCE)
        x = L.Dense(4, name="before")(inputs)
        return keras.Model(inputs, layer()(*[x] * count) if count > 1 else layer()([x, x]), name="model")

    return Case(build=build)


CORE = {
    "Activation": after(lambda: L.Activation("silu"), VECTOR),
    "ActivityRegularization": after(lambda: L.ActivityRegularization(0.1, 0.1), VECTOR),
    "Dense": after(lambda: L.Dense(5, "tanh", kernel_regularizer="l1l2", kernel_constraint="max_norm"), VECTOR),
    "Dense with low rank": after(lambda: L.Dense(5, lora_rank=2), VECTOR),
    "EinsumDense": after(lambda: L.EinsumDense("abc,cde->abde", (6, 2, 3), bias_axes="de"), SEQUENCE),
    "Embedding": tokens(lambda: L.Embedding(9, 4)),
    "Embedding with mask": tokens(lambda: L.Embedding(9, 4, mask_zero=True), lambda: L.LSTM(3)),
    "ReversibleEmbedding": tokens(lambda: L.ReversibleEmbedding(9, 4)),
    "Identity": after(L.Identity, VECTOR),
    "Lambda": after(lambda: L.Lambda(lambda x: keras.ops.sin(x) * 2), VECTOR),
    "Masking": after(lambda: L.Masking(0.0), SEQUENCE),
    "TimeDistributed": after(lambda: L.TimeDistributed(L.Dense(3)), SEQUENCE),
    "SpectralNormalization": after(lambda: L.SpectralNormalization(L.Dense(3)), VECTOR),
}
ACTIVATIONS = {name: after(made(name), VECTOR) for name in ("ELU", "LeakyReLU", "PReLU", "ReLU", "Softmax")} | {
    f"Activation {name}": after(lambda name=name: L.Activation(name), VECTOR)
    for name in (
        "relu",
        "relu6",
        "sigmoid",
        "softmax",
        "softplus",
        "softsign",
        "tanh",
        "selu",
        "gelu",
        "elu",
        "exponential",
        "leaky_relu",
        "hard_sigmoid",
        "hard_silu",
        "hard_tanh",
        "mish",
        "log_softmax",
        "celu",
        "log_sigmoid",
        "squareplus",
        "sparse_plus",
        "soft_shrink",
        "hard_shrink",
        "tanh_shrink",
        "sparsemax",
    )
}
CONVOLUTIONS = {
    "Conv1D": after(lambda: L.Conv1D(3, 3, padding="causal", dilation_rate=2), SEQUENCE),
    "Conv2D": after(lambda: L.Conv2D(6, 3, strides=2, padding="same"), IMAGE),
    "Conv2D dilated": after(lambda: L.Conv2D(6, 3, dilation_rate=2), IMAGE),
    "Conv2D grouped": after(lambda: L.Conv2D(6, 3, groups=2), IMAGE),
    "Conv2D channels first": after(lambda: L.Conv2D(6, 3, data_format="channels_first"), IMAGE),
    "Conv3D": after(lambda: L.Conv3D(3, 3, padding="same"), VOLUME),
    "Conv1DTranspose": after(lambda: L.Conv1DTranspose(3, 3, strides=2), SEQUENCE),
    "Conv2DTranspose": after(lambda: L.Conv2DTranspose(3, 3, strides=2, padding="same"), IMAGE),
    "Conv3DTranspose": after(lambda: L.Conv3DTranspose(2, 3, strides=2), VOLUME),
    "DepthwiseConv1D": after(lambda: L.DepthwiseConv1D(3, depth_multiplier=2), SEQUENCE),
    "DepthwiseConv2D": after(lambda: L.DepthwiseConv2D(3, strides=2, padding="same"), IMAGE),
    "DepthwiseConv2D dilated": after(lambda: L.DepthwiseConv2D(3, dilation_rate=2), IMAGE),
    "SeparableConv1D": after(lambda: L.SeparableConv1D(5, 3), SEQUENCE),
    "SeparableConv2D": after(lambda: L.SeparableConv2D(5, 3, depth_multiplier=2), IMAGE),
}
_BY_RANK = ((1, SEQUENCE), (2, IMAGE), (3, VOLUME))
POOLING = (
    {
        f"{kind}Pooling{rank}D": after(made(f"{kind}Pooling{rank}D", 2), shape)
        for kind in ("Average", "Max", "AdaptiveAverage", "AdaptiveMax")
        for rank, shape in _BY_RANK
    }
    | {
        f"Global{kind}Pooling{rank}D": after(made(f"Global{kind}Pooling{rank}D"), shape)
        for kind in ("Average", "Max")
        for rank, shape in _BY_RANK
    }
    | {
        "AveragePooling2D overlapping": after(lambda: L.AveragePooling2D(3, 2, padding="same"), IMAGE),
        "MaxPooling2D overlapping": after(lambda: L.MaxPooling2D(3, 2, padding="same"), IMAGE),
    }
)
NORMS = {
    "BatchNormalization": after(L.BatchNormalization, IMAGE),
    "BatchNormalization of vectors": after(L.BatchNormalization, VECTOR),
    "GroupNormalization": after(lambda: L.GroupNormalization(2), IMAGE),
    "LayerNormalization": after(L.LayerNormalization, SEQUENCE),
    "LayerNormalization of images": after(lambda: L.LayerNormalization(axis=(1, 2, 3)), IMAGE),
    "RMSNormalization": after(L.RMSNormalization, SEQUENCE),
    "UnitNormalization": after(L.UnitNormalization, SEQUENCE),
    "Normalization": after(lambda: L.Normalization(mean=1.0, variance=2.0), SEQUENCE),
}
REGULARISATION = {
    "Dropout": after(lambda: L.Dropout(0.3), VECTOR),
    "AlphaDropout": after(lambda: L.AlphaDropout(0.3), VECTOR),
    "GaussianDropout": after(lambda: L.GaussianDropout(0.3), VECTOR),
    "GaussianNoise": after(lambda: L.GaussianNoise(0.3), VECTOR),
} | {f"SpatialDropout{rank}D": after(made(f"SpatialDropout{rank}D", 0.3), shape) for rank, shape in _BY_RANK}
ATTENTION = {
    "Attention": _self_attention(lambda: L.Attention(use_scale=True), 1),
    "AdditiveAttention": _self_attention(L.AdditiveAttention, 1),
    "MultiHeadAttention": _self_attention(lambda: L.MultiHeadAttention(2, 3)),
    "MultiHeadAttention causal": _self_attention(
        lambda: lambda x, y: L.MultiHeadAttention(2, 3, dropout=0.1)(x, y, use_causal_mask=True)
    ),
    "GroupQueryAttention": _self_attention(lambda: L.GroupQueryAttention(3, 4, 2)),
}
MERGING = {
    name: merging(made(name), VECTOR, VECTOR)
    for name in ("Add", "Average", "Concatenate", "Maximum", "Minimum", "Multiply", "Subtract")
} | {"Dot": merging(lambda: L.Dot(axes=2, normalize=True), SEQUENCE, SEQUENCE)}
RESHAPING = (
    {
        "Flatten": after(L.Flatten, IMAGE),
        "Permute": after(lambda: L.Permute((2, 1)), SEQUENCE),
        "RepeatVector": after(lambda: L.RepeatVector(3), VECTOR),
        "Reshape": after(lambda: L.Reshape((3, -1)), VECTOR),
    }
    | {
        f"{kind}{rank}D": after(made(f"{kind}{rank}D"), shape)
        for kind in ("Cropping", "UpSampling", "ZeroPadding")
        for rank, shape in _BY_RANK
    }
    | {
        f"UpSampling2D {name}": after(lambda name=name: L.UpSampling2D(2, interpolation=name), IMAGE)
        for name in ("bilinear", "bicubic", "lanczos3", "lanczos5")
    }
)
RECURRENT = {
    "LSTM": after(lambda: L.LSTM(3), SEQUENCE),
    "LSTM of sequences": after(lambda: L.LSTM(3, return_sequences=True, dropout=0.2, recurrent_dropout=0.2), SEQUENCE),
    "LSTM backwards": after(lambda: L.LSTM(3, go_backwards=True, unroll=True), SEQUENCE),
    "GRU": after(lambda: L.GRU(3, return_sequences=True), SEQUENCE),
    "GRU resetting before": after(lambda: L.GRU(3, reset_after=False), SEQUENCE),
    "SimpleRNN": after(lambda: L.SimpleRNN(3), SEQUENCE),
    "RNN": after(lambda: L.RNN(L.StackedRNNCells([L.LSTMCell(3), L.GRUCell(2)])), SEQUENCE),
    "RNN of simple cells": after(lambda: L.RNN(L.SimpleRNNCell(3)), SEQUENCE),
    "Bidirectional": after(lambda: L.Bidirectional(L.LSTM(3, return_sequences=True)), SEQUENCE),
    "Bidirectional GRU": after(lambda: L.Bidirectional(L.GRU(3), merge_mode="sum"), SEQUENCE),
    "ConvLSTM1D": after(lambda: L.ConvLSTM1D(2, 3), (4, 6, 3)),
    "ConvLSTM2D": after(lambda: L.ConvLSTM2D(2, 3), (3, 6, 6, 2)),
    "ConvLSTM3D": after(lambda: L.ConvLSTM3D(2, 3), (2, 4, 4, 4, 2)),
}
PREPROCESSING = {
    "CategoryEncoding": Case(
        build=lambda: keras.Sequential([keras.Input((3,), dtype="int32"), L.CategoryEncoding(6, "multi_hot")]),
        trains=False,
    ),
    "Discretization": fixed(lambda: L.Discretization([0.2, 0.5, 0.8]), VECTOR),
    "Rescaling": fixed(lambda: L.Rescaling(1 / 255, 0.5), IMAGE),
    "Resizing": fixed(lambda: L.Resizing(5, 6), IMAGE),
    "CenterCrop": fixed(lambda: L.CenterCrop(5, 6), IMAGE),
    "STFTSpectrogram": Case(
        build=lambda: keras.Sequential(
            [keras.Input((64, 1)), L.STFTSpectrogram(mode="log", frame_length=16, frame_step=8, fft_length=16)]
        ),
        trains=False,
        atol=1e-4,
    ),
}

TABLES = (
    "CORE",
    "ACTIVATIONS",
    "CONVOLUTIONS",
    "POOLING",
    "NORMS",
    "REGULARISATION",
    "ATTENTION",
    "MERGING",
    "RESHAPING",
    "RECURRENT",
    "PREPROCESSING",
)
ALL: dict[str, Case] = {name: case for table in TABLES for name, case in globals()[table].items()}
