"""Pipelines of the TensorFlow driver's tests whose bytes are published, in the words of the SDK's Python.

Source: graphcore/tensorflow@b2127bba tensorflow/python/ipu/tests/pipelining_test.py, pipelining_grouped_test.py,
pipelining_recomputation_test.py, pipelining_grouped_recomputation_test.py; what they share, pipelining_test_util.py:
128 tiles, four IPUs, code counted, variables initialised on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.fidelity.family_semantics import machine
from workbench import ipu, tf
from workbench.executable import Executable
from workbench.ipu.config import DeviceConnectionType
from workbench.ipu.ipu_infeed_queue import IPUInfeedQueue
from workbench.ipu.ipu_outfeed_queue import IPUOutfeedQueue
from workbench.ipu.ops.pipelining_ops import (
    OptimizerFunctionOutput,
    PipelineSchedule,
    RecomputationMode,
    pipeline,
    recomputation_checkpoint,
)

Stage = Callable[..., Any]
IPUS = 4
SETTINGS = {
    "auto_select_ipus": IPUS, "ipu_model.compile_ipu_code": True,
    "device_connection.type": DeviceConnectionType.PRE_COMPILE.name, "device_connection.version": "ipu2",
}  # fmt: skip


def _weights(name: str, shape: Sequence[int], value: float) -> Any:
    return tf.get_variable(name, list(shape), tf.float32, initializer=tf.constant_initializer(value))


def _dense(name: str, x: Any, units: int, weight: float, bias: float) -> Any:
    shape = [int(size) for size in x.shape]
    rows = tf.reshape(x, [-1, shape[-1]])
    made = tf.matmul(rows, _weights(f"{name}/kernel", (shape[-1], units), weight))
    return tf.reshape(made, [*shape[:-1], units]) + _weights(f"{name}/bias", (units,), bias)


def _convolution(
    name: str, x: Any, size: int, stride: int, filters: int, weight: float = 0.1, bias: float = 0.0
) -> Any:
    kernel = _weights(f"{name}/kernel", (size, size, int(x.shape[3]), filters), weight)
    made = tf.nn.conv2d(x, kernel, strides=[1, stride, stride, 1], padding="SAME")
    return made + _weights(f"{name}/bias", (filters,), bias)


def _compare1() -> tuple[list[Stage], list[Any], Any]:
    """A convolution of 1 x 1, times 20, a dense layer, another one, summed; a number and a label pass through."""

    def stage1(c: Any, img: Any, label: Any) -> Any:
        return _convolution("stage1", img, 1, 1, 2, 0.5, 0.5), c, label

    def stage2(x: Any, c: Any, label: Any) -> Any:
        return x * 20, c, label

    def stage3(x: Any, c: Any, label: Any) -> Any:
        return _dense("stage3", x, 2, 0.5, 0.5), c, label

    def stage4(x: Any, c: Any, label: Any) -> Any:
        return tf.reduce_sum(_dense("stage4", x, 2, 0.5, 0.5)) + c + label

    element = (np.zeros((2, 4, 4, 2), np.float32), np.float32(0))
    return [stage1, stage2, stage3, stage4], [np.float32(10.01)], element


def _residual(first: tuple[int, int], filters: int, classes: int) -> tuple[list[Stage], list[Any], Any]:
    """A convolution (window, channels) and a pool, a residual block of half the image, classes of its mean."""

    def stage1(img: Any, label: Any) -> Any:
        x = tf.nn.relu(_convolution("stage1", img, first[0], 2, first[1]))
        return tf.nn.max_pool2d(x, ksize=3, strides=2, padding="SAME"), label

    def stage2(x: Any, label: Any) -> Any:
        x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
        inner = tf.nn.relu(_convolution("stage2/1", x, 3, 2, filters))
        inner = _convolution("stage2/2", inner, 3, 1, filters)
        near = x[:, ::2, ::2, :]
        more = filters - int(x.shape[3])
        if more:
            near = tf.pad(near, [[0, 0], [0, 0], [0, 0], [0, more]])
        return tf.nn.relu(inner + near), label

    def stage3(x: Any, label: Any) -> Any:
        logits = _dense("stage3", tf.reduce_mean(x, axis=[1, 2]), classes, 0.1, 0.0)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label))

    element = (np.zeros((2, 32, 32, 4), np.float32), np.zeros(2, np.int32))
    return [stage1, stage2, stage3], [], element


def _checkpointed() -> tuple[list[Stage], list[Any], Any]:
    """Two stages that hand on what they are given, and a chain of four products with a checkpoint halfway."""

    def through(x: Any, label: Any) -> Any:
        return x, label

    def stage3(x: Any, label: Any) -> Any:
        for number in range(4):
            x = x * _weights(f"s3/w{number}", (2, 4, 4), 1.0)
            if number == 1:
                x = recomputation_checkpoint(x)
        return x + label

    element = (np.zeros((2, 4, 4), np.float32),) * 2
    return [through, through, stage3], [], element


# name -> the program, its schedule, micro-batches an update, the optimizer, how activations are made again ("" never)
PIPELINES: dict[str, tuple[Any, str, int, Any, str]] = {
    "int-c1": (_compare1, "Interleaved", 20, ("GradientDescentOptimizer", 0.01), ""),
    "int-c2": (lambda: _residual((7, 16), 64, 50), "Interleaved", 18, ("GradientDescentOptimizer", 0.01), ""),
    "int-rec-c2": (lambda: _residual((3, 4), 4, 50), "Interleaved", 18, ("GradientDescentOptimizer", 0.01), "Auto"),
    "grp-c2": (lambda: _residual((7, 16), 64, 50), "Grouped", 18, ("GradientDescentOptimizer", 0.01), ""),
    "grp-rec-c2": (lambda: _residual((7, 16), 64, 100), "Grouped", 18, ("GradientDescentOptimizer", 0.01), "Auto"),
    "grp-ckpt": (
        _checkpointed, "Grouped", 24, ("MomentumOptimizer", 0.01, 0.98), "RecomputeAndBackpropagateInterleaved"
    ),
}  # fmt: skip


def pipeline_of(name: str, tiles: int) -> Executable:
    """The compiled pipeline of this name, on IPUs of so many tiles."""
    build, schedule, count, (kind, *numbers), recomputed = PIPELINES[name]
    stages, inputs, element = build()

    def descend(loss: Any) -> OptimizerFunctionOutput:
        return OptimizerFunctionOutput(getattr(tf.train, kind)(*numbers), loss)

    with machine(**{**SETTINGS, "ipu_model.tiles_per_ipu": tiles, "allow_recompute": bool(recomputed)}):
        feeds = [tf.placeholder(each.dtype, each.shape) for each in inputs]
        infeed, outfeed = IPUInfeedQueue(element for _ in range(count)), IPUOutfeedQueue()

        def net(*given: Any) -> Any:
            return pipeline(
                stages, count, inputs=list(given), infeed_queue=infeed, outfeed_queue=outfeed,
                optimizer_function=descend, pipeline_schedule=PipelineSchedule[schedule],
                recomputation_mode=RecomputationMode[recomputed] if recomputed else None,
            )  # fmt: skip

        with ipu.scopes.ipu_scope("/device:IPU:0"):
            operation = ipu.ipu_compiler.compile(net, feeds)
        with tf.Session() as session:
            session.run([infeed.initializer, tf.global_variables_initializer()])
            session.run(operation, dict(zip(feeds, inputs, strict=True)))
            made: Executable = session.executable
            return made


__all__ = ["PIPELINES", "pipeline_of"]
