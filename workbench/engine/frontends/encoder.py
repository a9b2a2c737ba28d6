"""Keras layers of the ready transformers: an encoder block, and learned positions."""

from __future__ import annotations

from typing import Any

import keras

NORM_EPSILON = 1e-12  # BERT's; google-research/bert modeling.py layer_norm


class EncoderBlock(keras.layers.Layer):  # type: ignore[misc]
    """Attention and feed-forward with GELU, each followed by addition and layer normalisation (post-norm).

    Input and output: [batch, sequence, hidden]. The feed-forward width is four times `hidden`.
    """

    def __init__(self, hidden: int, heads: int, **options: Any) -> None:
        super().__init__(**options)
        self.hidden = hidden
        self.heads = heads
        policy = self.dtype_policy
        self.attention = keras.layers.MultiHeadAttention(heads, hidden // heads, name="attention", dtype=policy)
        self.attention_norm = keras.layers.LayerNormalization(
            epsilon=NORM_EPSILON, name="attention_norm", dtype=policy
        )
        self.intermediate = keras.layers.Dense(4 * hidden, activation="gelu", name="intermediate", dtype=policy)
        self.output_dense = keras.layers.Dense(hidden, name="output", dtype=policy)
        self.output_norm = keras.layers.LayerNormalization(epsilon=NORM_EPSILON, name="output_norm", dtype=policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Make the weights of the parts."""
        self.attention.build(input_shape, input_shape)
        self.attention_norm.build(input_shape)
        self.intermediate.build(input_shape)
        self.output_dense.build((*input_shape[:-1], 4 * self.hidden))
        self.output_norm.build(input_shape)

    def call(self, x: Any) -> Any:
        """One block."""
        x = self.attention_norm(x + self.attention(x, x))
        return self.output_norm(x + self.output_dense(self.intermediate(x)))

    def get_config(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {**super().get_config(), "hidden": self.hidden, "heads": self.heads}


class PositionEmbedding(keras.layers.Layer):  # type: ignore[misc]
    """Adds a learned vector per position: [batch, sequence, hidden] to the same."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.positions: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Make the table of positions."""
        self.positions = self.add_weight(name="embeddings", shape=input_shape[1:], initializer="uniform")

    def call(self, x: Any) -> Any:
        """Add the table."""
        return x + self.positions
