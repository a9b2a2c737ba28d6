"""A `train_step` of the model's own is the step: its loss, its gradients, its updates."""

from __future__ import annotations

from typing import Any

import jax
import keras
import numpy as np
import pytest

import workbench as wb
from tests.engine import reconcile
from workbench.errors import InputError

MACHINE = wb.target("ipu2", tiles_per_ipu=16)
RNG = np.random.default_rng(2)
X, Y = RNG.random((4, 6)).astype("float32"), RNG.random((4, 3)).astype("float32")


class Flattened(keras.Model):
    """Steps at the weights as they are after a step along the gradient (sharpness-aware minimisation)."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.out = keras.layers.Dense(5, "tanh", name="hidden"), keras.layers.Dense(3, name="out")

    def call(self, x: Any) -> Any:
        return self.out(self.hidden(x))

    def train_step(self, state: Any, data: Any) -> Any:
        trainable, fixed, slots, metrics = state
        x, y = data[:2]

        def loss_of(weights: Any) -> Any:
            predicted, after = self.stateless_call(weights, fixed, x)
            return keras.ops.mean(keras.ops.square(predicted - y)), after

        (loss, after), gradients = jax.value_and_grad(loss_of, has_aux=True)(trainable)
        uphill = [weight + 0.05 * gradient for weight, gradient in zip(trainable, gradients, strict=True)]
        (sharp, _), gradients = jax.value_and_grad(loss_of, has_aux=True)(uphill)
        trainable, slots = self.optimizer.stateless_apply(slots, gradients, trainable)
        return {"loss": loss, "sharp": sharp}, (trainable, after, slots, metrics)


def flattened() -> Any:
    keras.utils.set_random_seed(4)
    model = Flattened()
    model(X)
    model.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.9))
    return model


def compiled(model: Any, **arguments: Any) -> Any:
    return wb.compile(model, X, Y, batch_size=4, mode="training", target=MACHINE, **arguments)


def test_the_numbers_and_the_work_are_those_of_the_step() -> None:
    ours, theirs = compiled(flattened()), flattened()
    assert ours.profile.unmodelled.empty
    reconcile.reconciles(ours.compiled)
    products = [row.op for row in ours.profile.operators.itertuples() if row.op == "matmul" and row.layer == "hidden"]
    # Twice forward and twice for the weights' gradient; the inputs need none.
    assert len(products) == 4, ours.profile.operators
    assert "update" in set(ours.profile.operators.direction)
    for _ in range(2):
        found, wanted = ours.run(X, Y), theirs.train_on_batch(X, Y, return_dict=True)
        assert set(found) == {"loss", "sharp"}
        assert found["loss"] == pytest.approx(float(wanted["loss"]), rel=1e-5)
    for held, value in zip(ours.request.source.variables, theirs.variables, strict=True):
        np.testing.assert_allclose(held.value, value.value, rtol=1e-5, atol=1e-6)


def test_another_optimizer_or_a_cut_is_refused() -> None:
    with pytest.raises(InputError, match="has a train_step of its own, which applies the optimizer it is compiled"):
        compiled(flattened(), optimizer="adam")
    with pytest.raises(InputError, match="is its own and runs whole"):
        compiled(flattened(), gradient_accumulation_steps=2)
    with pytest.raises(InputError, match="is its own and runs whole"):
        compiled(flattened(), replicas=2)


def test_a_step_without_a_state_is_refused() -> None:
    class OfTensorFlow(keras.Sequential):
        def train_step(self, data: Any) -> Any:
            raise AssertionError("it is refused before it is traced")

    model = OfTensorFlow([keras.Input((6,)), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    with pytest.raises(InputError, match=r"train_step of .* takes \(data.*state, data.*as Keras on JAX calls it"):
        compiled(model)


class Adversarial(keras.Model):
    """A step that calls one of its models without the other, past the model that holds them."""

    def __init__(self) -> None:
        super().__init__()
        self.maker = keras.Sequential([keras.layers.Dense(6, name="drawn")], name="maker")
        self.judge = keras.Sequential([keras.layers.Dense(2, name="judged")], name="judge")

    def call(self, x: Any) -> Any:
        return self.judge(self.maker(x))

    def train_step(self, state: Any, data: Any) -> Any:
        trainable, fixed, slots, metrics = state
        made, _ = self.maker.stateless_call(trainable[:2], [], data[0])

        def loss_of(weights: Any) -> Any:
            return keras.ops.mean(self.judge.stateless_call(weights, [], made)[0])

        loss, gradients = jax.value_and_grad(loss_of)(trainable[2:])
        new = [weight - 0.1 * gradient for weight, gradient in zip(trainable[2:], gradients, strict=True)]
        return {"loss": loss}, ([*trainable[:2], *new], fixed, slots, metrics)


def test_layers_of_models_that_a_step_calls_have_one_path() -> None:
    model = Adversarial()
    model(X)
    model.compile(optimizer="sgd")
    operators = wb.profile(model, X, Y, mode="training", target=MACHINE).operators
    products = operators[operators["flops"] >= 2 * 4 * 6]  # of 4 samples and at least 6 weights
    assert set(products["layer"]) == {"maker/drawn", "judge/judged"}, products


class TwoTargets(keras.Model):
    """One output, which its step compares with two targets."""

    def __init__(self) -> None:
        super().__init__()
        self.out = keras.layers.Dense(3, name="out")

    def call(self, x: Any) -> Any:
        return self.out(x)

    def train_step(self, state: Any, data: Any) -> Any:
        trainable, fixed, slots, metrics = state
        x, (first, rest) = data

        def loss_of(weights: Any) -> Any:
            predicted, _ = self.stateless_call(weights, fixed, x)
            return keras.ops.mean((predicted[:, :1] - first) ** 2) + keras.ops.mean((predicted[:, 1:] - rest) ** 2)

        loss, gradients = jax.value_and_grad(loss_of)(trainable)
        trainable, slots = self.optimizer.stateless_apply(slots, gradients, trainable)
        return {"apart": loss}, (trainable, fixed, slots, metrics)


def two_targets() -> Any:
    keras.utils.set_random_seed(4)
    model = TwoTargets()
    model(X)
    model.compile(optimizer=keras.optimizers.SGD(0.1))
    return model


def test_a_step_is_given_targets_as_the_example_holds_them() -> None:
    """All but the first were left aside where the model has one output."""
    targets = (Y[:, :1], Y[:, 1:])
    executable = wb.compile(two_targets(), X, targets, target=MACHINE)
    steps = executable.profile.steps
    assert [name for name in steps.name if name.startswith("y")] == ["y[0]/from_host", "y[1]/from_host"]
    expected = two_targets().fit(X, targets, batch_size=4, verbose=0).history["apart"]
    assert [executable.run(X, targets)["apart"]] == pytest.approx(expected, abs=1e-6)


class OfTwins(Flattened):
    """Its targets are two arrays, which nothing but its own line says."""

    def train_step(self, state: Any, data: Any) -> Any:
        x, (one, other) = data
        return super().train_step(state, (x, one + other))


class OfWeights(Flattened):
    def train_step(self, state: Any, data: Any) -> Any:
        x, y, _ = data
        return super().train_step(state, (x, y))


class OfNothing(Flattened):
    def train_step(self, state: Any, data: Any) -> Any:
        one, _ = self.layers[:1]
        return super().train_step(state, (*data, one))


def built(kind: Any) -> Any:
    model = kind()
    model(X)
    model.compile(optimizer="sgd")
    return model


@pytest.mark.parametrize(
    ("kind", "line", "counted"),
    [
        (OfTwins, "x, (one, other) = data", "too many values to unpack (expected 2)"),
        (OfWeights, "x, y, _ = data", "not enough values to unpack (expected 3, got 2)"),
    ],
)
def test_a_step_that_takes_apart_another_batch_is_told_what_it_is_given(kind: Any, line: str, counted: str) -> None:
    """Python's own ValueError said nothing of what stood for the targets, nor of what to pass."""
    with pytest.raises(InputError) as caught:
        wb.compile(built(kind), batch_size=4, mode="training", target=MACHINE)
    assert f"takes its batch apart by `{line}`, which ended in: {counted}; " in str(caught.value)
    assert "the batch is (x float32(4, 6), y float32(4, 3)). " in str(caught.value)
    assert "wb.compile(model, x, y)" in caught.value.todo
    assert isinstance(caught.value.__cause__, ValueError)


def test_such_a_step_compiles_with_an_example_and_other_mistakes_of_it_stay_as_they_are() -> None:
    executable = wb.compile(built(OfTwins), X, (Y, Y), mode="training", target=MACHINE)
    assert executable.run(X, (Y, Y))["loss"] > 0
    with pytest.raises(ValueError, match=r"^not enough values to unpack \(expected 2, got 1\)"):
        wb.compile(built(OfNothing), batch_size=4, mode="training", target=MACHINE)
