"""`tf.nn`: layers as functions of their weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import keras

from workbench.base.checked import checked
from workbench.tf._graph.convert import array, lift
from workbench.tf._ops.random import dropout

FUNCTIONS: dict[str, Callable[..., Any]] = {"dropout": dropout}


def _public(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            FUNCTIONS[name] = lift(name, checked(function))
        return function

    return add


for _name, _function in {
    "relu": jax.nn.relu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "elu": jax.nn.elu,
    "selu": jax.nn.selu,
    "leaky_relu": jax.nn.leaky_relu,
    "softplus": jax.nn.softplus,
    "gelu": jax.nn.gelu,
    "relu6": jax.nn.relu6,
    "swish": jax.nn.silu,
    "silu": jax.nn.silu,
}.items():
    _public(_name)(lambda features, _do=_function: _do(array(features)))


@_public("softmax")
def _softmax(logits: Any, axis: int = -1) -> Any:
    return jax.nn.softmax(array(logits), axis)


@_public("log_softmax")
def _log_softmax(logits: Any, axis: int = -1) -> Any:
    return jax.nn.log_softmax(array(logits), axis)


@_public("l2_loss")
def _l2_loss(t: Any) -> Any:
    return jnp.sum(jnp.square(t)) / 2


@_public("bias_add")
def _bias_add(value: Any, bias: Any) -> Any:
    return value + bias


@_public("xw_plus_b")
def _xw_plus_b(x: Any, weights: Any, biases: Any) -> Any:
    return jnp.matmul(x, weights) + biases


@_public("softmax_cross_entropy_with_logits", "softmax_cross_entropy_with_logits_v2")
def _cross_entropy(labels: Any = None, logits: Any = None, axis: int = -1) -> Any:
    return -jnp.sum(array(labels) * jax.nn.log_softmax(array(logits), axis), axis)


@_public("sparse_softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits_v2")
def _sparse_cross_entropy(labels: Any = None, logits: Any = None) -> Any:
    chosen = jax.nn.one_hot(array(labels), logits.shape[-1], dtype=logits.dtype)
    return -jnp.sum(chosen * jax.nn.log_softmax(logits), -1)


@_public("sigmoid_cross_entropy_with_logits")
def _sigmoid_cross_entropy(labels: Any = None, logits: Any = None) -> Any:
    return jnp.maximum(logits, 0) - logits * labels + jnp.log1p(jnp.exp(-jnp.abs(logits)))


def _pair(value: Any) -> tuple[int, int]:
    if isinstance(value, int):
        return value, value
    given = tuple(int(each) for each in value)
    return (given[1], given[2]) if len(given) == 4 else (given[0], given[-1])


@_public("conv2d")
def _conv2d(
    input: Any,
    filters: Any = None,
    strides: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    dilations: Any = 1,
    filter: Any = None,
    use_cudnn_on_gpu: bool = True,
) -> Any:
    kernel = filters if filters is not None else filter
    numbers = (data_format, "HWIO", data_format)
    return jax.lax.conv_general_dilated(
        input, kernel, _pair(strides), padding, rhs_dilation=_pair(dilations), dimension_numbers=numbers
    )


@_public("max_pool", "max_pool2d")
def _max_pool(value: Any = None, ksize: Any = 2, strides: Any = None, padding: str = "VALID", input: Any = None) -> Any:
    images = value if value is not None else input
    return keras.ops.max_pool(images, _pair(ksize), _pair(strides or ksize), padding.lower(), "channels_last")


@_public("avg_pool", "avg_pool2d")
def _avg_pool(value: Any = None, ksize: Any = 2, strides: Any = None, padding: str = "VALID", input: Any = None) -> Any:
    images = value if value is not None else input
    return keras.ops.average_pool(images, _pair(ksize), _pair(strides or ksize), padding.lower(), "channels_last")


@_public("embedding_lookup")
def _embedding_lookup(params: Any, ids: Any) -> Any:
    return jnp.take(params, array(ids), axis=0)


@_public("moments")
def _moments(x: Any, axes: Any, keepdims: bool = False, keep_dims: bool = False) -> Any:
    kept = keepdims or keep_dims
    return jnp.mean(x, tuple(axes), keepdims=kept), jnp.var(x, tuple(axes), keepdims=kept)


@_public("in_top_k")
def _in_top_k(targets: Any = None, predictions: Any = None, k: int = 1) -> Any:
    best = jnp.argsort(-predictions, axis=-1)[:, :k]
    return jnp.any(best == array(targets)[:, None], -1)


__all__ = ["FUNCTIONS"]
