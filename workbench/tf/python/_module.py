"""A module of `tensorflow.python` as the names of `tf` it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.tf import _names


def names_of(module: str) -> Callable[[str], Any]:
    """A `__getattr__` for a module that holds names of `tf`."""
    return lambda name: _names.find(module, name)
