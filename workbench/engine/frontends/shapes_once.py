"""Keras' batch statistics and norms traced once for each shape, not once for each layer that asks for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

from workbench.engine.frontends.jaxpr import array_functions

_STATIC = {"moments": ("axes", "keepdims", "synchronized"), "batch_normalization": ("axis", "epsilon")}


@contextmanager
def shapes_once() -> Iterator[None]:
    """Inside, functions of arrays alone are calls of a body that JAX traces, differentiates and transposes once.

    ResNet-50 has 53 batch normalisations of 12 shapes, a third of its trace. Equations keep the layer and the line of
    their call.
    """
    functions = array_functions()
    plain = {name: getattr(functions, name) for name in _STATIC}
    try:
        for name, function in plain.items():
            setattr(functions, name, _once(function, _STATIC[name]))
        yield
    finally:
        for name, function in plain.items():
            setattr(functions, name, function)


def _once(function: Callable[..., Any], static: tuple[str, ...]) -> Callable[..., Any]:
    @functools.wraps(function)
    def body(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    body.__name__ = f"{function.__name__}_once"  # a call named as a known function would be one operator
    shared = jax.jit(body, static_argnames=static)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        # JAX tells static values apart by their hash, which the lists of Keras do not have
        return shared(
            *(tuple(value) if isinstance(value, list) else value for value in args),
            **{name: tuple(value) if isinstance(value, list) else value for name, value in kwargs.items()},
        )

    return call
