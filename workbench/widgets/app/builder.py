"""The layer-by-layer builder of the app: a row of controls per layer, with buttons to move, remove and add rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from workbench.widgets.app.layers import ACTIVATIONS, KINDS, PRESETS, Layer, Setting, read_shape

WIDEST = max(len(kind.settings) for kind in KINDS.values())


def icon_button(icon: str, tooltip: str, on_click: Callable[[], None], *, disabled: bool = False) -> Any:
    """A small button that shows a picture and is named in words."""
    button = ipywidgets.Button(
        icon=icon, description=tooltip, tooltip=tooltip, disabled=disabled, layout={"width": "28px"}
    )
    button.add_class("wb-app-icon")
    button.on_click(lambda _: on_click())
    return button


class Row:
    """The controls of one layer; `layer()` reads them."""

    def __init__(self, place: int, layer: Layer, on_change: Callable[[], None], on_kind: Callable[[str], None]) -> None:
        kind = KINDS[layer.kind]
        self.kind = ipywidgets.Dropdown(options=list(KINDS), value=kind.name, description=f"layer {place}: kind")
        self.kind.observe(lambda change: on_kind(change["new"]), "value")
        self.settings = [
            self._number(place, setting, value) for setting, value in zip(kind.settings, layer.values, strict=True)
        ]
        self.activation = None
        if kind.activation:
            self.activation = ipywidgets.Dropdown(
                options=ACTIVATIONS, value=layer.activation, description=f"layer {place}: activation"
            )
        for control in [*self.settings, *([self.activation] if self.activation else [])]:
            control.observe(lambda change: on_change(), "value")

    @staticmethod
    def _number(place: int, setting: Setting, value: float) -> Any:
        about = {"description": setting.label, "tooltip": f"{setting.label} of layer {place}"}
        bounds = {"min": setting.minimum, "max": setting.maximum}
        if setting.step == 1:
            whole = {key: int(bound) for key, bound in bounds.items()}
            return ipywidgets.BoundedIntText(value=int(value), **whole, **about)
        return ipywidgets.BoundedFloatText(value=value, step=setting.step, **bounds, **about)

    def layer(self) -> Layer:
        """The layer as the controls have it."""
        activation = self.activation.value if self.activation else "none"
        return Layer(kind=self.kind.value, values=tuple(each.value for each in self.settings), activation=activation)

    def cells(self) -> list[Any]:
        """The controls in columns; the activation stands after the numbers."""
        empty = [ipywidgets.Box() for _ in range(WIDEST - len(self.settings))]
        return [self.kind, *self.settings, *empty, self.activation or ipywidgets.Box()]


class Builder:
    """`box` is the builder; `shape()` and `layers()` what it says."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._changed = on_change
        self.preset = ipywidgets.Dropdown(options=list(PRESETS), value="MLP", description="start from")
        self.input_shape = ipywidgets.Text(
            description="input shape",
            tooltip="One sample, without the batch: 64, or 28, 28, 1",
            continuous_update=False,
        )
        self.add = ipywidgets.Button(description="Add layer", icon="plus", tooltip="Add a layer at the end")
        self.add.on_click(lambda _: self.insert(len(self.rows), Layer.new("Dense")))
        self.preset.observe(lambda change: self.start_from(change["new"]), "value")
        self.input_shape.observe(lambda change: self._changed(), "value")
        self.rows: list[Row] = []
        self._grid = ipywidgets.VBox()
        self._grid.add_class("wb-app-rows")
        head = ipywidgets.HBox([self.preset, self.input_shape])
        head.add_class("wb-app-pair")
        self.box = ipywidgets.VBox([head, self._grid, self.add])
        self.start_from("MLP")

    def start_from(self, preset: str) -> None:
        """Replace everything by a preset."""
        shape, layers = PRESETS[preset]
        self.set(shape, layers)

    def set(self, shape: str, layers: Sequence[Layer]) -> None:
        """Replace everything."""
        self.rows = []
        self.input_shape.value = shape
        self._remake(layers)

    def shape(self) -> tuple[int, ...]:
        """The shape of a sample; `InputError` for what is none."""
        return read_shape(self.input_shape.value)

    def layers(self) -> tuple[Layer, ...]:
        """The layers, first to last."""
        return tuple(row.layer() for row in self.rows)

    def insert(self, place: int, layer: Layer) -> None:
        """Put a layer in front of the row at `place`, counted from 0."""
        layers = list(self.layers())
        layers.insert(place, layer)
        self._remake(layers)

    def remove(self, place: int) -> None:
        """Take a row away; the last one stays."""
        layers = [layer for at, layer in enumerate(self.layers()) if at != place]
        if layers:
            self._remake(layers)

    def move(self, place: int, by: int) -> None:
        """Exchange a row with the one `by` places further; at the ends nothing happens."""
        layers = list(self.layers())
        other = place + by
        if 0 <= other < len(layers):
            layers[place], layers[other] = layers[other], layers[place]
            self._remake(layers)

    def _of_kind(self, place: int, kind: str) -> None:
        layers = list(self.layers_before(place)) + [Layer.new(kind)] + [row.layer() for row in self.rows[place + 1 :]]
        self._remake(layers)

    def layers_before(self, place: int) -> tuple[Layer, ...]:
        """The layers in front of a row."""
        return tuple(row.layer() for row in self.rows[:place])

    def _remake(self, layers: Sequence[Layer]) -> None:
        self.rows = [
            Row(at + 1, layer, self._changed, lambda kind, at=at: self._of_kind(at, kind))  # type: ignore[misc]
            for at, layer in enumerate(layers)
        ]
        self._grid.children = [self._row(at, row) for at, row in enumerate(self.rows)]
        self._changed()

    def _row(self, at: int, row: Row) -> Any:
        name, last = f"layer {at + 1}", len(self.rows) - 1
        buttons = [
            icon_button("arrow-up", f"Move {name} up", lambda: self.move(at, -1), disabled=at == 0),
            icon_button("arrow-down", f"Move {name} down", lambda: self.move(at, 1), disabled=at == last),
            icon_button("times", f"Remove {name}", lambda: self.remove(at), disabled=last == 0),
        ]
        number = ipywidgets.HTML(f'<span class="wb-app-place">{at + 1}</span>')
        box = ipywidgets.Box([number, *row.cells(), ipywidgets.HBox(buttons)])
        box.add_class("wb-app-row")
        return box
