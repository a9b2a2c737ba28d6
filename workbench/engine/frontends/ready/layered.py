"""A model as a list of layers, each a Keras class by name with its arguments: what the app builds from its rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras

from workbench.errors import InputError

Layers = Sequence[tuple[str, Mapping[str, Any]]]


def layered(name: str, input_shape: Sequence[int], layers: Layers) -> Callable[[], Any]:
    """A function that builds the Sequential model `name` of these layers; `input_shape` has no batch dimension.

    Errors: `InputError` for a class Keras does not have; and, when it is called, for a layer that cannot stand there.
    """
    for kind, _ in layers:
        if not isinstance(getattr(keras.layers, kind, None), type):
            raise InputError(f"there is no Keras layer {kind!r}", expected="the name of a class in keras.layers")
    return functools.partial(_build, name, tuple(input_shape), tuple((kind, dict(more)) for kind, more in layers))


def _build(name: str, input_shape: tuple[int, ...], layers: Layers) -> Any:
    model, shape = keras.Sequential([keras.Input(input_shape)], name=name), input_shape
    for place, (kind, arguments) in enumerate(layers, 1):
        try:
            model.add(getattr(keras.layers, kind)(**arguments))
        except (ValueError, TypeError) as error:
            raise InputError(
                f"layer {place}, {kind}, cannot take an input of shape {shape}",
                expected=str(error).splitlines()[0],
                todo="change or move the layer; Flatten turns images into rows",
            ) from error
        shape = tuple(model.output_shape[1:])
    return model
