"""Operations of `tf` between the layers of a functional Keras model: they are operations of that model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb
from workbench import ipu, tf
from workbench.errors import InputError, OperandError

ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)


def joined(batch_size: int | None = 4) -> Any:
    """[a, b] becomes [a, b, -a, -b], then its positive part, as two halves of which the second is twice the whole."""
    given = keras.Input((2,), batch_size=batch_size)
    whole = tf.nn.relu(tf.concat([given, tf.negative(given)], axis=-1, name="both"))
    first, second = tf.split(tf.cast(whole, tf.float32), [1, 3], axis=1)
    return keras.Model(given, tf.concat([first, second * 2.0], -1))


def test_a_functional_model_computes_by_operations_of_tf() -> None:
    made = joined().predict(ROWS - 3, batch_size=4, verbose=0)
    rows = ROWS - 3  # the first rows are negative
    whole = np.maximum(np.concatenate([rows, -rows], -1), 0)
    np.testing.assert_array_equal(made, whole * [1, 2, 2, 2])


def test_operations_have_names_of_their_own() -> None:
    names = [each.name for each in joined().operations]
    assert len(set(names)) == len(names)
    assert any(each.startswith("both") for each in names)


def test_a_model_with_them_is_saved_and_cloned(tmp_path: Path) -> None:
    model = joined()
    model.save(tmp_path / "model.keras")
    for other in (keras.models.load_model(tmp_path / "model.keras"), keras.models.clone_model(model)):
        np.testing.assert_array_equal(
            other.predict(ROWS, batch_size=4, verbose=0), model.predict(ROWS, batch_size=4, verbose=0)
        )


def test_a_model_with_them_has_a_profile() -> None:
    given = keras.Input((2,))
    model = keras.Model(given, keras.layers.Dense(2)(joined(None)(given)))
    profile = wb.profile(model, batch_size=4, mode="training", config=ipu.config.IPUConfig())
    assert profile.fits
    assert profile.unmodelled.empty


def test_they_are_in_the_stage_they_are_made_in() -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    config.configure_ipu_system()
    with ipu.ipu_strategy.IPUStrategy().scope():
        given = keras.Input((2,), batch_size=4)
        with ipu.keras.PipelineStage(0):
            hidden = tf.square(keras.layers.Dense(2, kernel_initializer="ones", name="hidden")(given))
        with ipu.keras.PipelineStage(1):
            out = keras.layers.Dense(1, kernel_initializer="ones", name="out")(tf.reduce_sum(hidden, 1, keepdims=True))
        model = keras.Model(given, out)
        stages = [each.pipeline_stage for each in model.get_pipeline_stage_assignment()]
        assert stages == [0, 0, 1, 1]  # Dense, square, sum, Dense
        model.set_pipelining_options(gradient_accumulation_steps_per_replica=2)
        model.compile("sgd", "mse", steps_per_execution=4)
        made = model.predict(np.tile(ROWS, (4, 1)), batch_size=4)
    np.testing.assert_allclose(made[:4, 0], 2 * ROWS.sum(1) ** 2)  # both units are the sum of the row


def test_sizes_are_known_at_once_or_refused() -> None:
    given = keras.Input((3, 2), batch_size=4)
    rows = tf.reshape(given, [tf.shape(given)[0], -1])
    assert rows.shape == (4, 6)
    with pytest.raises(InputError, match=r"shape \(None, 3\), whose sizes are not all known.*batch_size"):
        tf.shape(keras.Input((3,)))


def test_after_a_product_that_keras_calls_sparse() -> None:
    given = keras.Input((3,), batch_size=4)
    assert tf.einsum("bi,bj->bij", given * tf.constant(2.0), given).shape == (4, 3, 3)


def test_operators_take_a_constant_on_either_side() -> None:
    given = keras.Input((2,), batch_size=4)
    two, row = tf.constant(2.0), tf.constant([[1.0, 3.0]])
    sums = (row - two * given) / two + tf.constant(0.5) // row  # [0.5, 1.5] - x + [0, 0]
    powers = two**given % tf.constant(7.0) + 9.0 % (two + given)  # powers of 2, and rests of 9
    product = tf.constant(np.ones((3, 4), np.float32)) @ given @ tf.constant(np.ones((2, 1), np.float32))
    told = tf.cast(tf.constant(3.0) >= given, tf.float32) + tf.cast(row != given, tf.float32)
    made = keras.layers.Rescaling(1.0)(np.ones(2, np.float32) * given)
    model = keras.Model(given, [sums, powers, product, told, made])
    made = wb.compile(model).run(ROWS)
    expected = [
        np.array([0.5, 1.5]) - ROWS,
        np.array([[1, 2], [4, 1], [2, 4], [1, 2]]) + np.array([[1, 0], [1, 4], [3, 2], [1, 0]]),
        np.full((3, 1), ROWS.sum()),
        np.array([[2, 2], [2, 1], [1, 1], [1, 1]]),
        ROWS,
    ]
    for found, wanted in zip(made, expected, strict=True):
        np.testing.assert_allclose(found, wanted)


def test_a_model_of_operations_alone_is_a_model(tmp_path: Path) -> None:
    given = keras.Input((2,), batch_size=4)
    model = keras.Model(given, tf.constant(2.0) * given + 1.0)
    np.testing.assert_array_equal(wb.compile(model).run(ROWS), 2 * ROWS + 1)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(ROWS, batch_size=4, verbose=0), 2 * ROWS + 1)
    with pytest.raises(InputError, match="is empty"):
        wb.compile(keras.Model(given, given))


def test_what_does_not_fit_is_told_as_elsewhere() -> None:
    with pytest.raises(OperandError, match=r"tf.concat\(values=.*shapes"):
        tf.concat([keras.Input((3, 2)), keras.Input((4, 2))], axis=-1)
    with pytest.raises(InputError, match=r"would neither have nor train it.*self.add_weight"):
        tf.add(keras.Input((3,)), tf.Variable(1.0))
