"""Layers that change no value: what replicas have alike, and what recomputation keeps."""

from __future__ import annotations

from typing import Any

import jax
import keras
from jax.ad_checkpoint import checkpoint_name

from workbench.engine.frontends.describe.name_stack import CHECKPOINT
from workbench.ipu._replicas import copied
from workbench.ipu.keras.layers._given import Layer, check, for_keras


@keras.saving.register_keras_serializable(package="ipu")
class AssumeEqualAcrossReplicas(Layer):
    """The inputs, a tensor or lists of them, as values that are the same in every replica.

    `inplace`: False copies them, as a slice of a tensor needs. Conditions on what replicas may have otherwise are not
    refused by this compiler, so that nothing else changes.
    """

    def __init__(self, inplace: bool = False, **kwargs: Any) -> None:
        check(inplace=inplace)
        super().__init__(**for_keras(self, kwargs))
        self.inplace = inplace

    def call(self, inputs: Any) -> Any:
        """The inputs, or copies of them."""
        return inputs if self.inplace else jax.tree_util.tree_map(copied, inputs)

    def compute_output_spec(self, inputs: Any) -> Any:
        """Shapes and types of the inputs."""
        return jax.tree_util.tree_map(lambda each: keras.KerasTensor(each.shape, each.dtype), inputs)

    def get_config(self) -> dict[str, Any]:
        """What makes the layer again."""
        return {**super().get_config(), "inplace": self.inplace}


@keras.saving.register_keras_serializable(package="ipu")
class RecomputationCheckpoint(Layer):
    """The inputs, kept in memory where other activations are computed again: see `RecomputationMode`.

    It shortens what has to be computed, and live, at once before a backward pass. Without recomputation it has no
    effect.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**for_keras(self, kwargs))

    def call(self, inputs: Any) -> Any:
        """The inputs."""
        return jax.tree_util.tree_map(lambda each: checkpoint_name(each, CHECKPOINT), inputs)

    def compute_output_spec(self, inputs: Any) -> Any:
        """Shapes and types of the inputs."""
        return jax.tree_util.tree_map(lambda each: keras.KerasTensor(each.shape, each.dtype), inputs)


__all__ = ["AssumeEqualAcrossReplicas", "RecomputationCheckpoint"]
