"""`tensorflow.python`: the modules whose names programs for the IPU import from. Tests: tests/tf/test_programs.py."""

from __future__ import annotations

from typing import Any

from workbench.tf import _hooks
from workbench.tf.python import _imports, framework, ops, training

_imports.install()


def __getattr__(name: str) -> Any:
    if name == "ipu":
        return _hooks.ipu.get()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["framework", "ipu", "ops", "training"]
