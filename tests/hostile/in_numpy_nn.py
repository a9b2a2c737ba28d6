"""The operations of `tf.nn` in NumPy: of what they compute nothing, something raises."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.hostile.numpy_values import MOST, number, whole_number


def real(value: Any, kind: Any = None) -> Any:
    found = number(value, kind)
    if found.dtype.kind != "f":
        raise TypeError("no floating point")
    return found


def two(first: Any, second: Any) -> tuple[Any, Any]:
    left, right = real(first, getattr(second, "dtype", None)), real(second, getattr(first, "dtype", None))
    if left.dtype != right.dtype:
        raise TypeError("two types")
    return left, right


def must(condition: Any) -> None:
    if not condition:
        raise ValueError("no such thing")


def whole(value: Any, below: int) -> Any:
    found = number(value)
    must(found.dtype.kind == "i")
    must(not found.size or 0 <= found.min() <= found.max() < below)
    return found


def log_softmax(logits: Any, axis: Any = -1) -> Any:
    given = real(logits)
    must(given.ndim)
    moved = given - given.max(axis=whole_number(axis), keepdims=True, initial=-np.inf)
    return moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True))


def on_reals(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda features: function(real(features))


def on_numbers(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def of(features: Any) -> Any:
        given = number(features)
        must(given.dtype != bool)
        return function(given)

    return of


def gelu(features: Any, approximate: Any = False) -> Any:
    given = real(features)
    must(isinstance(approximate, bool))
    if approximate:
        return given / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (given + 0.044715 * given**3)))
    return given / 2 * (1 + np.vectorize(math.erf, otypes=["float64"])(given / math.sqrt(2)))


def leaky(features: Any, alpha: Any = 0.2) -> Any:
    given = real(features)
    must(isinstance(alpha, int | float | np.number) and not isinstance(alpha, bool))
    return np.where(given >= 0, given, given * np.float32(alpha))


def bias_add(value: Any, bias: Any) -> Any:
    given, added = two(value, bias)
    must(given.ndim > 1 and added.shape == given.shape[-1:])
    return given + added


def xw_plus_b(x: Any, weights: Any, biases: Any) -> Any:
    left, right = two(x, weights)
    must(left.ndim == right.ndim == 2)
    return bias_add(left @ right, biases)


def cross_entropy(labels: Any, logits: Any, axis: Any = -1) -> Any:
    wanted, given = two(labels, logits)
    must(wanted.shape == given.shape)
    return -(wanted * log_softmax(given, axis)).sum(axis=axis)


def sparse_cross_entropy(labels: Any, logits: Any) -> Any:
    given = real(logits)
    must(given.ndim)
    places = whole(labels, given.shape[-1])
    must(places.shape == given.shape[:-1])
    return -np.take_along_axis(log_softmax(given), places[..., None], -1)[..., 0]


def sigmoid_cross_entropy(labels: Any, logits: Any) -> Any:
    wanted, given = two(labels, logits)
    must(wanted.shape == given.shape)
    return np.maximum(given, 0) - given * wanted + np.log1p(np.exp(-np.abs(given)))


def pair(value: Any) -> tuple[int, int]:
    found = [value] if isinstance(value, int | np.integer) else [] if isinstance(value, str | bytes) else list(value)
    sizes = [whole_number(each) for each in found]
    must(len(sizes) in (1, 2, 4) and 0 < min(sizes) <= max(sizes) < MOST)
    if len(sizes) == 4:
        must(sizes[0] == sizes[3] == 1)
        return sizes[1], sizes[2]
    return sizes[0], sizes[-1]


def padded(images: Any, window: tuple[int, int], across: tuple[int, int], padding: Any, fill: float) -> Any:
    must(isinstance(padding, str) and padding.upper() in ("SAME", "VALID"))
    if padding.upper() == "VALID":
        must(all(size <= have for size, have in zip(window, images.shape[1:3], strict=True)))
        return images
    sides = zip(images.shape[1:3], window, across, strict=True)
    spread = [max((-(-have // by) - 1) * by + size - have, 0) for have, size, by in sides]
    must(max(spread) < 2**20)
    around = [(0, 0), *((each // 2, each - each // 2) for each in spread), (0, 0)]
    return np.pad(images, around, constant_values=fill)


def images_of(value: Any) -> Any:
    found = real(value)
    must(found.ndim == 4)
    return found


def conv2d(
    input: Any,
    filters: Any = None,
    strides: Any = 1,
    padding: Any = "SAME",
    data_format: Any = "NHWC",
    dilations: Any = 1,
    filter: Any = None,
    use_cudnn_on_gpu: Any = True,
) -> Any:
    must((filters is None) != (filter is None) and isinstance(use_cudnn_on_gpu, bool) and data_format == "NHWC")
    images, kernel = two(images_of(input), filter if filters is None else filters)
    across, apart = pair(strides), pair(dilations)
    must(kernel.ndim == 4 and kernel.shape[2] == images.shape[3])
    size = [(each - 1) * by + 1 for each, by in zip(kernel.shape[:2], apart, strict=True)]
    given = padded(images, (size[0], size[1]), across, padding, 0)
    windows = sliding_window_view(given, size, axis=(1, 2))[:, :: across[0], :: across[1]]
    return np.einsum("nyxcij,ijco->nyxo", windows[..., :: apart[0], :: apart[1]], kernel)


def pooled(function: Callable[..., Any], fill: float) -> Callable[..., Any]:
    def of(value: Any = None, ksize: Any = 2, strides: Any = None, padding: Any = "VALID", input: Any = None) -> Any:
        must((value is None) != (input is None))
        images, window = images_of(input if value is None else value), pair(ksize)
        across = window if strides is None else pair(strides)
        given = padded(images, window, across, padding, fill)
        return function(sliding_window_view(given, window, axis=(1, 2))[:, :: across[0], :: across[1]], axis=(-1, -2))

    return of


def lookup(params: Any, ids: Any) -> Any:
    rows = number(params)
    must(rows.ndim and rows.dtype != bool)
    return rows[whole(ids, rows.shape[0])]


def moments(x: Any, axes: Any, keepdims: Any = False, keep_dims: Any = False) -> Any:
    given = real(x)
    must(isinstance(keepdims, bool) and isinstance(keep_dims, bool) and not isinstance(axes, str | bytes | dict | set))
    over = (axes,) if isinstance(axes, int | np.integer) else tuple(axes)
    over = tuple(whole_number(each) for each in over)
    kept = keepdims or keep_dims
    return np.stack([given.mean(over, keepdims=kept), given.var(over, keepdims=kept)])


def in_top_k(targets: Any, predictions: Any, k: Any = 1) -> Any:
    given = real(predictions)
    must(given.ndim == 2 and isinstance(k, int | np.integer) and not isinstance(k, bool) and k > 0)
    places = whole(targets, given.shape[1])
    must(places.shape == given.shape[:1])
    return (np.argsort(-given, axis=-1, kind="stable")[:, :k] == places[:, None]).any(axis=-1)


_SELU = 1.0507009873554804934193349852946
_ALPHA = 1.6732632423543772848170429916717
IN_NUMPY_NN: Mapping[str, Callable[..., Any]] = {
    "tf.nn.relu": on_numbers(lambda x: np.maximum(x, 0)),
    "tf.nn.relu6": on_numbers(lambda x: np.clip(x, 0, 6)),
    "tf.nn.sigmoid": on_reals(lambda x: 1 / (1 + np.exp(-x))),
    "tf.nn.tanh": on_reals(np.tanh),
    "tf.nn.elu": on_reals(lambda x: np.where(x > 0, x, np.expm1(x))),
    "tf.nn.selu": on_reals(lambda x: _SELU * np.where(x > 0, x, _ALPHA * np.expm1(x))),
    "tf.nn.softplus": on_reals(lambda x: np.logaddexp(x, 0)),
    "tf.nn.gelu": gelu,
    "tf.nn.swish": on_reals(lambda x: x / (1 + np.exp(-x))),
    "tf.nn.silu": on_reals(lambda x: x / (1 + np.exp(-x))),
    "tf.nn.leaky_relu": leaky,
    "tf.nn.softmax": lambda logits, axis=-1: np.exp(log_softmax(logits, axis)),
    "tf.nn.log_softmax": log_softmax,
    "tf.nn.l2_loss": lambda t: np.square(real(t)).sum() / 2,
    "tf.nn.bias_add": bias_add,
    "tf.nn.xw_plus_b": xw_plus_b,
    **dict.fromkeys(
        ["tf.nn.softmax_cross_entropy_with_logits", "tf.nn.softmax_cross_entropy_with_logits_v2"], cross_entropy
    ),
    **dict.fromkeys(
        ["tf.nn.sparse_softmax_cross_entropy_with_logits", "tf.nn.sparse_softmax_cross_entropy_with_logits_v2"],
        sparse_cross_entropy,
    ),
    "tf.nn.sigmoid_cross_entropy_with_logits": sigmoid_cross_entropy,
    "tf.nn.conv2d": conv2d,
    **dict.fromkeys(["tf.nn.max_pool", "tf.nn.max_pool2d"], pooled(np.max, -np.inf)),
    **dict.fromkeys(["tf.nn.avg_pool", "tf.nn.avg_pool2d"], pooled(np.nanmean, np.nan)),  # of what lies inside
    "tf.nn.embedding_lookup": lookup,
    "tf.nn.moments": moments,
    "tf.nn.in_top_k": in_top_k,
}
