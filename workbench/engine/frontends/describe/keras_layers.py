"""The layers of a Keras model by path, what their variables belong to, and numbered calls while tracing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import keras

from workbench.base.identity import ByIdentity, each_once
from workbench.engine.frontends.describe.name_stack import call_scope


@functools.lru_cache(maxsize=1024)
def _kind(held: type) -> type | None:
    """Which of layer, mapping and list a class is; asked of every attribute of every layer."""
    return next((kind for kind in (keras.layers.Layer, Mapping, list, tuple) if issubclass(held, kind)), None)


def _layers_in(value: Any) -> Iterator[Any]:
    kind = _kind(value.__class__)
    if kind is keras.layers.Layer:
        yield value
    elif kind is not None:
        for item in value.values() if kind is Mapping else value:
            if _kind(item.__class__) is not None:
                yield from _layers_in(item)


def _children(layer: Any) -> list[Any]:
    """Layers a layer holds, each once, in the order they were assigned."""
    held = list(layer.layers) if isinstance(layer, keras.Model) else []
    values = [value for value in list(vars(layer).values()) if _kind(value.__class__) is not None]
    held += [child for value in values for child in _layers_in(value)]
    return each_once(child for child in held if child is not layer)


def walk_layers(model: Any) -> list[tuple[str, Any]]:
    """Every layer below a model with its path (`"encoder_0/attention/query"`), parents first."""
    found: list[tuple[str, Any]] = []
    ancestors: ByIdentity[Any, None] = ByIdentity([(model, None)])

    def visit(parent: Any, prefix: str) -> None:
        for child in _children(parent):
            if child in ancestors:
                continue
            path = f"{prefix}{child.name}"
            found.append((path, child))
            ancestors[child] = None
            visit(child, f"{path}/")
            ancestors.pop(child)

    visit(model, "")
    return found


def plain_operations(model: Any) -> list[Any]:
    """Operations of a functional model that are not layers (`x + y` on symbolic tensors)."""
    held = [model, *(layer for _, layer in walk_layers(model))]
    found = [op for owner in held for op in getattr(owner, "operations", ()) if not isinstance(op, keras.layers.Layer)]
    return each_once(found)


def layer_classes(model: Any) -> dict[str, str]:
    """Layer path to Keras class; operations that are not layers stand under their own name."""
    classes = {path: type(layer).__name__ for path, layer in walk_layers(model)}
    for operation in plain_operations(model):
        classes.setdefault(operation.name, type(operation).__name__)
    return classes


def variable_layers(model: Any) -> ByIdentity[Any, str]:
    """Each variable to the path of the deepest layer that owns it."""
    owners: ByIdentity[Any, str] = ByIdentity()
    for path, layer in walk_layers(model):
        for variable in layer.variables:
            known = owners.get(variable)
            if known is None or path.startswith(f"{known}/"):
                owners[variable] = path
    return owners


def slot_layer(slot: Any, trainable: Sequence[tuple[str, str]]) -> str:
    """The layer an optimizer variable belongs to, "" when to none.

    Keras names a slot after the path of its variable, `"dense/kernel"` becoming `"dense_kernel_momentum"`;
    `trainable` holds (path of the variable, layer).
    """
    fits = [(len(path), layer) for path, layer in trainable if slot.name.startswith(path.replace("/", "_") + "_")]
    return max(fits)[1] if fits else ""


def _numbered(call: Callable[..., Any], scope: str | None, counts: dict[str, int], key: str) -> Callable[..., Any]:
    @functools.wraps(call)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        counts[key] = counts.get(key, 0) + 1
        with jax.named_scope(scope) if scope else _nothing(), jax.named_scope(call_scope(counts[key])):
            return call(*args, **kwargs)

    return wrapped


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def numbered_calls(model: Any) -> Iterator[None]:
    """While tracing, number the calls of every layer, and give operations that are not layers a scope."""
    counts: dict[str, int] = {}
    wrapped: list[Any] = []
    try:
        for number, layer in enumerate(each_once(layer for _, layer in walk_layers(model))):
            object.__setattr__(layer, "call", _numbered(layer.call, None, counts, f"layer {number}"))
            wrapped.append(layer)
        for number, operation in enumerate(plain_operations(model)):
            call = _numbered(operation.call, operation.name, counts, f"operation {number}")
            object.__setattr__(operation, "call", call)
            wrapped.append(operation)
        yield
    finally:
        for item in wrapped:
            object.__delattr__(item, "call")
