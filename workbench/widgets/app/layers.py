"""The layers a user can put together in the app, as data: kinds, settings with bounds, and the Keras code they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.base.text import literal
from workbench.errors import InputError

ACTIVATIONS = ("none", "relu", "gelu", "tanh", "sigmoid", "softmax")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A number a layer is made with: the argument's name, its label, default and bounds; whole unless `step` is not."""

    argument: str
    label: str
    default: float
    minimum: float = 1
    maximum: float = 65_536
    step: float = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A class of `keras.layers` with what can be set; `activation` is the default one, empty for a kind without."""

    name: str
    settings: tuple[Setting, ...] = ()
    activation: str = ""
    fixed: tuple[tuple[str, Any], ...] = ()


_WIDTH = Setting(argument="units", label="units", default=128)
_FILTERS = Setting(argument="filters", label="filters", default=32)
_KERNEL = Setting(argument="kernel_size", label="kernel", default=3, maximum=64)
_STRIDE = Setting(argument="strides", label="stride", default=1, maximum=64)
_POOL = Setting(argument="pool_size", label="window", default=2, maximum=64)
_RATE = Setting(argument="rate", label="rate", default=0.25, minimum=0.0, maximum=0.95, step=0.05)

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(name="Dense", settings=(_WIDTH,), activation="relu"),
        Kind(name="Conv2D", settings=(_FILTERS, _KERNEL, _STRIDE), activation="relu", fixed=(("padding", "same"),)),
        Kind(name="MaxPooling2D", settings=(_POOL,)),
        Kind(name="AveragePooling2D", settings=(_POOL,)),
        Kind(name="GlobalAveragePooling2D"),
        Kind(name="Flatten"),
        Kind(name="Dropout", settings=(_RATE,)),
        Kind(name="BatchNormalization"),
        Kind(name="LayerNormalization"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One row: a kind, the values of its settings in order, and its activation (`"none"` for none)."""

    kind: str
    values: tuple[float, ...] = ()
    activation: str = "none"

    @classmethod
    def new(cls, kind: str, *values: float, activation: str | None = None) -> Layer:
        """A layer with the kind's defaults for what is not given."""
        found = KINDS[kind]
        left = tuple(setting.default for setting in found.settings[len(values) :])
        return cls(kind=kind, values=(*values, *left), activation=activation or found.activation or "none")

    def arguments(self, name: str) -> dict[str, Any]:
        """The arguments of the Keras class."""
        kind = KINDS[self.kind]
        found: dict[str, Any] = {
            setting.argument: int(value) if setting.step == 1 else round(float(value), 6)
            for setting, value in zip(kind.settings, self.values, strict=True)
            if setting.argument != "strides" or value != setting.default
        }
        found.update(kind.fixed)
        if kind.activation and self.activation != "none":
            found["activation"] = self.activation
        return {**found, "name": name}


# What the app starts with, by name: the shape of one sample, and the layers.
PRESETS: Mapping[str, tuple[str, tuple[Layer, ...]]] = {
    "MLP": (
        "64",
        (Layer.new("Dense", 512), Layer.new("Dense", 512), Layer.new("Dense", 10, activation="softmax")),
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
}


def read_shape(text: str) -> tuple[int, ...]:
    """`"28, 28, 1"` → `(28, 28, 1)`; `InputError` for anything but positive whole numbers."""
    parts = [part.strip() for part in text.strip(" ()").rstrip(",").split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(
            f"the input shape is {text!r}", expected="positive whole numbers without the batch, such as 64 or 28, 28, 1"
        )
    return tuple(int(part) for part in parts)


def names(layers: Sequence[Layer]) -> list[str]:
    """`dense_1`, `conv2d_2` and so on: the kind and the place."""
    return [f"{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', layer.kind).lower()}_{i}" for i, layer in enumerate(layers, 1)]


def described(layers: Sequence[Layer]) -> tuple[tuple[str, dict[str, Any]], ...]:
    """(class, arguments) of each layer, as a compile takes them."""
    return tuple((layer.kind, layer.arguments(name)) for layer, name in zip(layers, names(layers), strict=True))


def keras_code(name: str, shape: tuple[int, ...], layers: Sequence[Layer]) -> str:
    """The model as Keras code that binds `model`."""
    lines = ["import keras", "", "model = keras.Sequential(", "    [", f"        keras.Input({shape!r}),"]
    for kind, arguments in described(layers):
        inside = ", ".join(f"{key}={literal(value)}" for key, value in arguments.items())
        lines.append(f"        keras.layers.{kind}({inside}),")
    return "\n".join([*lines, "    ],", f"    name={literal(name)},", ")"])
