"""Synthetic data by category: what is not copied between host and IPU, and what then stands in its place."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb
from workbench import ipu

FLAGS = "--synthetic_data_categories={} --synthetic_data_initializer=2"


def directions(profile: Any) -> set[str]:
    """Which ways data go between host and IPU: what tiles receive, and what they send."""
    copies = profile.steps.query("kind == 'StreamCopy'")
    return {way for way in ("bytes_received", "bytes_sent") if (copies[way] > 0).any()}


def model() -> Any:
    keras.utils.set_random_seed(1)
    made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), keras.layers.Dropout(0.5, seed=1)])
    made.compile(keras.optimizers.SGD(0.1), "mse")
    return made


BOTH = {"bytes_received", "bytes_sent"}


@pytest.mark.parametrize(
    ("categories", "of_function", "of_model"),
    [
        ("parameters", set(), BOTH),
        ("infeed", BOTH, {"bytes_sent"}),
        ("outfeed", BOTH, {"bytes_received"}),
        ("infeed,outfeed", BOTH, set()),
        ("seed", BOTH, BOTH),
    ],
)
@pytest.mark.parametrize("stages", [None, [0, 0]])
def test_synthetic_data_are_not_copied(
    monkeypatch: pytest.MonkeyPatch, categories: str, of_function: set[str], of_model: set[str], stages: Any
) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", FLAGS.format(categories))
    config = ipu.config.IPUConfig()
    if stages is None:
        x = np.ones(4, np.float32)
        assert directions(wb.profile(lambda x: x * 3, x, config=config)) == of_function
    assert directions(wb.profile(model(), batch_size=2, config=config, stages=stages)) == of_model


def test_synthetic_parameters_are_made_up_and_stay_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", FLAGS.format("parameters"))
    config = ipu.config.IPUConfig()
    found = wb.compile(lambda x: x * 3, np.ones(4, np.float32), config=config).run(np.arange(4, dtype=np.float32))
    assert np.asarray(found).tolist() == [6.0] * 4
    ours = model()
    before = [np.asarray(each.value) for each in ours.variables]
    executable = wb.compile(ours, batch_size=2, mode="inference", config=config)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(executable.run(x), np.repeat(x.sum(1, keepdims=True) * 2 + 2, 2, axis=1))
    trained = wb.compile(ours, batch_size=2, config=config)
    trained.run(x, np.zeros((2, 2), np.float32))
    kernel, bias = ours.trainable_variables
    for held, value in zip((kernel, bias), before, strict=False):
        np.testing.assert_array_equal(np.asarray(held.value), value)


@pytest.mark.parametrize("synthetic", [True, False])
def test_a_synthetic_seed_is_not_sent(monkeypatch: pytest.MonkeyPatch, synthetic: bool) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", FLAGS.format("seed") if synthetic else "")
    ours = model()
    executable = wb.compile(ours, batch_size=2, config=ipu.config.IPUConfig())
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 2), np.float32)
    executable.run(x, y)
    (seed,) = [each for each in ours.variables if each.dtype == "uint32"]
    before = np.asarray(seed.value)
    ipu.utils.reset_ipu_seed(7)
    executable.run(x, y)
    first = np.asarray(seed.value)
    ipu.utils.reset_ipu_seed(7)
    executable.run(x, y)
    assert (np.asarray(seed.value).tolist() == first.tolist()) == (not synthetic)
    assert before.tolist() != first.tolist()
