"""At which line of the user each layer of Keras was made: noted when it is made, because no layer keeps it.

`watch` has `keras.layers.Layer.__new__` note it, from when Keras is loaded. The layer itself is left as it is. Keras
that cannot be loaded, because of a backend that is not there, says so in an error of ours.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import weakref
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from workbench.base.source.lines import calling_line
from workbench.errors import BackendError

_made: dict[int, tuple[weakref.ref[Any], str]] = {}  # by identity: what equal layers are is for their authors to say


def made_at(layer: Any) -> str:
    """The line at which a layer was made, "" where nobody saw it or no line of the user is on the way."""
    return _made[id(layer)][1] if id(layer) in _made else ""


def _remember(layer: Any, line: str) -> None:
    number = id(layer)
    _made[number] = (weakref.ref(layer, lambda gone: _made.pop(number, None)), line)


def watch() -> None:
    """From here on note the lines of layers; Keras is not loaded for it."""
    loaded = sys.modules.get("keras")
    if loaded is not None:
        _note(loaded)
    elif not any(isinstance(finder, _Loading) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Loading())


def _note(keras: ModuleType) -> None:
    layer = getattr(getattr(keras, "layers", None), "Layer", None)
    if layer is None or hasattr(layer.__new__, "of_workbench"):
        return
    make = layer.__new__

    @functools.wraps(make)
    def noted(cls: type, *arguments: Any, **named: Any) -> Any:
        made = make(cls, *arguments, **named)
        line = calling_line(through_own=False)
        if line:
            _remember(made, line)
        return made

    noted.of_workbench = True  # type: ignore[attr-defined]
    layer.__new__ = staticmethod(noted)


class _Loading(importlib.abc.MetaPathFinder):
    """Finds Keras as the others do, and notes lines once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of Keras with a loader that goes on to `_note`; nothing of other modules."""
        if name != "keras":
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)  # so that who is asked now are the others
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)  # not there, or not yet
            return None
        spec.loader = _Noting(spec.loader)
        return spec


class _Noting(importlib.abc.Loader):
    """A loader, and then `_note`."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # what else a loader can, such as giving its source

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As the loader does."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Load, then note."""
        try:
            self._loader.exec_module(module)
        except (ImportError, ValueError) as problem:
            sys.meta_path.insert(0, _Loading())  # a second try says the same
            _check_backend(problem)
            raise
        _note(module)


def _check_backend(problem: Exception) -> None:
    """An error that names the backend, where Keras could not be loaded on another than ours."""
    backend = os.environ.get("KERAS_BACKEND", "")
    if backend not in ("", "jax"):
        raise BackendError(
            f"KERAS_BACKEND is {backend!r}, and Keras cannot be loaded on that: {problem}",
            expected="the backend 'jax'",
            todo="take KERAS_BACKEND out of the environment, or put `import os; os.environ['KERAS_BACKEND'] = 'jax'` "
            "before `import workbench`, and restart the kernel",
        ) from None
