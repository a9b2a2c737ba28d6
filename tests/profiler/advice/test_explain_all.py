"""Nothing in a training step of a small ResNet is without its formula, inputs and source."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from workbench import api
from workbench.engine.target import target
from workbench.profiler.advice.explanation import Explanation
from workbench.profiler.profile import Profile

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def profile() -> Profile:
    """Two residual blocks with batch norms, pooling and a dense layer, trained with momentum on 16 tiles."""
    import keras
    from keras import layers

    def convolution(x: object, stride: int, *, active: bool = True) -> object:
        x = layers.BatchNormalization()(layers.Conv2D(16, 3, strides=stride, padding="same", use_bias=False)(x))
        return layers.ReLU()(x) if active else x

    images = keras.Input((16, 16, 4))
    x = layers.MaxPooling2D(2)(convolution(images, 1))
    for stride in (1, 2):
        short = layers.BatchNormalization()(layers.Conv2D(16, 1, strides=stride, use_bias=False)(x))
        x = layers.ReLU()(layers.Add()([convolution(convolution(x, stride), 1, active=False), short]))
    model = keras.Model(images, layers.Dense(10)(layers.Dropout(0.1)(layers.GlobalAveragePooling2D()(x))))
    return api.compile(
        model,
        target=target("ipu2", tiles_per_ipu=16),
        mode="training",
        batch_size=4,
        optimizer=keras.optimizers.SGD(0.01, momentum=0.9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    ).profile


def lacking(explained: Explanation) -> list[str]:
    """What is missing, of an explanation or of its parts; a sum has its inputs and its source by its parts."""
    found = []
    if not explained.formula:
        found.append(f"{explained.subject}: no formula")
    if explained.parts:
        return found + [line for part in explained.parts for line in lacking(part)]
    if not explained.source:
        found.append(f"{explained.subject}: no source")
    return found


def inputs_lacking(explained: Explanation) -> list[str]:
    """Leaves whose formula was evaluated on nothing."""
    if explained.parts:
        return [line for part in explained.parts for line in inputs_lacking(part)]
    return [] if explained.inputs else [f"{explained.subject}: no inputs"]


def test_every_step(profile: Profile) -> None:
    kinds = set(profile.steps["kind"])
    assert {"OnTileExecute", "DoExchange", "Sync", "StreamCopy"} <= kinds
    for step in profile.steps["id"]:
        explained = profile.explain(step=int(step))
        assert explained.parts, explained
        assert lacking(explained) + inputs_lacking(explained) == []


def test_every_variable_of_every_category(profile: Profile) -> None:
    kinds = {"parameter", "optimizer", "input", "activation", "gradient", "temporary"}
    assert kinds <= set(profile.variables["kind"])
    for variable in profile.variables["id"]:
        explained = profile.explain(variable=int(variable))
        assert lacking(explained) + inputs_lacking(explained) == []
        assert {"mapping", "life", "shape"} <= set(explained.inputs)


def test_every_operator(profile: Profile) -> None:
    assert len(profile.operators) > 20
    for name in profile.operators["name"]:
        explained = profile.explain(operator=name)
        assert lacking(explained) + inputs_lacking(explained) == []
        assert {"plan", "flops"} <= set(explained.inputs)


@pytest.mark.parametrize("of", [lambda profile: {"tile": 3}, lambda profile: {"tile": 3, "step": profile.peak.step}])
def test_every_category_of_a_tile(profile: Profile, of: Callable[[Profile], dict[str, int]]) -> None:
    assert lacking(profile.explain(**of(profile))) == []
