"""The layer-by-layer builder of the app: a row for each layer, with what it gives and holds, moved by drag or keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ipywidgets
import traitlets

from workbench.base.text import short, shown
from workbench.errors import InputError
from workbench.widgets.app.builder.kinds import ACTIVATIONS, KINDS, Kind, Shape
from workbench.widgets.app.builder.layers import PRESETS, Layer, Note, notes_of, read_shape, reordered
from workbench.widgets.kit import assets
from workbench.widgets.kit.library import Drawn

MOST_ROWS = 200


class Rows(Drawn):
    """The rows as they are drawn: `kinds` that can be chosen, and `rows` with values, notes and problems."""

    _esm = assets.stub("app/builder/rows.js")
    _css = assets.style("app/app", "app/builder/rows")
    kinds = traitlets.Dict().tag(sync=True)
    rows = traitlets.List().tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)


class Builder:
    """`box` is the builder; `shape()` and `layers()` what it says, `notes()` what each row gives, or its problem.

    Places of rows count from 0. A value that cannot be is told at its row, and the one before it stays.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._changed = on_change
        self._layers: list[Layer] = []
        self._ids: list[int] = []  # what a row is known by while it moves
        self._next = 0
        self._refused: dict[int, str] = {}
        self.preset = ipywidgets.Dropdown(options=list(PRESETS), value="MLP", description="start from")
        self.input_shape = ipywidgets.Text(
            description="input shape",
            tooltip="One sample, without the batch: 64, or 28, 28, 1",
            continuous_update=False,
        )
        self.rows = Rows(kinds={name: _kind(kind) for name, kind in KINDS.items()})
        self.rows.on_msg(lambda widget, content, buffers: self._hear(content))
        self.preset.observe(lambda change: self.start_from(change["new"]), "value")
        self.input_shape.observe(lambda change: self._show(), "value")
        head = ipywidgets.HBox([self.preset, self.input_shape])
        head.add_class("wb-app-pair")
        self.box = ipywidgets.VBox([head, self.rows])
        self.start_from("MLP")

    def start_from(self, preset: str) -> None:
        """Replace everything by a preset."""
        self.set(*PRESETS[preset])

    def set(self, shape: str, layers: Sequence[Layer]) -> None:
        """Replace everything."""
        self._layers, self._ids = list(layers), [self._new_id() for _ in layers]
        if self.input_shape.value == shape:
            self._show()
        else:
            self.input_shape.value = shape

    @property
    def name(self) -> str:
        """Of the model: what it began from while it is that, `"mlp_edited"` once its shape or its rows are others.

        Errors: `InputError` for a shape that is none.
        """
        shape, layers = PRESETS[self.preset.value]
        same = (read_shape(self.input_shape.value), self.layers()) == (read_shape(shape), layers)
        return f"{self.preset.value.lower()}{'' if same else '_edited'}"

    def state(self) -> tuple[str, str, tuple[Layer, ...]]:
        """What it began from, its shape and its layers, for `restore`."""
        return self.preset.value, self.input_shape.value, self.layers()

    def restore(self, state: tuple[str, str, tuple[Layer, ...]]) -> None:
        """The rows as they were."""
        if state != self.state():
            self.preset.value, shape, layers = state
            self.set(shape, layers)

    def shape(self) -> Shape:
        """The shape of a sample; `InputError` for what is none."""
        return read_shape(self.input_shape.value)

    def layers(self) -> tuple[Layer, ...]:
        """The layers, first to last."""
        return tuple(self._layers)

    def notes(self) -> list[Note]:
        """What each row gives and holds; `InputError` where the input has no shape."""
        return notes_of(self.shape(), self._layers)

    def checked(self) -> tuple[Shape, tuple[Layer, ...]]:
        """Shape and layers; the `InputError` of the first row that cannot stand where it is."""
        for note in self.notes():
            if note.problem is not None:
                raise note.problem
        return self.shape(), self.layers()

    def insert(self, place: int, layer: Layer) -> None:
        """Put a layer in front of the row at `place`."""
        if len(self._layers) >= MOST_ROWS:
            raise InputError(f"the model has {MOST_ROWS} rows", expected="no more", todo="build it in a cell")
        order: list[int | None] = [at + 1 for at in range(len(self._layers))]
        order.insert(place, None)
        self._layers = reordered(self._layers, order)
        self._layers.insert(place, layer)
        self._ids.insert(place, self._new_id())
        self._show()

    def remove(self, place: int) -> None:
        """Take a row away; the last one stays."""
        if len(self._layers) > 1 and 0 <= place < len(self._layers):
            self._layers = reordered(self._layers, [at + 1 for at in range(len(self._layers)) if at != place])
            del self._ids[place]
            self._show()

    def move(self, place: int, to: int) -> None:
        """Put a row where another is; those between move by one. Outside of the rows nothing happens."""
        if place != to and 0 <= place < len(self._layers) and 0 <= to < len(self._layers):
            order = list(range(1, len(self._layers) + 1))
            order.insert(to, order.pop(place))
            self._layers = reordered(self._layers, order)
            self._ids.insert(to, self._ids.pop(place))
            self._show()

    def change(self, place: int, layer: Layer) -> None:
        """Put another layer in the place of a row."""
        self._layers[place] = layer
        self._show()

    # What the browser asks for

    def _hear(self, content: Any) -> None:
        """A message of a row; what is none, or of a row that there is not, is not heard."""
        if not isinstance(content, dict):
            return
        if content.get("do") == "add":
            content = {**content, "do": "insert", "at": len(self._layers)}
        act = ASKED.get(str(content.get("do")))
        at = content.get("at")
        most = len(self._layers) + (content.get("do") == "insert")
        if act is None or type(at) is not int or not 0 <= at < most:
            return
        try:
            act(self, at, content)
        except InputError as error:
            if at < len(self._ids):
                self._refused = {self._ids[at]: shown(str(error))}
            self._draw()

    def _set(self, at: int, content: Mapping[str, Any]) -> None:
        layer, which = self._layers[at], content.get("setting")
        settings = KINDS[layer.kind].settings
        if type(which) is int and 0 <= which < len(settings):
            values = list(layer.values)
            values[which] = settings[which].checked(content.get("value"))
            self.change(at, replace(layer, values=tuple(values)))

    def _choose(self, at: int, content: Mapping[str, Any]) -> None:
        layer, name, value = self._layers[at], content.get("name"), content.get("value")
        if name == "kind" and isinstance(value, str) and value in KINDS:
            self.change(at, Layer.new(value, other=max(0, at - 1)))
        elif name == "activation" and value in ACTIVATIONS and KINDS[layer.kind].activation:
            self.change(at, replace(layer, activation=value))
        elif name == "other" and type(value) is int and 0 <= value <= len(self._layers):
            self.change(at, replace(layer, other=value))
        else:
            raise InputError(f"{short(name)} of a layer is {short(value)}", expected="one of what is offered")

    def _new_id(self) -> int:
        self._next += 1
        return self._next

    def _show(self) -> None:
        self._refused = {}
        self._draw()
        self._changed()

    def _draw(self) -> None:
        problem = ""
        try:
            notes = self.notes()
        except InputError as error:
            notes, problem = [Note() for _ in self._layers], shown(str(error))
        self.rows.problem = problem
        self.rows.rows = [
            _row(known, layer, note, self._refused.get(known, ""))
            for known, layer, note in zip(self._ids, self._layers, notes, strict=True)
        ]


ASKED: Mapping[str, Callable[[Builder, int, Mapping[str, Any]], None]] = {
    "set": Builder._set,
    "choose": Builder._choose,
    "insert": lambda builder, at, content: builder.insert(at, Layer.new("Dense")),
    "remove": lambda builder, at, content: builder.remove(at),
    "move": lambda builder, at, content: builder.move(at, content["to"] if type(content.get("to")) is int else at),
}


def _kind(kind: Kind) -> dict[str, Any]:
    """What a row of a kind is drawn with."""
    settings = [
        {
            "label": setting.label,
            "minimum": setting.minimum,
            "maximum": setting.maximum,
            "step": setting.step,
            "words": list(setting.words),
        }
        for setting in kind.settings
    ]
    return {
        "settings": settings,
        "activations": list(ACTIVATIONS) if kind.activation else [],
        "two": kind.called == "two",
    }


def _row(known: int, layer: Layer, note: Note, refused: str) -> dict[str, Any]:
    """A row as it is drawn."""
    problem = refused or ("" if note.problem is None else shown(str(note.problem)))
    return {
        "id": known,
        "kind": layer.kind,
        "values": list(layer.values),
        "activation": layer.activation,
        "other": layer.other,
        "gives": "" if note.shape is None else " × ".join(f"{size:,}" for size in note.shape),
        "holds": note.parameters,
        "problem": problem,
    }


__all__ = ["Builder", "Rows"]
