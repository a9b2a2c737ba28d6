"""A loss of the user's own is trained with the targets that it takes, as Keras trains with it."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench
from tests.engine.frontends.keras_models import furthest
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.step.losses import on_logits
from workbench.engine.run import Runner
from workbench.errors import InputError

BATCH, CLASSES, TOLERANCE = 8, 4, 1e-5


def by_keras(y: Any, p: Any) -> Any:
    return 2.0 * keras.losses.sparse_categorical_crossentropy(y, p)


def looked_up(y: Any, p: Any) -> Any:
    return -keras.ops.log(keras.ops.take_along_axis(p, keras.ops.cast(y, "int32")[..., None], axis=-1)[..., 0])


class Focal(keras.losses.Loss):
    """Class numbers, one hot."""

    def call(self, y: Any, p: Any) -> Any:
        truth = keras.ops.one_hot(keras.ops.cast(y, "int32"), CLASSES)
        likely = keras.ops.sum(truth * p, -1)
        return -((1 - likely) ** 2) * keras.ops.log(likely)


class Distance(keras.losses.Loss):
    """Arrays like the output."""

    def call(self, y: Any, p: Any) -> Any:
        return keras.ops.mean(keras.ops.abs(y - p), -1)


def model(*shape: int) -> Any:
    """A softmax over the last axis of its inputs."""
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((*shape, 3)), keras.layers.Dense(CLASSES, activation="softmax")])


def ending(activation: str | None) -> Any:
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(CLASSES, activation=activation, name="last")])


@pytest.mark.parametrize(
    ("loss", "activation", "said"),
    [
        ("sparse_categorical_crossentropy", None, "softmax"),
        (keras.losses.SparseCategoricalCrossentropy(), None, "softmax"),
        (keras.losses.categorical_crossentropy, None, "softmax"),
        ("binary_crossentropy", None, "sigmoid"),
        (keras.losses.BinaryCrossentropy(from_logits=True), None, ""),
        (keras.losses.SparseCategoricalCrossentropy(from_logits=True), None, ""),
        ("sparse_categorical_crossentropy", "softmax", ""),
        ("mse", None, ""),
        (by_keras, None, ""),
    ],
)
def test_a_loss_on_probabilities_of_logits_is_said(loss: Any, activation: str | None, said: str) -> None:
    found = on_logits(ending(activation), loss)
    assert len(found) == bool(said)
    if said:
        assert f"the output of 'last' has no {said}" in found[0]
        assert (
            found[0]
            in workbench.compile(ending(activation), batch_size=2, mode="training", loss=loss).graph.assumptions
        )


LOSSES = {
    "function of classes": (by_keras, True),
    "function with a lookup": (looked_up, True),
    "lambda": (lambda y, p: keras.losses.sparse_categorical_crossentropy(y, p) + 1.0, True),
    "class of classes": (Focal(), True),
    "class of arrays": (Distance(), False),
    "function of arrays": (lambda y, p: keras.ops.square(y - p), False),
}


@pytest.mark.parametrize("shape", [(), (5,)], ids=["samples", "pixels"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_of_the_users_own(name: str, shape: tuple[int, ...]) -> None:
    loss, classes = LOSSES[name]
    draw = np.random.default_rng(1)
    x = draw.random((BATCH, *shape, 3), dtype="float32")
    y = (
        draw.integers(0, CLASSES, (BATCH, *shape))
        if classes
        else draw.random((BATCH, *shape, CLASSES), dtype="float32")
    )
    ours, theirs = model(*shape), model(*shape)
    for each in (ours, theirs):
        each.compile(keras.optimizers.SGD(0.1), loss)
    source = trace_keras(ours, BATCH)
    assert source.specs[1].dtype == ("int32" if classes else "float32")
    runner = Runner(source)
    for _ in range(2):
        assert runner.run(x, y)["loss"] == pytest.approx(float(theirs.train_on_batch(x, y)), abs=TOLERANCE)
    assert furthest(ours, theirs) < TOLERANCE
    given = trace_keras(model(*shape), BATCH, "training", loss=loss)
    assert given.specs[1] == source.specs[1]


def test_classes_for_one_number_each() -> None:
    """A column of one is as good as none: Keras puts the ranks of a function's two sides right."""
    keras.utils.set_random_seed(3)
    ours, theirs = (keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)]) for _ in range(2))
    theirs.set_weights(ours.get_weights())
    x, y = np.random.default_rng(1).random((BATCH, 3), dtype="float32"), np.arange(BATCH) % 2
    loss = lambda y, p: keras.ops.square(y - p)  # noqa: E731
    theirs.compile("sgd", loss)
    runner = Runner(trace_keras(ours, BATCH, "training", loss=loss))
    assert runner.run(x, y)["loss"] == pytest.approx(float(theirs.train_on_batch(x, y)), abs=TOLERANCE)


def test_an_example_says_what_the_targets_are() -> None:
    """Of a loss that takes both, as of one that reads its target in a way of its own."""
    x, y = np.zeros((BATCH, 3), "float32"), np.arange(BATCH) % CLASSES
    loss = lambda y, p: keras.ops.square(keras.ops.reshape(y, (BATCH, -1)) - p)  # noqa: E731
    specs = [
        trace_keras(model(), BATCH, "training", loss=loss, inputs=inputs).specs[1]
        for inputs in ((), (x, y.astype("int32")))
    ]
    assert [spec.shape for spec in specs] == [(BATCH, CLASSES), (BATCH,)]


@settings(max_examples=20)
@given(
    output=st.lists(st.integers(1, 4), min_size=1, max_size=2),
    target=st.lists(st.integers(1, 4), max_size=3),
    loss=st.sampled_from(["mse", "categorical_crossentropy", "sparse_categorical_crossentropy"]),
)
def test_targets_that_keras_cannot_compare_are_refused_with_both_shapes(
    output: list[int], target: list[int], loss: str
) -> None:
    made = keras.Sequential([keras.Input((*output[:-1], 3)), keras.layers.Dense(output[-1], "softmax", name="last")])
    made.compile(optimizer="sgd", loss=loss)
    x, y = np.zeros((BATCH, *output[:-1], 3), "float32"), np.zeros((BATCH, *target), "float32")
    try:
        made.train_on_batch(x, y)
    except (ValueError, TypeError, AssertionError):
        shapes = rf"y has shape \({BATCH}.*which the loss cannot compare with the output .* of shape \({BATCH}, "
        with pytest.raises(InputError, match=shapes):
            workbench.compile(made, x, y)
        return
    assert workbench.compile(made, x, y).profile.fits


def test_targets_of_another_shape_are_compiled_for_by_an_example() -> None:
    """As a loss that aligns sequences takes: labels of any length, and without an example one for each step."""
    source = keras.Input((6, 4))
    aligned = keras.Model(source, keras.layers.Dense(5)(source))
    aligned.compile("sgd", keras.losses.CTC())
    x, y = np.ones((2, 6, 4), "float32"), np.array([[1, 2], [3, 1]], "int32")
    with pytest.raises(InputError) as error:
        Runner(trace_keras(aligned, batch_size=2)).run(x, y)
    assert str(error.value) == (
        "y has shape (2, 2). Expected: shape (2, 6), as compiled. To mend it: pass that shape, or compile with an "
        "example of what you have: wb.compile(model, x, y)."
    )
    assert Runner(trace_keras(aligned, inputs=(x, y))).run(x, y)["loss"] > 0


def test_the_size_of_targets_that_the_output_does_not_say_is_assumed_aloud() -> None:
    """CTC takes labels of any length: how many a sample has decides memory and cycles, and was chosen in silence."""
    model = keras.Sequential([keras.Input((10, 6)), keras.layers.Dense(5)])
    model.compile(optimizer="sgd", loss="ctc")
    (said,) = [each for each in trace_keras(model, 4).assumptions if each.startswith("targets: ")]
    assert said.startswith("targets: y is int32[4,10], as long as the output, because no example was given ")
    exemplified = trace_keras(model, inputs=(np.zeros((4, 10, 6), "float32"), np.zeros((4, 3), "int32")))
    assert [each for each in exemplified.assumptions if each.startswith("targets: ")] == []
    assert exemplified.specs[-1].shape == (4, 3)


@pytest.mark.parametrize("loss", ["mse", "categorical_crossentropy", "sparse_categorical_crossentropy", "dice"])
@pytest.mark.parametrize("shape", [(10, 6), (10, 1), (6,), (1,)])
def test_the_size_of_other_targets_is_that_of_the_output(loss: str, shape: tuple[int, ...]) -> None:
    model = keras.Sequential([keras.Input(shape), keras.layers.Dense(shape[-1])])
    model.compile(optimizer="sgd", loss=loss)
    assert [each for each in trace_keras(model, 4).assumptions if each.startswith("targets: ")] == []
