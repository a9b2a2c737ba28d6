"""Ten models nobody planned for, written as somebody does who never saw this compiler."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras
from keras import ops

from tests.models.zoo.case import Case

L = keras.layers


class Layered(L.Layer):
    """A layer of one function."""

    def __init__(self, function: Any, **options: Any) -> None:
        super().__init__(**options)
        self.function = function

    def call(self, *tensors: Any) -> Any:
        return self.function(*tensors)


def mixture_of_experts() -> Any:
    """Tokens go to their two best experts."""

    def route(scores: Any, experts: Any) -> Any:
        values, places = ops.top_k(scores, 2)
        weights = ops.softmax(values)
        return ops.sum(ops.take_along_axis(experts, places[..., None], axis=2) * weights[..., None], axis=2)

    x = inputs = keras.Input((5, 6))
    experts = L.Reshape((5, 4, 6))(L.Dense(24, "gelu", name="experts")(x))
    return keras.Model(inputs, Layered(route, name="route")(L.Dense(4, name="gate")(x), experts), name="moe")


def neural_ode() -> Any:
    """Runge-Kutta steps of a learned field in a loop of JAX."""

    class Field(L.Layer):
        def build(self, shape: Any) -> None:
            self.w = self.add_weight(shape=(shape[-1], shape[-1]), name="w")

        def call(self, x: Any) -> Any:
            def field(x: Any) -> Any:
                return jnp.tanh(x @ jnp.asarray(self.w))

            def step(x: Any, _: Any) -> Any:
                one = field(x)
                two = field(x + 0.05 * one)
                return x + 0.1 * two, None

            return jax.lax.scan(step, x, None, length=6)[0]

    inputs = keras.Input((4,))
    return keras.Model(inputs, Field(name="field")(inputs), name="ode")


def graph_network() -> Any:
    """Messages along edges, summed at their ends."""

    def messages(nodes: Any, edges: Any) -> Any:
        sources, ends = edges[..., 0], edges[..., 1]
        sent = ops.take_along_axis(nodes, sources[..., None], axis=1)
        return ops.matmul(ops.transpose(ops.one_hot(ends, 5), (0, 2, 1)), sent)

    nodes, edges = keras.Input((5, 4), name="nodes"), keras.Input((7, 2), dtype="int32", name="edges")
    x = L.Dense(4, "relu", name="encode")(nodes)
    for number in range(2):
        received = Layered(messages, name=f"send_{number}")(x, edges)
        x = L.Dense(4, "relu", name=f"update_{number}")(L.Add()([x, received]))
    return keras.Model([nodes, edges], L.Dense(1, name="read")(L.GlobalMaxPooling1D()(x)), name="gnn")


def variational_autoencoder() -> Any:
    """A sample of a learned normal distribution, whose divergence is a loss."""

    class Sample(L.Layer):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.seeds = keras.random.SeedGenerator(3)

        def call(self, mean: Any, log_variance: Any) -> Any:
            kl = -0.5 * ops.mean(1 + log_variance - ops.square(mean) - ops.exp(log_variance))
            self.add_loss(kl)
            return mean + ops.exp(0.5 * log_variance) * keras.random.normal(ops.shape(mean), seed=self.seeds)

    inputs = keras.Input((8,))
    x = L.Dense(6, "swish", name="encode")(inputs)
    z = Sample(name="sample")(L.Dense(2, name="mean")(x), L.Dense(2, name="log_variance")(x))
    return keras.Model(inputs, L.Dense(8, "sigmoid", name="decode")(z), name="vae")


def fourier_features() -> Any:
    """Coordinates in sines and cosines, then sine activations."""
    inputs = keras.Input((3,))
    x = Layered(lambda x: ops.concatenate([f(2.0**i * x) for i in range(3) for f in (ops.sin, ops.cos)], -1))(inputs)
    for number in range(2):
        x = L.Dense(8, activation=ops.sin, name=f"siren_{number}")(x)
    return keras.Model(inputs, L.Dense(3, name="colour")(x), name="field")


def linear_attention() -> Any:
    """Attention by cumulated sums of outer products, without a softmax."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        q, k = ops.elu(q) + 1, ops.elu(k) + 1
        state = ops.cumsum(ops.einsum("btk,btv->btkv", k, v), axis=1)
        return ops.einsum("btk,btkv->btv", q, state) / ops.einsum("btk,btk->bt", q, ops.cumsum(k, axis=1))[..., None]

    inputs = keras.Input((6, 4))
    parts = [L.Dense(4, name=name)(inputs) for name in ("q", "k", "v")]
    return keras.Model(inputs, Layered(attend, name="attend")(*parts), name="linear")


def state_space() -> Any:
    """A diagonal recurrence by an associative scan."""

    class Recurrence(L.Layer):
        def build(self, shape: Any) -> None:
            self.decay = self.add_weight(shape=(shape[-1],), name="decay")

        def call(self, x: Any) -> Any:
            decay = jax.nn.sigmoid(jnp.asarray(self.decay))
            start = jnp.broadcast_to(decay, x.shape)

            def join(one: Any, other: Any) -> Any:
                return one[0] * other[0], other[0] * one[1] + other[1]

            return jax.lax.associative_scan(join, (start, x), axis=1)[1]

    inputs = keras.Input((7, 4))
    return keras.Model(inputs, L.Dense(2)(Recurrence(name="recurrence")(L.Dense(4)(inputs))), name="ssm")


def deep_sets() -> Any:
    """Sorted, pooled in three ways, and compared with their median."""

    def pool(x: Any) -> Any:
        middle = ops.sort(x, axis=1)[:, 3]
        return ops.concatenate([ops.max(x, 1), ops.min(x, 1), ops.std(x, axis=1), middle], -1)

    inputs = keras.Input((7, 3))
    return keras.Model(inputs, L.Dense(1)(Layered(pool, name="pool")(L.Dense(4, "mish")(inputs))), name="sets")


def vector_quantiser() -> Any:
    """The nearest of learned vectors, with the gradient passed straight through."""

    class Nearest(L.Layer):
        def build(self, shape: Any) -> None:
            self.codes = self.add_weight(shape=(6, shape[-1]), name="codes", initializer="random_normal")

        def call(self, x: Any) -> Any:
            apart = ops.sum((x[:, None] - self.codes[None]) ** 2, -1)
            chosen = ops.take(self.codes, ops.argmin(apart, -1), axis=0)
            self.add_loss(ops.mean((chosen - ops.stop_gradient(x)) ** 2))
            return x + ops.stop_gradient(chosen - x)

    inputs = keras.Input((8,))
    return keras.Model(inputs, L.Dense(8)(Nearest(name="nearest")(L.Dense(3, name="to_code")(inputs))), name="vq")


def gaussian_process() -> Any:
    """The mean of a process with a learned kernel: a Cholesky factor and two triangular solves in the gradient."""

    class Process(L.Layer):
        def build(self, shape: Any) -> None:
            self.scale = self.add_weight(shape=(), name="scale", initializer="ones")

        def call(self, x: Any) -> Any:
            apart = jnp.sum((x[:, :, None] - x[:, None]) ** 2, -1)
            kernel = jnp.exp(-apart * jnp.asarray(self.scale)) + 0.1 * jnp.eye(x.shape[1])
            return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(kernel), True), x)

    inputs = keras.Input((5, 3))
    return keras.Model(inputs, Process(name="process")(inputs), name="gp")


UNUSUAL = {
    "mixture of experts": Case(build=mixture_of_experts),
    "neural ode": Case(build=neural_ode),
    "graph network": Case(build=graph_network),
    "variational autoencoder": Case(build=variational_autoencoder),
    "fourier features": Case(build=fourier_features),
    "linear attention": Case(build=linear_attention),
    "state space": Case(build=state_space),
    "deep sets": Case(build=deep_sets),
    "vector quantiser": Case(build=vector_quantiser),
    "gaussian process": Case(build=gaussian_process, atol=1e-5),
}
TABLES = ("UNUSUAL",)
