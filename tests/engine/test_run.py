from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench  # noqa: F401
from tests.engine.frontends.keras_models import batch, furthest, mlp, residual
from workbench.datasets import digits
from workbench.engine.frontends.functions import trace_function
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.ready import ready
from workbench.engine.run import Runner
from workbench.errors import InputError

# XLA computes the same jaxpr twice, once as Keras composes it and once as we do; sums may associate differently.
TOLERANCE = 1e-5


def optimizers() -> dict[str, Any]:
    return {
        "sgd": lambda: keras.optimizers.SGD(0.1),
        "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
        "nesterov": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        "adam": lambda: keras.optimizers.Adam(0.01),
        "scheduled": lambda: keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)),
        "clipped": lambda: keras.optimizers.SGD(0.1, global_clipnorm=0.01),
    }


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in ("momentum", "adam"))) for name in optimizers()]
)
def test_a_run_is_what_keras_trains(name: str) -> None:
    make = optimizers()[name]
    model, shape, classes = (residual, (8, 6, 6, 2), 3) if name == "momentum" else (mlp, (8, 6), 4)
    arguments = {"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]}
    ours, theirs = (model(optimizer=make(), **arguments) for _ in range(2))
    x, y = batch(shape, classes)
    runner = Runner(trace_keras(ours, batch_size=8))
    for _ in range(3):
        expected = theirs.train_on_batch(x, y, return_dict=True)
        assert runner.run(x, y) == pytest.approx(expected, abs=TOLERANCE)
    assert furthest(ours, theirs) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer-encoder", "bert-base"])
def test_an_encoder_trains_and_predicts_as_keras_does(name: str) -> None:
    sizes = {"layers": 1, "hidden": 16, "heads": 2, "sequence_length": 6}
    model = ready(name, **sizes, **({"vocabulary": 30} if name == "bert-base" else {}))
    ours, theirs = model.builder(), model.builder()
    for copy, value in zip(theirs.variables, ours.variables, strict=True):
        copy.assign(value.value)
    for each in (ours, theirs):
        each.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
    tokens = np.random.default_rng(0).integers(0, 30, (4, 6)).astype("int32")
    x = tokens if name == "bert-base" else np.random.default_rng(0).random((4, 6, 16), dtype="float32")
    y = np.array([0, 1, 1, 0])
    runner = Runner(trace_keras(ours, batch_size=4))
    for _ in range(2):
        assert runner.run(x, y) == pytest.approx(theirs.train_on_batch(x, y, return_dict=True), abs=1e-4)
    found = Runner(trace_keras(theirs, batch_size=4, mode="inference")).run(x)
    np.testing.assert_allclose(found, theirs.predict(x, verbose=0), atol=TOLERANCE)


def test_half_precision_predicts_within_its_rounding() -> None:
    model = mlp()
    x, _ = batch((4, 6), 4)
    half = Runner(trace_keras(model, batch_size=4, mode="inference", precision="float16")).run(x)
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, model.predict(x, verbose=0), atol=2e-3)  # float16 keeps 11 bits of 1.0


@pytest.mark.slow
def test_resnet50_trains_and_predicts_as_keras_does() -> None:
    """The full step at batch 4: 161 trained variables and 106 moving statistics."""
    source = trace_keras("resnet50", batch_size=4, mode="training", optimizer=keras.optimizers.SGD(0.01, momentum=0.9))
    runner = Runner(source)
    x, y = batch((4, 224, 224, 3), 1000)
    runner.run(x, y)  # gives the weights their values
    theirs = keras.models.clone_model(source.model)
    for copy, value in zip(theirs.variables, source.model.variables, strict=True):
        copy.assign(value.value)
    theirs.compile(keras.optimizers.SGD(0.01, momentum=0.9), "sparse_categorical_crossentropy")
    theirs.optimizer.build(theirs.trainable_variables)
    for copy, value in zip(theirs.optimizer.variables, source.optimizer.variables, strict=True):
        copy.assign(value.value)
    assert runner.run(x, y) == pytest.approx(theirs.train_on_batch(x, y, return_dict=True), rel=1e-4)
    inference = Runner(trace_keras(theirs, batch_size=4, mode="inference"))
    np.testing.assert_allclose(inference.run(x), theirs.predict(x, verbose=0), atol=1e-5)


def test_sample_weights_weigh() -> None:
    ours, theirs = (mlp(optimizer="sgd", loss="sparse_categorical_crossentropy") for _ in range(2))
    x, y = batch((4, 6), 4)
    weights = np.array([0.0, 1.0, 2.0, 0.5], "float32")
    runner = Runner(trace_keras(ours, batch_size=4))
    assert runner.run(x, y, sample_weight=weights) == pytest.approx(
        theirs.train_on_batch(x, y, sample_weight=weights, return_dict=True), abs=TOLERANCE
    )
    assert furthest(ours, theirs) < TOLERANCE


def steps(loss: Any, features: int) -> Any:
    keras.utils.set_random_seed(2)
    layers = [keras.Input((3, 6)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(features)]
    made = keras.Sequential(layers)
    made.compile(keras.optimizers.SGD(0.1), loss, weighted_metrics=["mae"] if loss == "mse" else ["accuracy"])
    return made


@pytest.mark.parametrize("loss", ["mse", keras.losses.SparseCategoricalCrossentropy(from_logits=True)])
@settings(max_examples=5, deadline=None)
@given(shape=st.sampled_from([(), (1,), (3,)]), seed=st.integers(0, 99), listed=st.booleans())
def test_each_step_of_a_sequence_may_have_its_weight(
    loss: Any, shape: tuple[int, ...], seed: int, listed: bool
) -> None:
    draw = np.random.default_rng(seed)
    ours, theirs = (steps(loss, 5) for _ in range(2))
    x = draw.random((4, 3, 6), dtype="float32")
    y = draw.random((4, 3, 5), dtype="float32") if loss == "mse" else draw.integers(0, 5, (4, 3))
    weights = draw.random((4, *shape), dtype="float32")
    runner = Runner(trace_keras(ours, batch_size=4))
    for _ in range(2):
        # Keras asks for a column where a sample has one weight for all its steps.
        seen = weights[:, None] if weights.ndim == 1 else weights
        expected = theirs.train_on_batch(x, y, sample_weight=seen, return_dict=True)
        ours_takes = [weights] if listed else weights
        assert runner.run(x, y, sample_weight=ours_takes) == pytest.approx(expected, abs=TOLERANCE)
        theirs.reset_metrics()
    assert furthest(ours, theirs) < TOLERANCE


def test_a_weight_for_what_the_loss_is_not_a_number_of_is_refused() -> None:
    runner = Runner(trace_keras(steps("mse", 5), batch_size=4))
    x, y = np.zeros((4, 3, 6), "float32"), np.zeros((4, 3, 5), "float32")
    with pytest.raises(InputError, match=r"sample_weight has shape \(4, 3, 5\)"):
        runner.run(x, y, sample_weight=y)


def test_a_loss_and_an_optimizer_that_were_not_compiled_train_the_same() -> None:
    theirs = mlp(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    ours = mlp()
    x, _ = batch((4, 6), 4)
    y = np.eye(4, dtype="float32")
    runner = Runner(trace_keras(ours, batch_size=4, optimizer=keras.optimizers.SGD(0.1), loss="mse"))
    for _ in range(2):
        assert runner.run(x, y) == pytest.approx(theirs.train_on_batch(x, y, return_dict=True), abs=TOLERANCE)


def test_loss_scaling_trains_the_same() -> None:
    ours, theirs = (
        mlp(optimizer=keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)), loss="mse") for _ in range(2)
    )
    x, _ = batch((4, 6), 4)
    y = np.eye(4, dtype="float32")
    runner = Runner(trace_keras(ours, batch_size=4))
    for _ in range(2):
        assert runner.run(x, y) == pytest.approx(theirs.train_on_batch(x, y, return_dict=True), abs=TOLERANCE)
    assert furthest(ours, theirs) < TOLERANCE


@pytest.mark.parametrize("by_name", [False, True])
def test_a_model_with_two_outputs_trains_the_same(by_name: bool) -> None:
    def model() -> Any:
        keras.utils.set_random_seed(6)
        inputs = keras.Input((6,))
        x = keras.layers.Dense(8, activation="tanh", name="shared")(inputs)
        size = keras.layers.Dense(1, name="size")(x)
        kind = keras.layers.Dense(4, activation="softmax", name="kind")(x)
        made = keras.Model(inputs, {"size": size, "kind": kind} if by_name else [size, kind])
        losses = {"size": "mse", "kind": "sparse_categorical_crossentropy"}
        made.compile("sgd", losses if by_name else list(losses.values()))
        return made

    ours, theirs = model(), model()
    x, kind = batch((4, 6), 4)
    size = np.ones((4, 1), "float32")
    y = {"size": size, "kind": kind} if by_name else [size, kind]
    found = Runner(trace_keras(ours, batch_size=4)).run(x, y)
    assert found["loss"] == pytest.approx(theirs.train_on_batch(x, y, return_dict=True)["loss"], abs=TOLERANCE)
    assert furthest(ours, theirs) < TOLERANCE


def test_dropout_draws_a_new_mask_every_step() -> None:
    model = residual(optimizer=keras.optimizers.SGD(0.0), loss="sparse_categorical_crossentropy")
    x, y = batch((8, 6, 6, 2), 3)
    runner = Runner(trace_keras(model, batch_size=8))
    assert runner.run(x, y)["loss"] != runner.run(x, y)["loss"]


def test_inference_is_what_keras_predicts() -> None:
    model = residual()
    x, _ = batch((5, 6, 6, 2), 3)
    found = Runner(trace_keras(model, batch_size=5, mode="inference")).run(x)
    np.testing.assert_allclose(found, model.predict(x, verbose=0), atol=TOLERANCE)


def test_outputs_keep_the_structure_of_the_model() -> None:
    inputs = {"a": keras.Input((3,), name="a"), "b": keras.Input((2,), name="b")}
    model = keras.Model(inputs, {"sum": keras.ops.sum(inputs["a"], -1), "wide": keras.layers.Dense(4)(inputs["b"])})
    found = Runner(trace_keras(model, batch_size=2, mode="inference")).run(
        {"a": np.ones((2, 3), "float32"), "b": np.ones((2, 2), "float32")}
    )
    assert {name: value.shape for name, value in found.items()} == {"sum": (2,), "wide": (2, 4)}
    np.testing.assert_allclose(found["sum"], [3.0, 3.0])


def test_a_function_returns_what_it_returns() -> None:
    def fn(x: Any, weights: Any) -> Any:
        return {"y": jnp.tanh(x @ weights["w"]), "n": jnp.sum(x)}

    x, w = np.full((2, 3), 0.5, "float32"), np.full((3, 4), 0.25, "float32")
    source = trace_function(fn, jax.ShapeDtypeStruct((2, 3), "float32"), {"w": w})
    found = Runner(source).run(x, {"w": w})
    assert set(found) == {"y", "n"}
    np.testing.assert_allclose(found["y"], np.tanh(np.full((2, 4), 0.375)), rtol=1e-6)
    assert float(found["n"]) == 3.0


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_random_key_comes_back_as_a_key(replicas: int) -> None:
    """The state of a generator goes into the next call; numpy has no arrays of keys."""

    def draw(key: Any, x: Any) -> Any:
        following, now = jax.random.split(key)
        return following, x + jax.random.normal(now, x.shape)

    key, x = jax.random.key(3), np.zeros((2, 3), "float32")
    runner = Runner(trace_function(jax.jit(draw, donate_argnums=0), key, x, replicas=replicas))
    here = there = key
    for _ in range(2):
        here, found = runner.run(here, np.zeros((2 * replicas, 3), "float32"))
        there, expected = draw(there, x)
        np.testing.assert_array_equal(jax.random.key_data(here), jax.random.key_data(there))
        np.testing.assert_allclose(found, np.tile(expected, (replicas, 1)), rtol=1e-6)


def test_types_have_no_numbers_to_run_with() -> None:
    kind = jax.ShapeDtypeStruct((2, 3), "float32")
    with pytest.raises(InputError) as caught:
        Runner(trace_function(jnp.tanh, kind)).run(kind)
    assert caught.value.what == "args[0] is a jax.ShapeDtypeStruct, which has no numbers"


def test_a_ready_model_gets_its_weights_at_the_first_run_and_the_same_ones_every_time() -> None:
    images, labels = digits()
    x, y = images[:16].reshape(16, 64), labels[:16]
    losses = [Runner(trace_keras("mlp", batch_size=16, mode="training")).run(x, y)["loss"] for _ in range(2)]
    assert losses[0] == losses[1]
    assert losses[0] == pytest.approx(np.log(10), abs=0.5)  # an untrained classifier of ten digits guesses


def test_the_loss_falls_on_the_digits() -> None:
    images, labels = digits()
    source = trace_keras("mlp", batch_size=64, mode="training", optimizer=keras.optimizers.SGD(0.1, momentum=0.9))
    runner = Runner(source)
    losses = [runner.run(images[i : i + 64].reshape(64, 64), labels[i : i + 64])["loss"] for i in range(0, 1280, 64)]
    assert losses[-1] < 0.5 * losses[0]


def test_arrays_of_another_shape_are_an_error() -> None:
    runner = Runner(trace_keras(mlp(), batch_size=4, mode="inference"))
    with pytest.raises(InputError) as error:
        runner.run(np.ones((3, 6), "float32"))
    assert str(error.value) == (
        "x has shape (3, 6). Expected: shape (4, 6), as compiled. "
        "To mend it: pass that shape, or compile again with the batch size you want."
    )


@pytest.mark.parametrize("shape", [(4, 3, 2), (4, 7), (4,), (24,)])
def test_another_batch_is_offered_only_where_the_rest_of_the_shape_is_right(shape: tuple[int, ...]) -> None:
    """No batch size makes 7 columns of 6, or a list of samples a table: compiling again would mend nothing."""
    runner = Runner(trace_keras(mlp(), batch_size=4, mode="inference"))
    with pytest.raises(InputError, match=r"shape \(4, 6\), as compiled\. To mend it: pass that shape\.$"):
        runner.run(np.ones(shape, "float32"))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            np.ones((4, 6), "longdouble"),
            f"x is {np.dtype('longdouble')}. Expected: float32 or float16. "
            "To mend it: convert it: x.astype('float32').",
        ),
        (
            np.ones((4, 6), "complex64"),
            "x is complex64. Expected: real numbers. To mend it: pass real and imaginary parts as two arrays.",
        ),
        (
            np.full((4, 6), "a"),
            "x holds strings. Expected: numbers. To mend it: turn it into numbers before it reaches the model "
            "(a vocabulary or StringLookup on the host).",
        ),
    ],
)
def test_arrays_the_ipu_does_not_have_are_an_error(array: Any, message: str) -> None:
    runner = Runner(trace_keras(mlp(), batch_size=4, mode="inference"))
    with pytest.raises(InputError) as error:
        runner.run(array)
    assert str(error.value) == message


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_float64_is_cast_to_the_compiled_type_as_fit_casts_it(dtype: str) -> None:
    """`keras.utils.to_categorical` and most of NumPy make float64 where nobody asks for a type."""
    third = np.full((4, 6), 1 / 3)
    doubled = Runner(trace_function(lambda x: x * 2, jax.ShapeDtypeStruct((4, 6), dtype))).run(third)
    assert doubled.dtype == dtype
    np.testing.assert_array_equal(doubled, third.astype(dtype) * 2)
    targets = keras.utils.to_categorical([0, 1, 2, 3], 4).astype("float64")
    runner = Runner(trace_keras(mlp(optimizer="sgd", loss="mse"), batch_size=4))
    same = Runner(trace_keras(mlp(optimizer="sgd", loss="mse"), batch_size=4))
    found = runner.run(np.ones((4, 6)), targets, sample_weight=np.ones(4))
    assert found == same.run(np.ones((4, 6), "float32"), targets.astype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_class_numbers_must_be_whole(dtype: str) -> None:
    """What is asked for is what is taken: class numbers that are made float32 would be refused again."""
    runner = Runner(trace_keras(mlp(), batch_size=4, mode="training"))
    with pytest.raises(InputError) as error:
        runner.run(np.ones((4, 6), "float32"), np.ones(4, dtype))
    assert str(error.value) == (
        f"y is {dtype}. Expected: whole numbers (int32), as compiled. To mend it: convert it: y.astype('int32')."
    )


def test_the_wrong_number_of_arrays_is_an_error() -> None:
    x = np.ones((4, 6), "float32")
    with pytest.raises(InputError, match=r"^run was called with 1 array\. Expected: run\(x, y\)\. To mend it: pass"):
        Runner(trace_keras(mlp(), batch_size=4, mode="training")).run(x)
    with pytest.raises(InputError, match=r"^run was called with 2 arrays\. Expected: run\(x\)\. To mend it: compile"):
        Runner(trace_keras(mlp(), batch_size=4, mode="inference")).run(x, x)


def test_weights_of_samples_are_given_by_name_and_the_error_says_so() -> None:
    x, y, weights = np.ones((4, 6), "float32"), np.ones(4, "int32"), np.ones(4, "float32")
    with pytest.raises(InputError, match=r"with 3 arrays\. .* run\(x, y, sample_weight=\.\.\.\)\.$"):
        Runner(trace_keras(mlp(), batch_size=4, mode="training")).run(x, y, weights)


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ("heavy", "sample_weight is 'heavy'. Expected: numbers of shape (4,), as compiled."),
        ((1 for _ in range(4)), "sample_weight is <generator "),
        (np.array([1, 2, "a", 4], object), "sample_weight holds Python objects or times. Expected: numbers."),
        (np.ones(4, "complex64"), "sample_weight is complex64. Expected: real numbers."),  # lost a part in silence
        (["a", "b", "c", "d"], "sample_weight holds strings. Expected: numbers."),
    ],
)
def test_weights_that_are_no_numbers_are_refused_as_other_arrays_are(weights: Any, told: str) -> None:
    runner = Runner(trace_keras(mlp(), batch_size=4, mode="training"))
    with pytest.raises(InputError) as error:
        runner.run(np.ones((4, 6), "float32"), np.ones(4, "int32"), sample_weight=weights)
    assert str(error.value).startswith(told)
    whole = runner.run(np.ones((4, 6), "float32"), np.ones(4, "int32"), sample_weight=[1, 1, 1, 1])
    assert whole["loss"] > 0


def test_a_failed_check_changes_nothing() -> None:
    model = mlp(optimizer="sgd", loss="mse")
    before = [np.asarray(variable.value) for variable in model.variables]
    with pytest.raises(InputError):
        Runner(trace_keras(model, batch_size=4)).run(np.ones((4, 6), "float32"), np.ones((4, 4), "complex64"))
    for variable, value in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(variable.value, value)


@pytest.mark.parametrize("metric", [keras.metrics.F1Score, keras.metrics.FBetaScore])
@pytest.mark.parametrize("average", [None, "macro"])
def test_a_metric_of_several_numbers_is_an_array_as_keras_gives_it(metric: Any, average: str | None) -> None:
    arguments = {"loss": "categorical_crossentropy", "optimizer": "sgd"}
    ours, theirs = (mlp(metrics=[metric(average=average, name="score")], **arguments) for _ in range(2))
    x, y = batch((8, 6), 4)
    truth = np.eye(4, dtype="float32")[y]
    found = Runner(trace_keras(ours, batch_size=8)).run(x, truth)
    expected = theirs.train_on_batch(x, truth, return_dict=True)
    assert found.keys() == expected.keys()
    assert np.shape(found["score"]) == ((4,) if average is None else ())
    np.testing.assert_allclose(found["score"], expected["score"], atol=TOLERANCE)
