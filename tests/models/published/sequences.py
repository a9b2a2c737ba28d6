"""Sequences: a Mixture of Experts with a switch, and a selective scan."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras
from jax import lax
from keras import layers, ops


class Switch(layers.Layer):
    """Each token to the expert of its largest gate, as many as fit an expert's capacity."""

    def __init__(self, experts: int, wide: int, *, capacity: float = 1.25, **options: Any) -> None:
        super().__init__(**options)
        self.experts, self.wide, self.capacity = experts, wide, capacity

    def build(self, shape: Any) -> None:
        self.room = int(self.capacity * shape[1] / self.experts)
        self.gate = self.add_weight(shape=(shape[-1], self.experts), name="gate")
        self.up = self.add_weight(shape=(self.experts, shape[-1], self.wide), name="up")
        self.down = self.add_weight(shape=(self.experts, self.wide, shape[-1]), name="down")

    def call(self, x: Any) -> Any:
        gates = ops.softmax(ops.matmul(x, self.gate))
        chosen = ops.one_hot(ops.argmax(gates, axis=-1), self.experts, dtype=x.dtype)
        place = ops.cumsum(ops.cast(chosen, "float32"), axis=1) * ops.cast(chosen, "float32")
        place = ops.cast(ops.sum(place, axis=-1) - 1, "int32")
        sent = ops.einsum("bte,btc->btec", chosen, ops.one_hot(place, self.room, dtype=x.dtype))
        y = ops.einsum("btec,btd->ebcd", sent, x)
        y = ops.einsum("ebcd,edf->ebcf", y, self.up)
        y = ops.einsum("ebcf,efd->ebcd", ops.relu(y), self.down)
        weighted = sent * ops.expand_dims(gates, -1)
        return ops.einsum("btec,ebcd->btd", weighted, y)


def switch_base(experts: int = 8, blocks: int = 12, length: int = 512) -> Any:
    """Fedus et al. 2022, table 9: layers of T5-Base (768, 12 heads, 3072 wide), every other one of experts."""
    tokens = keras.Input((length, 768))
    x = tokens
    for i in range(blocks):
        y = layers.LayerNormalization(name=f"block_{i}_norm_1")(x)
        x = layers.Add(name=f"block_{i}_add_1")(
            [x, layers.MultiHeadAttention(12, 64, name=f"block_{i}_attention")(y, y)]
        )
        y = layers.LayerNormalization(name=f"block_{i}_norm_2")(x)
        if i % 2:
            y = Switch(experts, 3072, name=f"block_{i}_experts")(y)
        else:
            y = layers.Dense(768, name=f"block_{i}_narrow")(layers.Dense(3072, "relu", name=f"block_{i}_wide")(y))
        x = layers.Add(name=f"block_{i}_add_2")([x, y])
    return keras.Model(tokens, layers.Dense(10, "softmax", name="head")(x[:, 0]))


def mamba_weights(depth: int, width: int = 768, state: int = 16) -> dict[str, Any]:
    """Shapes of Mamba-130M's blocks (Gu and Dao 2023, table 12: 24 blocks of 768, expanded twice, a state of 16)."""
    inner, rank = 2 * width, width // 16
    shapes = {
        "norm": (width,),
        "into": (width, 2 * inner),
        "conv": (4, inner),
        "select": (inner, rank + 2 * state),
        "step": (rank, inner),
        "a": (inner, state),
        "d": (inner,),
        "out": (inner, width),
    }
    return {name: jax.ShapeDtypeStruct((depth, *shape), jnp.float16) for name, shape in shapes.items()}


def mamba(weights: Any, x: Any) -> Any:
    """Blocks of a selective state space over `x` (batch, length, width), in turn; algorithm 2 of the paper."""

    def block(x: Any, w: Any) -> Any:
        inner, state = w["a"].shape
        rank = w["step"].shape[0]
        y = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-3) * w["norm"]
        y, gate = jnp.split(y @ w["into"], 2, axis=-1)
        padded = jnp.pad(y, ((0, 0), (3, 0), (0, 0)))
        y = jax.nn.silu(sum(padded[:, i : i + y.shape[1]] * w["conv"][i] for i in range(4)))
        delta, b, c = jnp.split(y @ w["select"], [rank, rank + state], axis=-1)
        delta = jax.nn.softplus(delta @ w["step"])

        def turn(h: Any, now: Any) -> Any:
            delta, b, c, y = now
            h = jnp.exp(-delta[..., None] * jnp.exp(w["a"])) * h + (delta * y)[..., None] * b[:, None, :]
            return h, jnp.sum(h * c[:, None, :], -1)

        start = jnp.zeros((x.shape[0], inner, state), x.dtype)
        _, scanned = lax.scan(turn, start, tuple(jnp.swapaxes(each, 0, 1) for each in (delta, b, c, y)))
        y = (jnp.swapaxes(scanned, 0, 1) + y * w["d"]) * jax.nn.silu(gate)
        return x + y @ w["out"], None

    return lax.scan(block, x, weights)[0]
