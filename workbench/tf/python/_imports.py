"""Imports by the paths that the SDK's programs write, of `workbench.ipu`, its `keras`, and Keras.

`from workbench.tf.python.ipu.config import IPUConfig` is given the module itself and no second one of its own state.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from workbench.tf import _hooks

# Where programs look for a module, and the module itself.
KNOWN: Mapping[str, Callable[[], Any]] = {
    "workbench.tf.keras.ipu": lambda: _hooks.ipu.get().keras,
    "workbench.tf.python.ipu": _hooks.ipu.get,
    "workbench.tf.python.keras": lambda: importlib.import_module("keras"),
}


@dataclass(frozen=True, slots=True)
class _Known:
    """Loads a module that there is already: under the name asked for Python finds that one."""

    module: ModuleType

    def create_module(self, spec: ModuleSpec) -> None:
        """None: Python makes an empty one, which nobody keeps."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the known one in its place."""
        sys.modules[module.__name__] = self.module


class Imports:
    """Asked first for a module that is elsewhere, and those below it."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Where it is; the error of `workbench.ipu` for what is not there, which says what stands in where it knows."""
        below = next((each for each in KNOWN if f"{fullname}.".startswith(f"{each}.")), None)
        if below is None:
            return None
        found: Any = KNOWN[below]()
        for name in fullname.removeprefix(below).split(".")[1:]:
            found = _below(found, name)
        return ModuleSpec(fullname, _Known(found)) if isinstance(found, ModuleType) else None  # type: ignore[arg-type]


def _below(module: ModuleType, name: str) -> Any:
    """A module of a module; the error of importing one that is not there."""
    try:
        return getattr(module, name)
    except AttributeError:
        return importlib.import_module(f"{module.__name__}.{name}")


def install() -> None:
    """Ask here, before those who would find its files and load them again."""
    if Imports not in sys.meta_path:
        sys.meta_path.insert(0, Imports)
