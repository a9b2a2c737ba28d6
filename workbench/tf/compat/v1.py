"""`tensorflow.compat.v1`: the same names; sessions and placeholders are there either way."""

from __future__ import annotations

from typing import Any

from workbench.tf import _names


def __getattr__(name: str) -> Any:
    return _names.find("workbench.tf.compat.v1", name)


def __dir__() -> list[str]:
    return sorted(_names.PUBLIC)
