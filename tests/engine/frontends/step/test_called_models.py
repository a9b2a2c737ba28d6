"""Models that were only called, or that an example builds: their batch is free, their inputs may be nested."""

from __future__ import annotations

from typing import Any

import jax
import keras
import numpy as np
import pytest

import workbench as wb
from workbench.errors import InputError


class Named(keras.Model):
    """Two inputs by name."""

    def __init__(self) -> None:
        super().__init__(name="named")
        self.left = keras.layers.Dense(3, kernel_initializer="ones", name="left")
        self.right = keras.layers.Dense(3, kernel_initializer="ones", name="right")

    def call(self, inputs: Any) -> Any:
        """The sum of both."""
        return self.left(inputs["a"]) + 10 * self.right(inputs["b"])


class Pair(keras.Model):
    """Called with two arguments, which `fit` could not do."""

    def __init__(self) -> None:
        super().__init__(name="pair")
        self.left = keras.layers.Dense(3)

    def call(self, a: Any, b: Any) -> Any:
        """The sum of both."""
        return self.left(a) + b


def named(batch: int) -> dict[str, Any]:
    return {"a": np.ones((batch, 4), "float32"), "b": np.ones((batch, 5), "float32")}


def test_a_model_that_was_called_takes_another_batch_and_inputs_by_name() -> None:
    model = Named()
    model(named(2))
    executable = wb.compile(model, batch_size=6)
    # Ones times ones: 4 from `a` and 10 x 5 from `b`.
    np.testing.assert_array_equal(executable.run(named(6)), np.full((6, 3), 4 + 10 * 5))


def test_an_example_builds_a_model_as_fit_would() -> None:
    model = Named()
    model.compile("sgd", "mean_squared_error")
    executable = wb.compile(model, named(6), np.zeros((6, 3), "float32"))
    assert [tuple(v.shape) for v in model.trainable_variables] == [(4, 3), (3,), (5, 3), (3,)]
    assert float(executable.run(named(6), np.zeros((6, 3), "float32"))["loss"]) == (4 + 10 * 5) ** 2


def test_a_sequential_model_that_was_called_takes_another_batch() -> None:
    model = keras.Sequential([keras.layers.Dense(3, kernel_initializer="ones")])
    model(np.ones((2, 4), "float32"))
    assert wb.compile(model, batch_size=6).run(np.ones((6, 4), "float32")).shape == (6, 3)
    assert wb.compile(model, np.ones((5, 4), "float32")).run(np.ones((5, 4), "float32")).shape == (5, 3)


def test_states_of_samples_keep_the_batch() -> None:
    model = keras.Sequential([keras.Input(batch_shape=(2, 3, 4)), keras.layers.LSTM(3, stateful=True)])
    with pytest.raises(InputError, match="x was built for a batch of 2 and batch_size is 7"):
        wb.compile(model, batch_size=7)


def test_a_call_of_two_arguments_is_refused() -> None:
    model, x = Pair(), np.ones((2, 3), "float32")
    model(x, x)
    with pytest.raises(
        InputError, match=r"^the call of the model 'pair' needs 2 arguments: a, b\. Expected: one argument"
    ):
        wb.compile(model, batch_size=2)


def test_outputs_whose_sizes_keras_leaves_open_are_those_of_the_call() -> None:
    x = keras.Input((3, 4))
    open_ended = keras.layers.EinsumDense("abc,cd->abd", (None, 2), kernel_initializer="ones")(x)
    model = keras.Model(x, open_ended)
    assert tuple(model.output.shape) == (None, None, 2)
    model.compile("sgd", "mean_squared_error")
    executable = wb.compile(model, batch_size=5)
    # Four ones, four times one, against zeros of the shape (5, 3, 2) that the call gives.
    assert float(executable.run(np.ones((5, 3, 4), "float32"), np.zeros((5, 3, 2), "float32"))["loss"]) == 4**2


def test_one_that_knows_no_shape_is_told_to_be_given_an_example() -> None:
    """The cure named an argument, `inputs=`, that `wb.compile` does not have."""
    model = keras.Sequential([keras.layers.Dense(3, kernel_initializer="ones")])
    wrapped = Named()
    wrapped.left, wrapped.built = model, True  # as models of several networks say, which are never called whole
    model.build((None, 4))
    wrapped.right.build((None, 5))
    with pytest.raises(InputError, match=r"give an example of its input: wb\.compile\(model, jax\.ShapeDtypeStruct\("):
        wb.compile(wrapped, batch_size=6)
    given = {name: jax.ShapeDtypeStruct(each.shape, "float32") for name, each in named(6).items()}
    np.testing.assert_array_equal(wb.compile(wrapped, given).run(named(6)), np.full((6, 3), 4 + 10 * 5))
