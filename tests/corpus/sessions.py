"""Programs of graphs and sessions: placeholders, shards, loops with feeds, pipelines by functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.corpus.models import configured
from tests.corpus.registry import program
from workbench import ipu, tf
from workbench.ipu import pipelining_ops

RNG = np.random.default_rng(3)
PIXELS = RNG.normal(size=(64, 64)).astype(np.float32)
DIGITS = RNG.integers(0, 10, 64).astype(np.int32)


def configure(ipus: int = 1, tiles: int = 16, **options: Any) -> None:
    configured(auto_select_ipus=ipus, ipu_model__tiles_per_ipu=tiles, **options).configure_ipu_system()


def compiled(computation: Any, inputs: Any = ()) -> Any:
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        return ipu.ipu_compiler.compile(computation, list(inputs))


def dataset(batch: int) -> Any:
    return tf.data.Dataset.from_tensor_slices((PIXELS, DIGITS)).repeat().batch(batch, drop_remainder=True)


def loss_of(logits: Any, digits: Any) -> Any:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=digits, logits=logits))


def ran(result: Any, feeds: Any = None, *before: Any) -> Any:
    """The profile of what a session ran last."""
    with tf.Session() as session:
        session.run([*before, tf.global_variables_initializer()])
        session.run(result, feeds or {})
        return session.profile


@program
def session_shards() -> Any:
    """Sums on four IPUs."""
    configure(4)
    a, b, c = (tf.placeholder(np.float32, [200], name=name) for name in "abc")

    def sharded(a: Any, b: Any, c: Any) -> Any:
        with ipu.scopes.ipu_shard(0):
            one = a + b
        with ipu.scopes.ipu_shard(1):
            two = tf.exp(a + c)
        with ipu.scopes.ipu_shard(2):
            three = b * c
        with ipu.scopes.ipu_shard(3):
            return tf.reduce_sum(one + two + three)

    return ran(compiled(sharded, [a, b, c]), {each: np.ones(200, np.float32) for each in (a, b, c)})


@program
def session_training_loop() -> Any:
    """A loop that trains from an infeed into an outfeed, with a loop by condition in it."""
    configure()
    infeed, outfeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset(16)), ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(pixels: Any, digits: Any) -> Any:
        with tf.variable_scope("classifier", use_resource=True):
            kernel = tf.get_variable("kernel", shape=[64, 10], initializer=tf.constant_initializer(0.01))
            bias = tf.get_variable("bias", shape=[10], initializer=tf.zeros_initializer())
        loss = loss_of(tf.nn.xw_plus_b(pixels, kernel, bias), digits)
        grown = ipu.loops.while_loop(lambda v: v < 10.0, lambda v: v * 2, [loss + 1], maximum_iterations=5)
        train = tf.train.MomentumOptimizer(0.5, 0.9).minimize(loss)
        return outfeed.enqueue({"loss": loss, "grown": grown}), train

    return ran(compiled(lambda: ipu.loops.repeat(5, body, [], infeed)), None, infeed.initializer)


def _pipelined(repeats: int = 1, **arguments: Any) -> Any:
    infeed, outfeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset(4)), ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    rate = tf.placeholder(np.float32, [])

    def first(rate: Any, pixels: Any, digits: Any) -> Any:
        return rate, tf.nn.relu(tf.matmul(pixels, tf.get_variable("hidden", shape=[64, 48]))), digits

    def second(rate: Any, hidden: Any, digits: Any) -> Any:
        return rate, loss_of(tf.matmul(hidden, tf.get_variable("logits", shape=[48, 10])), digits)

    def optimizer(rate: Any, loss: Any) -> Any:
        return pipelining_ops.OptimizerFunctionOutput(tf.train.AdamOptimizer(rate), loss)

    def model(rate: Any) -> Any:
        return pipelining_ops.pipeline(
            [first, second],
            gradient_accumulation_count=4,
            repeat_count=repeats,
            inputs=[rate],
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=optimizer,
            outfeed_loss=True,
            **arguments,
        )

    return ran(compiled(model, [rate]), {rate: 0.03}, infeed.initializer)


@program
def session_pipeline() -> Any:
    configure(2)
    return _pipelined(2, pipeline_schedule=pipelining_ops.PipelineSchedule.Grouped)


@program
def session_pipeline_serial() -> Any:
    """Two elements a pass, one stage after the other on one IPU."""
    configure(1)
    return _pipelined(batch_serialization_iterations=2)
