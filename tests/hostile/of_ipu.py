"""Functions of `wb.ipu`: devices, scopes, files and configuration."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import workbench as wb
from tests.hostile import things
from tests.hostile.surface import Call, call

ROOT = "workbench.ipu."


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function of a public module, by module and name."""
    return public(inspect.isfunction)


def public(kind: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    """What is public in a public module and of a kind, by module and name."""
    for found in pkgutil.walk_packages(wb.ipu.__path__, ROOT):
        if any(part.startswith("_") for part in found.name.removeprefix(ROOT).split(".")):
            continue
        module = importlib.import_module(found.name)
        for name in getattr(module, "__all__", [each for each in vars(module) if not each.startswith("_")]):
            function = getattr(module, name)
            if kind(function) and function.__module__ == found.name:
                yield f"{found.name.removeprefix(ROOT)}.{name}", function


class Pieces:
    """A graph of `tf` with an input, a session that has its variable's value, and files of both."""

    def __init__(self) -> None:
        tf = wb.tf
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.placeholder = tf.placeholder("float32", [2], name="x")
            self.variable = tf.get_variable("weight", initializer=np.ones(2, "float32"))
            self.session = tf.Session(graph=self.graph)
            self.session.run(tf.global_variables_initializer())
            wb.ipu.utils.export_variables_from_live_session(self.session, "weights.bin")
        self.model = things.fresh_model()
        wb.ipu.utils.export_variables_from_live_model(self.model, "model.bin")


def doubled(*values: Any) -> Any:
    return [each + each for each in values]


def on_ipu(*values: Any) -> Any:
    with wb.ipu.scopes.ipu_scope("/device:IPU:0"):
        return doubled(*values)


def few(*values: Any) -> Any:
    sums = [wb.tf.reduce_sum(wb.tf.cast(each, "float32")) for each in values]
    return wb.tf.less(wb.tf.add_n([0.0, *sums]), 100.0)


DATASET = [np.float32(number) for number in range(4)]
# What an ordinary call gives, made of the pieces where it is a function.
ORDINARY: Mapping[str, Mapping[str, Any]] = {
    "config.config.configure_ipu_system": {"config": lambda pieces: wb.ipu.config.IPUConfig()},
    "config.config.get_ipu_config": {},
    "dataset_extractor.dataset_extractor": {
        "dataset": DATASET,
        "num_elements": 2,
        "filename": "set.bin",
        "feed_name": "feed",
    },
    "dataset_extractor.export_variables": {
        "variables": lambda pieces: [pieces.variable],
        "names": ["weight"],
        "filename": "out.bin",
    },
    "dataset_extractor.get_variable_handles": {"variables": lambda pieces: [pieces.variable]},
    "dataset_extractor.import_variables": {
        "variables": lambda pieces: [pieces.variable],
        "filenames": ["weights.bin"],
    },
    "devices.device_number": {"ipu_device": "/device:IPU:0"},
    "devices.get_num_of_ipus_in_device": {"ipu_device": "/device:IPU:0"},
    "devices.check_ipus": {"wanted": 1, "target": things.machine(), "what": "programs"},
    "devices.use": {"name": "pod4"},
    "scopes.outside_compilation_scope": {},
    "utils.load_executable": {"path": "nosuch.wbx"},
    "scopes.frontend_attribute": {"attribute_name": "a", "attribute_value": "b"},
    "scopes.ipu_scope": {"device": "/device:IPU:0"},
    "scopes.ipu_shard": {"index": 0},
    "scopes.partials_type": {"override_type": "float16"},
    "scopes.stochastic_rounding": {"override": True},
    "ipu_compiler.compile": {"computation": lambda pieces: on_ipu, "inputs": lambda pieces: [pieces.placeholder]},
    "loops.repeat": {"n": 2, "body": lambda pieces: doubled, "inputs": lambda pieces: [pieces.placeholder]},
    "loops.while_loop": {
        "condition": lambda pieces: few,
        "body": lambda pieces: doubled,
        "inputs": lambda pieces: [pieces.placeholder],
        "maximum_iterations": 2,
    },
    "ops.cross_replica_ops.assume_equal_across_replicas": {"tensors": lambda pieces: pieces.placeholder},
    **{
        f"ops.cross_replica_ops.cross_replica_{name}": {"x": lambda pieces: pieces.placeholder}
        for name in ("sum", "mean")
    },
    "ops.pipelining_ops.recomputation_checkpoint": {"tensors": lambda pieces: pieces.placeholder},
    "scopes.ipu_jit_scope": {"ipu_scope": "/device:IPU:0"},
    "utils.export_dataset_to_file": {"dataset_or_infeed": DATASET, "output_filename": "set.bin", "num_elements": 2},
    "utils.export_inputs_to_file": {
        "inputs": lambda pieces: [pieces.placeholder],
        "output_filename": "inputs.bin",
        "feed_dict": lambda pieces: {pieces.placeholder: [1.0, 2.0]},
    },
    "utils.export_variables_from_live_model": {"model": lambda pieces: pieces.model, "output_file": "out.bin"},
    "utils.export_variables_from_live_session": {"session": lambda pieces: pieces.session, "output_file": "out.bin"},
    "utils.import_data_in_live_model": {"model": lambda pieces: pieces.model, "data_files": ["model.bin"]},
    "utils.import_data_in_live_session": {"session": lambda pieces: pieces.session, "data_files": ["weights.bin"]},
    "utils.move_variable_initialization_to_cpu": {},
    "utils.reset_ipu_seed": {"seed": 1},
    "utils.use_synthetic_data_for": {
        "synthetic_data_category": lambda pieces: wb.ipu.utils.SyntheticDataCategory.Infeed
    },
}
# A pipeline has its cells among the classes.
ELSEWHERE = ("ops.pipelining_ops.pipeline",)


def cells() -> Iterator[Call]:
    for name, function in functions():
        if inspect.signature(function).parameters and name not in ELSEWHERE:
            asked = outside if name.endswith("outside_compilation_scope") else function
            yield call(f"ipu.{name}", in_place(asked), given=ORDINARY[name])


@contextlib.contextmanager
def outside(name: Any = "outside") -> Iterator[None]:
    """The scope where it is used: inside a computation for the IPU."""
    with wb.ipu.scopes.ipu_scope("/device:IPU:0"), wb.ipu.scopes.outside_compilation_scope(name):
        yield


def in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in a graph of its own, and in its scope where it is one; behind it nothing is configured."""

    def called(**given: Any) -> Any:
        pieces = Pieces()
        values = {name: value(pieces) if name_of(value) == "<lambda>" else value for name, value in given.items()}
        config = wb.ipu.config.IPUConfig()
        config.auto_select_ipus = 1
        config.configure_ipu_system()
        try:
            with pieces.graph.as_default():
                found = function(**values)
                if hasattr(found, "__enter__") and not isinstance(found, wb.tf.Session):
                    with found:
                        pass
                return found
        finally:
            wb.ipu.config.reset_ipu_configuration()
            wb.ipu.devices.use("pod4")

    called.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return called


def name_of(value: Any) -> str:
    return str(getattr(value, "__name__", ""))
