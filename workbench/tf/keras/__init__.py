"""`tf.keras`: Keras itself, by the import paths that programs for TensorFlow use. Tests: tests/ipu/strategy."""

from __future__ import annotations

from typing import Any

import keras

__path__ = list(keras.__path__)  # `from workbench.tf.keras.applications.resnet50 import …` finds Keras' own modules


def __getattr__(name: str) -> Any:
    return getattr(keras, name)


def __dir__() -> list[str]:
    return dir(keras)
