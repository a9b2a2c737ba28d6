"""Classes of `wb.ipu` and their methods, and pipelines: queues, strategies, options of stages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import workbench as wb
from tests.hostile.surface import Call, call
from workbench.ipu.keras import layers as LAYERS  # noqa: N812
from workbench.ipu.ops import pipelining_ops as OPS  # noqa: N812

ipu, tf = wb.ipu, wb.tf
QUEUE = ipu.ipu_infeed_queue.IPUInfeedQueue
OUT = ipu.ipu_outfeed_queue.IPUOutfeedQueue
STRATEGY = ipu.ipu_strategy.IPUStrategyV1


class Pieces:
    """A graph with a variable and a loss, a dataset of four numbers, queues of it and of results, a strategy."""

    def __init__(self) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.weight = tf.get_variable("weight", initializer=np.float32(2.0))
            self.loss = self.weight * self.weight
        self.dataset = tf.data.Dataset.from_tensor_slices(np.arange(4, dtype="float32"))
        self.queue = QUEUE(self.dataset)
        self.out = OUT()
        self.strategy = STRATEGY()


def made_in_scope() -> Any:
    """A model of two layers made in the scope of a strategy."""
    import keras

    with STRATEGY().scope():
        return keras.Sequential([keras.Input((2,)), keras.layers.Dense(2), keras.layers.Dense(1)])


def doubled(x: Any) -> Any:
    return x + x


def loss_of(x: Any) -> Any:
    return tf.reduce_sum(x * tf.get_variable("factor", initializer=np.float32(3.0)))


def optimized(loss: Any) -> Any:
    return OPS.OptimizerFunctionOutput(tf.train.GradientDescentOptimizer(0.1), loss)


CLASSES: Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "ipu_infeed_queue.IPUInfeedQueue": (QUEUE, {"dataset": lambda pieces: pieces.dataset}),
    "ipu_infeed_queue.IPUIterator": (ipu.ipu_infeed_queue.IPUIterator, {"dataset": lambda pieces: pieces.dataset}),
    "ipu_outfeed_queue.IPUOutfeedQueue": (OUT, {}),
    "ipu_outfeed_queue.ScopedIPUOutfeedQueue": (ipu.ipu_outfeed_queue.ScopedIPUOutfeedQueue, {}),
    "ipu_outfeed_queue.IPUOutfeedQueueIterator": (
        ipu.ipu_outfeed_queue.IPUOutfeedQueueIterator,
        {"outfeed_queue": lambda pieces: pieces.out},
    ),
    "ipu_strategy.IPUStrategyV1": (STRATEGY, {}),
    "ops.pipelining_ops.OptimizerFunctionOutput": (
        OPS.OptimizerFunctionOutput,
        {"opt": lambda pieces: tf.train.GradientDescentOptimizer(0.1), "loss": lambda pieces: pieces.loss},
    ),
    "ops.pipelining_ops.PipelineStageOptions": (OPS.PipelineStageOptions, {}),
    **{
        f"keras.layers.{module}.{kind.__name__}": (kind, given)
        for module, kind, given in (
            ("dropout", LAYERS.Dropout, {"rate": 0.5}),
            ("embedding", LAYERS.Embedding, {"input_dim": 4, "output_dim": 2}),
            ("marks", LAYERS.AssumeEqualAcrossReplicas, {}),
            ("marks", LAYERS.RecomputationCheckpoint, {}),
            ("norms", LAYERS.GroupNormalization, {}),
            ("norms", LAYERS.InstanceNormalization, {}),
            ("norms", LAYERS.LayerNormalization, {}),
        )
    },
    "gradient_accumulation.GradientAccumulationReductionMethod.parse": (
        ipu.gradient_accumulation.GradientAccumulationReductionMethod.parse,
        {"reduction_method": "mean"},
    ),
}
OPTIONS_OF_MODELS = (
    *("set_gradient_accumulation_options", "set_infeed_queue_options", "set_outfeed_queue_options"),
    *("set_pipelining_options", "set_replication_options", "set_asynchronous_callbacks"),
    "print_pipeline_stage_assignment_summary",
)
METHODS: Mapping[str, tuple[Callable[[Any], Any], Mapping[str, Any]]] = {
    "IPUOutfeedQueue.enqueue": (lambda pieces: pieces.out, {"tensors": lambda pieces: pieces.loss}),
    **{f"ModelExtension.{name}": (lambda pieces: made_in_scope(), {}) for name in OPTIONS_OF_MODELS},
    "SequentialExtension.set_pipeline_stage_assignment": (
        lambda pieces: made_in_scope(),
        {"pipeline_stage_assignment": [0, 1]},
    ),
    **{
        f"IPUStrategyV1.{name}": (
            lambda pieces: pieces.strategy,
            {"fn": lambda pieces: tf.function(returned), "args": (2.0,)},
        )
        for name in ("run", "experimental_run_v2")
    },
    "IPUStrategyV1.reduce": (lambda pieces: pieces.strategy, {"reduce_op": "SUM", "value": 2.0}),
    "IPUStrategyV1.experimental_distribute_dataset": (
        lambda pieces: pieces.strategy,
        {"dataset": lambda pieces: pieces.dataset},
    ),
}


def returned(*given: Any, **named: Any) -> Any:
    return len(given) + len(named)


def pipeline(pieces: Any) -> Callable[..., Any]:
    """A pipeline of two stages that trains, compiled and not run."""

    def made(**given: Any) -> Any:
        def computation() -> Any:
            return OPS.pipeline(**given)

        with ipu.scopes.ipu_scope("/device:IPU:0"):
            return ipu.ipu_compiler.compile(computation, [])

    return made


TRAINED = {
    "computational_stages": lambda pieces: [doubled, loss_of],
    "gradient_accumulation_count": 4,
    "infeed_queue": lambda pieces: pieces.queue,
    "outfeed_queue": lambda pieces: pieces.out,
    "optimizer_function": lambda pieces: optimized,
}


def cells() -> Iterator[Call]:
    for name, (function, given) in CLASSES.items():
        yield call(f"ipu.{name}", in_place(lambda pieces, f=function: f, function), given=given)
    for name, (owner, given) in METHODS.items():
        last = name.rpartition(".")[2]
        method = getattr(owner(Pieces()), last)
        yield call(f"ipu.{name}", in_place(lambda pieces, o=owner, n=last: getattr(o(pieces), n), method), given=given)
    yield call("ipu.ops.pipelining_ops.pipeline", in_place(pipeline, OPS.pipeline), given=TRAINED)


def in_place(found: Callable[[Any], Any], like: Any) -> Callable[..., Any]:
    """What is called in a graph of its own, on a system of four IPUs."""

    def called(**given: Any) -> Any:
        pieces = Pieces()
        values = {
            name: value(pieces) if getattr(value, "__name__", "") == "<lambda>" else value
            for name, value in given.items()
        }
        config = ipu.config.IPUConfig()
        config.auto_select_ipus = 2
        config.configure_ipu_system()
        try:
            with pieces.graph.as_default():
                return found(pieces)(**values)
        finally:
            ipu.config.reset_ipu_configuration()

    called.__signature__ = inspect.signature(like)  # type: ignore[attr-defined]
    return called
