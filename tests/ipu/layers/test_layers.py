"""`ipu.keras.layers` give the numbers of Keras' own or of NumPy, train, are saved, and are seen in a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import keras
import numpy as np
import pytest

import workbench as wb
from workbench.errors import InputError
from workbench.ipu.keras import layers

X = np.random.default_rng(1).standard_normal((4, 3, 5, 6)).astype("float32")
MACHINE = wb.target("ipu2", tiles_per_ipu=16)


def normalized(x: Any, axes: tuple[int, ...], epsilon: float = 1e-3) -> Any:
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


def test_groups_with_a_stride_are_channels_modulo_the_groups() -> None:
    layer = layers.GroupNormalization(groups=2)
    wanted = np.empty_like(X)
    for group in range(2):
        wanted[..., group::2] = normalized(X[..., group::2], (1, 2, 3))
    np.testing.assert_allclose(layer(X), wanted, atol=1e-5)


def exchanged_bytes(rows: int, strided: bool) -> int:
    """What tiles receive in the norm of 4 samples of rows x rows places and 32 channels, in two groups, on 64 tiles."""
    norm = layers.GroupNormalization(groups=2, strided_channel_grouping=strided, name="norm")
    made = keras.Sequential([keras.Input((rows, rows, 32)), norm])
    machine = wb.target("ipu2", tiles_per_ipu=64)
    steps = wb.compile(made, batch_size=4, mode="inference", target=machine).profile.steps
    inside = steps[(steps.layer == "norm") & (steps.kind == "DoExchange")]
    return int((inside.bytes_received * inside.times).sum())


@pytest.mark.slow
@pytest.mark.parametrize("strided", [True, False], ids=["strided", "consecutive"])
def test_groups_are_summed_where_their_channels_lie(strided: bool) -> None:
    """Four times the places on as many tiles take the same bytes: nothing of what is normalised is rearranged.

    A tile has places of one sample, and sends two sums of two groups; back come their mean and deviation, and a factor
    and an offset for each of 32 channels. What a tile has already is not sent.
    """
    sums, statistics, weights = 64 * 2 * 2 * 4, 64 * 2 * 2 * 4, 64 * 32 * 2 * 4
    for rows in (8, 16):
        found = exchanged_bytes(rows, strided)
        assert found <= sums + statistics + weights
        assert found == pytest.approx(sums + statistics + weights, rel=0.01)


def test_consecutive_groups_are_keras_own() -> None:
    layer = layers.GroupNormalization(groups=3, strided_channel_grouping=False)
    np.testing.assert_allclose(layer(X), keras.layers.GroupNormalization(3)(X), atol=1e-5)


def test_channels_may_come_first() -> None:
    first = np.moveaxis(X, -1, 1)
    behind, ahead = layers.GroupNormalization(groups=3), layers.GroupNormalization(groups=3, channels_axis=1)
    np.testing.assert_allclose(ahead(first), np.moveaxis(np.asarray(behind(X)), -1, 1), atol=1e-6)


def test_an_instance_is_a_group_of_one_channel() -> None:
    np.testing.assert_allclose(layers.InstanceNormalization()(X), normalized(X, (1, 2)), atol=1e-5)


@pytest.mark.parametrize("axis", [-1, [2, 3], [-1, 1]])
def test_layers_are_keras_own(axis: Any) -> None:
    """Also with weights of several axes, in the order they are named in."""
    ours, theirs = layers.LayerNormalization(axis=axis), keras.layers.LayerNormalization(axis=axis)
    np.testing.assert_allclose(ours(X), theirs(X), atol=1e-5)
    weights = [np.arange(each.size, dtype="float32").reshape(each.shape) for each in ours.get_weights()]
    ours.set_weights(weights)
    if isinstance(axis, int) or axis == [2, 3]:
        theirs.set_weights(weights)
        np.testing.assert_allclose(ours(X), theirs(X), atol=1e-3)
    else:  # weights are [channels, rows], the inputs have rows first
        gamma, beta = (each.T.reshape(1, 3, 1, 6) for each in weights)
        np.testing.assert_allclose(ours(X), normalized(X, (1, 3)) * gamma + beta, atol=1e-3)


def test_factor_and_offset_are_made_when_they_are_asked_for() -> None:
    for center, scale in ((True, False), (False, True), (False, False)):
        made = layers.GroupNormalization(center=center, scale=scale, beta_initializer="ones")
        shift = 1.0 if center else 0.0
        assert [each.name for each in made.weights] == []
        np.testing.assert_allclose(made(X) - shift, layers.GroupNormalization(center=False, scale=False)(X), atol=1e-5)
        assert [each.name for each in made.weights] == ["gamma"] * scale + ["beta"] * center


def test_halves_come_out_as_halves() -> None:
    """Their weights are of the type that was asked for, and their statistics exact to more than a half."""
    large = (X * 100 + 1000).astype("float16")
    made = layers.InstanceNormalization(dtype="float16")
    found = made(large)
    assert (str(found.dtype), {str(each.dtype) for each in made.weights}) == ("float16", {"float16"})
    np.testing.assert_allclose(found, normalized(large.astype("float64"), (1, 2)), atol=2e-2)


def test_an_embedding_is_rows_of_its_table() -> None:
    made = layers.Embedding(7, 3, embeddings_initializer="normal")
    ids = np.array([[0, 6, 2], [2, 2, 1]])
    found = made(ids)
    np.testing.assert_array_equal(found, made.get_weights()[0][ids])
    assert made.compute_output_shape((2, 3)) == (2, 3, 3)


@pytest.mark.parametrize("noise_shape", [None, [4, 1, 1, 6], [None, 3, 1, None]])
def test_dropout_drops_in_training_alone(noise_shape: Any) -> None:
    made = layers.Dropout(0.25, noise_shape=noise_shape)
    ones = np.ones((4, 3, 5, 6), "float32")
    assert made(ones, training=False) is not None
    np.testing.assert_array_equal(made(ones, training=False), ones)
    found = np.asarray(made(ones, training=True))
    assert set(np.unique(found)) == {0.0, np.float32(1) / np.float32(0.75)}
    if noise_shape is not None:
        assert np.all(found == found[:, :, :1])
    assert np.any(found != np.asarray(made(ones, training=True)))


def test_a_pair_of_numbers_seeds_every_mask() -> None:
    made = layers.Dropout(0.5, seed=[3, 4])
    first, second = (np.asarray(made(X, training=True)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    kept = np.asarray(jax.random.bernoulli(np.array([3, 4], "uint32"), 0.5, X.shape))
    np.testing.assert_array_equal(first, np.where(kept, X * 2, 0))
    assert np.any(first != np.asarray(layers.Dropout(0.5, seed=[3, 5])(X, training=True)))


def test_the_gradient_of_dropout_is_its_mask_drawn_again() -> None:
    made = layers.Dropout(0.5, seed=[3, 4])
    gradient = jax.grad(lambda x: (made(x, training=True) * 3.0).sum())(X)
    np.testing.assert_array_equal(gradient, np.where(np.asarray(made(X, training=True)) != 0, 6.0, 0.0))
    _, pull = jax.vjp(lambda x: made(x, training=True), X)
    held = [each for each in jax.tree_util.tree_leaves(pull) if hasattr(each, "shape")]
    assert max((each.size for each in held), default=0) <= 2  # the seed, and no mask


def test_marks_change_nothing() -> None:
    for made in (layers.AssumeEqualAcrossReplicas(), layers.AssumeEqualAcrossReplicas(inplace=True)):
        np.testing.assert_array_equal(made(X), X)
        assert [np.asarray(each).tolist() for each in made([X, X])] == [X.tolist()] * 2
    np.testing.assert_array_equal(layers.RecomputationCheckpoint()(X), X)


def network() -> Any:
    return keras.Sequential(
        [
            keras.Input((8,), dtype="int32"),
            layers.Embedding(20, 6),
            layers.LayerNorm(),
            layers.RecomputationCheckpoint(),
            keras.layers.Dense(6, "relu"),
            layers.GroupNorm(groups=3),
            layers.InstanceNorm(),
            layers.Dropout(0.3),
            layers.AssumeEqualAcrossReplicas(),
            keras.layers.Flatten(),
            keras.layers.Dense(2),
        ]
    )


def test_a_network_of_them_is_saved_and_made_again(tmp_path: Path) -> None:
    made = network()
    made.save(tmp_path / "made.keras")
    again = keras.models.load_model(tmp_path / "made.keras")
    ids = np.arange(16).reshape(2, 8)
    np.testing.assert_allclose(made(ids), again(ids), rtol=1e-6)
    for one, other in zip(made.layers, again.layers, strict=True):
        assert one.get_config() == other.get_config()


def test_a_network_of_them_trains_as_keras_does_and_names_its_layers() -> None:
    made = network()
    made.compile("sgd", "mse")
    executable = wb.compile(made, batch_size=4, mode="training", target=MACHINE)
    classes = {str(each) for each in executable.profile.operators["layer"]}
    assert any("group_normalization" in each for each in classes)
    ids = np.arange(32).reshape(4, 8) % 20
    first = executable.run(ids, np.ones((4, 2), "float32"))["loss"]
    for _ in range(20):
        last = executable.run(ids, np.ones((4, 2), "float32"))["loss"]
    assert float(last) < float(first)


def test_inference_of_them_is_keras_own() -> None:
    made = network()
    executable = wb.compile(made, batch_size=4, mode="inference", target=MACHINE)
    ids = np.arange(32).reshape(4, 8) % 20
    np.testing.assert_allclose(executable.run(ids), made(ids), atol=1e-5)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: layers.GroupNormalization(groups=4)(X), "groups is 4 for 6 channels"),
        (lambda: layers.GroupNormalization(groups=0), "groups is 0"),
        (lambda: layers.GroupNormalization(channels_axis=2)(X), "channels_axis is 2.*1 or the last"),
        (lambda: layers.GroupNormalization(channels_axis=4)(X), "channels_axis is 4"),
        (lambda: layers.GroupNormalization(epsilon=-1.0), "epsilon is -1.0"),
        (lambda: layers.InstanceNormalization(center="yes"), "center is 'yes'"),
        (lambda: layers.LayerNormalization(axis=[1, 1])(X), "axis is .*each dimension once"),
        (lambda: layers.LayerNormalization(axis="last"), "axis is 'last'"),
        (lambda: layers.Embedding(0, 3), "input_dim is 0"),
        (lambda: layers.Embedding(3, 3)(np.zeros((2, 2), "float32")), "whole numbers"),
        (lambda: layers.Embedding(3, 3)(np.zeros(2, "int32")), r"\(batch, length\)"),
        (lambda: layers.Embedding(3, 3, "nosuch"), "embeddings_initializer is 'nosuch'"),
        (lambda: layers.Embedding(3, 3, mask_zero=True), "no argument 'mask_zero'"),
        (lambda: layers.Dropout(1.0), "rate is 1.0"),
        (lambda: layers.Dropout(0.5, seed=3), "seed is 3"),
        (lambda: layers.Dropout(0.5, noise_shape="all"), "noise_shape is 'all'"),
        (lambda: layers.Dropout(0.5, noise_shape=[2, 2])(X, training=True), "noise_shape is"),
        (lambda: layers.AssumeEqualAcrossReplicas(inplace=3), "inplace is 3"),
        (lambda: layers.GroupNormalization(group=3), "GroupNormalization: .*'group'.*did you mean 'groups'"),
        (lambda: layers.InstanceNormalization(groups=3), "InstanceNormalization: .*'groups'"),
        (lambda: layers.LayerNormalization(epsilo=1e-3), "no argument 'epsilo'.*did you mean 'epsilon'"),
        (lambda: layers.Dropout(rte=0.5), "Dropout: missing .*'rate'.*did you mean 'rate'"),
        (lambda: layers.Embedding(3), "Embedding: missing .*'output_dim'"),
    ],
)
def test_what_does_not_fit_is_named(call: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        call()
