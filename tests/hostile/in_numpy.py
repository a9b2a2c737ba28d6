"""The operations of `tf` in NumPy: what each computes, and of what it computes nothing.

An operation gives a result where NumPy does, of the types that TensorFlow takes numbers as, and the same one; where
NumPy refuses, it is ours that refuses.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.hostile.in_numpy_arrays import OF_ARRAYS
from tests.hostile.in_numpy_nn import IN_NUMPY_NN
from tests.hostile.in_numpy_places import OF_PLACES
from tests.hostile.numpy_values import number, sizes_of, whole_number


def both(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Of two values: a plain one takes the type of an array beside it, two arrays must agree."""

    def of(x: Any, y: Any) -> Any:
        left = number(x, getattr(y, "dtype", None))
        right = number(y, getattr(x, "dtype", None))
        if left.dtype != right.dtype:
            raise TypeError("two types")
        return function(left, right)

    return of


def one(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def of(x: Any) -> Any:
        given = number(x)
        found = function(given)
        # NumPy makes halves of yes and no.
        return function(given.astype("float32")) if given.dtype == bool and found.dtype.kind == "f" else found

    return of


def erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=["float64"])(x)


def sigmoid(x: Any) -> Any:
    if x.dtype.kind == "i":
        raise TypeError("whole numbers have none")
    return 1 / (1 + np.exp(-x))


def axis_of(axis: Any) -> Any:
    """An axis, or several."""
    if axis is None or (isinstance(axis, int | np.integer) and not isinstance(axis, bool)):
        return axis
    if isinstance(axis, list | tuple):
        return tuple(axis)
    raise TypeError("no axis")


def reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def of(
        input_tensor: Any,
        axis: Any = None,
        keepdims: Any = False,
        keep_dims: Any = False,
        reduction_indices: Any = None,
    ) -> Any:
        kept = yes_or_no(keepdims) or yes_or_no(keep_dims)
        return function(number(input_tensor), axis=axis_of(reduction_indices if axis is None else axis), keepdims=kept)

    return of


def tiled(input: Any, multiples: Any) -> Any:
    given, counts = number(input), sizes_of(multiples)
    if len(counts) != given.ndim:
        raise ValueError("not a number for each dimension")
    return np.tile(given, counts)


def yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("neither yes nor no")
    return value


def log_sum(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


UNARY: Mapping[str, Callable[[Any], Any]] = {
    "negative": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "square": np.square,
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "is_nan": np.isnan,
    "is_inf": np.isinf,
    "is_finite": np.isfinite,
    "erf": erf,
    "identity": lambda x: x,
    "stop_gradient": lambda x: x,
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    "expm1": np.expm1,
    "softplus": lambda x: np.logaddexp(x, 0),
}
BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "truediv": np.true_divide,
    "squared_difference": lambda x, y: np.square(x - y),
    "atan2": np.arctan2,
}
REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
    "reduce_variance": np.var,
    "reduce_std": np.std,
    "reduce_logsumexp": log_sum,
}


def whole_shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, str | bytes | dict):
        raise TypeError("no shape")
    found = tuple(int(each) if isinstance(each, int | np.integer) else _refuse() for each in shape)
    if any(each < 0 for each in found) or math.prod(found) > 2**32:
        raise ValueError("no array")
    return found


def _refuse() -> int:
    raise TypeError("no whole number")


def summed(x: Any, axis: Any = 0) -> Any:
    found = number(x)
    if not found.ndim or not isinstance(axis, int | np.integer) or isinstance(axis, bool):
        raise ValueError("no axis")
    return np.cumsum(found, axis)


def type_of(dtype: Any) -> str:
    if dtype not in ("float32", "float16", "int32"):
        raise TypeError("no type")
    return str(dtype)


def product(a: Any, b: Any, transpose_a: Any = False, transpose_b: Any = False) -> Any:
    left, right = number(a), number(b)
    if min(left.ndim, right.ndim) < 2:
        raise ValueError("no matrix")
    left = np.swapaxes(left, -1, -2) if yes_or_no(transpose_a) else left
    return np.matmul(left, np.swapaxes(right, -1, -2) if yes_or_no(transpose_b) else right)


def yes(x: Any) -> Any:
    if x.dtype != bool:
        raise TypeError("neither yes nor no")
    return x


def real(x: Any) -> Any:
    if x.dtype.kind != "f":
        raise TypeError("no floating point")
    return x


def places(input: Any, axis: Any = 0, output_type: Any = "int32") -> Any:
    found = number(input)
    if output_type not in ("int32", "int64") or isinstance(axis, bool) or (axis is not None and not found.ndim):
        raise TypeError("no place")
    return np.argmax(found, axis)


def logical(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: function(yes(number(x)), yes(number(y)))


IN_NUMPY: Mapping[str, Callable[..., Any]] = {
    **{f"tf.{name}": one(function) for name, function in UNARY.items()},
    **{f"tf.{name}": both(function) for name, function in BINARY.items()},
    **{f"tf.{name}": reduced(function) for name, function in REDUCTIONS.items()},
    "tf.reciprocal": one(lambda x: np.reciprocal(real(x))),
    "tf.rsqrt": one(lambda x: 1 / np.sqrt(real(x))),
    "tf.round": one(lambda x: np.round(x) if x.dtype != bool else yes(x.astype("int32"))),
    "tf.logical_not": lambda x: np.logical_not(yes(number(x))),
    "tf.logical_and": logical(np.logical_and),
    "tf.logical_or": logical(np.logical_or),
    "tf.reduce_all": reduced(lambda x, axis, keepdims: np.all(yes(x), axis=axis, keepdims=keepdims)),
    "tf.reduce_any": reduced(lambda x, axis, keepdims: np.any(yes(x), axis=axis, keepdims=keepdims)),
    "tf.reshape": lambda tensor, shape: np.reshape(number(tensor), sizes_of(shape)),
    "tf.transpose": lambda a, perm=None: np.transpose(number(a), None if perm is None else sizes_of(perm)),
    "tf.expand_dims": lambda input, axis=0: np.expand_dims(number(input), whole_number(axis)),
    "tf.tile": tiled,
    "tf.argmax": places,
    "tf.zeros": lambda shape, dtype="float32": np.zeros(whole_shape(shape), type_of(dtype)),
    "tf.ones": lambda shape, dtype="float32": np.ones(whole_shape(shape), type_of(dtype)),
    "tf.cumsum": summed,
    "tf.matmul": product,
    "tf.shape": lambda input: np.array(np.shape(number(input))),
    **OF_ARRAYS,
    **OF_PLACES,
    **IN_NUMPY_NN,
    "tf.tensordot": lambda a, b, axes: np.tensordot(number(a), number(b), axis_of(axes)),
}


def computed(name: str, given: Mapping[str, Any]) -> Any:
    """What NumPy makes of it; an exception where it makes nothing of numbers."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = np.asarray(IN_NUMPY[name](**given))
    if found.dtype.kind not in "biuf":
        raise TypeError("no numbers")
    return found
