"""Layers that name no seed draw from Keras' own generator, which is part of the step as every other seed is."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras.src.applications.convnext import StochasticDepth

import workbench as wb
from tests.engine import reconcile
from workbench.engine.frontends.describe.unseeded import Draws, states
from workbench.engine.frontends.trace.jaxpr import unseeded_generator

MACHINE = wb.target("ipu2", tiles_per_ipu=16)
X, Y = np.ones((4, 8), "float32"), np.zeros((4, 3), "float32")


def two_paths() -> Any:
    """Two residual paths, each dropped half of the time."""
    keras.utils.set_random_seed(3)
    inputs = keras.Input((8,))
    x = inputs
    for number in range(2):
        y = keras.layers.Dense(8, name=f"dense_{number}")(x)
        x = keras.layers.Add(name=f"add_{number}")([x, StochasticDepth(0.5, name=f"depth_{number}")(y)])
    return keras.Model(inputs, keras.layers.Dense(3, name="out")(x))


def test_states_follow_each_other_as_keras_steps_them() -> None:
    generator = keras.random.SeedGenerator(11)
    keras_states = [np.asarray(generator.next(ordered=False)) for _ in range(3)]
    np.testing.assert_array_equal(states(np.asarray(keras_states[0]), 2), keras_states)


def test_more_draws_than_there_are_states_are_counted() -> None:
    draws = Draws(["first", "second", "after"])
    assert [draws.next() for _ in range(4)] == ["first", "second", "first", "first"]
    assert draws.asked == 4


def test_the_state_is_a_seed_of_the_step() -> None:
    found = wb.compile(two_paths, batch_size=4, mode="training", target=MACHINE)
    names = [item.name for item in found.graph.inputs if item.role == "seed"]
    assert names == ["unseeded/seed"]
    assert "unseeded/seed" in {output.name for output in found.graph.outputs if output.role == "update"}
    assert found.profile.unmodelled.empty
    reconcile.reconciles(found.compiled)


def test_paths_are_dropped_as_keras_drops_them_from_the_same_state() -> None:
    reference, model = two_paths(), two_paths()  # each sets Keras' own generator anew
    ours = wb.compile(model, batch_size=4, mode="training", optimizer="sgd", loss="mse", target=MACHINE)
    generator, losses = unseeded_generator(), []
    for _ in range(4):
        before = np.asarray(generator.state.value)
        loss = ours.run(X, Y)["loss"]
        after = np.asarray(generator.state.value)
        np.testing.assert_array_equal(after, states(before, 2)[-1])
        generator.state.assign(before)
        predicted = reference(X, training=True)
        assert loss == pytest.approx(float(np.mean(np.square(predicted - Y))), rel=1e-5)
        np.testing.assert_array_equal(np.asarray(generator.state.value), after)
        for held, value in zip(reference.variables, model.variables, strict=True):
            held.assign(value.value)
        losses.append(loss)
    assert len(set(losses)) > 1


class Sampled(keras.Model):
    """Draws whatever the mode is, and knows its outputs only by being called."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = keras.layers.Dense(6, name="encode"), keras.layers.Dense(8, name="decode")

    def call(self, x: Any) -> Any:
        mean, spread = keras.ops.split(self.encode(x), 2, -1)
        return self.decode(mean + spread * keras.random.normal(keras.ops.shape(mean)))


@pytest.mark.parametrize("mode", ["training", "inference"])
def test_a_subclassed_model_draws_in_every_mode(mode: str) -> None:
    model = Sampled()
    model(X)
    loss = {"loss": "mse"} if mode == "training" else {}
    found = wb.compile(model, X, X, batch_size=4, mode=mode, target=MACHINE, **loss)
    assert [item.name for item in found.graph.inputs if item.role == "seed"] == ["unseeded/seed"]
    reconcile.reconciles(found.compiled)


def test_inference_draws_nothing() -> None:
    found = wb.compile(two_paths, batch_size=4, mode="inference", target=MACHINE)
    assert not [item for item in found.graph.inputs if item.role == "seed"]


@pytest.mark.parametrize("stages", [None, pytest.param(["add_0"], marks=pytest.mark.slow)])
def test_stages_and_micro_batches_draw_too(stages: Any) -> None:
    found = wb.compile(
        two_paths,
        batch_size=4,
        mode="training",
        stages=stages,
        gradient_accumulation_steps=4,
        target=MACHINE,
    )
    assert [item.name for item in found.graph.inputs if item.role == "seed"] == ["unseeded/seed"]
    reconcile.reconciles(found.compiled)


def test_a_seed_set_after_the_compile_begins_the_draws_anew() -> None:
    ours = wb.compile(two_paths(), batch_size=4, mode="training", optimizer=keras.optimizers.SGD(0.0), loss="mse")
    keras.utils.set_random_seed(5)
    first = [ours.run(X, Y)["loss"] for _ in range(6)]
    keras.utils.set_random_seed(5)
    assert [ours.run(X, Y)["loss"] for _ in range(6)] == first
    assert len(set(first)) > 1
