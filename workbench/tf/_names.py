"""Which public name of `tf` is where. Names are found when they are first used."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.errors import InputError, KindError
from workbench.ipu.devices import device_number
from workbench.tf import _graph
from workbench.tf._absent import Names, absent
from workbench.tf._function.function import function
from workbench.tf._function.signature import TensorSpec
from workbench.tf._graph import Operation, Tensor
from workbench.tf._graph import convert as _convert
from workbench.tf._graph import initializers as _initializers
from workbench.tf._graph import variables as _variables
from workbench.tf._graph.dtypes import DTYPES, DType, given_type
from workbench.tf._graph.shapes import TensorShape, sizes
from workbench.tf._ops import arrays as _arrays  # adds to OPERATIONS
from workbench.tf._ops import control as _control
from workbench.tf._ops import functions as _functions
from workbench.tf._ops import gradients as _gradients
from workbench.tf._ops import nn as _nn
from workbench.tf._ops import random as _random
from workbench.tf._ops.control import as_tensor
from workbench.tf._ops.host import host_function
from workbench.tf._ops.math import OPERATIONS
from workbench.tf._ops.tape import GradientTape
from workbench.tf._session import session as _session


@checked
def placeholder(dtype: Any, shape: Any = None, name: Any = None) -> Tensor:
    """A tensor whose value is fed. Of no shape, or one with None, each shape that is fed is compiled for the IPU."""

    def compute(run: Any, values: Sequence[Any]) -> Sequence[Any]:
        raise InputError(
            f"You must feed a value for the placeholder {made.name}.", todo="give it in the run's feed_dict"
        )

    made = Operation(
        "Placeholder", (), [(None if shape is None else sizes(shape), str(given_type(dtype)))], compute, name=name
    )
    return made.outputs[0]


@contextlib.contextmanager
@checked
def device(device_name: str | None) -> Iterator[None]:
    """Operations made inside run on this device: "cpu", "/device:CPU:0", "/device:IPU:0"; None is the default."""
    name = "" if device_name is None else device_name
    if "IPU" in name.upper():
        device_number(name)
    elif name and not _CPU.fullmatch(name):
        raise InputError(f"device_name is {short(name)}", expected='such as "/device:IPU:0", "cpu" or "/device:CPU:0"')
    with _graph.scoped(device=name):
        yield


_CPU = re.compile(r"(/job:\w+)?(/replica:\d+)?(/task:\d+)?/?(device:)?cpu(:\d+|:\*)?", re.IGNORECASE)


@contextlib.contextmanager
@checked
def name_scope(name: str | None, default_name: str | None = None, values: Any = None) -> Iterator[str]:
    """Operations made inside carry this name; in a profile it is their layer. `values` are in the graph already."""
    _variables.refuse_strangers(values)
    names = (*_graph.current_scopes().names, *((name or default_name or "",) if name or default_name else ()))
    with _graph.scoped(names=names):
        yield "/".join(names)


@contextlib.contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Operations made inside run after these: a list of operations, tensors and variables; None waits for none.

    Errors: `KindError` for what is none of them.
    """
    if control_inputs is None:
        with _graph.scoped(after=()):
            yield
        return
    waited = _operations("control_inputs", control_inputs)
    with _graph.scoped(after=(*_graph.current_scopes().after, *waited)):
        yield


def _operations(called: str, given: Any) -> list[Operation]:
    """The operations of a list; what has its value already is waited for no longer."""
    if not isinstance(given, list | tuple):
        raise KindError(f"{called} is {short(given)}", expected="a list of operations and tensors")
    found = []
    for each in given:
        if isinstance(each, Tensor | Operation):
            found.append(each.op if isinstance(each, Tensor) else each)
        elif not isinstance(each, _variables.Variable | np.ndarray | jax.Array):
            raise KindError(f"{called} is {short(given)}", expected="a list of operations and tensors")
    return found


@checked
def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that runs the others: operations, tensors, or lists and dicts of them.

    Errors: `KindError` for what is none of them.
    """
    try:
        flat = list(_convert.leaves(*inputs))
    except RecursionError as error:
        raise KindError(f"inputs are {short(inputs)}: {error}", expected="operations and tensors") from None
    with control_dependencies(_operations("inputs", flat)):
        return Operation(name or "group", (), (), lambda run, values: ())


@checked
def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing."""
    return Operation("NoOp", (), (), lambda run, values: (), name=name)


@checked
def tuple_(tensors: Any, name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The tensors, once all of them and the operations are done; None stays None. `name`: a scope around them."""
    if not isinstance(tensors, list | tuple) or not tensors:
        raise KindError(f"tensors is {short(tensors)}", expected="a list of tensors")
    try:
        given = [each if each is None else as_tensor(each) for each in tensors]
    except InputError as error:
        raise KindError(f"tensors is {short(tensors)}: {error.what}", expected="a list of tensors") from None
    others = [] if control_inputs is None else _operations("control_inputs", control_inputs)
    with name_scope(name or "tuple"), control_dependencies([*others, *(each for each in given if each is not None)]):
        return [each if each is None else OPERATIONS["identity"](each) for each in given]


def _initialize(variables: Sequence[Any], name: str = "init") -> Operation:
    return group(*(variable.initializer for variable in variables), name=name)


def global_variables_initializer() -> Operation:
    """The operation that gives every variable its first value."""
    return _initialize(global_variables())


@checked
def variables_initializer(var_list: Any, name: str = "init") -> Operation:
    """The operation that gives these variables their first values; a `KindError` for what is no list of variables."""
    if not isinstance(var_list, list | tuple):
        raise KindError(f"var_list is {short(var_list)}", expected="a list of variables")
    return _initialize([variable("var_list", each) for each in var_list], name)


def local_variables_initializer() -> Operation:
    """The operation that gives local variables their first values."""
    return _initialize(_graph.get_default_graph().root.get_collection(_variables.LOCAL))


@checked
def global_variables(scope: str | None = None) -> list[Any]:
    """All variables of the graph."""
    found = _graph.get_default_graph().root.get_collection(_variables.GLOBAL)
    return [each for each in found if scope is None or each.name.startswith(scope)]


@checked
def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables optimizers update."""
    found = _graph.get_default_graph().root.get_collection(_variables.TRAINABLE)
    return [each for each in found if scope is None or each.name.startswith(scope)]


def variable(called: str, value: Any) -> Any:
    """A variable; a `KindError` for anything else."""
    if not isinstance(value, _variables.Variable):
        raise KindError(f"{called} is {short(value)}", expected="a variable")
    return value


@checked
def assign(
    ref: Any, value: Any, validate_shape: bool | None = None, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Give a variable a new value, of its shape: that is always validated. `use_locking`: see `Variable.assign`."""
    if validate_shape is False:
        raise InputError("validate_shape is False", expected="True: XLA compiles for fixed shapes")
    return variable("ref", ref).assign(value, use_locking, name)


@checked
def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Add to a variable."""
    return variable("ref", ref).assign_add(value, use_locking, name)


@checked
def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtract from a variable."""
    return variable("ref", ref).assign_sub(value, use_locking, name)


_STEP = "global_step"


def _root(graph: Any) -> Any:
    if graph is not None and not isinstance(graph, _graph.Graph):
        raise KindError(f"graph is {short(graph)}", expected="a tf.Graph, or None for the default one")
    return (_graph.get_default_graph() if graph is None else graph).root


def get_global_step(graph: Any = None) -> Any:
    """The variable that counts weight updates, or None."""
    found = _root(graph).get_collection(_STEP)
    return found[0] if found else None


def get_or_create_global_step(graph: Any = None) -> Any:
    """The variable that counts weight updates; make it in `tf.device("cpu")`, so that counting stays on the host."""
    root = _root(graph)
    if not root.get_collection(_STEP):
        with root.as_default():
            made = _variables.get_variable(
                _STEP, (), "int32", _initializers.zeros_initializer("int32"), trainable=False
            )
        root.add_to_collection(_STEP, made)
    return root.get_collection(_STEP)[0]


@checked
def py_function(func: Callable[..., Any], inp: Any, Tout: Any, name: str | None = None) -> Any:  # noqa: N803
    """A Python function of arrays on the host; in a compiled computation, inside an `outside_compilation_scope`."""
    return host_function(func, inp, Tout, name)


@checked
def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """What is in a collection of the graph; with a scope, those whose name begins so."""
    return list(_graph.get_default_graph().root.get_collection(key, scope))


@checked
def add_to_collection(name: str, value: Any) -> None:
    """Add to a collection of the graph."""
    _graph.get_default_graph().root.add_to_collection(name, value)


class GraphKeys:
    """Names of a graph's collections."""

    GLOBAL_VARIABLES = _variables.GLOBAL
    TRAINABLE_VARIABLES = _variables.TRAINABLE
    LOCAL_VARIABLES = _variables.LOCAL
    REGULARIZATION_LOSSES = _variables.REGULARIZATION
    GLOBAL_STEP = _STEP
    UPDATE_OPS = "update_ops"  # Keras' layers update their state themselves


train = Names(
    "train",
    {
        "Optimizer": _gradients.Optimizer,
        "GradientDescentOptimizer": _gradients.GradientDescentOptimizer,
        "MomentumOptimizer": _gradients.MomentumOptimizer,
        "AdamOptimizer": _gradients.AdamOptimizer,
        "RMSPropOptimizer": _gradients.RMSPropOptimizer,
        "get_global_step": get_global_step,
        "get_or_create_global_step": get_or_create_global_step,
    },
)
nn = Names("nn", {**_nn.FUNCTIONS, "l2_normalize": OPERATIONS["l2_normalize"]})
math = Names("math", OPERATIONS)
random = Names(
    "random",
    {
        "uniform": _random.random_uniform,
        "normal": _random.random_normal,
        "truncated_normal": _random.truncated_normal,
        "set_seed": _random.set_seed,
    },
)
initializers = Names(
    "initializers",
    {name.removesuffix("_initializer"): getattr(_initializers, name) for name in _initializers.__all__},
)
errors = Names("errors", {"InvalidArgumentError": ValueError, "OutOfRangeError": RuntimeError})
logging = Names("logging", {"set_verbosity": lambda level: None, "INFO": 20, "WARN": 30, "ERROR": 40})


@checked
def no_change() -> None:
    """Nothing changes: graphs are built and values computed by what is asked for."""


def as_dtype(type_value: Any) -> DType:
    """A type from its name, NumPy's or one of these; a `KindError` for what is none."""
    return given_type(type_value, "type_value")


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor, a variable or an array, rather than a number or a list."""
    return isinstance(value, Tensor | _variables.Variable) or (hasattr(value, "dtype") and hasattr(value, "shape"))


PUBLIC: Mapping[str, Any] = {
    **OPERATIONS,
    **DTYPES,
    "AUTO_REUSE": _variables.AUTO_REUSE,
    "DType": DType,
    "GradientTape": GradientTape,
    "Graph": _graph.Graph,
    "GraphKeys": GraphKeys,
    "InteractiveSession": _session.InteractiveSession,
    "Operation": Operation,
    "Session": _session.Session,
    "Tensor": Tensor,
    "TensorShape": TensorShape,
    "TensorSpec": TensorSpec,
    "Variable": _variables.Variable,
    "add_to_collection": add_to_collection,
    "as_dtype": as_dtype,
    "assign": assign,
    "assign_add": assign_add,
    "assign_sub": assign_sub,
    "clip_by_global_norm": _arrays.clip_by_global_norm,
    "cond": _control.cond,
    "control_dependencies": control_dependencies,
    "conv2d": _nn.FUNCTIONS["conv2d"],
    "custom_gradient": _functions.custom_gradient,
    "convert_to_tensor": _convert.convert_to_tensor,
    "device": device,
    "disable_eager_execution": no_change,
    "disable_v2_behavior": no_change,
    "enable_eager_execution": no_change,
    "dtypes": Names("dtypes", {**DTYPES, "DType": DType, "as_dtype": as_dtype, "cast": OPERATIONS["cast"]}),
    "errors": errors,
    "function": function,
    "get_collection": get_collection,
    "get_default_graph": _graph.get_default_graph,
    "get_default_session": _graph.default_session,
    "get_variable": _variables.get_variable,
    "get_variable_scope": _variables.get_variable_scope,
    "global_variables": global_variables,
    "global_variables_initializer": global_variables_initializer,
    "gradients": _gradients.gradients,
    "group": group,
    "initializers": initializers,
    "is_tensor": is_tensor,
    "local_variables_initializer": local_variables_initializer,
    "logging": logging,
    "math": math,
    "name_scope": name_scope,
    "newaxis": None,
    "nn": nn,
    "no_op": no_op,
    "numpy_function": py_function,
    "placeholder": placeholder,
    "py_func": py_function,
    "py_function": py_function,
    "random": random,
    "random_normal": functools.partial(_random.random_normal, deferred=True),
    "random_uniform": functools.partial(_random.random_uniform, deferred=True),
    "reset_default_graph": _graph.reset_default_graph,
    "set_random_seed": _random.set_seed,
    "train": train,
    "trainable_variables": trainable_variables,
    "truncated_normal": functools.partial(_random.truncated_normal, deferred=True),
    "tuple": tuple_,
    "variable_scope": _variables.variable_scope,
    "variables_initializer": variables_initializer,
    "while_loop": _functions.while_loop,
    **{name: getattr(_initializers, name) for name in _initializers.__all__},
}
SUBMODULES = ("compat", "compiler", "data", "distribute", "python")


def find(module: str, name: str) -> Any:
    """A public name, a submodule, Keras, or an `AttributeError` that says this is a small namespace."""
    if name in PUBLIC:
        return PUBLIC[name]
    if name in SUBMODULES:
        return importlib.import_module(f"workbench.tf.{name}")
    if name in ("keras", "optimizers"):
        keras = importlib.import_module("workbench.tf.keras")  # Keras' own names, and `ipu`
        return keras if name == "keras" else keras.optimizers
    inner = (f"{space}.{each}" for space, names in PUBLIC.items() if isinstance(names, Names) for each in vars(names))
    raise absent(module, name, [*inner, *PUBLIC, *SUBMODULES])


__all__ = ["PUBLIC", "find"]
