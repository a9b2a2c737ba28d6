"""A model as a list of layers, each a Keras class by name with its arguments: what the app builds from its rows."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras

from workbench.errors import InputError

Layers = Sequence[tuple[str, Mapping[str, Any], Sequence[int]]]
# Called with a list of what it takes; any other with one argument each, as attention is.
_MERGING = ("Add", "Multiply", "Concatenate")


def layered(name: str, input_shape: Sequence[int], layers: Layers, input_type: str = "") -> Callable[[], Any]:
    """A function that builds the model `name` of these layers: class, arguments and the places of its inputs each.

    Places count from 1, 0 is the model's input; layers that all take the one before them are a Sequential model.
    `input_shape` has no batch dimension; `input_type` is Keras' own where it is empty.

    Errors: `InputError` for a class Keras does not have; and, when it is called, for a layer that cannot stand there.
    """
    for kind, _, _ in layers:
        if not isinstance(getattr(keras.layers, kind, None), type):
            raise InputError(f"there is no Keras layer {kind!r}", expected="the name of a class in keras.layers")
    own = tuple((kind, dict(more), tuple(inputs)) for kind, more, inputs in layers)
    return functools.partial(_build, name, tuple(input_shape), own, input_type or None)


def _build(name: str, input_shape: tuple[int, ...], layers: Layers, input_type: str | None) -> Any:
    begin = keras.Input(input_shape, dtype=input_type)
    if all(len(inputs) == 1 for _, _, inputs in layers):
        model, shape = keras.Sequential([begin], name=name), input_shape
        for place, (kind, arguments, _) in enumerate(layers, 1):
            with _standing(place, kind, shape):
                model.add(getattr(keras.layers, kind)(**arguments))
            shape = tuple(model.output_shape[1:])
        return model
    given = [begin]
    for place, (kind, arguments, inputs) in enumerate(layers, 1):
        with _standing(place, kind, tuple(given[-1].shape[1:])):
            taken, layer = [given[each] for each in inputs], getattr(keras.layers, kind)(**arguments)
            given.append(layer(taken) if kind in _MERGING else layer(*taken))
    return keras.Model(begin, given[-1], name=name)


@contextlib.contextmanager
def _standing(place: int, kind: str, shape: tuple[int, ...]) -> Iterator[None]:
    """Says of which layer Keras' errors are."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise InputError(
            f"layer {place}, {kind}, cannot take an input of shape {shape}",
            expected=str(error).splitlines()[0],
            todo="change or move the layer; Flatten turns images into rows",
        ) from error
