"""Arithmetic and arrays: the `tf.` operations of numbers, shapes and reductions, over `keras.ops` and `jax.numpy`."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from workbench.base.checked import checked
from workbench.base.host import refuse_beyond_host
from workbench.base.text import short
from workbench.base.units import plural, things_text
from workbench.errors import InputError
from workbench.tf._graph import Tensor, in_function, record
from workbench.tf._graph.convert import array, lift
from workbench.tf._graph.dtypes import as_dtype
from workbench.tf._graph.in_models import of_model
from workbench.tf._graph.shapes import UNKNOWN, Sizes
from workbench.tf._graph.variables import Variable
from workbench.tf._ops.operands import inside, numbers, reals, truths, typed, wholes


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Numbers take the type of the tensor they meet; two tensors must agree."""

    def apply(x: Any, y: Any) -> Any:
        left, right = typed(x, y), typed(y, x)
        if left.dtype != right.dtype:
            raise TypeError(f"the operands have types {left.dtype} and {right.dtype}; cast one of them with tf.cast")
        return function(left, right)

    return apply


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
    "rsqrt": lambda x: jax.lax.rsqrt(reals(x)),
    "square": jnp.square,
    "sigmoid": keras.ops.sigmoid,
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "sign": jnp.sign,
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "round": lambda x: jnp.round(numbers(x)),
    "reciprocal": lambda x: jnp.reciprocal(reals(x)),
    "logical_not": lambda x: jnp.logical_not(truths(x)),
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
    "reduce_any": lambda x, **how: jnp.any(truths(x), **how),
    "reduce_all": lambda x, **how: jnp.all(truths(x), **how),
    "reduce_logsumexp": jax.nn.logsumexp,
    "reduce_variance": jnp.var,
    "reduce_std": jnp.std,
}

OPERATIONS: dict[str, Callable[..., Any]] = {}


def public(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function the operation `tf.<kind>`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        OPERATIONS[kind] = lift(kind, checked(function, f"tf.{kind}"))
        return function

    return add


def _identity(x: Any) -> Any:
    return jnp.asarray(x)


def _unary(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(array(x))


def _logical(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: function(truths(x), truths(y))


for _name, _function in _BINARY.items():
    public(_name)(_binary(_function))
for _name, _function in {"logical_and": jnp.logical_and, "logical_or": jnp.logical_or}.items():
    public(_name)(_logical(_function))
for _name, _single in _UNARY.items():
    public(_name)(_unary(_single))


def axes_of(axis: Any) -> Any:
    """An axis or several, as whole numbers; None is all."""
    if axis is None or (isinstance(axis, list | tuple) and not axis):
        return axis if axis is None else ()
    if isinstance(axis, list | tuple) or getattr(axis, "ndim", 0) == 1:
        return tuple(axes_of(each) for each in axis)
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
        chosen = axes_of(axis if axis is not None else reduction_indices)
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
    held = np.asarray(given) if isinstance(given, jax.Array) and not isinstance(given, jax.core.Tracer) else given
    several = isinstance(held, list | tuple) or np.ndim(held)
    return tuple(_size(size) for size in (held if several else [held]))


def _size(given: Any) -> int:
    """A whole number, or what stands for one while Keras asks for the shape of a batch of any size."""
    if given is None or isinstance(given, str | bytes | float):  # Python says so with the name of a type of its own
        raise TypeError(f"{short(given)} is no whole number")
    return given if jax.export.is_symbolic_dim(given) else operator.index(given)


@public("reshape")
def _reshape(tensor: Any, shape: Any) -> Any:
    return jnp.reshape(array(tensor), _sizes(shape))


@public("transpose")
def _transpose(a: Any, perm: Any = None) -> Any:
    return jnp.transpose(array(a), None if perm is None else tuple(perm))


def _alike(values: Any) -> list[Any]:
    """Arrays of one type; plain numbers take the type of the arrays beside them."""
    if isinstance(values, str | bytes | dict | set):
        raise TypeError("several arrays are a list of them")
    beside = next((each for each in values if hasattr(each, "dtype")), None)
    found = [typed(each, beside) for each in values]
    if len(types := sorted({str(each.dtype) for each in found})) > 1:
        raise TypeError(f"the arrays have types {' and '.join(types)}; cast them to one with tf.cast")
    return found


@public("concat")
def _concat(values: Any, axis: int) -> Any:
    return jnp.concatenate(_alike(values), axis)


@public("stack")
def _stack(values: Any, axis: int = 0) -> Any:
    return jnp.stack(_alike(values), axis)


@public("unstack")
def _unstack(value: Any, num: int | None = None, axis: int = 0) -> Any:
    parts = list(jnp.moveaxis(array(value), axis, 0))
    if num is not None and num != len(parts):
        raise ValueError(f"axis {axis} has {things_text(len(parts), 'element')}, and num is {num}")
    return parts


@public("split")
def _split(value: Any, num_or_size_splits: Any, axis: int = 0) -> Any:
    whole, sizes = array(value), _sizes(num_or_size_splits)
    have = whole.shape[axis]
    if not np.ndim(num_or_size_splits):
        if sizes[0] < 1 or have % sizes[0]:
            raise ValueError(
                f"axis {axis} of {things_text(have, 'element')} is not cut into {sizes[0]} "
                f"{plural(sizes[0], 'equal part')}"
            )
        return list(jnp.split(whole, sizes[0], axis))
    if sizes.count(-1) == 1:
        rest = have - sum(sizes) - 1
        sizes = tuple(rest if size == -1 else size for size in sizes)
    if min(sizes, default=-1) < 0 or sum(sizes) != have:
        raise ValueError(f"parts of {list(sizes)} elements do not make the {have} of axis {axis}")
    return list(jnp.split(whole, list(itertools.accumulate(sizes))[:-1], axis))


@public("squeeze")
def _squeeze(input: Any, axis: Any = None) -> Any:
    axes = axes_of(axis)
    return jnp.squeeze(array(input), None if axes == () else axes)


@public("expand_dims")
def _expand_dims(input: Any, axis: int = 0) -> Any:
    return jnp.expand_dims(array(input), axis)


@public("gather")
def _gather(params: Any, indices: Any, axis: int = 0) -> Any:
    table = array(params)
    return jnp.take(table, inside(wholes(indices), table.shape[axis], "indices"), axis=axis)


@public("slice")
def _slice(input_: Any, begin: Any, size: Any) -> Any:
    whole = array(input_)
    cuts = []
    for start, want, have in zip(_sizes(begin), _sizes(size), whole.shape, strict=True):
        end = have if want == -1 else start + want
        if not 0 <= start <= end <= have:
            raise IndexError(
                f"of {things_text(have, 'element')} there {'is' if want == 1 else 'are'} no {want} from {start} on"
            )
        cuts.append(slice(start, end))
    return whole[tuple(cuts)]


@public("tile")
def _tile(input: Any, multiples: Any) -> Any:
    whole = array(input)
    counts = _sizes(multiples)
    if len(counts) != whole.ndim:  # NumPy takes fewer for the last dimensions, and more for new ones
        many = f"{len(counts)} {plural(len(counts), 'number')}"
        dimensions = f"{whole.ndim} {plural(whole.ndim, 'dimension')}"
        raise ValueError(f"multiples has {many}, and input {dimensions}: it takes one for each")
    sized([np.size(whole), *counts], whole.dtype)
    return jnp.tile(whole, counts)


@public("pad")
def _pad(tensor: Any, paddings: Any, constant_values: Any = 0) -> Any:
    whole = array(tensor)
    widths = [_sizes(each) for each in paddings]
    if len(widths) != whole.ndim or any(len(each) != 2 or min(each) < 0 for each in widths):
        raise ValueError(f"an array of shape {list(whole.shape)} is padded by {whole.ndim} pairs of sizes, 0 or more")
    sized([have + sum(each) for have, each in zip(whole.shape, widths, strict=True)], whole.dtype)
    return jnp.pad(whole, widths, constant_values=_scalar(constant_values, whole.dtype))


def _scalar(value: Any, dtype: Any) -> Any:
    """One number of a type."""
    found = typed(value, jnp.zeros((), str(dtype)))
    if found.ndim or found.dtype != dtype:
        raise TypeError(f"{_shown(found)} is not one number of type {dtype}")
    return found


def _shown(found: Any) -> str:
    return f"an array {found.dtype}{list(found.shape)}" if found.ndim else f"a {found.dtype}"


@public("one_hot")
def _one_hot(indices: Any, depth: int, on_value: Any = None, off_value: Any = None, dtype: Any = "float32") -> Any:
    places, kind = wholes(indices), str(as_dtype(dtype))
    sized([np.size(places), depth], dtype)
    values = (1 if on_value is None else on_value, 0 if off_value is None else off_value)
    on, off = (_scalar(array(each, None if hasattr(each, "dtype") else kind), kind) for each in values)
    return jnp.where(jax.nn.one_hot(places, depth, dtype=bool), on, off)


@public("argmax")
def _argmax(input: Any, axis: Any = 0, output_type: Any = "int32") -> Any:
    if str(as_dtype(output_type)) not in ("int32", "int64"):
        raise TypeError(f"places are int32, or int64, which is int32 on the IPU, and not {output_type}")
    return jnp.argmax(array(input), axes_of(axis)).astype("int32")


@public("where")
def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise ValueError("x and y are both needed: how many places hold is not known before a program runs")
    return jnp.where(truths(condition), *_alike([x, y]))


@public("clip_by_value")
def _clip(t: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    given = array(t)
    low, high = (_alike([given, each])[1] for each in (clip_value_min, clip_value_max))
    return jnp.broadcast_to(jnp.clip(given, low, high), given.shape)


@public("add_n")
def _add_n(inputs: Any) -> Any:
    given = _alike(inputs)
    if not given or len({each.shape for each in given}) > 1:
        raise ValueError(f"arrays of one shape are added, and these have {[list(each.shape) for each in given]}")
    return functools.reduce(operator.add, given)


@public("range")
def _range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None) -> Any:
    given = (0, start, delta) if limit is None else (start, limit, delta)
    ends = [array(each, None if hasattr(each, "dtype") else dtype) for each in given]
    if any(each.ndim or each.dtype == bool for each in ends):
        raise TypeError("start, limit and delta are one number each")
    first, last, step = (each.item() for each in ends)
    sized([max(0, math.ceil((last - first) / step))], "float32")
    whole = all(jnp.issubdtype(each.dtype, jnp.integer) for each in ends)
    return array(np.arange(first, last, step), dtype if dtype is not None else "int32" if whole else "float32")


def sized(shape: Any, dtype: Any) -> tuple[int, ...]:
    """The sizes of an array that is made, if this machine can hold it."""
    if isinstance(shape, str | bytes | dict | set):
        raise TypeError("a shape is a list of sizes")
    held = np.asarray(shape) if isinstance(shape, jax.Array) and not isinstance(shape, jax.core.Tracer) else shape
    sizes = tuple(map(_size, held))
    if any(map(jax.export.is_symbolic_dim, sizes)):
        return sizes
    if any(size < 0 for size in sizes):
        raise ValueError(f"the shape {sizes} has a negative size")
    refuse_beyond_host(f"an array of shape {sizes}", math.prod(sizes) * as_dtype(dtype).size)
    return sizes


@public("fill")
def _fill(dims: Any, value: Any) -> Any:
    made = array(value)
    if made.ndim:
        raise ValueError(f"one number fills an array, and {_shown(made)} is none")
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
    if shape is None:
        return made
    sizes = sized(shape, made.dtype)
    return jnp.reshape(made, sizes) if made.ndim else jnp.full(sizes, made)


@public("einsum")
def _einsum(equation: str, *inputs: Any) -> Any:
    return jnp.einsum(equation, *_alike(inputs))


@public("tensordot")
def _tensordot(a: Any, b: Any, axes: Any) -> Any:
    return jnp.tensordot(array(a), array(b), axes if isinstance(axes, list | tuple) else axes_of(axes))


@public("cumsum")
def _cumsum(x: Any, axis: int = 0) -> Any:
    return jnp.cumsum(array(x), axis)


@public("shape")
def _shape(input: Any) -> Any:
    return jnp.asarray(jnp.shape(array(input)), "int32")


def _at_once(shape: Callable[..., Any]) -> Callable[..., Any]:
    """`tf.shape`: while a program is made the sizes of what it computes with are known, and so may shape the rest."""

    @functools.wraps(shape)
    def known(input: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(input, jax.core.Tracer) or (in_function() and isinstance(input, Tensor)):
            return Sizes.of(input.shape) if _all_known(input) else shape(input, *args, **kwargs)
        if not of_model([input]):
            return shape(input, *args, **kwargs)
        if not _all_known(input):
            raise InputError(
                f"tf.shape was given a Keras tensor of shape {tuple(input.shape)}, whose sizes are not all known",
                todo="give keras.Input its batch_size, or write -1 for the batch in tf.reshape",
            )
        return Sizes.of(input.shape)

    return known


def _all_known(tensor: Any) -> bool:
    return tensor.shape is not UNKNOWN and None not in tuple(tensor.shape)


OPERATIONS["shape"] = _at_once(OPERATIONS["shape"])


@public("getitem")
def _getitem(whole: Any, index: Any) -> Any:
    found = array(whole)
    if not any(isinstance(each, jax.core.Tracer) for each in jax.tree_util.tree_leaves(index)):
        _ = np.broadcast_to(np.False_, found.shape)[index]  # JAX takes the nearest for what is outside; NumPy refuses
    return found[index]


OPERATIONS["div"] = OPERATIONS["divide"]
OPERATIONS["sub"] = OPERATIONS["subtract"]
OPERATIONS["mul"] = OPERATIONS["multiply"]


def _item(self: Any, index: Any) -> Any:
    if any(isinstance(each, Tensor | Variable) for each in (index if isinstance(index, tuple) else (index,))):
        return OPERATIONS["getitem"](self, index)
    return record(
        "StridedSlice",
        lambda whole: _getitem(whole, index),
        self.read_value() if isinstance(self, Variable) else self,
    )


# What the operators of tensors and variables do.
OPERATORS: Mapping[str, Callable[..., Any]] = {**OPERATIONS, "getitem": _item}

__all__ = ["OPERATIONS", "OPERATORS", "public", "sized"]
