"""Pipelines of the TensorFlow driver's tests whose bytes are published, in the words of the SDK's Python.

Source: graphcore/tensorflow@b2127bba tensorflow/python/ipu/tests/pipelining_test.py, pipelining_grouped_test.py,
pipelining_recomputation_test.py, pipelining_grouped_recomputation_test.py; what they share, pipelining_test_util.py:
128 tiles, four IPUs, code counted, variables initialised on the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests.fidelity.family_semantics import machine
from tests.fidelity.outcome import Case, said, source_of
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
    "auto_select_ipus": IPUS,
    "ipu_model.compile_ipu_code": True,
    "device_connection.type": DeviceConnectionType.PRE_COMPILE.name,
    "device_connection.version": "ipu2",
}


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


def _through(*given: Any) -> Any:
    """Hands on what it is given."""
    return given


def _table(width: int) -> tuple[list[Stage], list[Any], Any]:
    """Rows of a table of 10, handed on twice, summed to classes."""

    def stage1(ids: Any, label: Any) -> Any:
        return tf.nn.embedding_lookup(_weights("stage1/c", (10, width), 10.01), ids), label

    def stage4(x: Any, label: Any) -> Any:
        logits = tf.reduce_sum(x, axis=[-1])
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label))

    element = (np.zeros((2, 4), np.int32), np.zeros(2, np.int32))
    return [stage1, _through, _through, stage4], [], element


def _handed_on() -> tuple[list[Stage], list[Any], Any]:
    """A convolution of 1 x 1 on one number, handed on twice, summed; a number and a label pass through."""

    def stage1(c: Any, img: Any, label: Any) -> Any:
        return _convolution("stage1", img, 1, 1, 2, 0.5, 0.5), c, label

    def stage4(x: Any, c: Any, label: Any) -> Any:
        return tf.reduce_sum(x) + c + label

    element = (np.zeros((1, 1, 1, 1), np.float32), np.float32(0))
    return [stage1, _through, _through, stage4], [np.float32(10.01)], element


def _late(factor: int = 1) -> tuple[list[Stage], list[Any], Any]:
    """The first weights are the third stage's: an image handed on, times a factor, a dense layer, a sum."""

    def stage1(c: Any, img: Any, label: Any) -> Any:
        return img, c, label

    def stage2(x: Any, c: Any, label: Any) -> Any:
        return (x if factor == 1 else x * factor), c, label

    def stage3(x: Any, c: Any, label: Any) -> Any:
        return _dense("stage3", x, 2, 0.5, 0.5), c, label

    def stage4(x: Any, c: Any, label: Any) -> Any:
        return tf.reduce_sum(x) + c + label

    element = (np.zeros((2, 4, 4, 2), np.float32), np.float32(0))
    return [stage1, stage2, stage3, stage4], [np.float32(10.01)], element


def _shared() -> tuple[list[Stage], list[Any], Any]:
    """Products with four weights on four IPUs, and at last one with the first weights again, where they are."""

    def product(name: str, x: Any) -> Any:
        with tf.variable_scope("vs", reuse=tf.AUTO_REUSE):
            return tf.matmul(tf.reshape(x, [-1, 4]), _weights(name, (4, 4), 1.0))

    def stage(number: int) -> Stage:
        return lambda x, label: (product(f"w{number}", x), label)

    def stage5(x: Any, label: Any) -> Any:
        logits = tf.reduce_mean(tf.reshape(product("w0", x), [2, 4, 4]), axis=[1])
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label))

    element = (np.zeros((2, 4, 4), np.float32), np.zeros(2, np.int32))
    return [*(stage(number) for number in range(4)), stage5], [], element


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


# What the test of each pipeline sets beside its schedule: micro-batches an update, by file where files differ.
COUNTS = {
    ("1", "Interleaved"): 20,
    ("3", "Interleaved"): 20,
    ("4", "Interleaved"): 20,
    ("5", "Interleaved"): 20,
    ("1", "rec"): 16,
    ("3", "rec"): 16,
    ("4", "rec"): 16,
    ("5", "rec"): 16,
    ("7", "rec"): 16,
    ("5", "Sequential"): 8,
}
WORDS = {"int": "Interleaved", "grp": "Grouped", "seq": "Sequential"}
SMALL = ((3, 4), 4, 50)  # the residual pipeline of Interleaved with recomputation and of Sequential
LARGE = ((7, 16), 64, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A pipeline of the tests: which of the compared networks, its schedule, whether activations are made again."""

    network: str
    schedule: str
    recomputed: bool

    @property
    def count(self) -> int:
        """Micro-batches an update."""
        if self.network == "2":
            return 18
        if self.network == "shared":
            return 24 if self.recomputed else 20
        if self.network == "ckpt":
            return 24
        if (self.network, self.schedule) in COUNTS:
            return COUNTS[self.network, self.schedule]
        return COUNTS[self.network, "rec"] if self.recomputed else 24

    @property
    def mode(self) -> str:
        """How activations are made again, "" never."""
        if self.network == "ckpt":
            return "RecomputeAndBackpropagateInterleaved"
        return "Auto" if self.recomputed else ""

    @property
    def optimizer(self) -> tuple[Any, ...]:
        """Name and numbers of the optimizer."""
        if self.network in ("ckpt", "shared"):
            return ("MomentumOptimizer", 0.01, 0.98)
        return ("GradientDescentOptimizer", 0.01)

    def build(self) -> tuple[list[Stage], list[Any], Any]:
        """Stages, fed inputs and an element of the infeed."""
        if self.network == "2":
            small = self.schedule == "Sequential" or (self.schedule == "Interleaved" and self.recomputed)
            first, filters, classes = SMALL if small else LARGE
            return _residual(first, filters, 100 if self.recomputed and self.schedule == "Grouped" else classes)
        if self.network == "3":
            return _table(12 if self.schedule == "Sequential" and not self.recomputed else 1216)
        if self.network == "5" and self.schedule == "Interleaved":
            return _late()
        return NETWORKS[self.network]()


NETWORKS: dict[str, Callable[[], tuple[list[Stage], list[Any], Any]]] = {
    "1": _compare1,
    "4": _compare1,
    "5": _handed_on,
    "7": lambda: _late(20),
    "ckpt": _checkpointed,
    "shared": _shared,
}


def asked(case: Case) -> Asked | None:
    """The pipeline of a case: by the words of its id and description, and the file and test it is taken from."""
    source = source_of(case)
    text = f"{said(case)} {source}".lower()
    words = case["id"].lower().split("-")
    given = [WORDS[word] for word in words if word in WORDS]
    named = [each for each in WORDS.values() if re.search(rf"\b{each.lower()}\b|_{each.lower()}_", text)]
    schedule = (given or named or ["Interleaved" if "pipelining_" in source else ""])[0]
    found = re.search(r"compare ?([1-7])\b|-c([1-7])\b", f"{text} {case['id'].lower()}")
    network = "ckpt" if "checkpoint" in text else "shared" if "shared" in text else ""
    network = network or (found[1] or found[2] if found else "")
    if not schedule or network not in ("2", "3", *NETWORKS):
        return None
    again = bool(re.search(r"recomputation_test|\bwith recomp|\+ ?recomp|recomputed\b", text)) or "rec" in words
    return Asked(network=network, schedule=schedule, recomputed=again or network == "ckpt")


@cache
def pipeline_of(which: Asked, tiles: int) -> Executable:
    """The compiled pipeline, on IPUs of so many tiles."""
    (kind, *numbers), count, recomputed = which.optimizer, which.count, which.mode
    stages, inputs, element = which.build()

    def descend(loss: Any) -> OptimizerFunctionOutput:
        return OptimizerFunctionOutput(getattr(tf.train, kind)(*numbers), loss)

    with machine(**{**SETTINGS, "ipu_model.tiles_per_ipu": tiles, "allow_recompute": which.recomputed}):
        feeds = [tf.placeholder(each.dtype, each.shape) for each in inputs]
        infeed, outfeed = IPUInfeedQueue(element for _ in range(count)), IPUOutfeedQueue()

        def net(*given: Any) -> Any:
            return pipeline(
                stages,
                count,
                inputs=list(given),
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                optimizer_function=descend,
                pipeline_schedule=PipelineSchedule[which.schedule],
                recomputation_mode=RecomputationMode[recomputed] if recomputed else None,
                device_mapping=[0, 1, 2, 3, 0] if which.network == "shared" else None,
            )

        with ipu.scopes.ipu_scope("/device:IPU:0"):
            operation = ipu.ipu_compiler.compile(net, feeds)
        with tf.Session() as session:
            session.run([infeed.initializer, tf.global_variables_initializer()])
            session.run(operation, dict(zip(feeds, inputs, strict=True)))
            made: Executable = session.executable
            return made


__all__ = ["Asked", "asked", "pipeline_of"]
