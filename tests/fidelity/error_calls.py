"""The calls of this API that published raise sites name, each made wrong in the way the site is about."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np

import workbench as wb
from tests.fidelity.family_config import TestConfig, configured, heard, modelled, put
from tests.fidelity.pipelining_calls import PIPELINING
from tests.fidelity.pipelining_calls import piped as wrong_reduction
from workbench import ipu, tf
from workbench.engine.options.declaration import find_option
from workbench.engine.pipeline_schedule import check_count
from workbench.ipu.config._attributes import Attribute
from workbench.ipu.ipu_infeed_queue import IPUInfeedQueue, IPUIterator
from workbench.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue, ScopedIPUOutfeedQueue

Call = Callable[[], str]
_COUNT = "experimental__multi_replica_distribution__process_count"
_INDEX = "experimental__multi_replica_distribution__process_index"
_GROUP = "norms__experimental__distributed_batch_norm_replica_group_size"
_DATA = [np.zeros(2, np.float32)] * 3


def on_ipu(action: Callable[[], Any]) -> Call:
    """What a call raises in a graph of its own, on an IPU."""

    def call() -> str:
        with tf.Graph().as_default(), ipu.scopes.ipu_scope("/device:IPU:0"):
            return heard(action)

    return call


def in_graph(action: Callable[[], Any]) -> Call:
    """What a call raises in a graph of its own, on the host."""

    def call() -> str:
        with tf.Graph().as_default():
            return heard(action)

    return call


def typed(annotation: Any) -> str:
    """What declaring an option of this type raises."""
    return heard(lambda: Attribute(name="both", default=lambda: 1, annotation=annotation))


def unplaced() -> Any:
    return ipu.ipu_compiler.compile(lambda value: value + 1, [tf.placeholder(tf.float32, [2])])


def twice_initialized() -> None:
    queue = IPUInfeedQueue(_DATA)
    for _ in range(2):
        _ = queue.initializer


def lent(end: str) -> Call:
    """What a queue made from a specification raises when it is asked to begin or to end."""

    def ask() -> None:
        queue = IPUInfeedQueue(_DATA)
        _ = queue.initializer
        getattr(IPUInfeedQueue._from_type_spec(queue._type_spec), end)

    return in_graph(ask)


class Unmarked(IPUInfeedQueue):
    """Gives elements without noting that it did."""

    @property
    def dequeued(self) -> bool:
        return False


class EstimatorSpec:
    """What a model function of an estimator returns."""


def twice_enqueued() -> None:
    queue = IPUOutfeedQueue()
    for _ in range(2):
        queue.enqueue(tf.constant(1.0))


def iterated_in_graph() -> None:
    queue = IPUOutfeedQueue()
    queue.enqueue(tf.constant(1.0))
    iter(queue)


def declared(spec: Any) -> Any:
    """A dataset that declares its elements, as tf.data does."""
    return SimpleNamespace(element_spec=spec, as_numpy_iterator=lambda: iter(_DATA))


def _outside() -> None:
    with ipu.scopes.outside_compilation_scope():
        pass


def _nested() -> None:
    with ipu.scopes.outside_compilation_scope():
        _outside()


def _partials() -> None:
    with ipu.scopes.partials_type(np.int32):
        pass


def repeated(body: Callable[..., Any], *queue: Any) -> Any:
    return ipu.loops.repeat(2, body, [0.0], *queue)


def waited(condition: Callable[..., Any], body: Callable[..., Any], *queue: Any) -> Any:
    return ipu.loops.while_loop(condition, body, [0.0], *queue)


def small(value: Any) -> Any:
    return value < 3


def same(value: Any) -> Any:
    return value


def piped(**arguments: Any) -> str:
    """What compiling two layers as two stages raises."""

    def compile_() -> Any:
        given = keras.Input((8,), batch_size=2)
        model = keras.Model(given, keras.layers.Dense(4)(keras.layers.Dense(8, name="first")(given)))
        told = {"mode": "training", "stages": ["first"], "gradient_accumulation_steps": 4, **arguments}
        return wb.compile(model, target=wb.target("ipu2", tiles_per_ipu=4), **told)

    return heard(compile_)


def sharded() -> str:
    """A graph on two IPUs of a device that has one."""

    def run() -> Any:
        with ipu.scopes.ipu_shard(1):
            result = tf.placeholder(tf.float32, [2], name="x") + 1.0
        return tf.Session().run(result, {"x:0": np.zeros(2, np.float32)})

    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()
    try:
        return on_ipu(run)()
    finally:
        ipu.config.reset_ipu_configuration()


def one_ipu() -> Any:
    """A configuration of one IPU."""
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    return config


def unprepared() -> str:
    """What asking a session for the profile of a program it has not compiled raises."""
    with tf.Graph().as_default(), tf.Session() as session:
        return heard(lambda: session.profile)


def too_large() -> str:
    """Running a product that a machine of one tile has no room for."""
    matrix = np.zeros((512, 512), np.float32)
    made = wb.compile(lambda left, right: left @ right, matrix, matrix, target=wb.target("ipu2", tiles_per_ipu=1))
    return heard(lambda: made.run(matrix, matrix))


def _connection(kind: str) -> str:
    return configured(device_connection__type=ipu.config.DeviceConnectionType[kind])


_CONFIG: dict[tuple[str, str], Call] = {
    ("_ConfigBase.__getattr__", ""): lambda: heard(lambda: put(TestConfig(), "nested5.attr", 1)),
    ("_ConfigBase._set_value_of_existing_user_attribute", ""): lambda: heard(
        lambda: put(TestConfig(), "nested1.nested2", 1)
    ),
    ("_ConfigBase.get_attribute_metadata", ""): lambda: heard(
        lambda: TestConfig().get_attribute_metadata("nested1.attr5")
    ),
    ("AttributeMetadata.check_type", ""): lambda: heard(lambda: put(TestConfig(), "attr0", 1.0)),
    ("configure_ipu_system", "isinstance"): lambda: heard(lambda: ipu.config.configure_ipu_system({})),  # type: ignore[arg-type]
    ("get_ipu_config", ""): lambda: heard(ipu.config.get_ipu_config),
    ("_MultiReplicaDistributionConfig._to_protobuf", "running_on_ipu_model"): lambda: modelled(**{_COUNT: 1}),
    ("_MultiReplicaDistributionConfig._to_protobuf", "process_index"): lambda: configured(**{_COUNT: 1, _INDEX: 5}),
    ("_IOTilesConfig._to_protobuf", "place_ops_on_io_tiles"): lambda: configured(io_tiles__place_ops_on_io_tiles=True),
    ("_IPUDeviceConnectionConfig._to_protobuf", "version"): lambda: _connection("NEVER"),
    ("_IPUModelConfig._to_protobuf", "version"): lambda: modelled(ipu_model__version=""),
    ("_NormsExperimentalConfig._to_protobuf", "group_size"): lambda: configured(**{_GROUP: 0}),
    ("IPUConfig._to_protobuf", "auto_select_ipus and"): lambda: configured(auto_select_ipus=1, select_ipus=1),
    ("IPUConfig._to_protobuf", "len(set"): lambda: configured(select_ipus=[1, 1]),
    ("IPUConfig._to_protobuf", "select_ipus and running"): lambda: modelled(select_ipus=1),
    ("IPUConfig._to_protobuf", "num_io_tiles"): lambda: configured(io_tiles__num_io_tiles=32, **{_GROUP: 2}),
    ("_get_type_check_fn_from_AST_type_hints.helper", "Enum"): lambda: typed(int | ipu.config.SelectionOrder),
    ("_annotation_to_str", ""): lambda: typed(Callable[[], int]),
    ("_get_assignment_node_from_call_frame", ""): lambda: heard(lambda: Attribute(name="", default=lambda: 1)),
    ("_get_type_check_fn_from_AST_type_hints.get_attribute_full_path", ""): lambda: typed("a list of numbers"),
    ("_get_type_check_fn_from_AST_type_hints.helper", ""): lambda: typed(Callable[[], int]),
}
_INFEED: dict[tuple[str, str], Call] = {
    ("IPUInfeedQueue.get_next", ""): in_graph(lambda: IPUInfeedQueue(_DATA).get_next()),
    ("IPUInfeedQueue.__init__", "prefetch_depth <="): in_graph(lambda: IPUInfeedQueue(_DATA, prefetch_depth=-1)),
    ("IPUInfeedQueue.__init__", "prefetch_depth >"): in_graph(lambda: IPUInfeedQueue(_DATA, prefetch_depth=256)),
    ("IPUInfeedQueue.__init__", "isinstance(device_ordinal"): in_graph(lambda: IPUInfeedQueue(_DATA, "0")),  # type: ignore[arg-type]
    ("IPUInfeedQueue.__init__", "device_ordinal <"): in_graph(lambda: IPUInfeedQueue(_DATA, -1)),
    ("IPUInfeedQueue.__init__", "is_fully_defined"): in_graph(
        lambda: IPUInfeedQueue(declared(tf.placeholder(tf.float32, [None, 2])))
    ),
    ("IPUInfeedQueue.__init__", "isinstance(output_shape"): in_graph(
        lambda: IPUInfeedQueue(declared(SimpleNamespace(shape=([2], [3]))))
    ),
    ("IPUInfeedQueue.initializer", "_from_spec"): lent("initializer"),
    ("IPUInfeedQueue.deleter", "_from_spec"): lent("deleter"),
    ("IPUInfeedQueue._type_spec", "not self._initialized"): in_graph(lambda: IPUInfeedQueue(_DATA)._type_spec),
    ("IPUIterator._gather_saveables_for_checkpoint", ""): in_graph(
        lambda: IPUIterator(_DATA)._gather_saveables_for_checkpoint()
    ),
    ("IPUInfeedQueue.initializer", "_initialized"): in_graph(twice_initialized),
    ("IPUIterator.__init__", "AND dataset is None"): in_graph(IPUIterator),
    ("IPUIterator.__init__", "AND not (dataset is None)"): in_graph(lambda: IPUIterator(_DATA, element_spec=1)),
    ("IPUIterator.get_next_as_optional", ""): in_graph(lambda: IPUIterator(_DATA).get_next_as_optional()),
    ("IPUIterator._next_internal", "eager"): in_graph(lambda: next(IPUIterator(_DATA))),
}
_OUTFEED: dict[tuple[str, str], Call] = {
    ("IPUOutfeedQueue.__init__", "IPUOutfeedMode"): lambda: heard(lambda: IPUOutfeedQueue("all")),  # type: ignore[arg-type]
    ("IPUOutfeedQueue.__init__", "isinstance(device_ordinal"): lambda: heard(lambda: IPUOutfeedQueue(None, "0")),  # type: ignore[arg-type]
    ("IPUOutfeedQueue.__init__", "device_ordinal <"): lambda: heard(lambda: IPUOutfeedQueue(None, -1)),
    ("IPUOutfeedQueue.__init__", "buffer_depth"): lambda: heard(lambda: IPUOutfeedQueue(buffer_depth=0)),
    ("IPUOutfeedQueue.enqueue", "enqueued"): in_graph(twice_enqueued),
    ("IPUOutfeedQueue.dequeue", "enqueued"): in_graph(lambda: IPUOutfeedQueue().dequeue()),
    ("IPUOutfeedQueue.__iter__", "eager"): in_graph(iterated_in_graph),
    ("IPUOutfeedQueue.__iter__", "ALL"): lambda: heard(lambda: iter(IPUOutfeedQueue(IPUOutfeedMode.LAST))),
    ("ScopedIPUOutfeedQueue.__init__", "eager"): on_ipu(ScopedIPUOutfeedQueue),
}
_LOOPS: dict[tuple[str, str], Call] = {
    ("repeat", "body_arg_error"): on_ipu(lambda: repeated(lambda: None)),
    ("while_loop", "body_arg_error"): on_ipu(lambda: waited(small, lambda: None)),
    ("while_loop", "condition_arg_error"): on_ipu(lambda: waited(lambda: True, same)),
    ("while_loop", "not infeed_queue.dequeued"): on_ipu(lambda: waited(small, lambda one, more: one, Unmarked(_DATA))),
    ("while_loop.body_wrapper", "output_operations"): on_ipu(lambda: waited(small, lambda one: (tf.no_op(), one))),
    ("while_loop.body_wrapper", "input_types"): on_ipu(lambda: waited(small, lambda one: tf.cast(one, tf.int32))),
}
_SCOPES: dict[tuple[str, str], Call] = {
    ("outside_compilation_scope", "XlaContext"): in_graph(_outside),
    ("outside_compilation_scope", "current_attrs"): on_ipu(_nested),
    ("partials_type", ""): in_graph(_partials),
}
_COMPILER: dict[tuple[str, str], Call] = {
    ("compile", "is_estimator"): on_ipu(lambda: ipu.ipu_compiler.compile(EstimatorSpec)),
    ("compile", "not placed_on_ipu"): in_graph(unplaced),
}
_MINI_BATCHES: dict[tuple[str, str], Call] = {
    (f"{kind}.__init__", "num_mini_batches < 1"): lambda: piped(stages=None, gradient_accumulation_steps=0)
    for kind in (
        "GradientAccumulationOptimizer",
        "GradientAccumulationOptimizerV2",
        "CrossReplicaGradientAccumulationOptimizer",
        "CrossReplicaGradientAccumulationOptimizerV2",
    )
}

_REDUCTION: dict[tuple[str, str], Call] = {
    ("GradientAccumulationReductionMethod.parse", ""): lambda: heard(
        lambda: ipu.gradient_accumulation.GradientAccumulationReductionMethod.parse("most")
    ),
}
_MINI_BATCHES["_compute_scales", "reduction_method"] = wrong_reduction(reduction_method="most")

# file -> (function that raises, words of its condition) -> what goes wrong, told as "<exception> <text>"
CALLS: dict[str, dict[tuple[str, str], Call]] = {
    "ipu/config.py": _CONFIG,
    "ipu/ipu_compiler.py": _COMPILER,
    "ipu/ipu_infeed_queue.py": _INFEED,
    "ipu/ipu_outfeed_queue.py": _OUTFEED,
    "ipu/loops.py": _LOOPS,
    "ipu/scopes.py": _SCOPES,
    "ipu/gradient_accumulation.py": _REDUCTION,
    "ops/pipelining_ops.py": PIPELINING,
    "optimizers/gradient_accumulation_optimizer.py": _MINI_BATCHES,
}


def excepted() -> str:
    """A division by zero on a tile, in a run that is to stop at it."""
    config = ipu.config.IPUConfig()
    config.floating_point_behaviour.div0 = True
    given = np.zeros(4, np.float32)
    made = wb.compile(lambda x: 1 / x, given, config=config, target=wb.target("ipu2", tiles_per_ipu=4))
    return heard(lambda: made.run(given))


# What is no raise site of Python, by the words of its id.
NAMED: dict[str, Call] = {
    "ERR-AMP-neg": lambda: heard(
        lambda: find_option("matmuls.poplar_options.availableMemoryProportion").check("-123.0")
    ),
    "ERR-POPART-amp": lambda: heard(
        lambda: find_option("matmuls.poplar_options.availableMemoryProportion").check("-0.5")
    ),
    "ERR-POPART-pipe": lambda: piped(config=one_ipu()),
    "ERR-POPART-report": unprepared,
    "ERR-MULTI-IPU": sharded,
    "ERR-EXCEPTED": excepted,
    "ERR-OOM": too_large,
    "ERR-POPART-depth": lambda: heard(lambda: check_count("Grouped", 3, 2, training=True)),
}
