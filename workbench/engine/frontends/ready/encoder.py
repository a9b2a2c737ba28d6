"""Keras layers of the ready transformers: encoder blocks of language and of vision, and learned positions."""

from __future__ import annotations

from typing import Any

import jax
import keras

NORM_EPSILON = 1e-12  # BERT's; google-research/bert modeling.py layer_norm
VISION_EPSILON = 1e-6  # google-research/vision_transformer vit_jax/models_vit.py


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
        self.attention_norm = keras.layers.LayerNormalization(epsilon=NORM_EPSILON, name="attention_norm", dtype=policy)
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
        """One block.

        Asked for its scores, the layer computes them and their softmax in its own type, as BERT does (google-research/
        bert modeling.py attention_layer); unasked it goes through JAX's attention, whose scores are float32. The
        gradient of the softmax is computed from its result, as by TensorFlow and PopLibs (poplibs@7eac0f26 lib/popnn/
        NonLinearity.cpp); JAX's own keeps the exponentials besides.
        """
        with jax.softmax_custom_jvp(True):
            attended, _ = self.attention(x, x, return_attention_scores=True)
        x = self.attention_norm(x + attended)
        return self.output_norm(x + self.output_dense(self.intermediate(x)))

    def get_config(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {**super().get_config(), "hidden": self.hidden, "heads": self.heads}


class PreNormBlock(keras.layers.Layer):  # type: ignore[misc]
    """Attention and feed-forward with GELU, each behind a layer normalisation and added (pre-norm).

    Input and output: [batch, sequence, hidden]. The feed-forward width is four times `hidden`. `epsilon` is that of
    both norms, `activation` GELU in the form its model has it; with `causal` a position sees those before it only.
    """

    epsilon: float
    activation: Any = "gelu"
    causal = False

    def __init__(self, hidden: int, heads: int, **options: Any) -> None:
        super().__init__(**options)
        self.hidden = hidden
        self.heads = heads
        policy = self.dtype_policy
        self.attention_norm = keras.layers.LayerNormalization(epsilon=self.epsilon, name="attention_norm", dtype=policy)
        self.attention = keras.layers.MultiHeadAttention(heads, hidden // heads, name="attention", dtype=policy)
        self.feed_forward_norm = keras.layers.LayerNormalization(
            epsilon=self.epsilon, name="feed_forward_norm", dtype=policy
        )
        self.intermediate = keras.layers.Dense(
            4 * hidden, activation=self.activation, name="intermediate", dtype=policy
        )
        self.output_dense = keras.layers.Dense(hidden, name="output", dtype=policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Make the weights of the parts."""
        self.attention_norm.build(input_shape)
        self.attention.build(input_shape, input_shape)
        self.feed_forward_norm.build(input_shape)
        self.intermediate.build(input_shape)
        self.output_dense.build((*input_shape[:-1], 4 * self.hidden))

    def call(self, x: Any) -> Any:
        """One block."""
        normed = self.attention_norm(x)
        x = x + self.attention(normed, normed, use_causal_mask=self.causal)
        return x + self.output_dense(self.intermediate(self.feed_forward_norm(x)))

    def get_config(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {**super().get_config(), "hidden": self.hidden, "heads": self.heads}


class VisionBlock(PreNormBlock):
    """A block of ViT, whose positions are patches."""

    epsilon = VISION_EPSILON


class PositionEmbedding(keras.layers.Layer):  # type: ignore[misc]
    """Adds a learned vector per position: [batch, sequence, hidden] to the same.

    With `class_token` a learned vector that stands for the whole comes first: [batch, 1 + sequence, hidden].
    """

    def __init__(self, class_token: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.class_token = class_token
        self.first: Any = None
        self.positions: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Make the table of positions, and the first vector."""
        length, hidden = int(input_shape[1] or 0), input_shape[2]
        if self.class_token:
            length += 1
            self.first = self.add_weight(name="class_token", shape=(1, 1, hidden), initializer="zeros")
        self.positions = self.add_weight(name="embeddings", shape=(length, hidden), initializer="uniform")

    def call(self, x: Any) -> Any:
        """Add the table."""
        if self.class_token:
            first = keras.ops.broadcast_to(self.first, (keras.ops.shape(x)[0], 1, x.shape[2]))
            x = keras.ops.concatenate([first, x], axis=1)
        return x + self.positions

    def get_config(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {**super().get_config(), "class_token": self.class_token}
