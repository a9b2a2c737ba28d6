"""Which public module of this API is where, and which the SDK has and this does not. Modules are found when first used.

`ABSENT` says of each of the SDK's modules and names that is not here what stands in for it.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Mapping
from types import ModuleType

from workbench.errors import WorkbenchError
from workbench.tf._absent import AbsentNameError

_ON_KERAS = "train a Keras model in the scope of an ipu.ipu_strategy.IPUStrategy"
_ON_REPLICAS = "ask tf.distribute.get_replica_context().all_reduce in a function that an IPUStrategy runs"
_OF_ONE_PROCESS = f"{_ON_KERAS}: one process runs a replica on every IPU of its device"
_FROM_FILES = "set IPUConfig.serialization_output_folder, and read what a compile wrote by ipu.utils.load_executable"
_ACCUMULATED = (
    "call set_gradient_accumulation_options of a Keras model, or give gradient_accumulation_count to "
    "ipu.pipelining_ops.pipeline"
)
_AVERAGED = "leave it out: ipu.pipelining_ops.pipeline and wb.compile(replicas=...) average over replicas themselves"
_MAPPED = "change the gradients between compute_gradients and apply_gradients of a tf.train.Optimizer"
_SHARDED = "use the tf.train optimizer itself: gradients are where an ipu.scopes.ipu_shard has their operations"

_CONFIGURED = "set options of an ipu.config.IPUConfig and call its configure_ipu_system"

# What to do in place of each, by the package or module of the SDK that has it. Modules of `ops` are in `ipu` too.
ABSENT: dict[str, Mapping[str, str]] = {
    "workbench.ipu": {
        "application_compile_op": _FROM_FILES,
        "cross_replica_optimizer": _AVERAGED,
        "data": "use batch and prefetch of a tf.data.Dataset for BufferDataset",
        "dataset_benchmark": "time a pass over the dataset: how fast this machine reads says nothing about an IPU",
        "distributed": _OF_ONE_PROCESS,
        "embedded_runtime": _FROM_FILES,
        "gradient_accumulation_optimizer": _ACCUMULATED,
        "horovod": _OF_ONE_PROCESS,
        "ipu_estimator": _ON_KERAS,
        "ipu_multi_worker_strategy": _OF_ONE_PROCESS,
        "ipu_optimizer": "use the tf.train optimizer itself",
        "ipu_pipeline_estimator": f"{_ON_KERAS} and give its layers stages, or use ipu.pipelining_ops.pipeline",
        "ipu_run_config": f"set ipu.config.IPUConfig, and {_ON_KERAS}",
        "ipu_session_run_hooks": "enqueue to an ipu.ipu_outfeed_queue.IPUOutfeedQueue, and log what is dequeued",
        "map_gradient_optimizer": _MAPPED,
        "optimizers": f"for GradientAccumulationOptimizer and its V2 {_ACCUMULATED}; for CrossReplicaOptimizer "
        f"{_AVERAGED}; for MapGradientOptimizer {_MAPPED}; for ShardedOptimizer {_SHARDED}",
        "serving": _FROM_FILES,
        "sharded_optimizer": _SHARDED,
        "sharding": "place operations with ipu.scopes.ipu_shard, which places their gradients too",
        "summary_ops": "look at strategy.profile, or at tf.Session's profile, for ipu_compile_summary",
        "test_utils": "look at strategy.profile, or at tf.Session's profile, for ReportHelper and ReportJSON",
    },
    "workbench.ipu.ops": {
        "all_to_all_op": _ON_REPLICAS,
        "control_flow_ops": "order operations with tf.control_dependencies for barrier",
        "custom_ops": "call tf.py_function in an ipu.scopes.outside_compilation_scope for cpu_user_operation; "
        "write vertices of your own in a wb.tiles.Graph",
        "embedding_ops": "use ipu.keras.layers.Embedding or tf.gather for embedding_lookup; tables stay on the IPU, "
        "none is on the host",
        "functional_ops": "leave out outlined_function: what repeats is outlined unless "
        "IPUConfig.optimizations.enable_graph_outlining is False",
        "image_ops": "use keras.layers.Normalization for normalise_image",
        "internal_ops": "enqueue to an ipu.ipu_outfeed_queue.IPUOutfeedQueue for print_tensor; stages of "
        "ipu.pipelining_ops.pipeline have their fifo, and layouts need no remap",
        "math_ops": "use keras.ops.segment_sum for segment_sum, and tf.matmul for serialized_matmul",
        "nn_ops": "use tf.nn.gelu, tf.nn.softmax, tf.nn.swish and keras.ops.hard_sigmoid; convolutions one by one for "
        "multi_conv; keras.losses.CTC and keras.ops.ctc_decode for those of CTC, and losses over all classes for "
        "sampled_softmax_loss and nce_loss",
        "normalization_ops": "use ipu.keras.layers.GroupNormalization for group_norm, "
        "ipu.keras.layers.InstanceNormalization for instance_norm and ipu.keras.layers.LayerNormalization for "
        "layer_norm",
        "rand_ops": "use ipu.keras.layers.Dropout, or tf.nn.dropout, for dropout",
        "reduce_scatter_op": _ON_REPLICAS,
        "replication_ops": "leave out replication_index: every replica runs one program, and infeeds give each its own",
        "rnn_ops": "use keras.layers.LSTM for PopnnLSTM and PopnnDynamicLSTM, and keras.layers.GRU for PopnnGRU and "
        "PopnnDynamicGRU; masks take the lengths of sequences, and nothing stands in for PopnnAUGRU",
        "slicing_ops": "use tf.slice and tf.gather, and lengths that are known when the program is compiled",
        "statistics_ops": "use keras.ops.digitize for fixed_width_bins, and keras.ops.histogram",
        "within_replica_ops": "add or concatenate values of several ipu.scopes.ipu_shard: their copies are made",
    },
    "workbench.ipu.utils": {
        "auto_select_ipus": "set IPUConfig.auto_select_ipus",
        "create_ipu_config": _CONFIGURED,
        "select_ipus": "set IPUConfig.select_ipus",
        "set_compilation_options": "set IPUConfig.compilation_poplar_options",
        "set_convolution_options": "set IPUConfig.convolutions.poplar_options",
        "set_floating_point_behaviour_options": "set options of IPUConfig.floating_point_behaviour",
        "set_ipu_connection_type": "set IPUConfig.device_connection.type",
        "set_ipu_model_options": "set options of IPUConfig.ipu_model",
        "set_matmul_options": "set IPUConfig.matmuls.poplar_options",
        "set_optimization_options": "set options of IPUConfig.optimizations",
        "set_recomputation_options": "set IPUConfig.allow_recompute to True before configure_ipu_system",
    },
}
_OPS = {**ABSENT["workbench.ipu.ops"], "outlined_function": ABSENT["workbench.ipu.ops"]["functional_ops"]}


class AbsentModuleError(WorkbenchError, ModuleNotFoundError):
    """A module or name of the SDK's that is not modelled, asked for by an import.

    It carries no `name`: `from ... import` says nothing of an error that has the name it looks for.
    """


def stand_in(module: str, name: str) -> str:
    """What to do in place of a name of the SDK's; nothing for a name that the SDK has not."""
    found = ABSENT.get(module, {}).get(name, "")
    return found or (_OPS.get(name, "") if module == "workbench.ipu" else "")


def also_absent(module: str, instead: Mapping[str, str]) -> None:
    """What stands in for names that a module above this one has not: it says so itself."""
    ABSENT[module] = instead


def absent(module: str, name: str) -> AttributeError:
    """What to raise for a name that a module of this API has not."""
    what, instead = f"module {module!r} has no attribute {name!r}", stand_in(module, name)
    return AbsentNameError(f"{what}: it is not modelled", todo=instead) if instead else AttributeError(what)


def modules(package: str) -> list[str]:
    """Public modules of a package of this API, without loading them."""
    found = importlib.import_module(package).__path__
    return sorted(info.name for info in pkgutil.iter_modules(found) if not info.name.startswith("_"))


def find(package: str, name: str) -> ModuleType:
    """A public module of a package, or an `AttributeError` that says what stands in for it, or what there is."""
    if name.startswith("_"):
        raise absent(package, name)
    # The modules of `ops` are found in `ipu` too, as in the SDK: ipu.pipelining_ops is ipu.ops.pipelining_ops.
    for place in (package, "workbench.ipu.ops") if package == "workbench.ipu" else (package,):
        if name in modules(place):
            return importlib.import_module(f"{place}.{name}")
    if stand_in(package, name):
        raise absent(package, name)
    raise AttributeError(f"module {package!r} has no attribute {name!r}; it has: {', '.join(modules(package))}")


class Imports:
    """Asked last of all for a module: an import of one that is not modelled says so, where Python says `not found`."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> None:
        """Nothing is found; an `AbsentModuleError` for what `ABSENT` has."""
        module, name = fullname.rpartition(".")[::2]
        if stand_in(module, name):
            raise AbsentModuleError(f"{name!r} of {module} is not modelled", todo=stand_in(module, name))


sys.meta_path.append(Imports)

__all__ = ["ABSENT", "AbsentModuleError", "absent", "also_absent", "find", "modules"]
