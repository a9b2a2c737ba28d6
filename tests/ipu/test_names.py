"""Modules of the API are found where the API reference has them; what is not modelled says what stands in for it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import pytest

import workbench
from workbench import ipu, tf
from workbench.errors import WorkbenchError

OPERATORS = [each.stem for each in (Path(workbench.__file__).parent / "ipu" / "ops").glob("[a-z]*.py")]


def fresh(code: str) -> str:
    """What a process of its own prints: a module that was loaded by one path is found on the others too."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", OPERATORS)
def test_modules_of_operators_are_found_through_ops(name: str) -> None:
    assert fresh(f"from workbench import ipu; print(ipu.ops.{name}.__name__)") == f"workbench.ipu.ops.{name}\n"


def test_ops_lists_its_modules() -> None:
    assert fresh("from workbench.ipu import ops; print('pipelining_ops' in dir(ops))") == "True\n"


# Of what the API reference has in its sections 21.9 to 21.17 and this package has not, a word of what to do instead.
ABSENT = {
    "ipu.all_to_all_op": "all_reduce",
    "ipu.application_compile_op": "ipu.utils.load_executable",
    "ipu.control_flow_ops": "tf.control_dependencies",
    "ipu.custom_ops": "wb.tiles.Graph",
    "ipu.data": "tf.data.Dataset",
    "ipu.dataset_benchmark": "time a pass",
    "ipu.distributed": "ipu.ipu_strategy.IPUStrategy",
    "ipu.embedded_runtime": "ipu.utils.load_executable",
    "ipu.embedding_ops": "ipu.keras.layers.Embedding",
    "ipu.functional_ops": "enable_graph_outlining",
    "ipu.horovod": "ipu.ipu_strategy.IPUStrategy",
    "ipu.image_ops": "keras.layers.Normalization",
    "ipu.internal_ops": "ipu.ipu_outfeed_queue.IPUOutfeedQueue",
    "ipu.keras.layers.CTCLoss": "keras.losses.CTC",
    "ipu.keras.layers.EffectiveTransformer": "keras.layers.MultiHeadAttention",
    "ipu.keras.layers.PopnnGRU": "keras.layers.GRU",
    "ipu.keras.layers.PopnnLSTM": "keras.layers.LSTM",
    "ipu.keras.layers.SerialDense": "keras.layers.Dense",
    "ipu.ipu_estimator": "ipu.ipu_strategy.IPUStrategy",
    "ipu.ipu_multi_worker_strategy": "ipu.ipu_strategy.IPUStrategy",
    "ipu.ipu_pipeline_estimator": "ipu.pipelining_ops.pipeline",
    "ipu.ipu_run_config": "ipu.config.IPUConfig",
    "ipu.ipu_session_run_hooks": "ipu.ipu_outfeed_queue.IPUOutfeedQueue",
    "ipu.math_ops": "keras.ops.segment_sum",
    "ipu.nn_ops": "tf.nn.gelu",
    "ipu.normalization_ops": "ipu.keras.layers.GroupNormalization for group_norm",
    "ipu.ops.normalization_ops": "ipu.keras.layers.GroupNormalization for group_norm",
    "ipu.optimizers": "GradientAccumulationOptimizer and its V2 call set_gradient_accumulation_options",
    "ipu.outlined_function": "enable_graph_outlining",
    "ipu.rand_ops": "ipu.keras.layers.Dropout",
    "ipu.reduce_scatter_op": "all_reduce",
    "ipu.replication_ops": "infeeds",
    "ipu.serving": "ipu.utils.load_executable",
    "ipu.sharding": "ipu.scopes.ipu_shard",
    "ipu.slicing_ops": "tf.slice",
    "ipu.statistics_ops": "keras.ops.histogram",
    "ipu.rnn_ops": "keras.layers.LSTM",
    "ipu.summary_ops": "strategy.profile",
    "ipu.test_utils": "strategy.profile",
    "ipu.utils.auto_select_ipus": "IPUConfig.auto_select_ipus",
    "ipu.utils.create_ipu_config": "ipu.config.IPUConfig",
    "ipu.utils.select_ipus": "IPUConfig.select_ipus",
    "ipu.utils.set_compilation_options": "IPUConfig.compilation_poplar_options",
    "ipu.utils.set_convolution_options": "IPUConfig.convolutions.poplar_options",
    "ipu.utils.set_floating_point_behaviour_options": "IPUConfig.floating_point_behaviour",
    "ipu.utils.set_ipu_connection_type": "IPUConfig.device_connection.type",
    "ipu.utils.set_ipu_model_options": "IPUConfig.ipu_model",
    "ipu.utils.set_matmul_options": "IPUConfig.matmuls.poplar_options",
    "ipu.utils.set_optimization_options": "IPUConfig.optimizations",
    "ipu.utils.set_recomputation_options": "IPUConfig.allow_recompute",
    "ipu.within_replica_ops": "ipu.scopes.ipu_shard",
}
ROOTS: dict[str, Any] = {"ipu": ipu, "keras": keras, "tf": tf, "wb": workbench}


def owner_of(path: str) -> tuple[Any, str]:
    owner: Any = ROOTS[path.partition(".")[0]]
    *through, name = path.split(".")[1:]
    for each in through:
        owner = getattr(owner, each)
    return owner, name


@pytest.mark.parametrize(("path", "instead"), ABSENT.items())
def test_what_is_not_modelled_says_what_to_do_instead(path: str, instead: str) -> None:
    owner, name = owner_of(path)
    assert not hasattr(owner, name)
    assert getattr(owner, name, None) is None
    with pytest.raises(AttributeError, match="is not modelled") as told:
        getattr(owner, name)
    assert isinstance(told.value, WorkbenchError)
    assert name in told.value.what
    assert instead in told.value.todo


@pytest.mark.parametrize("path", ABSENT)
def test_what_is_not_modelled_says_so_to_an_import(path: str) -> None:
    owner, name = owner_of(path)
    lines = [f"from {owner.__name__} import {name}", f"import {owner.__name__}.{name}"]
    for line in (*lines, f"from {owner.__name__}.{name} import anything"):
        with pytest.raises(ImportError, match=f"'{name}' of {owner.__name__} is not modelled. To mend it: "):
            exec(line)


@pytest.mark.parametrize("path", ABSENT)
def test_what_stands_in_is_there(path: str) -> None:
    owner, name = owner_of(path)
    with pytest.raises(AttributeError) as told:
        getattr(owner, name)
    assert isinstance(told.value, WorkbenchError)
    for named in re.findall(r"\b(?:ipu|keras|tf|wb)(?:\.\w+)+", told.value.todo):
        assert hasattr(*owner_of(named)), named


@pytest.mark.parametrize("path", ABSENT)
def test_the_readme_lists_what_is_not_modelled(path: str) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"`{path.rpartition('.')[2]}`" in readme


@pytest.mark.parametrize("module", ["ipu", "ipu.ops", "ipu.utils"])
def test_names_that_the_sdk_has_not_either_are_none(module: str) -> None:
    owner = getattr(*owner_of(module)) if "." in module else ipu
    with pytest.raises(AttributeError, match=f"module 'workbench.{module}' has no attribute 'normalisation_ops'"):
        _ = owner.normalisation_ops
    with pytest.raises(ImportError, match="cannot import name 'normalisation_ops'"):
        exec(f"from workbench.{module} import normalisation_ops")


THROUGH_TF = {
    "import workbench.tf.python.ipu.config as found": "workbench.ipu.config",
    "from workbench.tf.python import ipu as found": "workbench.ipu",
    "from workbench.tf.python.ipu import utils as found": "workbench.ipu.utils",
    "from workbench.tf.python.ipu import pipelining_ops as found": "workbench.ipu.ops.pipelining_ops",
    "import workbench.tf.python.ipu.ops.pipelining_ops as found": "workbench.ipu.ops.pipelining_ops",
    "import workbench.tf.python.ipu.keras.layers as found": "workbench.ipu.keras.layers",
}


@pytest.mark.parametrize("itself_first", [True, False])
def test_the_paths_of_tensorflow_lead_to_the_module_itself(itself_first: bool) -> None:
    lines = []
    for line, name in THROUGH_TF.items():
        both = (f"import {name} as itself", line)
        lines += [*(both if itself_first else both[::-1]), f"assert found is itself, {name!r}"]
        lines.append(f"assert found.__name__ == found.__spec__.name == {name!r}, found.__spec__")
    assert fresh("\n".join(lines)) == ""


def test_names_are_imported_by_the_paths_of_tensorflow() -> None:
    from workbench.tf.python.ipu.config import IPUConfig

    assert IPUConfig is ipu.config.IPUConfig
    with pytest.raises(ImportError, match=r"'horovod' of workbench\.ipu is not modelled\. To mend it: "):
        exec("from workbench.tf.python.ipu.horovod import anything")
    with pytest.raises(ImportError, match="normalisation_ops"):
        exec("import workbench.tf.python.ipu.normalisation_ops")
