"""Keras models on one IPU: training and inference, types, machines and options."""

from __future__ import annotations

from typing import Any

import keras

import workbench as wb
from tests.corpus.registry import ipu2, program, slow
from workbench import ipu

layers = keras.layers
CROSSENTROPY = "sparse_categorical_crossentropy"


def mlp() -> Any:
    dense = [layers.Dense(256, "relu", name="hidden_1"), layers.Dense(128, "gelu", name="hidden_2")]
    head = layers.Dense(10, "softmax", name="classifier")
    return keras.Sequential([keras.Input((64,)), *dense, layers.Dropout(0.1, seed=3, name="drop"), head], name="digits")


def cnn() -> Any:
    """Convolutions, batch norm, pooling, a skip, strides and dropout."""
    inputs = keras.Input((16, 16, 3))
    x = layers.Conv2D(16, 3, padding="same", use_bias=False, name="conv_a")(inputs)
    x = layers.BatchNormalization(name="norm_a")(x)
    x = layers.MaxPooling2D(2, name="pool")(layers.ReLU(name="relu_a")(x))
    b = layers.Conv2D(16, 3, padding="same", name="conv_b")(x)
    x = layers.Add(name="skip")([layers.BatchNormalization(name="norm_b")(b), x])
    x = layers.DepthwiseConv2D(3, padding="same", name="depthwise")(x)
    x = layers.Conv2D(32, 1, strides=2, activation="relu", name="conv_c")(x)
    x = layers.AveragePooling2D(2, strides=1, name="average")(x)
    x = layers.GlobalAveragePooling2D(name="mean")(x)
    x = layers.Dropout(0.25, name="drop", seed=5)(x)
    return keras.Model(inputs, layers.Dense(5, activation="softmax", name="out")(x), name="cnn")


def recurrent(kind: str) -> Any:
    inputs = keras.Input((12, 24))
    x = getattr(layers, kind)(32, return_sequences=True, name="first")(inputs)
    x = getattr(layers, kind)(48, name="second")(x)
    return keras.Model(inputs, layers.Dense(4, "softmax", name="out")(x), name=kind.lower())


def sgd() -> Any:
    return keras.optimizers.SGD(0.05, momentum=0.9)


def training(source: Any, **arguments: Any) -> Any:
    return wb.profile(source, **{"mode": "training", "loss": CROSSENTROPY, **arguments})


def configured(**options: Any) -> Any:
    """A configuration with options by their full names, `__` for a dot."""
    config = ipu.config.IPUConfig()
    given = {name.replace("__", "."): value for name, value in options.items()}
    config.from_dict({**config.to_dict(), **given})
    return config


@program
def mlp_training() -> Any:
    return training(mlp, batch_size=32, optimizer=sgd())


@program
def mlp_inference_half() -> Any:
    return wb.profile(mlp, batch_size=16, mode="inference", precision="float16", target=ipu2(64))


@program
def mlp_accumulated() -> Any:
    """Gradients of several micro-batches, without a pipeline."""
    return training(mlp, batch_size=4, optimizer="adam", gradient_accumulation_steps=6, target=ipu2(48))


@program
def mlp_replicated() -> Any:
    return training(mlp, batch_size=8, optimizer="adam", replicas=4, target=ipu2(32))


@program
def cnn_training() -> Any:
    return training(cnn, batch_size=8, optimizer=keras.optimizers.Adam(1e-3), target=ipu2(128))


@program
def cnn_training_mixed() -> Any:
    """Halves for activations, floats for weights."""
    return training(cnn, batch_size=8, optimizer=sgd(), precision="mixed_float16", target=ipu2(96))


@program
def cnn_out_of_memory() -> Any:
    found = training(wb.ready("cnn", image_size=64, hidden=32), batch_size=16, optimizer="adam", target=ipu2(32))
    assert not found.fits
    return found


@program
def cnn_mended() -> Any:
    """The best of the fixes that a diagnosis measured: compiled from the trace of the first."""
    source = wb.ready("cnn", image_size=32, hidden=16)
    first = wb.compile(source, batch_size=32, mode="training", optimizer="sgd", target=ipu2(14))
    assert not first.profile.fits
    return wb.diagnose(first).apply(0).profile


@program
def cnn_what_if() -> Any:
    """A machine that there is not, with options of convolutions and pooling."""
    config = configured(
        convolutions__poplar_options={"partialsType": "half", "availableMemoryProportion": "0.1"},
        pooling__poplar_options={"optimizeForSpeed": "true", "poolUseIntrospectiveMapping": "false"},
        norms__use_stable_statistics=True,
    )
    machine = wb.target("bow").replace(tiles_per_ipu=52, workers_per_tile=6, exchange_bytes_per_cycle=8)
    return training(cnn, batch_size=4, optimizer=sgd(), target=machine, config=config)


@program
def lstm_training() -> Any:
    return training(lambda: recurrent("LSTM"), batch_size=4, optimizer="adam", target=ipu2(64))


@program
def gru_inference() -> Any:
    return wb.profile(lambda: recurrent("GRU"), batch_size=2, mode="inference", target="ipu1")


@program
def transformer_training() -> Any:
    source = wb.ready("transformer-encoder", layers=2, hidden=64, heads=4, sequence_length=32)
    return training(source, batch_size=4, optimizer=keras.optimizers.AdamW(1e-3), target=ipu2(256))


@program
def transformer_io_tiles() -> Any:
    """Host copies on tiles of their own, another order of operations, and nothing outlined."""
    source = wb.ready("transformer-encoder", layers=1, hidden=64, heads=4, sequence_length=16)
    config = configured(
        io_tiles__num_io_tiles=32,
        io_tiles__place_ops_on_io_tiles=True,
        optimizations__enable_graph_outlining=False,
        optimizations__combine_matmuls=True,
        optimizations__prefetch_data_streams=False,
        scheduling__algorithm=ipu.config.SchedulingAlgorithm.CLUSTERING,
    )
    return training(source, batch_size=2, optimizer="sgd", target=ipu2(128), config=config)


@program
def transformer_shortest_path() -> Any:
    source = wb.ready("transformer-encoder", layers=1, hidden=64, heads=2, sequence_length=16)
    config = configured(
        scheduling__algorithm=ipu.config.SchedulingAlgorithm.SHORTEST_PATH,
        optimizations__math__fast=True,
        matmuls__poplar_options={"availableMemoryProportion": "0.05", "enableFastReduce": "true"},
    )
    return training(source, batch_size=2, optimizer="rmsprop", target=ipu2(64), config=config)


@program
def llama_decoding() -> Any:
    return wb.profile(wb.ready("llama-decode", hidden=256, heads=4, cache_length=32), mode="inference", target="bow")


@slow
def resnet_training_small() -> Any:
    """ResNet-50's step on small images, few tiles."""
    return training(wb.ready("resnet50", image_size=32, classes=10), batch_size=2, optimizer=sgd(), target=ipu2(64))


@slow
def resnet_training() -> Any:
    return training("resnet50", batch_size=4, optimizer=sgd())


@slow
def resnet_inference() -> Any:
    return wb.profile("resnet50", batch_size=4, mode="inference", precision="float16", target="bow")


@slow
def mobilenet_training() -> Any:
    return training(wb.ready("mobilenetv2", image_size=96), batch_size=2, optimizer="rmsprop")


@slow
def vision_transformer_training() -> Any:
    source = wb.ready("vit-b16", layers=3, image_size=96)
    return training(source, batch_size=2, optimizer="adam", precision="mixed_float16")
