"""`tf.nn`: layers as functions of their weights."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import keras
import numpy as np

from workbench.base.checked import checked
from workbench.tf._graph.convert import lift
from workbench.tf._ops.operands import inside, numbers, reals, typed, wholes
from workbench.tf._ops.random import dropout

FUNCTIONS: dict[str, Callable[..., Any]] = {"dropout": dropout}


def _public(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            FUNCTIONS[name] = lift(name, checked(function, f"tf.nn.{name}"))
        return function

    return add


def _both(first: Any, second: Any) -> tuple[Any, Any]:
    """Two floating arrays of one type; a plain one takes that of the array beside it."""
    one, other = reals(typed(first, second)), reals(typed(second, first))
    if one.dtype != other.dtype:
        raise TypeError(f"the arrays have types {one.dtype} and {other.dtype}; cast one of them with tf.cast")
    return one, other


def _same_shape(first: Any, second: Any) -> tuple[Any, Any]:
    one, other = _both(first, second)
    if one.shape != other.shape:
        raise ValueError(f"the labels have shape {one.shape}, and the logits {other.shape}")
    return one, other


def _activation(function: Callable[[Any], Any], take: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda features: function(take(features))


for _name, _function, _take in (
    ("relu", jax.nn.relu, numbers),
    ("relu6", jax.nn.relu6, numbers),
    ("sigmoid", jax.nn.sigmoid, reals),
    ("tanh", jnp.tanh, reals),
    ("elu", jax.nn.elu, reals),
    ("selu", jax.nn.selu, reals),
    ("softplus", jax.nn.softplus, reals),
    ("swish", jax.nn.silu, reals),
    ("silu", jax.nn.silu, reals),
):
    _public(_name)(_activation(_function, _take))


@_public("leaky_relu")
def _leaky_relu(features: Any, alpha: float = 0.2) -> Any:
    return jax.nn.leaky_relu(reals(features), float(alpha))


@_public("gelu")
def _gelu(features: Any, approximate: bool = False) -> Any:
    return jax.nn.gelu(reals(features), approximate)


@_public("softmax")
def _softmax(logits: Any, axis: int = -1) -> Any:
    return jax.nn.softmax(reals(logits), axis)


@_public("log_softmax")
def _log_softmax(logits: Any, axis: int = -1) -> Any:
    return jax.nn.log_softmax(reals(logits), axis)


@_public("l2_loss")
def _l2_loss(t: Any) -> Any:
    return jnp.sum(jnp.square(reals(t))) / 2


@_public("bias_add")
def _bias_add(value: Any, bias: Any) -> Any:
    given, added = _both(value, bias)
    if given.ndim < 2 or added.shape != given.shape[-1:]:
        raise ValueError(f"a value of shape {given.shape} has a bias of its last size, and this one is {added.shape}")
    return given + added


@_public("xw_plus_b")
def _xw_plus_b(x: Any, weights: Any, biases: Any) -> Any:
    left, right = _both(x, weights)
    if left.ndim != 2 or right.ndim != 2:
        raise ValueError(f"x has shape {left.shape} and weights {right.shape}, and both are matrices")
    return _bias_add(jnp.matmul(left, right), biases)


@_public("softmax_cross_entropy_with_logits", "softmax_cross_entropy_with_logits_v2")
def _cross_entropy(labels: Any, logits: Any, axis: int = -1) -> Any:
    wanted, given = _same_shape(labels, logits)
    return -jnp.sum(wanted * jax.nn.log_softmax(given, axis), axis)


@_public("sparse_softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits_v2")
def _sparse_cross_entropy(labels: Any, logits: Any) -> Any:
    given, places = reals(logits), wholes(labels)
    if not given.ndim or places.shape != given.shape[:-1]:
        raise ValueError(f"logits of shape {given.shape} have a label for each but the last size, not {places.shape}")
    chosen = jax.nn.one_hot(inside(places, given.shape[-1], "labels"), given.shape[-1], dtype=given.dtype)
    return -jnp.sum(chosen * jax.nn.log_softmax(given), -1)


@_public("sigmoid_cross_entropy_with_logits")
def _sigmoid_cross_entropy(labels: Any, logits: Any) -> Any:
    wanted, given = _same_shape(labels, logits)
    return jnp.maximum(given, 0) - given * wanted + jnp.log1p(jnp.exp(-jnp.abs(given)))


def _pair(value: Any, formats: str = "NHWC") -> tuple[int, int]:
    """Rows and columns of a number, a list of one or two, or one of four in which batch and channels are 1."""
    given = (value,) if isinstance(value, int | np.integer) else () if isinstance(value, str | bytes) else tuple(value)
    sizes = tuple(operator.index(each) for each in given if not isinstance(each, bool))
    if len(sizes) != len(given) or len(sizes) not in (1, 2, 4) or not 1 <= min(sizes) <= max(sizes) < 2**31:
        raise ValueError(f"{value!r} is no positive number of 32 bits, nor a list of 1, 2 or 4 of them")
    if len(sizes) < 4:
        return sizes[0], sizes[-1]
    across = [sizes[formats.index(name)] for name in "NCHW"]
    if across[:2] != [1, 1]:
        raise ValueError(f"{value!r} goes over batches or channels, which have 1")
    return across[2], across[3]


def _images(value: Any) -> Any:
    found = reals(value)
    if found.ndim != 4:
        raise ValueError(f"images have four dimensions, batch, rows, columns and channels, and these {found.ndim}")
    return found


def _around(padding: Any, formats: str) -> Any:
    """Padding of rows and columns: SAME, VALID, or what is given for each of the four dimensions."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f"padding is {padding!r}, and it is 'SAME', 'VALID' or a list of pairs")
        return padding.upper()
    pairs = [tuple(operator.index(each) for each in pair) for pair in padding]
    if len(pairs) != 4 or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ValueError("explicit padding has a pair of whole numbers for each of the four dimensions")
    if any(any(pairs[formats.index(name)]) for name in "NC"):
        raise ValueError("batches and channels are not padded")
    return [pairs[formats.index(name)] for name in "HW"]


def _one_of(first: Any, second: Any, names: str) -> Any:
    if (first is None) == (second is None):
        raise TypeError(f"one of {names} is given")
    return second if first is None else first


@_public("conv2d")
def _conv2d(
    input: Any,
    filters: Any = None,
    strides: Any = 1,
    padding: Any = "SAME",
    data_format: Literal["NHWC", "NCHW"] = "NHWC",
    dilations: Any = 1,
    filter: Any = None,
    use_cudnn_on_gpu: bool = True,
) -> Any:
    images, kernel = _both(_images(input), _one_of(filters, filter, "filters and filter"))
    if kernel.ndim != 4:
        raise ValueError(f"filters have four dimensions: rows, columns, channels in and out; these {kernel.ndim}")
    layout = (data_format, "HWIO", data_format)
    across, apart = _pair(strides, data_format), _pair(dilations, data_format)
    around = _around(padding, data_format)
    groups = _groups(images.shape[data_format.index("C")], kernel.shape[2])
    return jax.lax.conv_general_dilated(
        images, kernel, across, around, rhs_dilation=apart, dimension_numbers=layout, feature_group_count=groups
    )


def _groups(channels: int, taken: int) -> int:
    """As many as the filters need to take all channels of the images, as in TensorFlow."""
    if not taken or channels % taken:
        raise ValueError(f"the images have {channels} channels, and the filters take {taken}")
    return channels // taken


@_public("max_pool", "max_pool2d")
def _max_pool(value: Any = None, ksize: Any = 2, strides: Any = None, padding: Any = "VALID", input: Any = None) -> Any:
    return _pooled(keras.ops.max_pool, _one_of(value, input, "value and input"), ksize, strides, padding)


@_public("avg_pool", "avg_pool2d")
def _avg_pool(value: Any = None, ksize: Any = 2, strides: Any = None, padding: Any = "VALID", input: Any = None) -> Any:
    return _pooled(keras.ops.average_pool, _one_of(value, input, "value and input"), ksize, strides, padding)


def _pooled(pool: Callable[..., Any], value: Any, ksize: Any, strides: Any, padding: Any) -> Any:
    around = _around(padding, "NHWC")
    if not isinstance(around, str):
        raise ValueError("a pool is padded 'SAME' or 'VALID'")
    images, window = _images(value), _pair(ksize)
    if around == "VALID" and (window[0] > images.shape[1] or window[1] > images.shape[2]):
        raise ValueError(f"a window of {window} is larger than images of shape {images.shape}")
    return pool(images, window, window if strides is None else _pair(strides), around.lower(), "channels_last")


@_public("embedding_lookup")
def _embedding_lookup(params: Any, ids: Any) -> Any:
    rows = numbers(params)
    if not rows.ndim:
        raise ValueError("one number holds no rows")
    return jnp.take(rows, inside(wholes(ids), rows.shape[0], "ids"), axis=0)


@_public("moments")
def _moments(x: Any, axes: Any, keepdims: bool = False, keep_dims: bool = False) -> Any:
    given, kept = reals(x), keepdims or keep_dims
    if isinstance(axes, str | bytes | dict | set):
        raise TypeError("axes are whole numbers in a list")
    over = (axes,) if isinstance(axes, int | np.integer) else tuple(axes)
    if any(isinstance(each, bool) for each in over):
        raise TypeError("an axis is a whole number")
    return jnp.mean(given, over, keepdims=kept), jnp.var(given, over, keepdims=kept)


@_public("in_top_k")
def _in_top_k(targets: Any, predictions: Any, k: int = 1) -> Any:
    given, places = reals(predictions), wholes(targets)
    if given.ndim != 2 or places.shape != given.shape[:1]:
        raise ValueError(f"predictions are a matrix with a target for each row: {given.shape} and {places.shape}")
    best = jnp.argsort(-given, axis=-1)[:, : _positive(k)]
    return jnp.any(best == inside(places, given.shape[1], "targets")[:, None], -1)


def _positive(k: int) -> int:
    if k < 1:
        raise ValueError(f"k is {k}, and at least 1")
    return k


__all__ = ["FUNCTIONS"]
