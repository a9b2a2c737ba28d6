"""`tensorflow.python.ipu.keras.layers`: Keras layers as PopLibs computes them.

Tests: tests/ipu/layers.
"""

from __future__ import annotations

from typing import Any

from workbench.ipu import _names
from workbench.ipu.keras.layers.dropout import Dropout
from workbench.ipu.keras.layers.embedding import Embedding
from workbench.ipu.keras.layers.marks import AssumeEqualAcrossReplicas, RecomputationCheckpoint
from workbench.ipu.keras.layers.norms import GroupNormalization, InstanceNormalization, LayerNormalization

GroupNorm, InstanceNorm, LayerNorm = GroupNormalization, InstanceNormalization, LayerNormalization


def __getattr__(name: str) -> Any:
    raise _names.absent(__name__, name)


__all__ = [
    "AssumeEqualAcrossReplicas",
    "Dropout",
    "Embedding",
    "GroupNorm",
    "GroupNormalization",
    "InstanceNorm",
    "InstanceNormalization",
    "LayerNorm",
    "LayerNormalization",
    "RecomputationCheckpoint",
]
