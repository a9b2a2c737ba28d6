"""Python converted by AutoGraph, so that statements on tensors are recorded: a program's own functions, no libraries.

AutoGraph rewrites source; what its statements and expressions become is ours (`statements`, `expressions`). Lines of
converted code are told as those of the program.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
import types
from collections.abc import Callable
from typing import Any

import jax
import keras
from malt.core import converter
from malt.impl import api
from malt.operators import py_builtins, variables
from malt.pyct import errors

from workbench.tf._function import expressions, keras_calls, lines, statements
from workbench.tf._ops.math import OPERATIONS

LOGGER = logging.getLogger("workbench.tf")
_OPTIONS = converter.ConversionOptions(
    recursive=True,
    user_requested=True,
    optional_features=(converter.Feature.EQUALITY_OPERATORS, converter.Feature.ASSERT_STATEMENTS),
)
_AS_THEY_ARE = {
    *sys.stdlib_module_names,
    *(
        "workbench",
        "keras",
        "jax",
        "jaxlib",
        "numpy",
        "scipy",
        "pandas",
        "malt",
        "optree",
        "ml_dtypes",
        "torch",
        "IPython",
    ),
}


class _Transpiler(api.PyToPy):  # type: ignore[misc]
    """AutoGraph, with our statements and expressions."""

    def get_extra_locals(self) -> dict[str, Any]:
        """The module that converted code calls `ag__`."""
        if self._extra_locals is None:
            found = super().get_extra_locals()["ag__"]
            found.__dict__.update(statements.OPERATORS)
            found.__dict__.update(expressions.OPERATORS)
            found.converted_call, found.ld = converted_call, _loaded
        return dict(self._extra_locals)


_TRANSPILER = _Transpiler()


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its statements on tensors recorded."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return converted_call(function, args, kwargs, options=_OPTIONS)

    return call


def converted_call(
    function: Any, args: tuple[Any, ...], kwargs: Any, caller_fn_scope: Any = None, options: Any = None
) -> Any:
    """A call in converted code: of the program's own functions converted too, of all others as it is."""
    named = dict(kwargs or {})
    if isinstance(function, functools.partial):
        given = (*function.args, *args)
        return converted_call(function.func, given, {**function.keywords, **named}, caller_fn_scope, options)
    around = _AROUND.get(function) if _hashable(function) else None
    if around is not None:
        return around(function, args, caller_fn_scope)
    if function is OPERATIONS["range"]:
        return expressions.tensor_range(*args, **named)
    builtin = expressions.BUILTINS.get(function) if _hashable(function) else None
    if builtin is not None:
        return builtin(*args, **named)
    if _of_variables_of_keras(function, args, named):
        return keras_calls.of_variables(function, args, named)
    target, given = _target(function, args)
    made = _converted(target) if target is not None else None
    return function(*args, **named) if made is None else made(*given, **named)


# What speaks of the frame that it is called in.
_AROUND: dict[Any, Callable[..., Any]] = {
    eval: py_builtins.eval_in_original_context,
    super: py_builtins.super_in_original_context,
    globals: lambda function, args, scope: py_builtins.globals_in_original_context(scope),
    locals: lambda function, args, scope: py_builtins.locals_in_original_context(scope),
}


def _hashable(function: Any) -> bool:
    return isinstance(function, type | types.BuiltinFunctionType | types.FunctionType)


def _of_variables_of_keras(function: Any, args: Any, named: Any) -> bool:
    """Whether it is a function of Keras that computes with variables: Keras itself would take their values of now."""
    if not isinstance(function, types.FunctionType) or not (function.__module__ or "").startswith("keras."):
        return False
    return any(isinstance(each, keras.Variable) for each in jax.tree_util.tree_leaves((args, named)))


def _target(function: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The function of the program's own that a call runs, and its arguments; None for all others."""
    found, given = function, args
    if inspect.ismethod(function):
        found, given = function.__func__, (function.__self__, *args)
    elif not isinstance(function, types.FunctionType) and not isinstance(function, type):
        held = (vars(kind).get("__call__") for kind in type(function).__mro__)
        found, given = next((each for each in held if each is not None), None), (function, *args)
    if not isinstance(found, types.FunctionType) or inspect.isgeneratorfunction(found):
        return None, args
    if inspect.iscoroutinefunction(found) or _of_libraries(found):
        return None, args
    return found, given


def _of_libraries(function: types.FunctionType) -> bool:
    module = function.__globals__.get("__name__") or ""
    return module.partition(".")[0] in _AS_THEY_ARE and module != "__main__"


def _converted(function: types.FunctionType) -> Any:
    """The function converted, or None for one that has no source or what AutoGraph has no words for."""
    if function.__code__.co_filename in lines.WRITTEN or function.__code__.co_filename == "<string>":
        return None
    try:
        made, _, origins = _TRANSPILER.transform(function, converter.ProgramContext(options=_OPTIONS))
    except (errors.PyCTError, ValueError, OSError, SyntaxError) as error:
        LOGGER.warning("%s runs as it is written, without AutoGraph: %s", function.__qualname__, error)
        return None
    lines.WRITTEN[made.__code__.co_filename] = origins
    return made


def _loaded(value: Any) -> Any:
    """A variable of converted code, or the error that it has no value here."""
    return value.read() if isinstance(value, variables.Undefined) else value


__all__ = ["converted", "converted_call"]
