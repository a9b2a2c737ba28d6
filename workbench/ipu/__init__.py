"""The API of `tensorflow.python.ipu`, module for module. Modules are loaded when first used.

`config` and, above it, `devices` stand below `tf`, which reads them; all else here stands above `tf` and records on its
graphs. `_pipeline` makes a program of a recorded pipeline, `_files` reads and writes what programs leave on disk.
Tests: tests/ipu, by behaviour; tests/ipu/effects shows what every option changes.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.ipu import config, devices, utils


def _modules(package: str) -> list[str]:
    """Public modules of a package of this API, without loading them."""
    found = importlib.import_module(package).__path__
    return sorted(info.name for info in pkgutil.iter_modules(found) if not info.name.startswith("_"))


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'workbench.ipu' has no attribute {name!r}")
    own = _modules("workbench.ipu")
    if name in own:
        return importlib.import_module(f"workbench.ipu.{name}")
    # The modules of `ops` are found here too, as in the SDK: ipu.pipelining_ops is ipu.ops.pipelining_ops.
    if "ops" in own and name in _modules("workbench.ipu.ops"):
        return importlib.import_module(f"workbench.ipu.ops.{name}")
    raise AttributeError(f"module 'workbench.ipu' has no attribute {name!r}; it has: {', '.join(own)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules("workbench.ipu")})


__all__ = ["config", "devices", "utils"]
