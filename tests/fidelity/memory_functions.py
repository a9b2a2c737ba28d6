"""More programs whose bytes are published: functions in functions, split weights, merged copies, shared tables.

Source: graphcore/tensorflow@b2127bba, python/ipu/tests/functional_ops_test.py and, of compiler/plugin/poplar/tests,
allocation_finder_priority_test.py and size_speed_tests/combined_weights_test.py.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.fidelity.compiling import struct

Program = tuple[Any, tuple[Any, ...]]
RATE = 0.001


def _loss(logits: Any, labels: Any) -> Any:
    """Mean sparse cross-entropy."""
    import jax
    import jax.numpy as jnp

    wanted = jax.nn.one_hot(labels, logits.shape[-1])
    return -jnp.mean(jnp.sum(wanted * jax.nn.log_softmax(logits), axis=-1))


def nested_training() -> Program:
    """A function that calls one of a product and a bias, twice in a row, each with weights of its own, in training."""
    import jax

    square, row = struct(64, 64), struct(64)

    def loss(weights: tuple[Any, ...], x: Any, labels: Any) -> Any:
        for matrix, bias in (weights[:2], weights[2:]):
            x = jax.nn.sigmoid(x @ matrix + bias)
        return _loss(x, labels)

    def program(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, labels: Any) -> Any:
        weights = (w1, b1, w2, b2)
        slopes = jax.grad(loss)(weights, x, labels)
        return tuple(each - RATE * slope for each, slope in zip(weights, slopes, strict=True))

    return program, (square, row, square, row, square, struct(64, dtype="int32"))


def split_training() -> Program:
    """A layer of two products with halves of its weights, twice, their difference in training."""
    import jax
    import jax.numpy as jnp

    square = struct(64, 64)

    def layer(x: Any, weights: Any, b: Any) -> Any:
        left, right = jnp.split(weights, 2, axis=-1)
        return jax.nn.sigmoid(jnp.concatenate([x @ left, x @ right], axis=1) + b)

    def loss(weights: tuple[Any, Any], a: Any, b: Any, c: Any, labels: Any) -> Any:
        first = layer(a, weights[0], b)
        return _loss(first - layer(first, weights[1], c), labels)

    def program(one: Any, two: Any, *data: Any) -> Any:
        slopes = jax.grad(loss)((one, two), *data)
        return one - RATE * slopes[0], two - RATE * slopes[1]

    return program, (*(square,) * 5, struct(64, dtype="int32"))


def aliased_inputs() -> Program:
    """A sigmoid of two numbers broadcast to 1024 elements each; their difference."""
    import jax
    import jax.numpy as jnp

    def program(a: Any, b: Any) -> Any:
        one, other = (jax.nn.sigmoid(jnp.broadcast_to(each, (1024,))) for each in (a, b))
        return one - other

    return program, (struct(), struct())


def combined_weights() -> Program:
    """Ten layers of 256 with a bias on 16 x 4 halves, and the cross-entropy of their result."""
    import jax
    import jax.numpy as jnp

    half = "float16"
    sizes = [4, *[256] * 10]
    weights = [struct(*pair, dtype=half) for pair in pairwise(sizes)]

    def program(x: Any, labels: Any, *given: Any) -> Any:
        for matrix, bias in zip(given[:10], given[10:], strict=True):
            x = x @ matrix + bias
        return jnp.mean(-jnp.sum(labels * jax.nn.log_softmax(x), axis=-1))

    biases = [struct(256, dtype=half)] * 10
    return program, (struct(16, 4, dtype=half), struct(16, 256, dtype=half), *weights, *biases)


def shared_table() -> Program:
    """50 rows of a table of 20,000 x 128 halves, and their products with all of its rows."""
    import jax.numpy as jnp

    def program(table: Any, ids: Any) -> Any:
        return jnp.take(table, ids, axis=0) @ table.T

    return program, (struct(20000, 128, dtype="float16"), struct(50, dtype="int32"))
