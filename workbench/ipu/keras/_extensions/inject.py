"""Models made in a strategy's scope get an extension: mixed into a class under the original module and name.

Only while a scope is open, and for threads that opened one, making, reading and cloning a model look which class to
make and which options it has, and `keras.ipu` is what the SDK's Keras has there; Keras is as it was before and after.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import keras

_LOCK = threading.RLock()
_NOTHING = object()  # was there before
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What happens to models while scopes are open.

    `kind` gives the class for theirs, None leaving it as it is; `made` is told of each before its `__init__`; `read` is
    given one and the configuration it was made of, `alike` a clone and its original: both return it.
    """

    kind: Callable[[type], type | None]
    made: Callable[[Any], None]
    read: Callable[[Any, Any], Any]
    alike: Callable[[Any, Any], Any]


@contextmanager
def injected(making: Making) -> Iterator[None]:
    """Models made while any is open are made so."""
    with _LOCK:
        _OPEN.append(_exchanged(making) if not _OPEN else [])
    try:
        yield
    finally:
        with _LOCK:
            if len(_OPEN) == 1:
                for owner, name, before in _OPEN[0]:
                    if before is _NOTHING:
                        delattr(owner, name)
                    else:
                        setattr(owner, name, before)
            _OPEN.pop()


def _exchanged(making: Making) -> list[tuple[Any, str, Any]]:
    """Put ours in the place of what Keras makes, reads and clones models by; where they were, and what was there."""
    before = [
        (keras.Model, "__new__", keras.Model.__new__),
        (keras.models, "clone_model", keras.models.clone_model),
        *((kind, "from_config", vars(kind)["from_config"]) for kind in (keras.Model, keras.Sequential)),
        (keras, "ipu", getattr(keras, "ipu", _NOTHING)),
    ]
    keras.ipu = importlib.import_module("workbench.ipu.keras")
    keras.Model.__new__ = _new(keras.Model.__new__, making.kind, making.made)
    keras.models.clone_model = _cloned(keras.models.clone_model, making)
    for kind in (keras.Model, keras.Sequential):
        kind.from_config = _from_config(vars(kind)["from_config"], making)
    return before


def _from_config(original: Any, making: Making) -> Any:
    def from_config(cls: type, config: Any, custom_objects: Any = None) -> Any:
        return making.read(original.__func__(cls, config, custom_objects), config)

    return classmethod(from_config)


def _cloned(original: Any, making: Making) -> Any:
    @functools.wraps(original)
    def clone_model(model: Any, *args: Any, **kwargs: Any) -> Any:
        return making.alike(original(model, *args, **kwargs), model)

    return clone_model


def _new(original: Any, make: Callable[[type], type | None], made: Callable[[Any], None]) -> Any:
    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        kind = make(cls)
        model = original(cls if kind is None else kind, *args, **kwargs)
        if kind is not None:
            made(model)
        return model

    return new


__all__ = ["Making", "extended", "injected"]
