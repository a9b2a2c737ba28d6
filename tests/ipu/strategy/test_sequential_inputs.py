"""A Sequential model without a `keras.Input` takes its first data as they are where its first layer does."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from workbench import ipu

IDS = np.array([[0, 2], [1, 1], [2, 0], [0, 1]])


@pytest.fixture
def one_ipu(fresh_system: None) -> Any:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.ipu_model.tiles_per_ipu = 16
    config.configure_ipu_system()
    return ipu.ipu_strategy.IPUStrategy()


def compiled(first: Any, *layers: Any) -> Any:
    model = keras.Sequential([first, *layers])
    model.compile("sgd", "mse", steps_per_execution=2)
    return model


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_whole_numbers_reach_an_embedding(one_ipu: Any, dtype: str) -> None:
    with one_ipu.scope():
        model = compiled(ipu.keras.layers.Embedding(3, 2), keras.layers.Flatten())
        table = np.array([[1, 2], [3, 4], [5, 6]], "float32")
        model.fit(IDS.astype(dtype), np.zeros((4, 4), "float32"), batch_size=2, verbose=0)
        model.layers[0].set_weights([table])
        made = model.predict(IDS.astype(dtype), batch_size=2, verbose=0)
    np.testing.assert_array_equal(made, table[IDS].reshape(4, 4))


def test_half_precision_keeps_numbers_that_a_half_has_not(one_ipu: Any) -> None:
    with one_ipu.scope():
        first = keras.layers.Embedding(4000, 1, embeddings_initializer="zeros", dtype="float16")
        model = compiled(first, keras.layers.Flatten())
        ids = np.array([[2049], [2048]], "int32")  # the half nearest to 2049 is 2048
        model.predict(ids, batch_size=1, verbose=0)
        first.set_weights([np.eye(4000, 1, -2049, dtype="float16")])  # a one in row 2049
        made = model.predict(ids, batch_size=1, verbose=0)
    assert made.tolist() == [[1], [0]]


def test_a_layer_that_computes_with_floats_is_given_floats(one_ipu: Any) -> None:
    with one_ipu.scope():
        model = compiled(keras.layers.Dense(1, kernel_initializer="ones"))
        made = model.predict(IDS, batch_size=2, verbose=0)
        assert model.inputs[0].dtype == "float32"
    assert made.tolist() == [[2], [2], [2], [1]]
