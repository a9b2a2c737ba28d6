"""What tests of pipelines share: a net of two stages, running it, and its numbers by JAX alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.ipu.graphs import compiled
from workbench import tf
from workbench.ipu.ipu_infeed_queue import IPUInfeedQueue
from workbench.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue
from workbench.ipu.ops.pipelining_ops import OptimizerFunctionOutput, pipeline

COUNT, BATCH = 4, 2
RNG = np.random.default_rng(3)
DATA = [(RNG.normal(size=(BATCH, 6)).astype(np.float32), RNG.integers(0, 3, BATCH).astype(np.int32)) for _ in range(16)]
FIRST, SECOND = (RNG.normal(size=shape).astype(np.float32) for shape in ((6, 8), (8, 3)))


def first(rate: Any, x: Any, y: Any) -> Any:
    w = tf.get_variable("first", [6, 8], initializer=tf.constant_initializer(FIRST))
    return rate, tf.tanh(tf.matmul(x, w)), y


def second(rate: Any, hidden: Any, y: Any) -> Any:
    w = tf.get_variable("second", [8, 3], initializer=tf.constant_initializer(SECOND))
    logits = tf.matmul(hidden, w)
    return rate, tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def descend(rate: Any, loss: Any) -> Any:
    return OptimizerFunctionOutput(tf.train.GradientDescentOptimizer(rate), loss)


class Ran:
    """A pipeline compiled and run once: what the outfeed has, the weights, the profile."""

    def __init__(
        self,
        stages: Any = (first, second),
        mode: Any = IPUOutfeedMode.ALL,
        inputs: Any = 0.5,
        data: Any = None,
        **arguments: Any,
    ) -> None:
        infeed, outfeed = IPUInfeedQueue(DATA if data is None else data), IPUOutfeedQueue(mode)
        given = {"optimizer_function": descend, "gradient_accumulation_count": COUNT, **arguments}
        rate = tf.placeholder(tf.float32, [])

        def build(rate: Any) -> Any:
            return pipeline(list(stages), inputs=[rate], infeed_queue=infeed, outfeed_queue=outfeed, **given)

        operation = compiled(build, [rate])
        taken = outfeed.dequeue()
        with tf.Session() as session:
            session.run([infeed.initializer, tf.global_variables_initializer()])
            session.run(operation, {rate: inputs})
            self.out = session.run(taken)
            self.weights = [np.asarray(each) for each in tf.global_variables()]
            self.profile, self.executable = session.profile, session.executables[-1]


def expected(repeats: int = 1, divided: int = 1, count: int = COUNT) -> tuple[Any, list[Any]]:
    """Losses of `count` micro-batches an update and the weights after the updates, by JAX alone."""

    def loss_of(weights: list[Any], x: Any, y: Any) -> Any:
        chances = jax.nn.log_softmax(jnp.tanh(x @ weights[0]) @ weights[1])
        return -jnp.mean(jnp.take_along_axis(chances, y[:, None], axis=1))

    weights, losses = [jnp.asarray(FIRST), jnp.asarray(SECOND)], []
    for repeat in range(repeats):
        sums = [jnp.zeros_like(each) for each in weights]
        for x, y in DATA[repeat * count : (repeat + 1) * count]:
            loss, found = jax.value_and_grad(loss_of)(weights, x, y)
            losses.append(loss)
            sums = [one + other for one, other in zip(sums, found, strict=True)]
        weights = [each - 0.5 * gradient / divided for each, gradient in zip(weights, sums, strict=True)]
    return np.asarray(losses), [np.asarray(each) for each in weights]


def close(one: Any, other: Any) -> bool:
    return all(np.allclose(a, b, rtol=2e-5, atol=1e-6) for a, b in zip(one, other, strict=True))
