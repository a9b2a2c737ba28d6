"""Replicas compute what one large batch computes; each keeps its own state and draws its own random numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest

from tests.engine.frontends.keras_models import batch, furthest
from tests.engine.frontends.staging.dense import stack
from workbench.engine.frontends.describe.replicas import AXIS
from workbench.engine.frontends.functions import trace_function
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.run import Runner
from workbench.errors import InputError


@pytest.mark.parametrize(
    ("stages", "steps"),
    [pytest.param(None, 1, marks=pytest.mark.slow), (None, 2), pytest.param(["dense_1"], 4, marks=pytest.mark.slow)],
)
def test_replicas_train_as_one_large_batch(stages: Any, steps: int) -> None:
    arguments = {"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]}
    ours, theirs = (stack(optimizer=keras.optimizers.Adam(0.01), **arguments) for _ in range(2))
    x, y = batch((4 * steps * 3, 6), 3)
    runner = Runner(trace_keras(ours, batch_size=4, stages=stages, gradient_accumulation_steps=steps, replicas=3))
    for _ in range(2):
        expected = theirs.train_on_batch(x, y, return_dict=True)
        assert runner.run(x, y) == pytest.approx(expected, abs=1e-5)
    assert furthest(ours, theirs) < 1e-5


def test_sample_weights_are_divided_like_the_data() -> None:
    ours, theirs = (stack(optimizer="sgd", loss="sparse_categorical_crossentropy") for _ in range(2))
    x, y = batch((8, 6), 3)
    weight = np.linspace(0.5, 1.5, 8).astype("float32")
    runner = Runner(trace_keras(ours, batch_size=4, replicas=2))
    runner.run(x, y, sample_weight=weight)
    theirs.train_on_batch(x, y, sample_weight=weight)
    assert furthest(ours, theirs) < 1e-5


def test_statistics_are_those_of_the_first_replica() -> None:
    def build() -> Any:
        keras.utils.set_random_seed(1)
        return keras.Sequential(
            [keras.Input((5,)), keras.layers.BatchNormalization(name="norm"), keras.layers.Dense(2, name="out")]
        )

    ours, theirs = build(), build()
    for model in (ours, theirs):
        model.compile(optimizer=keras.optimizers.SGD(0.0), loss="mse")
    x, y = np.random.default_rng(0).random((12, 5), "float32"), np.zeros((12, 2), "float32")
    Runner(trace_keras(ours, batch_size=4, replicas=3)).run(x, y)
    Runner(trace_keras(theirs, batch_size=4)).run(x[:4], y[:4])
    np.testing.assert_allclose(ours.layers[0].moving_mean, theirs.layers[0].moving_mean, rtol=1e-6)


def test_replicas_drop_different_units_and_the_first_those_of_one_alone() -> None:
    class Drop(keras.layers.Layer):
        """Drops in inference too."""

        def __init__(self) -> None:
            super().__init__(name="drop")
            self.seeds = keras.random.SeedGenerator(3)

        def call(self, x: Any) -> Any:
            return keras.random.dropout(x, 0.5, seed=self.seeds)

    def dropped(replicas: int) -> Any:
        inputs = keras.Input((64,))
        model = keras.Model(inputs, Drop()(inputs))
        runner = Runner(trace_keras(model, batch_size=1, mode="inference", replicas=replicas))
        return np.asarray(runner.run(np.ones((replicas, 64), "float32")))

    one, two = dropped(1), dropped(2)
    np.testing.assert_array_equal(one[0], two[0])
    assert (two[0] != two[1]).any()


def test_a_function_names_the_replicas_in_its_collectives() -> None:
    def share(x: Any) -> Any:
        return x / jax.lax.psum(jnp.sum(x), AXIS), jax.lax.axis_index(AXIS)

    x = np.arange(1.0, 7.0, dtype="float32")
    source = trace_function(share, jax.ShapeDtypeStruct((2,), "float32"), replicas=3)
    shares, number = Runner(source).run(x)
    np.testing.assert_allclose(shares, x / 21)
    assert number.tolist() == [0, 1, 2]
    assert [node.op for node in source.graph.body.nodes][-1] == "axis_index"
    alone, _ = Runner(trace_function(share, x)).run(x)
    np.testing.assert_allclose(alone, x / 21)


@pytest.mark.parametrize("replicas", [0, -1, True, 1.5, "2"])
def test_replicas_are_counted(replicas: Any) -> None:
    with pytest.raises(InputError, match="replicas is"):
        trace_keras(stack(optimizer="sgd", loss="mse"), batch_size=4, replicas=replicas)


def normed() -> Any:
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(6, name="first"), keras.layers.BatchNormalization(name="norm")]
    made = keras.Sequential([keras.Input((5,)), *layers, keras.layers.Dense(2, name="out")])
    made.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    return made


def test_statistics_of_all_replicas_are_those_of_one_large_batch() -> None:
    ours, theirs = normed(), normed()
    x, y = np.random.default_rng(0).random((12, 5), "float32"), np.zeros((12, 2), "float32")
    runner = Runner(trace_keras(ours, batch_size=4, replicas=3, norm_members=3))
    for _ in range(2):
        runner.run(x, y)
        theirs.train_on_batch(x, y)
    weight = np.linspace(0.5, 1.5, 12).astype("float32")
    runner.run(x, y, sample_weight=weight)
    theirs.train_on_batch(x, y, sample_weight=weight)
    assert furthest(ours, theirs) < 1e-5
    apart = normed()
    Runner(trace_keras(apart, batch_size=4, replicas=3)).run(x, y)
    assert furthest(apart, theirs) > 1e-4


def test_shared_statistics_are_sums_in_both_directions() -> None:
    graph = trace_keras(normed(), batch_size=4, replicas=4, norm_members=2).graph
    inside = [node for node in graph.body.nodes if node.op == "psum" and node.origin.layer == "norm"]
    directions = [node.origin.direction for node in inside if node.attr("axis_index_groups")]
    assert directions.count("forward") == directions.count("backward") == 2
    assert {node.attr("axis_index_groups") for node in inside} >= {((0, 1), (2, 3))}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"replicas": 4, "norm_members": 3}, "is 3, for 4 replicas"),
        ({"norm_members": 2}, r"is 2, for 1 replica\."),
        ({"replicas": 2, "norm_members": 2, "gradient_accumulation_steps": 2}, "accumulated gradients"),
    ],
)
def test_groups_that_cannot_be_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        trace_keras(normed(), batch_size=4, **arguments)


def test_groups_of_replicas_are_profiled_but_not_run() -> None:
    runner = Runner(trace_keras(normed(), batch_size=4, replicas=4, norm_members=2))
    with pytest.raises(InputError, match="groups of replicas"):
        runner.run(np.zeros((16, 5), "float32"), np.zeros((16, 2), "float32"))
