"""`tf.keras`: Keras itself, by the import paths that programs for TensorFlow use; `ipu` is `workbench.ipu.keras`.

Tests: tests/ipu/strategy.
"""

from __future__ import annotations

import sys
from typing import Any

import keras

from workbench.tf import _hooks
from workbench.tf.python import _imports

_imports.install()

# `from workbench.tf.keras.applications.resnet50 import …` finds Keras' own modules, not second ones of the same files.
for _name, _module in list(sys.modules.items()):
    if _name.startswith("keras.") and not _name.startswith("keras.src"):
        sys.modules[f"{__name__}.{_name.removeprefix('keras.')}"] = _module


def __getattr__(name: str) -> Any:
    return _hooks.ipu.get().keras if name == "ipu" else getattr(keras, name)


def __dir__() -> list[str]:
    return dir(keras)
