"""`tensorflow.python.ipu.ipu_compiler`: a computation as one program for an IPU."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from workbench.base.text import short
from workbench.base.units import things_text
from workbench.errors import CallError, InputError, KindError, WorkbenchError
from workbench.ipu.scopes import ipu_jit_scope
from workbench.tf import _graph
from workbench.tf._graph import Operation, Tensor
from workbench.tf._graph.convert import check_depth, convert_to_tensor, is_symbolic
from workbench.tf._graph.variables import Variable
from workbench.tf._ops.control import as_tensor


class NotOnIpuError(WorkbenchError):
    """A computation compiled for no IPU."""


def compile(computation: Callable[..., Any], inputs: Sequence[Any] | None = None) -> Any:
    """Build what runs `computation(*inputs)` on an IPU; call it in an `ipu_scope`.

    Returns what the computation returns, with operations at its end run with its tensors, except: None and operations
    alone give one operation that runs them, and a single value a list of it. Tensors must come before operations.
    Errors: `NotOnIpuError` outside an `ipu_scope`; `ValueError` for what an estimator's model function returns.
    """
    if inputs is not None and not isinstance(inputs, list | tuple):
        raise KindError(
            f"inputs of ipu_compiler.compile is a {type(inputs).__name__}, {short(inputs)}",
            expected="a list",
            todo="pass [value] for a computation of one value",
        )
    if not callable(computation):
        raise KindError(f"computation is {short(computation)}", expected="a function of the inputs")
    graph = _graph.get_default_graph()
    first = len(graph.operations)
    with ipu_jit_scope(0):
        given = _given(inputs)
        _check_arguments(computation, given)
        returned = computation(*given)
        _check_returned(returned)
        result = _packed(returned, graph.operations[first:])
    made = graph.operations[first:]
    if any(operation.type != "NoOp" for operation in made) and not any(each.scopes.on_ipu for each in made):
        raise NotOnIpuError(
            "a computation was compiled but placed on no IPU, so it would not run on one",
            todo="call ipu_compiler.compile inside `with ipu.scopes.ipu_scope('/device:IPU:0'):`",
        )
    return result


def _check_arguments(computation: Callable[..., Any], given: Sequence[Any]) -> None:
    try:
        inspect.signature(computation).bind(*given)
    except TypeError as error:
        raise CallError(
            f"computation cannot be called with {things_text(len(given), 'input')}: {error}",
            expected="as many inputs as it has arguments",
            todo="give them in the list `inputs` of ipu_compiler.compile",
        ) from None
    except ValueError:  # a function of C has no signature to look at
        return


def _given(inputs: Any) -> list[Any]:
    try:
        check_depth(inputs)
        return list(jax.tree_util.tree_map(_tensor, list(inputs or [])))
    except (TypeError, ValueError, OverflowError, AttributeError, RecursionError, MemoryError) as error:
        told = f"inputs of ipu_compiler.compile are {short(inputs)}: {error}"
        raise KindError(told, expected="tensors, or numbers") from error


def _tensor(value: Any) -> Any:
    found = convert_to_tensor(value)
    return found if isinstance(found, Tensor) else as_tensor(found)


def _check_returned(returned: Any) -> None:
    """Tensors, operations and numbers only; an estimator compiles its model function itself, so none of its results."""
    for each in jax.tree_util.tree_leaves(returned, is_leaf=_is_specification):
        if _is_specification(each):
            raise InputError(
                f"a computation given to ipu_compiler.compile returned an {type(each).__name__}",
                expected="tensors and operations",
                todo="leave out compile: an estimator compiles its model function itself",
            )
        if not _is_result(each):
            raise KindError(
                f"A computation given to ipu_compiler.compile returned {short(each)}, of type {type(each).__name__}, "
                "but it must return tensors and operations."
            )


def _is_result(value: Any) -> bool:
    if is_symbolic(value) or isinstance(value, Operation | Variable | numbers.Number | np.bool_):
        return True
    return hasattr(value, "dtype") and np.dtype(value.dtype).kind not in "OUS"


def _is_specification(value: Any) -> bool:
    return any(kind.__name__.endswith("EstimatorSpec") for kind in type(value).__mro__)


def _packed(returned: Any, made: Sequence[Operation]) -> Any:
    """What `compile` returns for what the computation returned, which made these operations."""
    if returned is None:
        return no_op([each for each in made if each.effects.writes or each.effects.queues])
    if isinstance(returned, Operation):
        return no_op([returned])
    if not isinstance(returned, list | tuple):
        if isinstance(returned, dict):
            return _with_operations(returned, [])
        return [as_tensor(returned)]
    operations = [each for each in returned if isinstance(each, Operation)]
    tensors = [each for each in returned if not isinstance(each, Operation)]
    if list(map(id, returned)) != [*map(id, tensors), *map(id, operations)]:
        raise InputError("A computation given to ipu_compiler.compile must return its tensors before its operations.")
    if not tensors:
        return no_op(operations)
    return _with_operations(tensors, operations)


def _with_operations(tensors: Any, operations: Sequence[Operation]) -> Any:
    """The tensors, which run the operations too when they are evaluated."""
    if not operations:
        return jax.tree_util.tree_map(as_tensor, tensors)
    with _graph.scoped(after=(*_graph.current_scopes().after, *operations)):
        return jax.tree_util.tree_map(lambda each: identity(as_tensor(each)), tensors)


def identity(tensor: Tensor) -> Tensor:
    """The tensor as the result of an operation made now."""
    made: Tensor = _graph.record("Identity", lambda value: value, tensor)
    return made


def no_op(operations: Sequence[Operation]) -> Operation:
    """An operation that does nothing after others."""
    with _graph.scoped(after=(*_graph.current_scopes().after, *operations)):
        return Operation("NoOp", (), (), lambda run, values: ())


__all__ = ["compile"]
