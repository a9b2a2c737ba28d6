"""`tensorflow.python.ipu.keras`: extensions of Keras' models for the IPU. Names are loaded when first used.

`_extensions` holds what a model made in a strategy's scope has besides, `_execution` what it compiles and runs;
`layers` are layers as PopLibs computes them. Tests: tests/ipu/strategy.
"""

from __future__ import annotations

import importlib
from typing import Any

from workbench.base.text import no_attribute

_WHERE = {
    "FunctionalLayerPipelineStageAssignment": "_extensions.assignment",
    "ModelLayerPipelineStageAssignment": "_extensions.assignment",
    "PipelineStage": "_extensions.assignment",
    "SequentialLayerPipelineStageAssignment": "_extensions.assignment",
    "FunctionalExtension": "_extensions.base",
    "ModelExtension": "_extensions.base",
    "ReplicatedMetricReductionMethod": "_extensions.options",
    "SequentialExtension": "_extensions.base",
    "IPUModel": "_extensions.of_2_1",
    "IPUSequential": "_extensions.of_2_1",
    "Model": "_extensions.of_2_1",
    "PipelineModel": "_extensions.of_2_1",
    "PipelineSequential": "_extensions.of_2_1",
    "Sequential": "_extensions.of_2_1",
}


def __getattr__(name: str) -> Any:
    if name == "layers":
        return importlib.import_module("workbench.ipu.keras.layers")
    if name in _WHERE:
        return getattr(importlib.import_module(f"workbench.ipu.keras.{_WHERE[name]}"), name)
    raise no_attribute(f"module {__name__!r}", name, __dir__())


def __dir__() -> list[str]:
    """What the SDK has here and nothing else, so that completion offers no helper of ours."""
    return sorted({*(each for each in globals() if each.startswith("__")), *_WHERE, "layers"})
