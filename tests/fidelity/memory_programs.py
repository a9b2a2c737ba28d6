"""The programs whose bytes are published: each returns a JAX function with its inputs, or a model with arguments."""

from __future__ import annotations

from typing import Any

from tests.fidelity.compiling import struct

Program = tuple[Any, tuple[Any, ...]]


def outlined_inference() -> Program:
    """A dense layer twice with weights of its own, the second on the first's result; their difference."""
    import jax

    square = struct(64, 64)

    def layer(a: Any, b: Any, weights: Any) -> Any:
        return jax.nn.sigmoid(a @ weights + b)

    def program(a: Any, b: Any, c: Any, one: Any, two: Any) -> Any:
        first = layer(a, b, one)
        return first - layer(first, c, two)

    return program, (square,) * 5


def outlined_training() -> Program:
    """Two dense layers, sparse cross-entropy and gradient descent on both weights."""
    import jax
    import jax.numpy as jnp

    square = struct(64, 64)

    def loss(weights: tuple[Any, Any], a: Any, b: Any, c: Any, labels: Any) -> Any:
        first = jax.nn.sigmoid(a @ weights[0] + b)
        logits = first - jax.nn.sigmoid(first @ weights[1] + c)
        wanted = jax.nn.one_hot(labels, 64)
        return -jnp.mean(jnp.sum(wanted * jax.nn.log_softmax(logits), axis=-1))

    def program(one: Any, two: Any, *data: Any) -> Any:
        slopes = jax.grad(loss)((one, two), *data)
        return one - 0.001 * slopes[0], two - 0.001 * slopes[1]

    return program, (*(square,) * 5, struct(64, dtype="int32"))


def serial_lookup() -> Program:
    """20 rows of a table of 20,000 x 128 halves, looked up in ten slices of it."""
    import jax.numpy as jnp

    def program(table: Any, indices: Any) -> Any:
        rows = table.shape[0] // 10
        found = jnp.zeros((indices.shape[0], table.shape[1]), table.dtype)
        for part in range(10):
            local = indices - part * rows
            inside = (local >= 0) & (local < rows)
            taken = jnp.take(table[part * rows : (part + 1) * rows], jnp.clip(local, 0, rows - 1), axis=0)
            found = found + jnp.where(inside[:, None], taken, 0)
        return found

    return program, (struct(20000, 128, dtype="float16"), struct(20, dtype="int32"))


def wide_initial(*, rows: int = 1024, columns: int = 2048) -> Program:
    """A variable of 1024 x 2048 floats set to a constant."""
    import jax.numpy as jnp

    def program(value: Any) -> Any:
        return jnp.broadcast_to(value, (rows, columns))

    return program, (struct(),)


def wide_sum(*, rows: int = 1024, columns: int = 2048) -> Program:
    """A variable and an input of 1024 x 2048 floats and a constant of that shape added."""
    import jax.numpy as jnp

    def program(a: Any, b: Any) -> Any:
        return a + b + jnp.full((rows, columns), 4.0)

    wide = struct(rows, columns)
    return program, (wide, wide)


def wide_slices() -> Program:
    """Two turns of a loop that adds the mean of a slice and counts the sliced tensor up."""
    import jax
    import jax.numpy as jnp

    def program(y: Any) -> Any:
        def turn(i: int, carried: tuple[Any, Any]) -> tuple[Any, Any]:
            x, total = carried
            part = jax.lax.dynamic_slice(x, (i, i, 0), (1, 1, 2048))
            return x + 1.0, total + jnp.mean(part)

        return jax.lax.fori_loop(0, 2, turn, (jnp.full((512, 2, 2048), 4.0), y))[1]

    return program, (struct(1),)


def padded_product() -> Program:
    """Columns padded to 1024, a scaled subtraction and a product with a square of weights, in halves."""
    import jax.numpy as jnp

    def program(a: Any, b: Any, weights: Any) -> Any:
        return (jnp.pad(a, ((0, 0), (23, 1))) - b * jnp.float16(0.1)) @ weights

    return program, tuple(struct(1024, size, dtype="float16") for size in (1000, 1024, 1024))


def product_padded() -> Program:
    """A product of 64 x 64 halves padded by a constant to 5000 columns, plus an input."""
    import jax.numpy as jnp

    def program(a: Any, weights: Any, b: Any) -> Any:
        return jnp.pad(a @ weights, ((0, 0), (4935, 1)), constant_values=64) + b

    return program, tuple(struct(64, size, dtype="float16") for size in (64, 64, 5000))


def broadcast_products() -> Program:
    """A row broadcast to a square times weights, then a square times that."""
    import jax.numpy as jnp

    def program(row: Any, square: Any, weights: Any) -> Any:
        return square @ (jnp.broadcast_to(row, (1024, 1024)) @ weights)

    half = [struct(1024, dtype="float16"), *[struct(1024, 1024, dtype="float16")] * 2]
    return program, tuple(half)


def broadcast_convolutions() -> Program:
    """Two convolutions of 2 x 2 over 256 x 256 pixels, input and filter broadcast from two floats."""
    import jax
    import jax.numpy as jnp

    def program(x: Any) -> Any:
        image, filters = jnp.broadcast_to(x, (2, 256, 256, 2)), jnp.broadcast_to(x, (2, 2, 2, 2))
        for _ in range(2):
            image = jax.lax.conv_general_dilated(
                image, filters, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        return image

    return program, (struct(2),)


def constant_norms() -> Program:
    """Two batch norms over 65,536 channels by the moments of the first, scale and offset broadcast; their sum."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def batch_normalization(value: Any, mean: Any, variance: Any, offset: Any, scale: Any) -> Any:
        return (value - mean) / jnp.sqrt(variance + 1e-3).astype(value.dtype) * scale + offset

    def program(x: Any, y: Any, z: Any) -> Any:
        scale = jnp.broadcast_to(z, (65536,))
        mean, variance = jnp.mean(x, axis=(0, 1, 2)), jnp.var(x, axis=(0, 1, 2))
        norms = [batch_normalization(value, mean, variance, scale, scale) for value in (x, y)]
        return norms[0] + norms[1]

    image = struct(1, 1, 1, 65536, dtype="float16")
    return program, (image, image, struct(1, dtype="float16"))


def serial_product() -> Program:
    """A product in six slices of rows, put together and added to an input, in halves."""
    import jax.numpy as jnp

    def program(x: Any, y: Any, z: Any) -> Any:
        rows = y.shape[0] // 6
        return x + jnp.concatenate([y[part * rows : (part + 1) * rows] @ z for part in range(6)])

    return program, tuple(struct(*shape, dtype="float16") for shape in ((30522, 768), (30522, 128), (128, 768)))


def many_variables() -> Program:
    """All weights of 21 dense layers set to their initial values."""
    import jax.numpy as jnp

    shapes = [(50176, 1400), *[(1400, 1400)] * 19, (1400, 4)]

    def program(value: Any) -> Any:
        return tuple(jnp.broadcast_to(value, shape) for shape in shapes)

    return program, (struct(dtype="float16"),)


def product_updated() -> Program:
    """A product of 1024 x 16 by 16 x 16 floats, to whose rows 1024 rows are added at given places."""

    def program(table: Any, x: Any, updates: Any, indices: Any) -> Any:
        return (table @ x).at[indices].add(updates)

    return program, (struct(1024, 16), struct(16, 16), struct(1024, 16), struct(1024, dtype="int32"))


def host_rows_dien(*, rows: int = 4096, width: int = 20) -> Program:
    """4096 rows of 20 floats from a table of the host, and back to it."""
    return _host_rows(rows, width)


def host_rows_agi(*, rows: int = 1024, width: int = 800) -> Program:
    """1024 rows of 800 floats from a table of the host, and back to it."""
    return _host_rows(rows, width)


def _host_rows(rows: int, width: int) -> Program:
    def program(found: Any, indices: Any) -> Any:
        return found, indices

    return program, (struct(rows, width), struct(rows, dtype="int32"))


def batched_sums() -> Program:
    """Eight turns of a loop that adds two vectors of 4 floats; every fourth time the last four sums leave."""
    return _batched(lambda a, b: (a + b, a, a + b), (4,), (4,))


def batched_products() -> Program:
    """Eight turns of a loop with a product of 1024 x 256 and 256 x 512 floats; every fourth time four of them leave."""
    return _batched(lambda a, b: (a, b, a @ b), (1024, 256), (256, 512))


def _batched(step: Any, *shapes: tuple[int, ...]) -> Program:
    """A buffer of four results, as an outfeed of that time had with `io_batch_size`: updated by a counter of slots.

    Source: graphcore/tensorflow, branch r2.1/sdk-release-2.0, tensorflow/compiler/plugin/poplar/driver/ops/feed_ops.cc.
    """
    import jax
    import jax.numpy as jnp

    count = 4

    def program(a: Any, b: Any) -> Any:
        made = jax.eval_shape(step, a, b)[2]

        def turn(number: Any, carried: Any) -> Any:
            a, b, kept = carried
            a, b, result = step(a, b)
            slot = (number % count, *(0,) * result.ndim)
            return a, b, jax.lax.dynamic_update_slice(kept, result[None], slot)

        return jax.lax.fori_loop(0, 8, turn, (a, b, jnp.zeros((count, *made.shape), made.dtype)))

    return program, tuple(struct(*shape) for shape in shapes)


def solve_lower(**sizes: int) -> Program:
    """A lower triangular system of 64 unknowns, 64 right sides."""
    return _solve(lower=True, adjoint=False, **sizes)


def solve_lower_adjoint(**sizes: int) -> Program:
    """The adjoint of a lower triangular system."""
    return _solve(lower=True, adjoint=True, **sizes)


def solve_upper(**sizes: int) -> Program:
    """An upper triangular system."""
    return _solve(lower=False, adjoint=False, **sizes)


def solve_upper_adjoint(**sizes: int) -> Program:
    """The adjoint of an upper triangular system."""
    return _solve(lower=False, adjoint=True, **sizes)


def _solve(*, lower: bool, adjoint: bool, unknowns: int = 64, right: int = 64) -> Program:
    import jax

    def program(a: Any, b: Any) -> Any:
        return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, transpose_a=adjoint)

    return program, (struct(unknowns, unknowns), struct(unknowns, right))


def perceptron(*, batch: int, training: bool) -> tuple[Any, dict[str, Any]]:
    """Three dense layers of 32, 64 and 64 on 50,176 inputs, in halves."""
    import keras

    layers = [keras.layers.Dense(size, activation="relu", dtype="float16") for size in (32, 64, 64)]
    model = keras.Sequential([keras.Input((112 * 112 * 4,), dtype="float16"), *layers], name="perceptron")
    return model, _arguments("sgd" if training else "", batch)


def residual(*, rule: str, accumulated: int = 1) -> tuple[Any, dict[str, Any]]:
    """A convolution of 7 x 7 / 2, pooling, two residual blocks of 64, a maximum over the image and 1000 classes."""
    import keras
    from keras import layers

    def convolution(x: Any, size: int, stride: int) -> Any:
        return layers.Conv2D(64, size, strides=stride, padding="same", dtype="float16")(x)

    images = keras.Input((224, 224, 4), dtype="float16")
    x = layers.ReLU(dtype="float16")(convolution(images, 7, 2))
    x = layers.MaxPooling2D(3, strides=2, padding="same", dtype="float16")(x)
    for _ in range(2):
        inner = convolution(layers.ReLU(dtype="float16")(convolution(x, 3, 1)), 3, 1)
        x = layers.ReLU(dtype="float16")(layers.Add(dtype="float16")([inner, x]))
    x = layers.GlobalMaxPooling2D(dtype="float16")(x)
    model = keras.Model(images, layers.Dense(1000, dtype="float16")(x), name="residual")
    return model, _arguments(rule, 1) | {"gradient_accumulation_steps": accumulated}


def _arguments(rule: str, batch: int) -> dict[str, Any]:
    import keras

    if not rule:
        return {"mode": "inference", "batch_size": batch}
    momentum = 0.9 if rule == "momentum" else 0.0
    return {
        "mode": "training",
        "batch_size": batch,
        "optimizer": keras.optimizers.SGD(0.01, momentum=momentum),
        "loss": keras.losses.CategoricalCrossentropy(from_logits=True),
    }
