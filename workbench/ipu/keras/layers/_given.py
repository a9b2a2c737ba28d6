"""What layers of Keras take besides their own arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import keras

from workbench.base.checked import called, checked
from workbench.base.text import meant, short
from workbench.errors import CallError, InputError
from workbench.tf._graph.convert import check_depth

OF_KERAS = ("activity_regularizer", "autocast", "dtype", "name", "trainable")


class Layer(keras.layers.Layer):  # type: ignore[misc]
    """A Keras layer whose arguments are looked at before Keras looks at them."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        names = list(inspect.signature(cls.__init__).parameters)[1:]
        for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
            try:
                check_depth(value)
            except RecursionError as error:
                raise InputError(f"{name} is {short(value)}: {error}", expected="a value that ends") from None
        return super().__new__(cls, *args, **kwargs)

    def __init_subclass__(cls, **more: Any) -> None:
        """A call that does not fit a layer is told as any other is, by the layer's name."""
        super().__init_subclass__(**more)
        if "__init__" in vars(cls):
            cls.__init__ = _told(cls.__init__)  # type: ignore[method-assign]


def _told(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        called(type(self).__name__, init.__get__(self), *args, **kwargs)

    call.__signature__ = inspect.signature(init)  # type: ignore[attr-defined]  # Keras looks through no wrapper
    return call


def for_keras(layer: Layer, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of every Keras layer; a `CallError` for others, and for a name or a switch that is none."""
    unknown = [name for name in given if name not in OF_KERAS]
    if unknown:
        own = [
            each.name
            for each in inspect.signature(type(layer)).parameters.values()
            if each.kind is not each.VAR_KEYWORD and each.name not in OF_KERAS
        ]
        raise CallError(
            f"{type(layer).__name__} has no argument {unknown[0]!r}",
            expected=f"one of: {', '.join([*own, *OF_KERAS])}",
            todo=meant(unknown[0], [*own, *OF_KERAS]),
        )
    check(**{name: value for name, value in given.items() if name in ("name", "trainable")})
    if "/" in (given.get("name") or ""):
        raise InputError(f"name is {short(given['name'])}", expected="a text without /, which joins names")
    return dict(given)


def initializer(called: str, given: Any, otherwise: str = "") -> Any:
    """A Keras initializer, from itself, its name, its configuration or a function of a shape."""
    known = isinstance(given, str | dict | keras.initializers.Initializer) or callable(given)
    try:
        found = (
            keras.initializers.get(given if given is not None else otherwise or None)
            if known or given is None
            else None
        )
    except (TypeError, ValueError):
        found = None
    if found is None:
        raise InputError(
            f"{called} is {short(given)}", expected="a Keras initializer, its name, or a function of a shape"
        )
    return found


@checked
def check(
    *,
    name: str | None = None,
    trainable: bool = True,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 0.0,
    inplace: bool = False,
    channels_axis: int = 0,
    strided_channel_grouping: bool = True,
) -> None:
    """Arguments by their kind: Keras reads the signature of a layer as it stands, so no layer has one of its own."""


__all__ = ["Layer", "check", "for_keras", "initializer"]
