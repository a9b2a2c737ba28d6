"""Programs written as a new user would, from the README alone: they compile, and run as Keras or JAX run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
from jax import lax
from keras import layers, ops

import workbench as wb
from tests.engine import reconcile
from workbench.errors import InputError

MACHINE = wb.target("ipu2", tiles_per_ipu=64)
RNG = np.random.default_rng(8)


def floats(*shape: int) -> Any:
    return RNG.normal(size=shape).astype("float32")


# -- JAX -------------------------------------------------------------------------------------------------


@jax.custom_vjp
def clipped(x: Any) -> Any:
    return x


clipped.defvjp(lambda x: (x, None), lambda _, slope: (jnp.clip(slope, -0.1, 0.1),))


def nested(x: Any, w: Any) -> Any:
    """A scan of a counted loop of a branch, then a loop nobody can count."""

    def inner(_: Any, s: Any) -> Any:
        return lax.cond(jnp.sum(s) > 0.0, lambda s: jnp.tanh(s @ w), lambda s: clipped(s) * 0.5 + 0.1, s)

    def outer(carry: Any, time: Any) -> Any:
        carry = lax.fori_loop(0, 3, inner, carry) * time
        turns, grown = lax.while_loop(
            lambda s: (s[0] < 4) & (jnp.abs(s[1]).max() < 2.0), lambda s: (s[0] + 1, s[1] * 1.1), (0, carry)
        )
        return carry + 0.01 * grown, (turns, jnp.max(carry))

    return lax.scan(outer, x, jnp.arange(1.0, 4.0), reverse=True)


def nested_slope(x: Any, w: Any) -> Any:
    def outer(carry: Any, time: Any) -> Any:
        def inner(s: Any, _: Any) -> Any:
            return lax.cond(jnp.sum(s) > 0.0, lambda s: jnp.tanh(s @ w) * time, lambda s: clipped(s) * 0.5, s), s.sum()

        return lax.scan(inner, carry, None, length=3)

    return jax.grad(lambda x: sum(each.sum() for each in lax.scan(jax.checkpoint(outer), x, jnp.arange(1.0, 4.0))))(x)


def messages(weights: Any, nodes: Any, sources: Any, ends: Any) -> Any:
    """A graph network: means and largest of what neighbours send."""
    for weight in weights:
        sent = jax.nn.relu(jnp.concatenate([nodes[sources], nodes[ends]], -1) @ weight)
        total = jax.ops.segment_sum(sent, ends, num_segments=nodes.shape[0])
        largest = jax.ops.segment_max(sent, ends, num_segments=nodes.shape[0])
        count = jnp.maximum(jax.ops.segment_sum(jnp.ones(ends.shape), ends, num_segments=nodes.shape[0]), 1)
        nodes = total / count[:, None] + jnp.where(jnp.isfinite(largest), largest, 0)
    return nodes.sum(0)


def quantised(x: Any, w: Any, scale: Any) -> Any:
    """A dense layer in 8 bits."""
    held = jnp.clip(jnp.round(x / jnp.max(jnp.abs(x)) * 127), -127, 127).astype(jnp.int8)
    return lax.dot_general(held, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32) * scale


def beams(scores: Any) -> Any:
    def step(held: Any, row: Any) -> Any:
        return lax.top_k((held[:, None] + row).reshape(-1), 3)

    return lax.scan(step, jnp.zeros(3), scores)


def counted(x: Any) -> Any:
    """A mutable array that a loop writes."""
    held = jax.new_ref(jnp.zeros(3))

    def turn(number: Any, _: Any) -> Any:
        held[number] += jnp.asarray(x)[number] * 2
        return _

    lax.fori_loop(0, 3, turn, 0)
    return held[...], held[0]


EDGES = RNG.integers(0, 7, (2, 12)).astype("int32")
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "nested control flow": (nested, (floats(3, 4), floats(4, 4))),
    "slope of nested control flow": (nested_slope, (floats(3, 4), floats(4, 4))),
    "graph network": (messages, ([floats(10, 5), floats(10, 5)], floats(7, 5), EDGES[0], EDGES[1])),
    "slope of a graph network": (
        jax.grad(lambda *given: (messages(*given) ** 2).sum()),
        ([floats(10, 5)], floats(7, 5), EDGES[0], EDGES[1]),
    ),
    "quantised dense": (quantised, (floats(4, 16), RNG.integers(-127, 127, (16, 8)).astype("int8"), floats(8))),
    "beam search": (beams, (floats(4, 3, 5),)),
    "mutable array": (counted, (floats(3),)),
    "Schur form": (lambda a: jnp.abs(jnp.linalg.det(lax.linalg.schur(a)[1])), (floats(4, 4),)),
    "random key": (lambda key, logits: jax.random.categorical(key, logits), (jax.random.key(3), floats(3, 5))),
}
SLOW = ("Schur form", "graph network", "nested control flow")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * ("slope" in name or name in SLOW)) for name in FUNCTIONS]
)
def test_functions(name: str) -> None:
    function, operands = FUNCTIONS[name]
    found = wb.compile(function, *operands, target=MACHINE)
    assert found.profile.unmodelled.empty, found.profile.unmodelled
    reconcile.reconciles(found.compiled)
    ours, theirs = jax.tree.leaves(found.run(*operands)), jax.tree.leaves(function(*operands))
    for one, other in zip(ours, theirs, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_complex_numbers_are_refused_in_words() -> None:
    with pytest.raises(InputError, match="computes with complex64 values, which the IPU does not have"):
        wb.compile(lambda x: jnp.fft.fft(x).real, floats(8), target=MACHINE)


# -- Keras -----------------------------------------------------------------------------------------------


def siamese() -> Any:
    """Two images through one tower; how far apart they are."""
    left, right = keras.Input((12, 12, 1), name="left"), keras.Input((12, 12, 1), name="right")
    tower = keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(6),
        ],
        name="tower",
    )
    apart = layers.Lambda(lambda pair: ops.sqrt(ops.sum(ops.square(pair[0] - pair[1]), -1, keepdims=True) + 1e-6))
    return keras.Model([left, right], layers.Dense(1, "sigmoid")(apart([tower(left), tower(right)])))


class Capsules(layers.Layer):
    """Routing by agreement, in a loop."""

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(shape=(shape[1], 3, shape[2], 5), initializer="glorot_uniform", name="kernel")

    def call(self, inputs: Any) -> Any:
        votes = ops.einsum("bik,inkd->bind", inputs, self.kernel)

        def squashed(v: Any) -> Any:
            square = ops.sum(v * v, -1, keepdims=True)
            return square / (1 + square) * v / ops.sqrt(square + 1e-7)

        def outcome(logits: Any) -> Any:
            return squashed(ops.einsum("bin,bind->bnd", ops.softmax(logits, -1), votes))

        def route(_: Any, logits: Any) -> Any:
            return logits + ops.einsum("bind,bnd->bin", votes, outcome(logits))

        start = ops.zeros((ops.shape(inputs)[0], inputs.shape[1], 3))
        return outcome(ops.fori_loop(0, 2, route, start))


def capsules() -> Any:
    inputs = keras.Input((10, 10, 1))
    x = layers.Reshape((-1, 4))(layers.Conv2D(8, 3, strides=2, activation="relu")(inputs))
    return keras.Model(inputs, layers.Lambda(lambda v: ops.sqrt(ops.sum(v * v, -1) + 1e-7))(Capsules()(x)))


def gated_unet() -> Any:
    """A U-Net whose skips are gated by what comes from below."""

    def block(x: Any, filters: int) -> Any:
        return layers.Activation("swish")(layers.GroupNormalization(2)(layers.Conv2D(filters, 3, padding="same")(x)))

    def gated(skip: Any, below: Any) -> Any:
        met = layers.ReLU()(layers.Add()([layers.Conv2D(4, 1)(skip), layers.Conv2D(4, 1)(below)]))
        return layers.Multiply()([skip, layers.Conv2D(1, 1, activation="sigmoid")(met)])

    inputs = keras.Input((8, 8, 2))
    top = block(inputs, 4)
    x = block(layers.AveragePooling2D(2)(top), 8)
    x = layers.Conv2D(4, 1)(layers.UpSampling2D(interpolation="bilinear")(x))
    x = block(layers.Concatenate()([x, gated(top, x)]), 4)
    return keras.Model(inputs, layers.Conv2D(3, 1)(layers.Conv2DTranspose(4, 2, padding="same")(x)))


def wavenet() -> Any:
    """Gated causal convolutions with growing dilation."""
    tokens = keras.Input((16,), dtype="int32")
    x, skips = layers.Embedding(16, 6)(tokens), []
    for dilation in (1, 2, 4):
        filtered, gate = (
            layers.Conv1D(6, 2, dilation_rate=dilation, padding="causal", activation=activation)(x)
            for activation in ("tanh", "sigmoid")
        )
        skips.append(layers.Conv1D(6, 1)(layers.Multiply()([filtered, gate])))
        x = layers.Add()([x, skips[-1]])
    return keras.Model(tokens, layers.Conv1D(4, 1)(layers.ReLU()(layers.Add()(skips))))


class Contrast(keras.Model):
    """Subclassed, with a loss of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = keras.Sequential([layers.Dense(16, "relu"), layers.Dense(8)])
        self.warmth = self.add_weight(shape=(), initializer="ones", name="warmth")

    def call(self, x: Any) -> Any:
        z = self.encoder(x)
        return z / ops.norm(z, axis=-1, keepdims=True) * self.warmth

    def compute_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None, training: bool = True) -> Any:
        alike = ops.matmul(y_pred, ops.transpose(y_pred))
        return ops.mean(ops.logsumexp(alike, axis=-1) - ops.diagonal(alike)) + 0.01 * ops.mean(ops.abs(y_pred - y))


def contrast() -> Any:
    model = Contrast()
    model.build((4, 6))
    return model


MODELS: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "siamese": (siamese, [floats(4, 12, 12, 1), floats(4, 12, 12, 1)], floats(4, 1)),
    "capsules": (capsules, floats(2, 10, 10, 1), floats(2, 3)),
    "gated U-Net": (gated_unet, floats(2, 8, 8, 2), floats(2, 8, 8, 3)),
    "wavenet": (wavenet, RNG.integers(0, 16, (2, 16)).astype("int32"), floats(2, 16, 4)),
    "contrast": (contrast, floats(4, 6), floats(4, 8)),
}


def made(build: Callable[[], Any]) -> Any:
    keras.utils.set_random_seed(6)
    model = build()
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    return model


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["training", "inference"])
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, mode: str) -> None:
    build, x, y = MODELS[name]
    model, theirs = made(build), made(build)
    batch = len(jax.tree.leaves(x)[0])
    given = () if getattr(model, "inputs", None) else (x, y)
    ours = wb.compile(model, *given, batch_size=batch, mode=mode, target=MACHINE)
    assert ours.profile.unmodelled.empty, ours.profile.unmodelled
    reconcile.reconciles(ours.compiled)
    if mode == "inference":
        np.testing.assert_allclose(ours.run(x), theirs.predict_on_batch(x), rtol=1e-5, atol=1e-6)
        return
    loss = float(theirs.train_on_batch(x, y, return_dict=True)["loss"])
    assert ours.run(x, y)["loss"] == pytest.approx(loss, rel=1e-5)
    for held, value in zip(model.variables, theirs.variables, strict=True):
        np.testing.assert_allclose(held.value, value.value, rtol=1e-5, atol=1e-6)
