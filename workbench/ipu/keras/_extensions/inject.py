"""Models made in a strategy's scope get an extension: mixed into a class under the original module and name.

Keras' own classes are as they were outside a scope, and in threads that opened none: only while a scope is open, the
`__new__` and `from_config` of `keras.Model` look which class to make.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras

_LOCK = threading.RLock()
_OPEN: list[Any] = []  # one for each open scope of any thread, the first with what Keras had


def extended(kind: type, extension: type) -> type:
    """A class of the extension and a model's class, that says of itself and its instances to be the latter."""
    return _extended(kind, extension)


@functools.lru_cache(maxsize=256)
def _extended(kind: type, extension: type) -> type:
    body = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        # Keras writes, clones and finds a model by what its `__class__` says.
        "__class__": property(lambda self: kind),
        "__original_class__": kind,
    }
    return type(kind.__name__, (extension, kind), body)


@contextmanager
def injected(make: Callable[[type], type | None], made: Callable[[Any], None]) -> Iterator[None]:
    """While any is open: models are of the class that `make` gives for theirs, None leaving it as it is; `made` is told
    of each before its `__init__`.
    """
    with _LOCK:
        if not _OPEN:
            _OPEN.append(keras.Model.__new__)
            keras.Model.__new__ = _new(keras.Model.__new__, make, made)
        else:
            _OPEN.append(None)
    try:
        yield
    finally:
        with _LOCK:
            if len(_OPEN) == 1:
                keras.Model.__new__ = _OPEN[0]
            _OPEN.pop()


def _new(original: Any, make: Callable[[type], type | None], made: Callable[[Any], None]) -> Any:
    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        kind = make(cls)
        model = original(cls if kind is None else kind, *args, **kwargs)
        if kind is not None:
            made(model)
        return model

    return new


__all__ = ["extended", "injected"]
