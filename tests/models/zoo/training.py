"""Optimizers, losses, clipping, loss scaling, averages and metrics on one small model, as users set them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from tests.models.zoo.case import Case

optimizers, schedules, L = keras.optimizers, keras.optimizers.schedules, keras.layers
SCC = "sparse_categorical_crossentropy"


def small(last: str = "softmax", units: int = 3) -> Any:
    inputs = keras.Input((6, 6, 2))
    x = L.Conv2D(4, 3, name="conv")(inputs)
    x = L.BatchNormalization(name="norm")(x)
    x = L.Flatten(name="flat")(L.ReLU(name="relu")(x))
    return keras.Model(inputs, L.Dense(units, last, name="out")(x), name="small")


def dense() -> Any:
    return keras.Sequential([keras.Input((6,)), L.Dense(4, "tanh"), L.Dense(3, "softmax")], name="dense")


def with_optimizer(make: Callable[[], Any], build: Callable[[], Any] = small) -> Case:
    return Case(build=build, loss=SCC, classes=3, optimizer=make, batch_size=4)


OPTIMIZERS = {
    "SGD": with_optimizer(lambda: optimizers.SGD(0.1)),
    "momentum": with_optimizer(lambda: optimizers.SGD(0.1, momentum=0.9)),
    "Nesterov": with_optimizer(lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "RMSprop": with_optimizer(lambda: optimizers.RMSprop(0.01, momentum=0.5, centered=True)),
    "Adam": with_optimizer(lambda: optimizers.Adam(0.01)),
    "Adam amsgrad": with_optimizer(lambda: optimizers.Adam(0.01, amsgrad=True)),
    "AdamW": with_optimizer(lambda: optimizers.AdamW(0.01)),
    "Adagrad": with_optimizer(lambda: optimizers.Adagrad(0.01)),
    "Adadelta": with_optimizer(lambda: optimizers.Adadelta(0.5)),
    "Adamax": with_optimizer(lambda: optimizers.Adamax(0.01)),
    "Adafactor": with_optimizer(lambda: optimizers.Adafactor(0.01)),
    "Ftrl": with_optimizer(lambda: optimizers.Ftrl(0.05)),
    "Lion": with_optimizer(lambda: optimizers.Lion(0.01)),
    "Lamb": with_optimizer(lambda: optimizers.Lamb(0.01)),
    "Nadam": with_optimizer(lambda: optimizers.Nadam(0.01)),
    "Muon": with_optimizer(lambda: optimizers.Muon(0.01)),
    "ScheduleFreeAdamW": with_optimizer(lambda: optimizers.ScheduleFreeAdamW(0.01)),
}
SETTINGS = {
    "clipped by value": with_optimizer(lambda: optimizers.SGD(0.1, clipvalue=0.01), dense),
    "clipped by norm": with_optimizer(lambda: optimizers.Adam(0.01, clipnorm=0.1), dense),
    "clipped by global norm": with_optimizer(lambda: optimizers.AdamW(0.01, global_clipnorm=0.1), dense),
    "averaged": with_optimizer(
        lambda: optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2), dense
    ),
    "scaled": with_optimizer(
        lambda: optimizers.LossScaleOptimizer(optimizers.SGD(0.1, momentum=0.9), initial_scale=8.0), dense
    ),
    "scaled and clipped": with_optimizer(
        lambda: optimizers.LossScaleOptimizer(optimizers.Adam(0.01, global_clipnorm=0.1), dynamic_growth_steps=2), dense
    ),
    "accumulated by Keras": with_optimizer(lambda: optimizers.SGD(0.1, gradient_accumulation_steps=2), dense),
    "exponential decay": with_optimizer(lambda: optimizers.SGD(schedules.ExponentialDecay(0.1, 2, 0.5)), dense),
    "cosine decay": with_optimizer(
        lambda: optimizers.Adam(schedules.CosineDecay(0.1, 5, warmup_target=0.2, warmup_steps=2)), dense
    ),
    "piecewise": with_optimizer(
        lambda: optimizers.SGD(schedules.PiecewiseConstantDecay([1, 3], [0.1, 0.05, 0.01])), dense
    ),
    "polynomial decay": with_optimizer(lambda: optimizers.SGD(schedules.PolynomialDecay(0.1, 5, cycle=True)), dense),
}
LOSSES = {
    name: Case(build=lambda last=last: _scored(last), loss=name, batch_size=4)
    for name, last in (
        ("binary_crossentropy", "sigmoid"),
        ("binary_focal_crossentropy", "sigmoid"),
        ("categorical_crossentropy", "softmax"),
        ("categorical_focal_crossentropy", "softmax"),
        ("categorical_hinge", "softmax"),
        ("cosine_similarity", "linear"),
        ("hinge", "tanh"),
        ("squared_hinge", "tanh"),
        ("huber", "linear"),
        ("kl_divergence", "softmax"),
        ("log_cosh", "linear"),
        ("mean_absolute_error", "linear"),
        ("mean_absolute_percentage_error", "softplus"),
        ("mean_squared_error", "linear"),
        ("mean_squared_logarithmic_error", "softplus"),
        ("poisson", "softplus"),
        ("dice", "sigmoid"),
        ("tversky", "sigmoid"),
    )
} | {"circle": Case(build=lambda: _scored("linear"), loss="circle", batch_size=4)}


def _scored(last: str) -> Any:
    return keras.Sequential([keras.Input((6,)), L.Dense(4, "tanh"), L.Dense(3, last)], name="scored")


LOSSES["circle"] = Case(
    build=lambda: keras.Sequential([keras.Input((6,)), L.Dense(4), L.UnitNormalization()]),
    loss=keras.losses.Circle(),
    classes=2,
    batch_size=4,
)
TABLES = ("OPTIMIZERS", "SETTINGS", "LOSSES")
