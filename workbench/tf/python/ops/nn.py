"""`tensorflow.python.ops.nn`: layers as functions."""

from __future__ import annotations

from typing import Any

from workbench.tf._ops.nn import FUNCTIONS


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
