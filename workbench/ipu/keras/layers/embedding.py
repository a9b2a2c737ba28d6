"""Look-ups in a table of vectors: a multi-slice, and a multi-update of the table where it trains."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from workbench.base.text import short
from workbench.base.whole import MOST_EXACT, whole
from workbench.errors import InputError
from workbench.ipu.keras.layers._given import Layer, for_keras, initializer


@keras.saving.register_keras_serializable(package="ipu")
class Embedding(Layer):
    """Vectors of a table by their numbers: [batch, length] becomes [batch, length, output_dim].

    `input_dim`: rows of the table; `output_dim`: the size of each; `embeddings_initializer`: a Keras initializer or its
    name. Errors: `InputError` for sizes that are none, and for inputs of another rank or of a type that counts nothing.
    """

    def __init__(self, input_dim: int, output_dim: int, embeddings_initializer: Any = "uniform", **kwargs: Any) -> None:
        rows = whole("input_dim", input_dim, most=MOST_EXACT)
        size = whole("output_dim", output_dim, most=MOST_EXACT)
        super().__init__(**{"autocast": False, **for_keras(self, kwargs)})
        self.input_dim, self.output_dim = rows, size
        self.embeddings_initializer = initializer("embeddings_initializer", embeddings_initializer)

    def build(self, input_shape: Any) -> None:
        """Make the table, for inputs of this shape."""
        if len(input_shape) != 2:
            raise InputError(f"inputs have shape {tuple(input_shape)}", expected="(batch, length)")
        self.embeddings = self.add_weight(
            name="embeddings", shape=(self.input_dim, self.output_dim), initializer=self.embeddings_initializer
        )
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """The rows of the table that the inputs name; the same in training and in inference."""
        if "int" not in str(inputs.dtype):
            raise InputError(
                f"inputs {short(inputs)} are of type {inputs.dtype}",
                expected="whole numbers",
                todo='give them so, such as keras.Input(shape, dtype="int32")',
            )
        return ops.take(ops.cast(self.embeddings, self.compute_dtype), inputs, axis=0)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """That of the inputs, with the size of a row behind."""
        return (*input_shape, self.output_dim)

    def get_config(self) -> dict[str, Any]:
        """What makes the layer again."""
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }


__all__ = ["Embedding"]
