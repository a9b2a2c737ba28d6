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

_names.also_absent(
    __name__,
    {
        **dict.fromkeys(("CTCInferenceLayer", "CTCPredictionsLayer"), "use keras.ops.ctc_decode"),
        "CTCLoss": "use keras.losses.CTC",
        "EffectiveTransformer": "use keras.layers.MultiHeadAttention",
        **dict.fromkeys(("GRU", "PopnnGRU"), "use keras.layers.GRU"),
        **dict.fromkeys(("LSTM", "PopnnLSTM"), "use keras.layers.LSTM"),
        "SerialDense": "use keras.layers.Dense, whose product IPUConfig.matmuls.poplar_options can plan in less memory",
    },
)


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
