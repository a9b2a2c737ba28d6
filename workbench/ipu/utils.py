"""`tensorflow.python.ipu.utils`: what concerns the configured devices, their seed, and files of data.

Names of `ipu.config` and of `ipu.devices` are found here too, as in the SDK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.base.units import things_text
from workbench.base.whole import whole
from workbench.errors import InputError
from workbench.ipu import _names
from workbench.ipu._files import executables, tensors
from workbench.ipu.config import (
    DeviceConnectionType,
    ExecutionProfileType,
    IPUConfig,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
    configure_ipu_system,
    get_ipu_config,
    reset_ipu_configuration,
    use_emulation,
)
from workbench.ipu.config._cpu import check_cpu
from workbench.ipu.config._flags import flags
from workbench.ipu.config._state import STATE
from workbench.ipu.dataset_extractor import (
    export_elements,
    export_variables,
    get_variable_handles,
    import_variables,
    refuse_metadata,
)
from workbench.ipu.devices import device_number, get_num_of_ipus_in_device
from workbench.ipu.ipu_infeed_queue import IPUInfeedQueue
from workbench.tf._graph import Graph, Tensor
from workbench.tf._ops.random import set_seed
from workbench.tf._session.session import Session

# `from utils import ...` looks for a name that is not here among modules, whose finder says why, in a package only.
__path__: list[str] = []


def __getattr__(name: str) -> Any:
    raise _names.absent(__name__, name)


def is_running_on_ipu_model() -> bool:
    """Whether `TF_POPLAR_FLAGS` asks for the IPU model."""
    return use_emulation()


running_on_ipu_model = is_running_on_ipu_model


class SyntheticDataCategory(Enum):
    """Kinds of data that can be synthetic (graphcore/tensorflow@b2127bba ...plugin/poplar/driver/config.proto)."""

    Seed = 0
    Infeed = 1
    Outfeed = 2
    HostEmbedding = 3
    Parameters = 4
    Unknown = 5


def use_synthetic_data_for(synthetic_data_category: SyntheticDataCategory) -> bool:
    """Whether `TF_POPLAR_FLAGS` makes data of this category synthetic, so that none is copied."""
    if not isinstance(synthetic_data_category, SyntheticDataCategory):
        raise InputError(
            f"synthetic_data_category is {short(synthetic_data_category)}", expected="a utils.SyntheticDataCategory"
        )
    return flags().synthetic(synthetic_data_category.name)


@checked
def reset_ipu_seed(
    seed: int,
    device: str = "/device:IPU:0",
    cpu_device: str = "cpu",
    experimental_identical_replicas: bool = False,
) -> None:
    """Begin random numbers and stochastic rounding of a device at a seed, so that runs after it can be repeated.

    `device`: the IPU device; `cpu_device`: the CPU beside it; `experimental_identical_replicas`: the same seed on every
    replica. Errors: `ValueError` for a seed that is no whole number or a device that is none.
    """
    whole("seed", seed, least=-(2**63), most=2**63 - 1)
    device_number(device)
    check_cpu("cpu_device", cpu_device)
    STATE.reset_seed(seed, experimental_identical_replicas)

    set_seed(seed)


def move_variable_initialization_to_cpu(graph: Any = None) -> None:
    """Make variables' first values on the host. They always are here; a graph that is none is an `InputError`."""
    if graph is not None and not isinstance(graph, Graph):
        raise InputError(f"graph is {graph!r}", expected="a tf.Graph, or None for the default one")


@checked
def export_dataset_to_file(
    dataset_or_infeed: Any,
    output_filename: str | Path,
    num_elements: int,
    feed_name: str = "",
    apply_options: bool = True,
) -> None:
    """Write `num_elements` elements of a dataset or infeed queue to binary files, one for each tensor of an element.

    `my_dataset.bin` of pairs becomes `my_dataset.0.bin` and `my_dataset.1.bin`. `feed_name`: the name they carry.
    `apply_options` has no effect: datasets are read as they are. The layout is told in `ipu/_files/tensors.py`;
    `dataset_extractor` reads it back. Errors: `InputError` for too few elements, or ones that differ in shape.
    """
    dataset, name = dataset_or_infeed, feed_name
    if isinstance(dataset_or_infeed, IPUInfeedQueue):
        dataset, name = dataset_or_infeed._dataset, feed_name or dataset_or_infeed._id
    export_elements(dataset, num_elements, output_filename, name)


@checked
def export_inputs_to_file(inputs: Sequence[Any], output_filename: str | Path, feed_dict: Mapping[Any, Any]) -> None:
    """Write the values of graph inputs, given in `feed_dict`, to one binary file under their names."""
    if any(not isinstance(each, Tensor) for each in inputs):
        raise InputError(f"inputs are {short(inputs)}", expected="placeholders of the graph")
    names = [each.name for each in inputs]
    Session().run(export_variables(inputs, names, output_filename), feed_dict)


@checked
def load_executable(path: str | Path) -> Any:
    """Read an executable that a compile wrote to `serialization_output_folder`: `.profile`, `.variables`, `.run`."""
    return executables.load_executable(path)


@checked
def export_variables_from_live_session(session: Session, output_file: str | Path, gc_metadata: Any = None) -> None:
    """Write the values of a session's variables to a file. `gc_metadata`: None; the SDK's is not read here."""
    refuse_metadata("gc_metadata", gc_metadata)
    variables = session.graph.get_collection("variables")
    session.run(export_variables(variables, get_variable_handles(variables), output_file, gc_metadata))


@checked
def import_data_in_live_session(session: Session, data_files: Sequence[str | Path], output_folder: Any = None) -> None:
    """Set a session's variables to the values in files. `output_folder`: None; nothing but the session is written."""
    _refuse_folder(output_folder)
    session.run(import_variables(session.graph.get_collection("variables"), data_files))


@checked
def export_variables_from_live_model(model: Any, output_file: str | Path, gc_metadata: Any = None) -> None:
    """Write the values of a Keras model's variables to a file. `gc_metadata`: None; the SDK's is not read here."""
    _check_model(model)
    refuse_metadata("gc_metadata", gc_metadata)
    stored = [tensors.Stored(name=variable.path, values=np.asarray(variable.value)) for variable in model.variables]
    tensors.write(output_file, "variables", stored)


@checked
def import_data_in_live_model(model: Any, data_files: Sequence[str | Path], output_folder: Any = None) -> None:
    """Set a Keras model's variables to the values in files; every variable must be in one of them.

    `output_folder`: None; nothing but the model is written.
    """
    _check_model(model)
    _refuse_folder(output_folder)
    values: dict[str, Any] = {}
    for each in data_files:
        values |= tensors.read(each)
    missing = [variable.path for variable in model.variables if variable.path not in values]
    if missing:
        raise InputError(
            f"{things_text(len(missing), 'variable')} {'is' if len(missing) == 1 else 'are'} in no file: "
            f"{', '.join(missing)}"
        )
    for variable in model.variables:
        variable.assign(values[variable.path])


def _check_model(model: Any) -> None:
    import keras

    if not isinstance(model, keras.layers.Layer):
        raise InputError(f"model is {short(model)}", expected="a Keras model")


def _refuse_folder(output_folder: Any) -> None:
    if output_folder is not None:
        raise InputError(f"output_folder is {short(output_folder)}", expected="None: nothing is written to a folder")


__all__ = [
    "DeviceConnectionType",
    "ExecutionProfileType",
    "IPUConfig",
    "MergeRemoteBuffersBehaviour",
    "SchedulingAlgorithm",
    "SelectionOrder",
    "StochasticRoundingBehaviour",
    "SyntheticDataCategory",
    "configure_ipu_system",
    "device_number",
    "export_dataset_to_file",
    "export_inputs_to_file",
    "export_variables_from_live_model",
    "export_variables_from_live_session",
    "get_ipu_config",
    "get_num_of_ipus_in_device",
    "import_data_in_live_model",
    "import_data_in_live_session",
    "is_running_on_ipu_model",
    "load_executable",
    "move_variable_initialization_to_cpu",
    "reset_ipu_configuration",
    "reset_ipu_seed",
    "running_on_ipu_model",
    "use_synthetic_data_for",
]
