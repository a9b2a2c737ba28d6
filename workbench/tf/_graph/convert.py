"""From what programs pass to what operations take: tensors, variables, Keras tensors, arrays and numbers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.errors import InputError, OperandError, WorkbenchError
from workbench.tf._graph.dtypes import as_dtype, check_has, given_type, has, holds_numbers
from workbench.tf._graph.graph import Operation, Tensor, building, in_function, record
from workbench.tf._graph.in_models import in_model, known_as, of_model
from workbench.tf._graph.layers import adopt, known
from workbench.tf._graph.shapes import Sizes
from workbench.tf._graph.variables import Variable


def is_symbolic(value: Any) -> bool:
    """Whether a value is only known when a session runs."""
    if isinstance(value, Variable):
        return value.deferred or building()
    if isinstance(value, keras.Variable):
        return in_function()
    return isinstance(value, keras.KerasTensor)


def symbolic(value: Any) -> Any:
    """A variable's read, an adopted Keras tensor, or the value itself."""
    if isinstance(value, Variable):
        return value.read_value()
    if isinstance(value, keras.Variable) and in_function():
        return known(value).read_value()
    if isinstance(value, keras.KerasTensor) and not isinstance(value, Tensor):
        return adopt(value)
    return value


DEEPEST = 100  # of lists in lists: an array has fewer dimensions


def check_depth(value: Any, left: int = DEEPEST) -> None:
    """A `RecursionError` for lists, tuples and dicts that hold themselves."""
    if isinstance(value, list | tuple | dict):
        if not left:
            raise RecursionError(f"a list holds itself, or more than {DEEPEST} lists in each other")
        for each in value.values() if isinstance(value, dict) else value:
            if isinstance(each, list | tuple | dict):
                check_depth(each, left - 1)


def leaves(*values: Any) -> Iterator[Any]:
    """What is inside nested lists, tuples and dicts; a `RecursionError` for what holds itself."""
    check_depth(values)
    return iter(jax.tree_util.tree_leaves(values))


def check_tensors(called: str, value: Any) -> None:
    """An `InputError` that names the argument for what is neither a tensor, a number nor a structure of them."""
    try:
        strange = [each for each in leaves(value) if not (holds_numbers(each) or is_symbolic(each))]
    except RecursionError as error:
        raise InputError(f"{called} is {short(value)}: {error}", expected="tensors, or lists of them") from None
    if strange:
        raise InputError(f"{called} is {short(value)}", expected="tensors, numbers, or lists and dicts of them")


def lift(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as an operation: recorded when an argument is symbolic, computed at once when none is.

    On tensors of a Keras model that is being made, it is an operation of that model.
    """
    in_models = known_as(kind, function)

    @wraps(function)
    def operation(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        try:
            flat = list(leaves(args, kwargs))
            if not any(map(is_symbolic, flat)):
                given, named = [plain(each) for each in args], {key: plain(value) for key, value in kwargs.items()}
                return _sizes_stay(flat, functools.partial(function, *given, **named))
            if of_model(flat):
                return in_model(in_models, kind, args, kwargs, name)
            given, named = jax.tree_util.tree_map(symbolic, (args, kwargs))
            return record(kind, function, *given, name=name, **named)
        except _OF_VALUES as error:
            if isinstance(error, (WorkbenchError, *_OF_TRACES)):
                raise
            raise _refused(kind, function, args, kwargs, error) from error

    return operation


def _sizes_stay(flat: list[Any], compute: Callable[[], Any]) -> Any:
    """What an operation gives of values; sizes made of sizes stay known where a function is traced."""
    made = compute()
    if not isinstance(made, jax.core.Tracer) or made.ndim > 1 or not jnp.issubdtype(made.dtype, jnp.integer):
        return made
    if any(isinstance(each, jax.core.Tracer) for each in flat):
        return made
    if not any(isinstance(each, Sizes | np.integer) for each in flat):
        return made
    with jax.ensure_compile_time_eval():
        return Sizes.of(compute())


# What NumPy and JAX raise of values that an operation is not made for.
_OF_VALUES = (
    *(TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError, ArithmeticError),
    *(RecursionError, NotImplementedError, MemoryError, jax.errors.JaxRuntimeError),
)
# What says that a program asks for a number while it is traced: those who trace it know what to do.
_OF_TRACES = (jax.errors.JAXTypeError, jax.errors.JAXIndexError, jax.errors.UnexpectedTracerError)


def _refused(kind: str, function: Callable[..., Any], args: Any, kwargs: Any, error: Exception) -> InputError:
    """An error that says what an operation was given, by name, and what NumPy or JAX has against it."""
    names = list(inspect.signature(function).parameters)
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    text = ", ".join(f"{name}={_told(value)}" for name, value in given.items() if not name.startswith("_"))
    why = str(error).strip().partition("\n")[0] or type(error).__name__
    why = _IN_OUR_WORDS.get(why, why)
    return OperandError(f"tf.{kind}({text}): {why}", expected="values that it computes with, of shapes that agree")


_IN_OUR_WORDS = {"tuple index out of range": "an axis is beyond the dimensions there are"}


def _told(value: Any) -> str:
    """A value as an error shows it: of arrays and tensors type and shape, of a few in a list too."""
    if isinstance(value, list) and any(hasattr(each, "dtype") for each in value[:1]) and len(value) <= 8:
        return f"[{', '.join(map(_told, value))}]"
    if hasattr(value, "dtype") and hasattr(value, "shape") and value.shape != ():
        return f"{value.dtype}{list(value.shape)}"
    return short(value)


def plain(value: Any) -> Any:
    """Variables by their value, anything else as it is."""
    return jax.tree_util.tree_map(lambda each: each.held() if isinstance(each, Variable) else each, value)


def array(value: Any, dtype: Any = None) -> Any:
    """Python and numpy numbers as TensorFlow types them: float32 and int32 unless said. None is cut or wraps round."""
    wanted = str(as_dtype(dtype)) if dtype is not None else None
    found = value if hasattr(value, "dtype") else np.asarray(value)
    if isinstance(found, np.ndarray | np.generic) and not _of_numbers(found, wanted):
        raise TypeError(f"{short(value)} is no array of numbers")  # of None JAX makes NaN where a type is asked for
    if wanted is None and found is not value:
        wanted = _AS_TENSORFLOW.get(str(found.dtype))
    if wanted is not None and str(found.dtype) != wanted:
        check_has(found, wanted)
    return jnp.asarray(found, wanted)


def _of_numbers(found: Any, wanted: str | None) -> bool:
    """Whether an array holds numbers; whole ones of more than 64 bits are objects of NumPy's, which a type may have."""
    if found.dtype.kind != "O" or wanted is None:
        return found.dtype.kind not in "OUS"
    return all(isinstance(each, int | float | np.generic) for each in found.flat)


_AS_TENSORFLOW = {"float64": "float32", "int64": "int32", "uint64": "int32"}


@checked
def convert_to_tensor(
    value: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None, dtype_hint: Any = None
) -> Any:
    """A tensor from a tensor, a variable, an array or nested lists of them.

    `dtype`: the type it has to have; `dtype_hint`, also called `preferred_dtype`: the one it has if it can.
    Errors: `InputError` for what is none, or cannot be of the type; `ValueError` for a tensor of another type.
    """
    wanted = None if dtype is None else given_type(dtype)
    asked = {"dtype_hint": dtype_hint, "preferred_dtype": preferred_dtype}
    hints = [given_type(each, name_of) for name_of, each in asked.items() if each is not None]
    if wanted is None and hints and not any(is_symbolic(each) for each in leaves(value)):
        found, hinted = _converted(value, None, name), hints[0]
        if hinted.is_floating or (found.dtype.kind in "iu" and has(found, str(hinted))):
            wanted = hinted
    return _converted(value, wanted, name)


def _converted(value: Any, dtype: Any, name: str | None) -> Any:
    try:
        return _made(value, dtype, name)
    except WorkbenchError:
        raise
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"value is {short(value)}: {error}", expected="numbers, of one shape, that its type holds"
        ) from None


def _made(value: Any, dtype: Any, name: str | None) -> Any:
    if dtype is None and (isinstance(value, Tensor) or of_model([value])):
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
        raise InputError(f"{found.name} has type {found.dtype!r}, but dtype {as_dtype(dtype)!r} was asked for")
    return found


def as_operation(value: Any) -> Operation | None:
    """The operation a fetch names, if it is one."""
    return value if isinstance(value, Operation) else None


__all__ = [
    "array",
    "as_operation",
    "check_tensors",
    "convert_to_tensor",
    "is_symbolic",
    "leaves",
    "lift",
    "plain",
    "symbolic",
]
