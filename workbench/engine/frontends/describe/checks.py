"""Errors of models and arrays that cannot be traced: what was wrong, what was expected, what to do."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import keras
import numpy as np

from workbench.base.dtypes import NARROWED, dtype_name
from workbench.base.text import short
from workbench.engine.frontends.describe.replicas import AXIS
from workbench.engine.frontends.describe.source import ArraySpec
from workbench.errors import InputError


def check_backend() -> None:
    """Keras must compute with JAX."""
    backend = keras.backend.backend()
    if backend != "jax":
        raise InputError(
            f"Keras runs on the backend {backend!r}",
            expected="the backend 'jax'",
            todo="put `import os; os.environ['KERAS_BACKEND'] = 'jax'` before the first `import keras`, "
            "and restart the kernel",
        )


def check_batch_size(batch_size: Any) -> None:
    """A batch size is a positive whole number, or None."""
    if batch_size is None:
        return
    if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise InputError(
            f"batch_size is {batch_size!r}", expected="a whole number of at least 1", todo="pass batch_size=1 or more"
        )


def check_dtype(name: str, dtype: Any) -> None:
    """Types of 64 bits or more, complex numbers, strings and objects have no counterpart on the IPU."""
    text = str(getattr(dtype, "name", dtype))
    if text in ("float64", "float96", "float128"):  # those beyond 64 bits are C's long double, which JAX lacks too
        raise InputError(
            f"{name} is {text}",
            expected="float32 or float16",
            todo=f"convert it: {name}.astype('float32')" + _because_of_x64(),
        )
    if text.startswith("complex"):
        raise InputError(
            f"{name} is {text}",
            expected="real numbers",
            todo="pass real and imaginary parts as two arrays",
        )
    if text.startswith(("str", "bytes", "object", "datetime", "timedelta", "void")):
        raise InputError(
            f"{name} holds {'strings' if text.startswith(('str', 'bytes')) else 'Python objects or times'}",
            expected="numbers",
            todo="turn it into numbers before it reaches the model (a vocabulary or StringLookup on the host)",
        )


def data_dtype(name: str, value: Any) -> Any:
    """The type in which an example of data is compiled; errors as `check_dtype`.

    Float64 that is numbers goes to float32, as in Keras and JAX, for it is what NumPy makes where nobody asks for a
    type. Where it is asked for (as a type, or by jax_enable_x64) it is refused.
    """
    dtype = np.dtype(NARROWED["float64"]) if _is_plain_float64(value) else value.dtype
    check_dtype(name, dtype)
    return dtype


def _is_plain_float64(value: Any) -> bool:
    numbers = isinstance(value, np.ndarray | np.generic)
    return numbers and value.dtype == np.float64 and not jax.config.jax_enable_x64


def _because_of_x64() -> str:
    return ", or switch jax_enable_x64 off, with which JAX makes 64-bit numbers" if jax.config.jax_enable_x64 else ""


def check_example(name: str, value: Any) -> None:
    """An example of an input has a shape and a type."""
    if not (isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "dtype")):
        raise InputError(
            f"{name} holds {short(value)}",
            expected="an array or a jax.ShapeDtypeStruct for each input",
            todo="write jax.ShapeDtypeStruct((batch_size, ...), 'float32')",
        )


def sizes_of(name: str, shape: Sequence[Any]) -> tuple[int, ...]:
    """The sizes of an argument of a function, as whole numbers; an `InputError` for one that is none."""
    sizes = tuple(size for size in shape if hasattr(size, "__index__") and operator.index(size) >= 0)
    if len(sizes) < len(shape):
        raise InputError(
            f"{name} has shape {tuple(shape)}",
            expected="a size for each dimension, known and at least 0",
            todo="write jax.ShapeDtypeStruct((batch_size, ...), 'float32')",
        )
    return tuple(map(operator.index, sizes))


def flattened(name: str, value: Any) -> list[Any]:
    """What is in nested lists, tuples and dictionaries; an `InputError` for one that holds itself."""
    try:
        return list(keras.tree.flatten(value))
    except RecursionError:
        raise InputError(f"{name} is {short(value)}, which holds itself", expected="arrays, or lists of them") from None


def check_array(spec: ArraySpec, value: Any, *, exemplified: str = "") -> Any:
    """The value as an array of the compiled type; labels and images may arrive in another whole or real width,
    float64 too, as `fit` takes it.

    `exemplified`: the call that compiles for another shape by an example, where there is one.
    """
    if isinstance(value, jax.ShapeDtypeStruct):
        raise InputError(
            f"{spec.name} is a jax.ShapeDtypeStruct, which has no numbers",
            expected=f"numbers of shape {spec.shape}, as compiled",
            todo="pass an array; shapes and types alone are enough to compile",
        )
    array = value if hasattr(value, "dtype") and hasattr(value, "shape") else _array_of(spec.name, value)
    if array is not value and not array.ndim and array.dtype.kind not in "biufc":
        raise InputError(f"{spec.name} is {short(value)}", expected=f"numbers of shape {spec.shape}, as compiled")
    wanted_whole = spec.dtype != "key" and np.issubdtype(np.dtype(_numpy_name(spec.dtype)), np.integer)
    if array.dtype != np.float64:  # it is cast, or refused below where whole numbers are wanted
        check_dtype(spec.name, array.dtype)
    shape = tuple(array.shape)
    if shape != spec.shape and ((*shape, 1) == spec.shape or shape == (*spec.shape, 1)):  # as Keras takes either
        array, shape = array.reshape(spec.shape), spec.shape
    if shape != spec.shape:
        of_another_batch = shape[1:] == spec.shape[1:] and len(shape) == len(spec.shape)
        again = "compile again with the batch size you want" if of_another_batch else exemplified
        raise InputError(
            f"{spec.name} has shape {shape}",
            expected=f"shape {spec.shape}, as compiled",
            todo="pass that shape" + (f", or {again}" if again else ""),
        )
    if "key" in (spec.dtype, dtype_name(array.dtype)):
        return _check_key(spec, array)
    if wanted_whole and not np.issubdtype(np.dtype(_numpy_name(str(array.dtype))), np.integer):
        raise InputError(
            f"{spec.name} is {array.dtype}",
            expected=f"whole numbers ({spec.dtype}), as compiled",
            todo=f"convert it: {spec.name}.astype({spec.dtype!r})",
        )
    if wanted_whole:
        _check_range(spec, array)
    return jax.numpy.asarray(array, dtype=spec.dtype)


def _check_range(spec: ArraySpec, array: Any) -> None:
    """Whole numbers of a wider type must be ones the compiled type has."""
    held = np.iinfo(spec.dtype)
    if not array.size or np.can_cast(array.dtype, spec.dtype):
        return
    for number in (int(array.min()), int(array.max())):
        if not held.min <= number <= held.max:
            raise InputError(
                f"{spec.name} holds {number}",
                expected=f"numbers from {held.min} to {held.max} ({spec.dtype}), as compiled",
                todo="keep them in that range; JAX has 64-bit integers only while jax_enable_x64 is on",
            )


def _array_of(name: str, value: Any) -> Any:
    """An array of numbers, or of nested lists of them that have equal lengths."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InputError(
            f"{name} is a list whose parts have different shapes",
            expected="parts of one shape",
            todo="pad them to the longest",
        ) from error


def _check_key(spec: ArraySpec, array: Any) -> Any:
    """Keys stand for keys only."""
    if spec.dtype != dtype_name(array.dtype):
        raise InputError(
            f"{spec.name} is {array.dtype}",
            expected=f"{'a random key' if spec.dtype == 'key' else spec.dtype}",
            todo="pass what jax.random.key(seed) gives where a key is expected, and numbers elsewhere",
        )
    return array


def _numpy_name(dtype: str) -> str:
    return "float32" if dtype in ("bfloat16", "bool") or dtype.startswith("float8") else dtype


def check_no_layer(source: Any) -> None:
    """A layer, or the class of one, is no model and builds none; a class of models needs no arguments."""
    kind = source if isinstance(source, type) else type(source)
    if not issubclass(kind, keras.layers.Layer):
        return
    if not issubclass(kind, keras.Model):
        raise InputError(
            f"{source!r} is a layer",
            expected="a keras.Model, a function that builds one, or a ready name",
            todo="make a model of it: keras.Sequential([keras.Input(shape), layer])",
        )
    if kind is source:
        try:
            inspect.signature(kind.__init__).bind(None)
        except TypeError as error:
            raise InputError(
                f"{kind.__name__} cannot be made without arguments: {error}",
                expected="a model, or what builds one when it is called without arguments",
                todo=f"give a model: {kind.__name__}(...)",
            ) from None


def check_model(model: Any) -> None:
    """A model must be a built Keras model with at least one layer, or operation between its inputs and outputs."""
    if not isinstance(model, keras.Model):
        raise InputError(
            f"{model!r} is not a Keras model", expected="a keras.Model, a function that builds one, or a ready name"
        )
    parts = [*model.layers, *getattr(model, "operations", ())]  # a functional model has operations beside its layers
    empty = all(isinstance(part, keras.layers.InputLayer) for part in parts)
    if empty and (model.built or isinstance(model, keras.Sequential)):
        raise InputError(
            f"the model {model.name!r} is empty",
            expected="at least one layer",
            todo="add layers: model.add(keras.layers.Dense(10))",
        )
    if not model.built or (isinstance(model, keras.Sequential) and not getattr(model, "inputs", None)):
        raise InputError(
            f"the model {model.name!r} is not built: its input shape is unknown",
            expected="a model whose layers have their weights' shapes",
            todo="begin it with keras.Input(shape), call model.build((batch_size, ...)), or give an example of its "
            "input: wb.compile(model, x)",
        )


def check_call(model: Any) -> None:
    """A model is called with one argument, which may be several arrays; Keras' own `fit` calls no other."""
    taken = inspect.signature(type(model).call).parameters.values()
    needed = [each.name for each in taken if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
    needed = [name for name in needed[1:] if name not in ("training", "mask")]
    if len(needed) > 1:
        raise InputError(
            f"the call of the model {model.name!r} needs {len(needed)} arguments: {', '.join(needed)}",
            expected="one argument, as fit and predict of Keras call a model",
            todo=f"write call(self, inputs), and {', '.join(needed)} = inputs in it; give them in one list or tuple",
        )


def known_shape(name: str, shape: Sequence[int | None], batch_size: int | None) -> tuple[int, ...]:
    """The shape with the batch size filled in; anything left unknown is an error."""
    if shape and shape[0] is None and batch_size is None:
        raise InputError(
            f"{name} has shape {tuple(shape)} with unknown dimensions and no batch size was given",
            expected="every dimension known when compiling",
            todo="pass batch_size=",
        )
    if shape and shape[0] is not None and batch_size is not None and shape[0] != batch_size:
        raise InputError(
            f"{name} was built for a batch of {shape[0]} and batch_size is {batch_size}",
            expected="one batch size",
            todo=f"pass batch_size={shape[0]}, or build the model without a batch size",
        )
    filled = (batch_size if shape[0] is None else shape[0], *shape[1:]) if shape else ()
    if any(size is None for size in filled):
        raise InputError(
            f"{name} has shape {tuple(shape)} with unknown dimensions besides the batch",
            expected="every dimension known when compiling",
            todo="give keras.Input a full shape, such as the length sequences are padded to",
        )
    return tuple(int(size) for size in filled if size is not None)


_CONTROL_FLOW = (jax.errors.ConcretizationTypeError, jax.errors.TracerIntegerConversionError)
_NUMPY = (jax.errors.TracerArrayConversionError, jax.errors.NonConcreteBooleanIndexError)


BIND = "bind a size or a setting to the function: wb.compile(functools.partial(function, size=3), x)"
# How JAX begins what it says; what is wrong, what was expected and what to do.
_SAID = (
    (
        "Reverse-mode differentiation does not work for lax.while_loop",
        "a loop that runs until a condition is met is differentiated, and its steps cannot all be kept",
        "a loop whose count is known while the program is made",
        "use jax.lax.scan, keras.ops.scan, or jax.lax.fori_loop between Python numbers; stop the gradient in front of "
        "it; or compile with mode='inference'",
    ),
    (
        "Shapes must be 1D sequences of concrete values",
        "a shape was made of a traced value",
        "sizes that are known while the program is made, which Python numbers and array.shape are",
        BIND,
    ),
    (
        "Slice entries must be static integers",
        "a slice begins or ends at a value that is traced, or is no whole number",
        "whole numbers that are known while the program is made",
        "use jax.lax.dynamic_slice(x, (begin,), (size,)) of a known size, or jax.lax.dynamic_update_slice to write",
    ),
    (
        "Non-hashable static arguments are not supported",
        "a static argument of jax.jit was given a traced value",
        "arrays as inputs, and what is static in the function",
        BIND,
    ),
)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those it came from; Keras loses JAX's errors while it adds to their text."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _asks_for_values(error: BaseException) -> str:
    """The function of `jax.numpy` whose result has a shape that depends on values, in what JAX says of one."""
    if not isinstance(error, jax.errors.ConcretizationTypeError):
        return ""
    said = re.split("The error occurred while|The problem arose with the `", str(error))[0]  # Python's int() and so on
    found = re.search(r"\b(?:jnp|jax\.numpy)\.(\w+)", said)
    return f"jax.numpy.{found.group(1)}" if found else ""


_UNBOUND = re.compile(r"unbound axis name: ?([^\s.]+)")


def _of_an_axis(causes: Iterable[BaseException], *, building: bool) -> InputError | None:
    """What is said of a collective over an axis that nobody named, which is a NameError of JAX."""
    names = (_UNBOUND.search(str(cause)) for cause in causes if isinstance(cause, NameError))
    found = next(filter(None, names), None)
    if found is None:
        return None
    axis, replicas = found.group(1), "give replicas="
    if building:
        replicas += (
            ", and the layer a compute_output_shape(self, input_shape), by which Keras builds a model without a call "
            "of the layer: replicas are in the program alone"
        )
    return InputError(
        f"a collective, as jax.lax.psum, names the axis {axis!r}, and nothing around it has an axis of that name",
        expected=f"an axis that jax.vmap names, or {AXIS!r}, that of the replicas of the program",
        todo=replicas
        if axis == AXIS
        else f"write jax.vmap(function, axis_name={axis!r}), or name the axis {AXIS!r} and {replicas}",
    )


@contextmanager
def traced_control_flow(*, building: bool = False) -> Iterator[None]:
    """Turn JAX's complaints about what is not known while a program is made into ones that name ways out.

    `building`: a model is built, for which Keras traces its layers outside a program.
    """
    try:
        yield
    except Exception as error:
        causes = list(_causes(error))
        if (of_an_axis := _of_an_axis(causes, building=building)) is not None:
            raise of_an_axis from error
        for begin, what, expected, todo in _SAID:
            if any(str(cause).startswith(begin) for cause in causes):
                raise InputError(what, expected=expected, todo=todo) from error
        asked = next(filter(None, map(_asks_for_values, causes)), "")
        if asked:
            raise InputError(
                f"{asked} needs the values of an array while the program is made, where they are traced: "
                "what jax.numpy.array makes is traced too",
                expected="values that are known then, which a NumPy array or a number has",
                todo=f"pass numpy.array(...) to {asked}, or the size of its result where it takes size= or "
                "total_repeat_length=",
            ) from error
        if any(isinstance(cause, _CONTROL_FLOW) for cause in causes):
            raise InputError(
                "Python control flow (if, while, int(), float(), bool()) depends on a traced value",
                expected="a program whose shape does not depend on the data",
                todo="use jax.numpy.where or jax.lax.select to choose values, jax.lax.cond to choose branches, "
                "jax.lax.while_loop or jax.lax.fori_loop to loop",
            ) from error
        if any(isinstance(cause, _NUMPY) for cause in causes):
            raise InputError(
                "numpy, or an index by a mask, was used on a traced value",
                expected="operations of jax.numpy or keras.ops whose result has a known shape",
                todo="replace the numpy function by the one of the same name in jax.numpy or keras.ops, "
                "and x[mask] by jax.numpy.where(mask, x, 0)",
            ) from error
        raise
