"""Programs as people write them, made in a scope and outside it with equal seeds: the same numbers, and a profile."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.strategy.twins import Twins, assert_alike, configure
from workbench import ipu
from workbench.ipu.ipu_strategy import IPUStrategy

EPOCHS, BATCH = 2, 8
L = keras.layers


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def classes(seed: int, count: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(0, count, shape)


Program = tuple[Any, dict[str, Any]]


def two_inputs_and_a_shared_layer() -> Program:
    first, second = keras.Input((6,), name="first"), keras.Input((6,), name="second")
    tower = L.Dense(5, "tanh", name="tower")
    ends = [tower(first), tower(second)]
    outputs = L.Dense(1, name="score")(L.concatenate([*ends, L.subtract(ends)]))
    model = keras.Model([first, second], outputs)
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    return model, {"x": [normal(1, 48, 6), normal(2, 48, 6)], "y": normal(3, 48, 1)}


def statistics_and_draws() -> Program:
    model = keras.Sequential(
        [
            keras.Input((6,)),
            *(L.Dense(8, use_bias=False), L.BatchNormalization(name="norm"), L.ReLU(), L.Dropout(0.4, seed=7)),
            L.Dense(3, "softmax"),
        ]
    )
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    x, y = normal(1, 48, 6), classes(2, 3, 48)
    return model, {"x": x, "y": y, "validation_data": (x[:24], y[:24])}


def huber(wanted: Any, found: Any) -> Any:
    off = keras.ops.abs(wanted - found)
    return keras.ops.mean(keras.ops.where(off < 1, 0.5 * off * off, off - 0.5), axis=-1)


class Worst(keras.metrics.Metric):
    """The largest deviation of an epoch."""

    def __init__(self, name: str = "worst") -> None:
        super().__init__(name=name)
        self.most = self.add_weight(name="most", initializer="zeros")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.most.assign(keras.ops.maximum(self.most, keras.ops.max(keras.ops.abs(y_true - y_pred))))

    def result(self) -> Any:
        return keras.ops.convert_to_tensor(self.most)


def a_loss_and_a_metric_of_ones_own() -> Program:
    hidden = L.Dense(8, "gelu", kernel_regularizer="l2", activity_regularizer=keras.regularizers.L1(1e-3))
    model = keras.Sequential([keras.Input((6,)), hidden, L.Dense(2)])
    model.compile(keras.optimizers.RMSprop(0.01), huber, metrics=[Worst(), "mse"])
    return model, {"x": normal(1, 48, 6), "y": normal(2, 48, 2), "validation_split": 0.5}


def words_in_an_lstm() -> Program:
    model = keras.Sequential(
        [keras.Input((5,), dtype="int32"), L.Embedding(20, 6), L.LSTM(4, name="words"), L.Dense(1, "sigmoid")]
    )
    optimizer = keras.optimizers.Adam(0.02, clipnorm=1.0)
    metrics = ["accuracy", keras.metrics.AUC(num_thresholds=20, name="area")]
    model.compile(optimizer, "binary_crossentropy", metrics=metrics)
    return model, {"x": classes(1, 20, 48, 5), "y": classes(2, 2, 48, 1).astype("float32")}


def weights_of_samples_and_an_early_stop() -> Program:
    model = keras.Sequential([keras.Input((6,)), L.Dense(8, "relu"), L.Dense(1)])
    schedule = keras.optimizers.schedules.CosineDecay(0.05, 30)
    model.compile(keras.optimizers.AdamW(schedule), "mse", weighted_metrics=["mae"], metrics=["mse"])
    x, y, weights = normal(1, 48, 6), normal(2, 48, 1), np.linspace(0.1, 2, 48).astype("float32")
    stop = keras.callbacks.EarlyStopping("val_loss", patience=1, min_delta=0.05, restore_best_weights=True)
    more = {"sample_weight": weights, "validation_data": (x[:24], y[:24], weights[:24]), "callbacks": [stop]}
    return model, {"x": x, "y": y, **more, "epochs": 8}


PROGRAMS: dict[str, tuple[Callable[[], Program], str]] = {
    each.__name__: (each, layer)
    for each, layer in (
        (two_inputs_and_a_shared_layer, "tower"),
        (statistics_and_draws, "norm"),
        (a_loss_and_a_metric_of_ones_own, "metrics"),
        (words_in_an_lstm, "words"),
        (weights_of_samples_and_an_early_stop, "metrics"),
    )
}


def run(build: Callable[[], Program], strategy: IPUStrategy | None) -> tuple[Any, dict[str, list[float]]]:
    keras.utils.set_random_seed(1)
    with strategy.scope() if strategy is not None else nullcontext():
        model, given = build()
    if strategy is not None:
        model.steps_per_execution = 3
    history = model.fit(**{"batch_size": BATCH, "epochs": EPOCHS, "verbose": 0, **given}).history
    return model, history


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_trains_in_a_scope_as_outside_it(twins: Twins, name: str) -> None:
    build, layer = PROGRAMS[name]
    ours, here = run(build, twins.strategy)
    theirs, there = run(build, None)
    assert here.keys() == there.keys()
    for each, values in there.items():
        np.testing.assert_allclose(here[each], values, rtol=1e-5, err_msg=each)
    assert_alike(ours, theirs)
    assert_alike(ours.optimizer, theirs.optimizer)
    trained = twins.strategy.executables[0].profile
    assert {"forward", "backward", "update"} <= set(trained.steps.direction)
    found = trained.steps[trained.steps.layer.str.contains(layer)]
    assert found.total_cycles.sum() > 0


@pytest.mark.slow
def test_an_early_stop_is_early_and_its_weights_are_those_before(twins: Twins) -> None:
    model, history = run(weights_of_samples_and_an_early_stop, twins.strategy)
    losses = history["val_loss"]
    assert 1 < len(losses) < 8
    _, given = weights_of_samples_and_an_early_stop()
    x, y, weights = given["validation_data"]
    found = model.evaluate(x, y, sample_weight=weights, batch_size=BATCH, verbose=0)
    # The epoch before the last was the last to better the loss by as much as was asked for.
    assert found[0] == pytest.approx(losses[-2], rel=1e-5)


def two_losses_over_a_shared_layer() -> Program:
    """Inputs and outputs by name, a batch normalisation and draws, a shared layer; stages by scopes."""
    inputs = {name: keras.Input((6,), name=name) for name in ("first", "second")}
    with ipu.keras.PipelineStage(0):
        tower = L.Dense(5, "tanh", name="tower")
        ends = [tower(each) for each in inputs.values()]
        apart = L.Dropout(0.2, seed=3)(L.BatchNormalization(name="norm")(ends[0] - ends[1]))
    with ipu.keras.PipelineStage(1):
        score = L.Dense(1, name="score")(L.concatenate(ends))
        kind = L.Dense(3, "softmax", name="kind", kernel_regularizer="l2")(apart)
    model = keras.Model(list(inputs.values()), {"score": score, "kind": kind})
    losses = {"score": "mse", "kind": "sparse_categorical_crossentropy"}
    metrics = {"score": ["mae"], "kind": ["accuracy"]}
    optimizer = keras.optimizers.Adam(0.01, global_clipnorm=0.5)
    model.compile(optimizer, losses, metrics=metrics, loss_weights={"score": 1.0, "kind": 0.3})
    x = {"first": normal(1, 64, 6), "second": normal(2, 64, 6)}
    y = {"score": normal(3, 64, 1), "kind": classes(4, 3, 64)}
    held = tuple({name: values[:32] for name, values in each.items()} for each in (x, y))
    return model, {"x": x, "y": y, "validation_data": held, "shuffle": False}


@pytest.mark.slow
def test_a_program_of_two_losses_trains_in_stages_as_in_one_piece(twins: Twins) -> None:
    found = []
    for staged in (True, False):
        configure(2 if staged else 1)
        keras.utils.set_random_seed(1)
        with twins.strategy.scope():
            model, given = two_losses_over_a_shared_layer()
        model.steps_per_execution = 4
        if staged:
            model.set_pipelining_options(4)
        else:
            model.reset_pipeline_stage_assignment()
            model.set_gradient_accumulation_options(4)
        found.append((model, model.fit(**{"batch_size": BATCH, "epochs": EPOCHS, "verbose": 0, **given}).history))
    (ours, here), (theirs, there) = found
    assert here.keys() == there.keys()
    assert {"score_mae", "val_kind_accuracy"} <= here.keys()
    for each, values in there.items():
        np.testing.assert_allclose(here[each], values, rtol=1e-5, err_msg=each)
    assert_alike(ours, theirs)
    assert [each.graph.meta.get("stages", 1) for each in twins.strategy.executables] == [2, 2, 1, 1]
