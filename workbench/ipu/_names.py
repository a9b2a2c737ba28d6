"""Which public module of this API is where. Modules are found when they are first used."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def modules(package: str) -> list[str]:
    """Public modules of a package of this API, without loading them."""
    found = importlib.import_module(package).__path__
    return sorted(info.name for info in pkgutil.iter_modules(found) if not info.name.startswith("_"))


def find(package: str, name: str) -> ModuleType:
    """A public module of a package, or an `AttributeError` that lists those it has."""
    # The modules of `ops` are found in `ipu` too, as in the SDK: ipu.pipelining_ops is ipu.ops.pipelining_ops.
    places = (package, "workbench.ipu.ops") if package == "workbench.ipu" else (package,)
    for place in places if not name.startswith("_") else ():
        if name in modules(place):
            return importlib.import_module(f"{place}.{name}")
    raise AttributeError(f"module {package!r} has no attribute {name!r}; it has: {', '.join(modules(package))}")


__all__ = ["find", "modules"]
