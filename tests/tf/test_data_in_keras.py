"""A dataset given to Keras' own training loop, outside the scope of any strategy."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from workbench import tf

SAMPLES = np.arange(12, dtype=np.float32).reshape(6, 2)
TARGETS = np.array([0, 1, 1, 0, 1, 0], np.int32)


def model(loss: str = "mse") -> Any:
    """One weight matrix of ones, so that an output is the sum of a sample."""
    made = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
    made.compile(keras.optimizers.SGD(0.001), loss)
    return made


def dataset(batch: int = 2) -> Any:
    return tf.data.Dataset.from_tensor_slices((SAMPLES, TARGETS.astype(np.float32)[:, None])).batch(batch)


def test_a_dataset_trains_as_its_arrays_do() -> None:
    by_dataset, by_arrays = model(), model()
    whole = (SAMPLES, TARGETS.astype(np.float32)[:, None])
    told = by_dataset.fit(dataset(), epochs=2, validation_data=dataset(3), verbose=0).history
    wanted = by_arrays.fit(*whole, batch_size=2, shuffle=False, epochs=2, validation_data=whole, verbose=0).history
    assert told["loss"] == pytest.approx(wanted["loss"])
    assert told["val_loss"] == pytest.approx(wanted["val_loss"])
    assert by_dataset.evaluate(dataset(), verbose=0) == pytest.approx(by_arrays.evaluate(*whole, verbose=0))


def test_a_dataset_is_predicted_of_and_may_end_with_a_smaller_batch() -> None:
    rows = tf.data.Dataset.from_tensor_slices(SAMPLES).batch(4)
    np.testing.assert_allclose(model().predict(rows, verbose=0)[:, 0], SAMPLES.sum(1))


def test_a_dataset_without_end_gives_as_many_batches_as_are_asked_for() -> None:
    found = model().predict(tf.data.Dataset.from_tensor_slices(SAMPLES).repeat().batch(4), steps=3, verbose=0)
    np.testing.assert_allclose(found[:, 0], np.tile(SAMPLES.sum(1), 2))


def test_class_weight_acts() -> None:
    weighted = model().fit(dataset(6), class_weight={0: 0.0, 1: 2.0}, verbose=0).history["loss"][0]
    squares = np.square(SAMPLES.sum(1) - TARGETS)
    assert weighted == pytest.approx(2 * squares[TARGETS == 1].sum() / 6)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"y": TARGETS}, "y was given beside a dataset. To mend it: put y into the dataset's elements"),
        ({"sample_weight": TARGETS}, "sample_weight was given beside a dataset"),
        (
            {"batch_size": 2},
            r"batch_size=2 was given beside a dataset, whose elements are batches.*leave batch_size out",
        ),
    ],
)
def test_what_a_dataset_has_itself_is_refused_beside_it(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        model().fit(dataset(), verbose=0, **arguments)


def test_a_dataset_without_end_needs_a_number_of_steps() -> None:
    with pytest.raises(ValueError, match=r"the dataset has no end.*give steps_per_epoch to fit"):
        model().fit(dataset().repeat(), verbose=0)


def test_a_dataset_is_no_batch() -> None:
    with pytest.raises(ValueError, match=r"a dataset stands where an array is expected.*next\(iter\(dataset\)\)"):
        model().train_on_batch(dataset())
