"""`tensorflow.python.ipu.scopes`: where operations run, and attributes they carry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.errors import InputError, OperandError
from workbench.ipu.devices import device_number
from workbench.tf import _graph
from workbench.tf._graph.variables import variable_scope

FRONTEND_ATTRIBUTES_NAME = "_XlaFrontendAttributes"
OUTSIDE_COMPILATION_NAME = "_xla_outside_compilation"

# Attributes by the names the driver gives them (graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/
# backend_config.proto, threestate.proto).
STOCHASTIC_ROUNDING, PARTIALS_TYPE = "STOCHASTIC_ROUNDING", "PARTIALS_TYPE"
_PARTIALS = {"float16": "F16", "float32": "F32"}


@contextmanager
def ipu_jit_scope(ipu_scope: Any) -> Iterator[None]:
    """Operations made inside are compiled together. `ipu_scope`: a name that tells one such scope from another."""
    if not isinstance(ipu_scope, str | int):
        raise InputError(f"ipu_scope is {short(ipu_scope)}", expected="a name, or a number")
    with _graph.scoped(compiled=True):
        yield


@contextmanager
def ipu_scope(device: str) -> Iterator[None]:
    """Operations made inside run on an IPU device, and variables are resources. `device`: such as "/device:IPU:0"."""
    device_number(device)
    with variable_scope("", use_resource=True), _graph.scoped(device=device), ipu_jit_scope(0):
        yield


@contextmanager
@checked
def outside_compilation_scope(name: str = "outside") -> Iterator[None]:
    """Operations made inside a compiled computation run on the host, with copies to it and back.

    A `ValueError` outside a compiled computation, and inside another such scope.
    """
    scopes = _graph.current_scopes()
    if not scopes.compiled:
        raise InputError(
            "outside_compilation_scope is used where nothing is compiled for an IPU (outside an XLA context)",
            todo="use it inside `with ipu_scope(...)` or a computation given to ipu_compiler.compile",
        )
    if scopes.outside:
        raise InputError("an outside_compilation_scope is nested in another one", todo="leave out the inner one")
    with _graph.scoped(outside=_graph.get_default_graph().unique_name(name)):
        yield


@contextmanager
def ipu_shard(index: Any) -> Iterator[None]:
    """Operations made inside, and their gradients, run on one IPU of a device that has several. `index`: from 0."""
    first = next(iter(index), None) if isinstance(index, list | tuple | np.ndarray) else index
    if isinstance(first, bool) or not isinstance(first, int | np.integer) or first < 0:
        raise InputError(f"index of ipu_shard is {short(index)}", expected="the number of an IPU, from 0")
    with _graph.scoped(shard=int(first)):
        yield


@contextmanager
def frontend_attribute(attribute_name: str, attribute_value: str, restore_to: str | None = None) -> Iterator[None]:
    """Operations made inside carry an attribute.

    `restore_to`: the value it has after the scope where it would have had none.
    """
    given = {
        "attribute_name": attribute_name,
        "attribute_value": attribute_value,
        "restore_to": "" if restore_to is None else restore_to,
    }
    for what, value in given.items():
        if not isinstance(value, str):
            raise OperandError(f"{what} is {short(value)}, of type {type(value).__name__}, but it must be a string")
    before = dict(_graph.current_scopes().attributes)
    with _graph.scoped(attributes=tuple({**before, attribute_name: attribute_value}.items())):
        yield
    if restore_to is not None and attribute_name not in before:
        _graph.amend(attributes=(*_graph.current_scopes().attributes, (attribute_name, restore_to)))


@contextmanager
def partials_type(override_type: Any) -> Iterator[None]:
    """Convolutions and matrix products made inside add up in this type: float16 or float32, else a `ValueError`."""
    try:
        name = str(np.dtype(override_type)) if override_type is not None else "None"
    except (TypeError, ValueError):
        name = short(override_type)
    if name not in _PARTIALS:
        raise InputError(f"override_type is {name}", expected="float16 or float32")
    with frontend_attribute(PARTIALS_TYPE, _PARTIALS[name], "PRIMITIVE_TYPE_INVALID"):
        yield


@checked
@contextmanager
def stochastic_rounding(override: bool) -> Iterator[None]:
    """Operations made inside round halves stochastically, or do not, whatever the configuration says."""
    value = "THREESTATE_ON" if override else "THREESTATE_OFF"
    with frontend_attribute(STOCHASTIC_ROUNDING, value, "THREESTATE_UNDEFINED"):
        yield


__all__ = [
    "frontend_attribute",
    "ipu_jit_scope",
    "ipu_scope",
    "ipu_shard",
    "outside_compilation_scope",
    "partials_type",
    "stochastic_rounding",
]
