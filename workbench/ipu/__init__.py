"""The API of `tensorflow.python.ipu`, module for module. Modules are loaded when first used.

`config` and, above it, `devices` stand below `tf`, which reads them; all else here stands above `tf` and records on its
graphs. `_pipeline` makes a program of a recorded pipeline, `_files` reads and writes what programs leave on disk.
Tests: tests/ipu, by behaviour; tests/ipu/effects shows what every option changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.ipu import _names

if TYPE_CHECKING:
    from workbench.ipu import config, devices, utils


def __getattr__(name: str) -> Any:
    return _names.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_names.modules(__name__)})


__all__ = ["config", "devices", "utils"]
