"""The kinds of layers of the builder: settings with bounds, and what each makes of a shape and holds in parameters.

Shapes and counts are what `keras.layers` documents for each class, so that rows can show them before Keras is loaded;
a test holds them against Keras itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from workbench.errors import InputError

ACTIVATIONS = ("none", "relu", "gelu", "silu", "tanh", "sigmoid", "softmax")
Shape = tuple[int, ...]
Values = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A number a layer is made with: the argument's name, its label, default and bounds; whole unless `step` is not.

    `words`: of a setting that is no or yes, what the two are called.
    """

    argument: str
    label: str
    default: float
    minimum: float = 1
    maximum: float = 65_536
    step: float = 1
    words: tuple[str, ...] = ()

    def checked(self, text: Any) -> float:
        """The value of what was typed; `InputError` for what is none, or lies outside of the bounds."""
        kind = "a whole number" if self.step == 1 else "a number"
        expected = f"{kind} from {self.minimum:g} to {self.maximum:g}"
        try:
            value = float(text) if isinstance(text, str | int | float) and not isinstance(text, bool) else math.nan
        except (ValueError, OverflowError):
            value = math.nan
        if not self.minimum <= value <= self.maximum or (self.step == 1 and value != int(value)):
            raise InputError(f"{self.label} is {str(text)[:40]!r}", expected=expected)
        return int(value) if self.step == 1 else round(value, 6)

    def argument_of(self, value: float) -> Any:
        """The value as the argument of a Keras class."""
        if self.words:
            return bool(value)
        return int(value) if self.step == 1 else round(float(value), 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A class of `keras.layers`. `shape(given, values, other)` is the shape it gives, `parameters` what it holds.

    `called`: with one input, with another row's beside it, or with its own input again, as attention is. `ranks`: axes
    it takes, any without. `activation` is the default one, empty for a kind without; `needs` says what it takes.
    """

    name: str
    shape: Callable[[Shape, Values, Shape], Shape]
    parameters: Callable[[Shape, Values], int] = lambda given, values: 0
    settings: tuple[Setting, ...] = ()
    activation: str = ""
    fixed: tuple[tuple[str, Any], ...] = ()
    called: Literal["one", "two", "self"] = "one"
    rank: int = 0
    needs: str = ""
    integers: bool = False


def _same(given: Shape, values: Values, other: Shape) -> Shape:
    return given


def _dense(given: Shape, values: Values, other: Shape) -> Shape:
    return (*given[:-1], values["units"])


def _strided(given: Shape, values: Values, channels: int) -> Shape:
    high, wide = (-(-side // values["strides"]) for side in given[:2])
    return (high, wide, channels)


def _pooled(given: Shape, values: Values, other: Shape) -> Shape:
    high, wide = (side // values["pool_size"] for side in given[:2])
    if not high or not wide:
        raise InputError(
            f"a window of {values['pool_size']} does not fit into {given[0]} × {given[1]}", todo="take a smaller window"
        )
    return (high, wide, given[2])


def _steps(given: Shape, values: Values, other: Shape) -> Shape:
    return (given[0], values["units"]) if values["return_sequences"] else (values["units"],)


def _together(given: Shape, values: Values, other: Shape) -> Shape:
    alike = len(given) == len(other) and all(a == b or 1 in (a, b) for a, b in zip(given, other, strict=True))
    if not alike:
        raise InputError(
            f"shapes {given} and {other} are not alike", expected="two of one shape", todo="choose another row"
        )
    return tuple(max(pair) for pair in zip(given, other, strict=True))


def _joined(given: Shape, values: Values, other: Shape) -> Shape:
    if given[:-1] != other[:-1]:
        raise InputError(
            f"shapes {given} and {other} differ before their last axis",
            expected="two that differ in the last axis alone",
            todo="choose another row",
        )
    return (*given[:-1], given[-1] + other[-1])


def _gates(gates: int, biases: int) -> Callable[[Shape, Values], int]:
    """Weights of a recurrent layer: of its inputs, of its own state, and biases, for each gate."""
    return lambda given, values: gates * values["units"] * (given[-1] + values["units"] + biases)


def _attention(given: Shape, values: Values) -> int:
    """Queries, keys and values of all heads with a bias each, and the projection back to the width with its bias."""
    inner = values["num_heads"] * values["key_dim"]
    return 3 * (given[-1] * inner + inner) + inner * given[-1] + given[-1]


_UNITS = Setting(argument="units", label="units", default=128)
_FILTERS = Setting(argument="filters", label="filters", default=32)
_KERNEL = Setting(argument="kernel_size", label="kernel", default=3, maximum=64)
_STRIDE = Setting(argument="strides", label="stride", default=1, maximum=64)
_POOL = Setting(argument="pool_size", label="window", default=2, maximum=64)
_RATE = Setting(argument="rate", label="rate", default=0.25, minimum=0.0, maximum=0.95, step=0.05)
_EVERY = Setting(
    argument="return_sequences", label="gives", default=0, minimum=0, maximum=1, words=("last step", "every step")
)
_HEADS = Setting(argument="num_heads", label="heads", default=4, maximum=256)
_KEY = Setting(argument="key_dim", label="per head", default=32, maximum=4096)
_VOCABULARY = Setting(argument="input_dim", label="vocabulary", default=1000, maximum=1_000_000)
_WIDTH = Setting(argument="output_dim", label="width", default=128)
_SAME = (("padding", "same"),)
_IMAGE, _SEQUENCE = "an image: height, width, channels", "a sequence: steps, width"

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name="Dense",
            settings=(_UNITS,),
            activation="relu",
            shape=_dense,
            parameters=lambda given, values: (given[-1] + 1) * values["units"],
        ),
        Kind(
            name="Conv2D",
            settings=(_FILTERS, _KERNEL, _STRIDE),
            activation="relu",
            fixed=_SAME,
            rank=3,
            needs=_IMAGE,
            shape=lambda given, values, other: _strided(given, values, values["filters"]),
            parameters=lambda given, values: (values["kernel_size"] ** 2 * given[-1] + 1) * values["filters"],
        ),
        Kind(
            name="DepthwiseConv2D",
            settings=(_KERNEL, _STRIDE),
            activation="relu",
            fixed=_SAME,
            rank=3,
            needs=_IMAGE,
            shape=lambda given, values, other: _strided(given, values, given[-1]),
            parameters=lambda given, values: (values["kernel_size"] ** 2 + 1) * given[-1],
        ),
        Kind(name="MaxPooling2D", settings=(_POOL,), rank=3, needs=_IMAGE, shape=_pooled),
        Kind(name="AveragePooling2D", settings=(_POOL,), rank=3, needs=_IMAGE, shape=_pooled),
        Kind(name="GlobalAveragePooling2D", rank=3, needs=_IMAGE, shape=lambda given, values, other: given[-1:]),
        Kind(name="GlobalAveragePooling1D", rank=2, needs=_SEQUENCE, shape=lambda given, values, other: given[-1:]),
        Kind(name="Flatten", shape=lambda given, values, other: (math.prod(given),)),
        Kind(name="Dropout", settings=(_RATE,), shape=_same),
        Kind(name="Activation", activation="relu", shape=_same),
        Kind(name="BatchNormalization", shape=_same, parameters=lambda given, values: 4 * given[-1]),
        Kind(name="LayerNormalization", shape=_same, parameters=lambda given, values: 2 * given[-1]),
        Kind(
            name="Embedding",
            settings=(_VOCABULARY, _WIDTH),
            integers=True,
            rank=1,
            needs="a row of numbers of words, at the start",
            shape=lambda given, values, other: (*given, values["output_dim"]),
            parameters=lambda given, values: values["input_dim"] * values["output_dim"],
        ),
        Kind(name="LSTM", settings=(_UNITS, _EVERY), rank=2, needs=_SEQUENCE, shape=_steps, parameters=_gates(4, 1)),
        Kind(name="GRU", settings=(_UNITS, _EVERY), rank=2, needs=_SEQUENCE, shape=_steps, parameters=_gates(3, 2)),
        Kind(
            name="MultiHeadAttention",
            settings=(_HEADS, _KEY),
            called="self",
            rank=2,
            needs=_SEQUENCE,
            shape=_same,
            parameters=_attention,
        ),
        Kind(name="Add", called="two", shape=_together),
        Kind(name="Multiply", called="two", shape=_together),
        Kind(name="Concatenate", called="two", shape=_joined),
    )
}

__all__ = ["ACTIVATIONS", "KINDS", "Kind", "Setting", "Shape"]
