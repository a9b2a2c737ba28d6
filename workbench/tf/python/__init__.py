"""`tensorflow.python`: the modules whose names programs for the IPU import from. Tests: tests/tf/test_programs.py."""

from __future__ import annotations

from typing import Any

from workbench.tf.python import _imports, client, data, framework, ops, training

_imports.install()


def __getattr__(name: str) -> Any:
    if f"{__name__}.{name}" in _imports.KNOWN:
        return _imports.KNOWN[f"{__name__}.{name}"]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["client", "data", "framework", "ipu", "keras", "ops", "training"]
