"""Arithmetic and arrays: the `tf.` operations of numbers, shapes and reductions, over `keras.ops` and `jax.numpy`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from workbench.base.checked import checked
from workbench.base.host import refuse_beyond_host
from workbench.base.text import short
from workbench.errors import InputError
from workbench.tf._graph import Tensor, record
from workbench.tf._graph.convert import array, lift
from workbench.tf._graph.dtypes import as_dtype
from workbench.tf._graph.variables import Variable


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Numbers take the type of the tensor they meet; two tensors must agree."""

    def apply(x: Any, y: Any) -> Any:
        left, right = _typed(x, y), _typed(y, x)
        if left.dtype != right.dtype:
            raise TypeError(f"the operands have types {left.dtype} and {right.dtype}; cast one of them with tf.cast")
        return function(left, right)

    return apply


def _typed(value: Any, other: Any) -> Any:
    if hasattr(value, "dtype"):
        return jnp.asarray(value)
    return array(value, other.dtype if hasattr(other, "dtype") else None)


def _truths(x: Any) -> Any:
    """Yes and no; numbers and texts are none, as in TensorFlow."""
    found = array(x)
    if found.dtype != bool:
        raise TypeError(f"{found.dtype} is neither yes nor no; tf.cast(x, tf.bool) makes it so")
    return found


def _real(x: Any) -> Any:
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise TypeError(f"{x.dtype} is no floating point; tf.cast(x, tf.float32) makes it so")
    return x


def _numbers(x: Any) -> Any:
    if x.dtype == bool:
        raise TypeError("yes and no are no numbers")
    return x


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": jnp.add,
    "subtract": jnp.subtract,
    "multiply": jnp.multiply,
    "divide": jnp.true_divide,
    "truediv": jnp.true_divide,
    "floordiv": jnp.floor_divide,
    "mod": jnp.mod,
    "pow": jnp.power,
    "maximum": jnp.maximum,
    "minimum": jnp.minimum,
    "less": jnp.less,
    "less_equal": jnp.less_equal,
    "greater": jnp.greater,
    "greater_equal": jnp.greater_equal,
    "equal": jnp.equal,
    "not_equal": jnp.not_equal,
    "squared_difference": lambda x, y: jnp.square(x - y),
    "atan2": jnp.arctan2,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "negative": jnp.negative,
    "abs": jnp.abs,
    "exp": jnp.exp,
    "log": jnp.log,
    "log1p": jnp.log1p,
    "sqrt": jnp.sqrt,
    "rsqrt": lambda x: jax.lax.rsqrt(_real(x)),
    "square": jnp.square,
    "sigmoid": keras.ops.sigmoid,
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "sign": jnp.sign,
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "round": lambda x: jnp.round(_numbers(x)),
    "reciprocal": lambda x: jnp.reciprocal(_real(x)),
    "logical_not": lambda x: jnp.logical_not(_truths(x)),
    "is_nan": jnp.isnan,
    "is_inf": jnp.isinf,
    "is_finite": jnp.isfinite,
    "erf": jax.scipy.special.erf,
    "stop_gradient": jax.lax.stop_gradient,
    "identity": lambda x: x,
    "zeros_like": jnp.zeros_like,
    "ones_like": jnp.ones_like,
    "expm1": jnp.expm1,
    "softplus": jax.nn.softplus,
}
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "reduce_sum": jnp.sum,
    "reduce_mean": jnp.mean,
    "reduce_max": jnp.max,
    "reduce_min": jnp.min,
    "reduce_prod": jnp.prod,
    "reduce_any": lambda x, **how: jnp.any(_truths(x), **how),
    "reduce_all": lambda x, **how: jnp.all(_truths(x), **how),
    "reduce_logsumexp": jax.nn.logsumexp,
    "reduce_variance": jnp.var,
    "reduce_std": jnp.std,
}

OPERATIONS: dict[str, Callable[..., Any]] = {}


def public(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function the operation `tf.<kind>`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        OPERATIONS[kind] = lift(kind, checked(function))
        return function

    return add


def _identity(x: Any) -> Any:
    return jnp.asarray(x)


for _name, _function in _BINARY.items():
    public(_name)(_binary(_function))
for _name, _function in {"logical_and": jnp.logical_and, "logical_or": jnp.logical_or}.items():
    public(_name)(lambda x, y, _function=_function: _function(_truths(x), _truths(y)))
for _name, _single in _UNARY.items():
    public(_name)(lambda x, _single=_single: _single(array(x)))


def _axes(axis: Any) -> Any:
    """An axis or several, as whole numbers; None is all."""
    if axis is None or (isinstance(axis, list | tuple) and not axis):
        return axis if axis is None else ()
    if isinstance(axis, list | tuple) or getattr(axis, "ndim", 0) == 1:
        return tuple(_axes(each) for each in axis)
    if isinstance(axis, bool):
        raise TypeError("an axis is a whole number")
    return operator.index(axis)


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool = False,
        keep_dims: bool = False,
        reduction_indices: Any = None,
    ) -> Any:
        chosen = _axes(axis if axis is not None else reduction_indices)
        return function(array(input_tensor), axis=chosen, keepdims=keepdims or keep_dims)

    return reduce


for _name, _function in _REDUCTIONS.items():
    public(_name)(_reduction(_function))


@public("matmul")
def _matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    for name, each in (("a", a), ("b", b)):
        if jnp.ndim(each) < 2:
            raise InputError(
                f"tf.matmul was given shape {jnp.shape(each)}" + ("" if hasattr(each, "shape") else f": {short(each)}"),
                expected=f"two dimensions or more as {name}",
                todo="use tf.reshape or tf.tensordot",
            )
    left = jnp.swapaxes(a, -1, -2) if transpose_a else a
    right = jnp.swapaxes(b, -1, -2) if transpose_b else b
    return jnp.matmul(left, right)


@public("cast")
def _cast(x: Any, dtype: Any) -> Any:
    return array(x).astype(str(as_dtype(dtype)))


def _sizes(given: Any) -> tuple[int, ...]:
    """Whole numbers, one or several, as sizes."""
    if isinstance(given, bool | str | bytes):
        raise TypeError("sizes are whole numbers")
    several = isinstance(given, list | tuple) or np.ndim(given)
    return tuple(operator.index(size) for size in (given if several else [given]))


@public("reshape")
def _reshape(tensor: Any, shape: Any) -> Any:
    return jnp.reshape(array(tensor), _sizes(shape))


@public("transpose")
def _transpose(a: Any, perm: Any = None) -> Any:
    return jnp.transpose(array(a), None if perm is None else tuple(perm))


@public("concat")
def _concat(values: Any, axis: Any) -> Any:
    return jnp.concatenate([array(each) for each in values], int(axis))


@public("stack")
def _stack(values: Any, axis: int = 0) -> Any:
    return jnp.stack([array(each) for each in values], axis)


@public("unstack")
def _unstack(value: Any, num: int | None = None, axis: int = 0) -> Any:
    return list(jnp.moveaxis(array(value), axis, 0))


@public("split")
def _split(value: Any, num_or_size_splits: Any, axis: int = 0) -> Any:
    whole = array(value)
    if isinstance(num_or_size_splits, int):
        return list(jnp.split(whole, num_or_size_splits, axis))
    ends = [sum(num_or_size_splits[:count]) for count in range(1, len(num_or_size_splits))]
    return list(jnp.split(whole, ends, axis))


@public("squeeze")
def _squeeze(input: Any, axis: Any = None) -> Any:
    return jnp.squeeze(array(input), tuple(axis) if isinstance(axis, list) else axis)


@public("expand_dims")
def _expand_dims(input: Any, axis: int = 0) -> Any:
    return jnp.expand_dims(array(input), axis)


@public("gather")
def _gather(params: Any, indices: Any, axis: int = 0) -> Any:
    return jnp.take(array(params), array(indices), axis=axis)


@public("slice")
def _slice(input_: Any, begin: Any, size: Any) -> Any:
    whole = array(input_)
    ends = [
        start + (have - start if want == -1 else want)
        for start, want, have in zip(begin, size, whole.shape, strict=True)
    ]
    return whole[tuple(slice(start, end) for start, end in zip(begin, ends, strict=True))]


@public("tile")
def _tile(input: Any, multiples: Any) -> Any:
    whole = array(input)
    counts = _sizes(multiples)
    sized([np.size(whole), *counts], whole.dtype)
    return jnp.tile(whole, counts)


@public("pad")
def _pad(tensor: Any, paddings: Any, constant_values: Any = 0) -> Any:
    return jnp.pad(array(tensor), paddings, constant_values=constant_values)


@public("one_hot")
def _one_hot(indices: Any, depth: int, on_value: Any = 1.0, off_value: Any = 0.0, dtype: Any = "float32") -> Any:
    places = array(indices)
    sized([np.size(places), depth], dtype)
    hot = jax.nn.one_hot(places, depth, dtype=str(as_dtype(dtype)))
    return hot * on_value + (1 - hot) * off_value


@public("argmax")
def _argmax(input: Any, axis: Any = 0, output_type: Any = "int32") -> Any:
    if str(as_dtype(output_type)) not in ("int32", "int64"):
        raise TypeError(f"places are int32, or int64, which is int32 on the IPU, and not {output_type}")
    return jnp.argmax(array(input), _axes(axis)).astype("int32")


@public("where")
def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    return jnp.where(array(condition), array(x), array(y))


@public("clip_by_value")
def _clip(t: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    return jnp.clip(array(t), clip_value_min, clip_value_max)


@public("add_n")
def _add_n(inputs: Any) -> Any:
    total = array(inputs[0])
    for each in inputs[1:]:
        total = total + each
    return total


@public("range")
def _range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None) -> Any:
    ends = (0, start) if limit is None else (start, limit)
    return array(jnp.arange(ends[0], ends[1], delta), dtype)


def sized(shape: Any, dtype: Any) -> tuple[int, ...]:
    """The sizes of an array that is made, if this machine can hold it."""
    if isinstance(shape, str | bytes | dict | set):
        raise TypeError("a shape is a list of sizes")
    sizes = tuple(operator.index(size) for size in shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"the shape {sizes} has a negative size")
    refuse_beyond_host(f"an array of shape {sizes}", math.prod(sizes) * as_dtype(dtype).size)
    return sizes


@public("fill")
def _fill(dims: Any, value: Any) -> Any:
    made = array(value)
    return jnp.full(sized(dims, made.dtype), made)


@public("zeros")
def _zeros(shape: Any, dtype: Any = "float32") -> Any:
    return jnp.zeros(sized(shape, dtype), str(as_dtype(dtype)))


@public("ones")
def _ones(shape: Any, dtype: Any = "float32") -> Any:
    return jnp.ones(sized(shape, dtype), str(as_dtype(dtype)))


@public("constant")
def _constant(value: Any, dtype: Any = None, shape: Any = None) -> Any:
    made = array(value, dtype)
    return made if shape is None else jnp.broadcast_to(made, sized(shape, made.dtype))


@public("einsum")
def _einsum(equation: str, *inputs: Any) -> Any:
    return jnp.einsum(equation, *map(array, inputs))


@public("tensordot")
def _tensordot(a: Any, b: Any, axes: Any) -> Any:
    return jnp.tensordot(array(a), array(b), axes if isinstance(axes, list | tuple) else _axes(axes))


@public("cumsum")
def _cumsum(x: Any, axis: int = 0) -> Any:
    return jnp.cumsum(array(x), axis)


@public("shape")
def _shape(input: Any) -> Any:
    return jnp.asarray(jnp.shape(array(input)), "int32")


@public("getitem")
def _getitem(whole: Any, index: Any) -> Any:
    return array(whole)[index]


OPERATIONS["div"] = OPERATIONS["divide"]
OPERATIONS["sub"] = OPERATIONS["subtract"]
OPERATIONS["mul"] = OPERATIONS["multiply"]

# Operators of tensors and variables, by the operation each stands for.
_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floordiv",
    "mod": "mod",
    "pow": "pow",
    "matmul": "matmul",
    "and": "logical_and",
    "or": "logical_or",
}
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def _item(self: Any, index: Any) -> Any:
    if any(isinstance(each, Tensor | Variable) for each in (index if isinstance(index, tuple) else (index,))):
        return OPERATIONS["getitem"](self, index)
    return record(
        "StridedSlice",
        lambda whole: jnp.asarray(whole)[index],
        self.read_value() if isinstance(self, Variable) else self,
    )


def _add_operators() -> None:
    for kind in (Tensor, Variable):
        for sign, name in (*_OPERATORS.items(), *_COMPARISONS.items()):
            operation = OPERATIONS[name]
            setattr(kind, f"__{sign}__", lambda self, other, _do=operation: _do(self, other))
            if sign in _OPERATORS:
                setattr(kind, f"__r{sign}__", lambda self, other, _do=operation: _do(other, self))
        for sign, name in (("neg", "negative"), ("abs", "abs"), ("invert", "logical_not")):
            setattr(kind, f"__{sign}__", lambda self, _do=OPERATIONS[name]: _do(self))
        setattr(kind, "__getitem__", _item)  # noqa: B010


_add_operators()

__all__ = ["OPERATIONS", "public", "sized"]
