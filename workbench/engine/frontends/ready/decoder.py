"""Keras layers of the ready decoders: GPT-2's block, a Llama block with rotary positions, and one with its cache."""

from __future__ import annotations

from typing import Any

import keras

from workbench.base.arrays import ceil_div
from workbench.engine.frontends.ready.encoder import PreNormBlock

GPT2_EPSILON = 1e-5  # openai/gpt-2 src/model.py norm
LLAMA_EPSILON = 1e-5  # meta-llama/llama model.py ModelArgs
ROTARY_BASE = 10000.0  # Su et al., "RoFormer", 2021


def _gelu(x: Any) -> Any:
    """GELU by its tangent, as GPT-2 has it."""
    return keras.activations.gelu(x, approximate=True)


class DecoderBlock(PreNormBlock):
    """A block of GPT-2: causal, with GELU by its tangent."""

    epsilon = GPT2_EPSILON
    activation = staticmethod(_gelu)
    causal = True


class TiedHead(keras.layers.Layer):  # type: ignore[misc]
    """Scores of every token by the table of an embedding: [batch, sequence, hidden] to [batch, sequence, tokens]."""

    def __init__(self, embedding: Any, **options: Any) -> None:
        super().__init__(**options)
        self.embedding = embedding

    def call(self, x: Any) -> Any:
        """The product with the transposed table."""
        table = keras.ops.cast(self.embedding.embeddings, x.dtype)
        return keras.ops.matmul(x, keras.ops.transpose(table))


def rotate(x: Any, positions: Any) -> Any:
    """Rotary positions: halves of each head turned by angles that grow with the position.

    `x`: [batch, sequence, heads, size]; `positions`: [sequence].
    """
    half = x.shape[-1] // 2
    frequencies = keras.ops.power(ROTARY_BASE, -keras.ops.arange(half, dtype="float32") / half)
    angles = keras.ops.cast(positions, "float32")[:, None] * frequencies[None, :]
    cosine = keras.ops.cast(keras.ops.cos(angles), x.dtype)[None, :, None, :]
    sine = keras.ops.cast(keras.ops.sin(angles), x.dtype)[None, :, None, :]
    first, second = x[..., :half], x[..., half:]
    return keras.ops.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


class LlamaAttention(keras.layers.Layer):  # type: ignore[misc]
    """Causal attention with rotary positions: [batch, sequence, hidden] to the same.

    With `cache_length`, one step of some tokens: keys and values of those before are kept in two states of
    [batch, cache_length, heads, size], and a third says how many there are.
    """

    def __init__(self, heads: int, cache_length: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.heads = heads
        self.cache_length = cache_length
        self.keys: Any = None
        self.values: Any = None
        self.position: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Make the projections, and the cache if there is one."""
        batch, _, hidden = input_shape
        size = int(hidden or 0) // self.heads
        policy = self.dtype_policy
        for name in ("query", "key", "value"):
            layer = keras.layers.EinsumDense("abc,cde->abde", (None, self.heads, size), name=name, dtype=policy)
            layer.build(input_shape)
            setattr(self, name, layer)
        self.output_dense = keras.layers.EinsumDense("abcd,cde->abe", (None, hidden), name="output", dtype=policy)
        self.output_dense.build((batch, None, self.heads, size))
        if self.cache_length:
            shape = (batch, self.cache_length, self.heads, size)
            self.keys, self.values = (
                self.add_weight(name=name, shape=shape, initializer="zeros", trainable=False, dtype=self.compute_dtype)
                for name in ("key_cache", "value_cache")
            )
            self.position = self.add_weight(
                name="position", shape=(), initializer="zeros", trainable=False, dtype="int32"
            )

    def call(self, x: Any) -> Any:
        """Attend to what came before."""
        positions = keras.ops.arange(x.shape[1], dtype="int32")
        if self.cache_length:
            positions = positions + self.position.value
        query, key = rotate(self.query(x), positions), rotate(self.key(x), positions)
        value = self.value(x)
        if self.cache_length:
            key, value = self._remember(self.keys, key), self._remember(self.values, value)
            self.position.assign(self.position.value + x.shape[1])
        seen = keras.ops.arange(key.shape[1], dtype="int32")[None, :] <= positions[:, None]
        attended = keras.ops.dot_product_attention(query, key, value, mask=seen[None, None])
        return self.output_dense(attended)

    def _remember(self, cache: Any, new: Any) -> Any:
        start = (0, self.position.value, 0, 0)
        cache.assign(keras.ops.slice_update(cache.value, start, keras.ops.cast(new, cache.dtype)))
        return cache.value

    def get_config(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {**super().get_config(), "heads": self.heads, "cache_length": self.cache_length}


class LlamaBlock(keras.layers.Layer):  # type: ignore[misc]
    """RMS norm, causal attention with rotary positions, RMS norm, SwiGLU; both added: [batch, sequence, hidden].

    The inner width is two thirds of four times `hidden`, rounded up to a multiple of 256 above 256, as
    meta-llama/llama model.py FeedForward has it.
    """

    def __init__(self, hidden: int, heads: int, cache_length: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.hidden = hidden
        self.heads = heads
        self.cache_length = cache_length
        policy, inner = self.dtype_policy, inner_width(hidden)
        self.attention_norm = keras.layers.RMSNormalization(epsilon=LLAMA_EPSILON, name="attention_norm", dtype=policy)
        self.attention = LlamaAttention(heads, cache_length, name="attention", dtype=policy)
        self.feed_forward_norm = keras.layers.RMSNormalization(
            epsilon=LLAMA_EPSILON, name="feed_forward_norm", dtype=policy
        )
        self.gate = keras.layers.Dense(inner, activation="silu", use_bias=False, name="gate", dtype=policy)
        self.up = keras.layers.Dense(inner, use_bias=False, name="up", dtype=policy)
        self.down = keras.layers.Dense(hidden, use_bias=False, name="down", dtype=policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Make the weights of the parts."""
        for layer in (self.attention_norm, self.attention, self.feed_forward_norm, self.gate, self.up):
            layer.build(input_shape)
        self.down.build((*input_shape[:-1], inner_width(self.hidden)))

    def call(self, x: Any) -> Any:
        """One block."""
        x = x + self.attention(self.attention_norm(x))
        normed = self.feed_forward_norm(x)
        return x + self.down(self.gate(normed) * self.up(normed))

    def get_config(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {**super().get_config(), "hidden": self.hidden, "heads": self.heads, "cache_length": self.cache_length}


def inner_width(hidden: int) -> int:
    """Width of the feed-forward of a Llama block."""
    width = 2 * 4 * hidden // 3
    return width if width <= 256 else ceil_div(width, 256) * 256
