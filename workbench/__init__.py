"""See how a model meets the IPU: `import workbench as wb`.

Importing this is light: neither Keras nor JAX is loaded, and `KERAS_BACKEND=jax` is set unless something else chose.
Public names are loaded when first used. Tests: tests/, by the same names of folders.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from workbench.base.collection import paused_collection
from workbench.base.host import late_interrupt
from workbench.base.registry import faces
from workbench.base.source import made_at
from workbench.base.text import no_attribute
from workbench.tf import _hooks

if not os.environ.get("KERAS_BACKEND"):  # of an empty one Keras takes another
    os.environ["KERAS_BACKEND"] = "jax"
made_at.watch()
faces.found_in("workbench.widgets.views", "workbench.widgets.page", in_any_order=True)
# `tf` stands below what compiles its programs and below `ipu`; the package knows them all, and loads them when asked.
_hooks.compiler.set(lambda: importlib.import_module("workbench.executable").compile_traced)
_hooks.operators.set(lambda: importlib.import_module("workbench.tf._ops.math").OPERATORS)
_hooks.ipu.set(lambda: importlib.import_module("workbench.ipu"))

__version__ = "0.1.0"

_IN_API = (
    "app",
    "autosplit",
    "challenge",
    "compare",
    "compare_schedules",
    "compile",
    "diagnose",
    "fewest_ipus",
    "load_profile",
    "plan",
    "profile",
    "ready",
    "search",
    "sweep",
    "target",
    "targets",
    "views",
    "Executable",
    "Profile",
    "Target",
)
_MODULES = ("datasets", "ipu", "tf", "tiles", "errors")
_IN_ERRORS = ("OutOfMemoryError", "InputError", "OptionError", "ProfileFileError", "WorkbenchError")

if TYPE_CHECKING:
    from workbench import datasets, errors, ipu, tf, tiles
    from workbench.api import (
        Executable,
        Profile,
        Target,
        app,
        autosplit,
        challenge,
        compare,
        compare_schedules,
        compile,
        diagnose,
        fewest_ipus,
        load_profile,
        plan,
        profile,
        ready,
        search,
        sweep,
        target,
        targets,
        views,
    )
    from workbench.errors import InputError, OptionError, OutOfMemoryError, ProfileFileError, WorkbenchError


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"workbench.{name}")
    if name in _IN_API:
        with late_interrupt(), paused_collection():
            return getattr(importlib.import_module("workbench.api"), name)
    if name in _IN_ERRORS:
        return getattr(importlib.import_module("workbench.errors"), name)
    raise no_attribute("module 'workbench'", name, __dir__())


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext workbench` registers `%workbench` and `%%ipu_profile`."""
    importlib.import_module("workbench.magics").load(shell)


def __dir__() -> list[str]:
    """Public names, and those that Python gives a module; what this one imports for itself is not offered."""
    own = [name for name in globals() if name.startswith("__")]
    return sorted([*own, *_IN_API, *_MODULES, *_IN_ERRORS])


__all__ = [
    "Executable",
    "InputError",
    "OptionError",
    "OutOfMemoryError",
    "Profile",
    "ProfileFileError",
    "Target",
    "WorkbenchError",
    "app",
    "autosplit",
    "challenge",
    "compare",
    "compare_schedules",
    "compile",
    "datasets",
    "diagnose",
    "errors",
    "fewest_ipus",
    "ipu",
    "load_profile",
    "plan",
    "profile",
    "ready",
    "search",
    "sweep",
    "target",
    "targets",
    "tf",
    "tiles",
    "views",
]
