"""A model as rows of layers: what each gives and holds, or why it cannot stand there, and the Keras code it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.base.text import literal, short
from workbench.errors import InputError
from workbench.widgets.app.builder.kinds import KINDS, Shape

MOST = 1 << 31  # elements of one sample: more is no shape of a model, but a slip


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One row: a kind, the values of its settings in order, its activation (`"none"` for none).

    `other`: of a kind with two inputs, the place of the row that gives the second, from 1; 0 is the model's input.
    """

    kind: str
    values: tuple[float, ...] = ()
    activation: str = "none"
    other: int = 0

    @classmethod
    def new(cls, kind: str, *values: float, activation: str | None = None, other: int = 0) -> Layer:
        """A layer with the kind's defaults for what is not given."""
        found = KINDS[kind]
        left = tuple(setting.default for setting in found.settings[len(values) :])
        return cls(kind=kind, values=(*values, *left), activation=activation or found.activation or "none", other=other)

    def arguments(self, name: str) -> dict[str, Any]:
        """The arguments of the Keras class."""
        kind = KINDS[self.kind]
        found: dict[str, Any] = {
            setting.argument: setting.argument_of(value)
            for setting, value in zip(kind.settings, self.values, strict=True)
            if setting.argument not in ("strides", "return_sequences") or value != setting.default
        }
        found.update(kind.fixed)
        if kind.activation and (self.activation != "none" or self.kind == "Activation"):
            found["activation"] = "linear" if self.activation == "none" else self.activation
        return {**found, "name": name}


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a row gives (its shape without the batch) and holds (parameters), or the problem; none behind a problem."""

    shape: Shape | None = None
    parameters: int = 0
    problem: InputError | None = None


def notes_of(shape: Shape, layers: Sequence[Layer]) -> list[Note]:
    """A note for each row. A row behind one with a problem has none of its own."""
    given: list[Shape] = [shape]
    found: list[Note] = []
    for place, layer in enumerate(layers, 1):
        if len(given) < place:
            found.append(Note())
            continue
        try:
            note = _note(place, layer, layers, given)
        except InputError as problem:
            found.append(Note(problem=problem))
        else:
            found.append(note)
            given.append(note.shape or ())
    return found


def _note(place: int, layer: Layer, layers: Sequence[Layer], given: Sequence[Shape]) -> Note:
    kind, shape = KINDS[layer.kind], given[-1]
    what = f"layer {place}, {layer.kind}, cannot take an input of shape {shape}"
    if (kind.rank and len(shape) != kind.rank) or (kind.integers and place > 1):
        raise InputError(what, expected=kind.needs, todo="change or move the layer; Flatten turns images into rows")
    if kind.called == "two" and not 0 <= layer.other < place:
        raise InputError(
            f"layer {place}, {layer.kind}, takes layer {layer.other}, which comes after it",
            expected="a row above it, or the input",
            todo="choose another row, or move one of the two",
        )
    values = {
        setting.argument: int(value)
        for setting, value in zip(kind.settings, layer.values, strict=True)
        if setting.step == 1
    }
    try:
        gives = kind.shape(shape, values, given[layer.other] if kind.called == "two" else ())
    except InputError as error:
        raise InputError(f"{what}: {error.what}", error.expected, error.todo) from None
    if _elements(gives) > MOST:
        raise InputError(
            f"layer {place}, {layer.kind}, gives {_elements(gives):,} elements a sample", expected=f"at most {MOST:,}"
        )
    return Note(shape=gives, parameters=kind.parameters(shape, values))


def _elements(shape: Shape) -> int:
    found = 1
    for size in shape:
        found *= size
    return found


# What the app starts with, by name: the shape of one sample, and the layers. One that is named as a ready model is it.
PRESETS: Mapping[str, tuple[str, tuple[Layer, ...]]] = {
    "MLP": (
        "64",
        (Layer.new("Dense", 128), Layer.new("Dense", 128), Layer.new("Dense", 10, activation="softmax")),
    ),
    "CNN": (
        "32, 32, 3",
        (
            Layer.new("Conv2D", 32),
            Layer.new("MaxPooling2D"),
            Layer.new("Conv2D", 64),
            Layer.new("MaxPooling2D"),
            Layer.new("Flatten"),
            Layer.new("Dense", 10, activation="softmax"),
        ),
    ),
    "LSTM": (
        "64, 64",
        (Layer.new("LSTM", 256, 1), Layer.new("LSTM", 256), Layer.new("Dense", 10, activation="softmax")),
    ),
    "Transformer": (
        "64",
        (
            Layer.new("Embedding", 1000, 128),
            Layer.new("MultiHeadAttention", 4, 32),
            Layer.new("Add", other=1),
            Layer.new("LayerNormalization"),
            Layer.new("Dense", 512, activation="gelu"),
            Layer.new("Dense", 128, activation="none"),
            Layer.new("Add", other=4),
            Layer.new("LayerNormalization"),
            Layer.new("GlobalAveragePooling1D"),
            Layer.new("Dense", 10, activation="softmax"),
        ),
    ),
    "Depthwise": (
        "32, 32, 3",
        (
            Layer.new("Conv2D", 32, 3, 2),
            Layer.new("Conv2D", 96, 1),
            Layer.new("DepthwiseConv2D", 3, 1),
            Layer.new("Conv2D", 32, 1, activation="none"),
            Layer.new("Add", other=1),
            Layer.new("BatchNormalization"),
            Layer.new("GlobalAveragePooling2D"),
            Layer.new("Dense", 10, activation="softmax"),
        ),
    ),
}


def read_shape(text: str) -> tuple[int, ...]:
    """`"28, 28, 1"` → `(28, 28, 1)`; `InputError` for anything but positive whole numbers, and for more than `MOST`."""
    parts = [part.strip() for part in text.strip(" ()").rstrip(",").split(",")]
    if not all(part.isdecimal() and part.strip("0") for part in parts):
        raise InputError(
            f"the input shape is {short(text)}",
            expected="positive whole numbers without the batch, such as 64 or 28, 28, 1",
        )
    # Python reads no number of thousands of digits.
    if any(len(part) > len(str(MOST)) for part in parts) or _elements(tuple(map(int, parts))) > MOST:
        raise InputError(f"the input shape is {short(text)}", expected=f"at most {MOST:,} elements a sample")
    return tuple(map(int, parts))


def reordered(layers: Sequence[Layer], order: Sequence[int | None]) -> list[Layer]:
    """The rows in another order, second inputs following their rows; `order` has old places from 1, None for a new one.

    A row whose second input is gone takes the model's input.
    """
    place_of = {old: new for new, old in enumerate(order, 1) if old is not None}
    return [replace(layers[old - 1], other=place_of.get(layers[old - 1].other, 0)) for old in order if old is not None]


def names(layers: Sequence[Layer]) -> list[str]:
    """`dense_1`, `conv2d_2` and so on: the kind and the place."""
    return [f"{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', layer.kind).lower()}_{i}" for i, layer in enumerate(layers, 1)]


def described(layers: Sequence[Layer]) -> tuple[tuple[str, dict[str, Any], tuple[int, ...]], ...]:
    """(class, arguments, places of its inputs) of each layer, as a compile takes them."""
    return tuple(
        (layer.kind, layer.arguments(name), _inputs(place, layer))
        for place, (layer, name) in enumerate(zip(layers, names(layers), strict=True))
    )


def _inputs(before: int, layer: Layer) -> tuple[int, ...]:
    called = KINDS[layer.kind].called
    return (before,) if called == "one" else (before, before if called == "self" else layer.other)


def input_type(layers: Sequence[Layer]) -> str:
    """The type of the model's input, "" for Keras' own."""
    return "int32" if layers and KINDS[layers[0].kind].integers else ""


def keras_code(name: str, shape: tuple[int, ...], layers: Sequence[Layer]) -> str:
    """The model as Keras code that binds `model`: in a list, or by calls where a layer has two inputs."""
    dtype = input_type(layers)
    begin = f"keras.Input({shape!r}{f', dtype={literal(dtype)}' if dtype else ''})"
    rows = [
        (f"keras.layers.{kind}({', '.join(f'{key}={literal(value)}' for key, value in arguments.items())})", inputs)
        for kind, arguments, inputs in described(layers)
    ]
    if all(len(inputs) == 1 for _, inputs in rows):
        lines = ["model = keras.Sequential(", "    [", f"        {begin},"]
        lines += [f"        {made}," for made, _ in rows]
        lines += ["    ],", f"    name={literal(name)},", ")"]
    else:
        lines = [f"x0 = {begin}"]
        for place, (layer, (made, inputs)) in enumerate(zip(layers, rows, strict=True), 1):
            given = ", ".join(f"x{each}" for each in inputs)
            lines.append(f"x{place} = {made}({f'[{given}]' if KINDS[layer.kind].called == 'two' else given})")
        lines.append(f"model = keras.Model(x0, x{len(rows)}, name={literal(name)})")
    return "\n".join(["import keras", "", *lines])
