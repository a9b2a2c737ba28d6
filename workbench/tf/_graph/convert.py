"""From what programs pass to what operations take: tensors, variables, Keras tensors, arrays and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from workbench.tf._graph.dtypes import as_dtype
from workbench.tf._graph.graph import Operation, Tensor, building, record
from workbench.tf._graph.layers import adopt
from workbench.tf._graph.variables import Variable


def is_symbolic(value: Any) -> bool:
    """Whether a value is only known when a session runs."""
    if isinstance(value, Variable):
        return value.deferred or building()
    return isinstance(value, keras.KerasTensor)


def symbolic(value: Any) -> Any:
    """A variable's read, an adopted Keras tensor, or the value itself."""
    if isinstance(value, Variable):
        return value.read_value()
    if isinstance(value, keras.KerasTensor) and not isinstance(value, Tensor):
        return adopt(value)
    return value


def leaves(*values: Any) -> Iterator[Any]:
    """What is inside nested lists, tuples and dicts."""
    return iter(jax.tree_util.tree_leaves(values))


def lift(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as an operation: recorded when an argument is symbolic, computed at once when none is."""

    @wraps(function)
    def operation(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        if not any(is_symbolic(each) for each in leaves(args, kwargs)):
            return function(*(map(plain, args)), **{key: plain(value) for key, value in kwargs.items()})
        given, named = jax.tree_util.tree_map(symbolic, (args, kwargs))
        return record(kind, function, *given, name=name, **named)

    return operation


def plain(value: Any) -> Any:
    """Variables by their value, anything else as it is."""
    return jax.tree_util.tree_map(lambda each: each.held() if isinstance(each, Variable) else each, value)


def array(value: Any, dtype: Any = None) -> Any:
    """Python and numpy numbers as TensorFlow types them: float32 and int32 unless said."""
    wanted = str(as_dtype(dtype)) if dtype is not None else None
    if hasattr(value, "dtype"):
        return jnp.asarray(value, wanted)
    found = np.asarray(value)
    if wanted is None and found.dtype == np.float64:
        wanted = "float32"
    if wanted is None and found.dtype == np.int64:
        wanted = "int32"
    return jnp.asarray(found, wanted)


def convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None, **others: Any) -> Any:
    """A tensor from a tensor, a variable, an array or nested lists of them."""
    if isinstance(value, Tensor) and dtype is None:
        return value
    if not any(is_symbolic(each) for each in leaves(value)):
        return array(plain(value), dtype)
    if isinstance(value, list | tuple):
        return record(
            "Pack",
            lambda parts: jnp.stack([array(each, dtype) for each in parts]),
            jax.tree_util.tree_map(symbolic, list(value)),
            name=name,
        )
    found = symbolic(value)
    if dtype is not None and as_dtype(dtype) != found.dtype:
        raise ValueError(f"{found.name} has type {found.dtype!r}, but {as_dtype(dtype)!r} was asked for.")
    return found


def as_operation(value: Any) -> Operation | None:
    """The operation a fetch names, if it is one."""
    return value if isinstance(value, Operation) else None


__all__ = ["array", "as_operation", "convert_to_tensor", "is_symbolic", "leaves", "lift", "plain", "symbolic"]
