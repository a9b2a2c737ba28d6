"""Sizes that `tf.shape` gives while a program is made shape what follows: in functions, layers and losses."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from workbench import ipu, tf

CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def flat(x: Any) -> Any:
    """[a, b, c] becomes [a, b * c]."""
    return tf.reshape(x, [tf.shape(x)[0], -1])


def joined(x: Any) -> Any:
    """[a, b, c] becomes [a * b, c], its shape made of sizes by operations."""
    sizes = tf.shape(x)
    return tf.reshape(x, tf.concat([[sizes[0] * sizes[1]], sizes[2:]], 0))


def zeros(x: Any) -> Any:
    """As many zeros as there are rows, beside the first column."""
    return tf.concat([x[:, 0, :1], tf.zeros([tf.shape(x)[0], 1])], 1)


WANTED = [
    (flat, CUBE.reshape(2, 12)),
    (joined, CUBE.reshape(6, 4)),
    (zeros, np.stack([CUBE[:, 0, 0], np.zeros(2, "float32")], 1)),
]


@pytest.mark.parametrize(("function", "wanted"), WANTED)
def test_in_a_function(function: Any, wanted: Any) -> None:
    made = tf.function(function)(tf.constant(CUBE))
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize(("function", "wanted"), WANTED)
def test_in_a_layer(function: Any, wanted: Any) -> None:
    given = keras.Input((3, 4), batch_size=2)
    model = keras.Model(given, keras.layers.Lambda(function)(given))
    np.testing.assert_array_equal(model.predict(CUBE, batch_size=2, verbose=0), wanted)


def test_in_a_layer_for_batches_of_any_size() -> None:
    given = keras.Input((3, 4))
    model = keras.Model(given, keras.layers.Lambda(flat)(given))
    assert model.output_shape == (None, 12)
    np.testing.assert_array_equal(model.predict(CUBE, verbose=0), CUBE.reshape(2, 12))


def test_in_a_loss_that_an_ipu_trains_by() -> None:
    def loss(wanted: Any, made: Any) -> Any:
        return tf.reduce_mean(tf.abs(flat(wanted) - flat(made)))

    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()
    with ipu.ipu_strategy.IPUStrategy().scope():
        model = keras.Sequential([keras.Input((3, 4)), keras.layers.Dense(4, kernel_initializer="zeros")])
        model.compile("sgd", loss)
        history = model.fit(CUBE, CUBE, batch_size=2, verbose=0)
    assert history.history["loss"] == [pytest.approx(CUBE.mean())]  # the first weights are zero
