"""Sizes of a ready model as fields; the model's own where nobody moved them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets

from workbench.executable import ready_source
from workbench.widgets.app.form.number import WholeNumber

MAX_SIZE = 65_536
# More layers are nested deeper than Python calls, larger images take an hour; a word is only a row of a table.
MAX_SIZES = {"layers": 512, "image_size": 4_096, "vocabulary": 1_000_000}


class Sizes:
    """`box` folds the fields of one ready model out; `source()` is that model in the sizes they say.

    Keras is loaded when they are first folded out, because the sizes stand with the builders.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._changed = on_change
        self._name = ""
        self._own: dict[str, int] = {}
        self._kept: Any = None
        self.fields: dict[str, Any] = {}
        self._inside = ipywidgets.Box()
        self._inside.add_class("wb-app-run")
        self.box = ipywidgets.Accordion([self._inside], titles=["Sizes"], selected_index=None)
        self.box.observe(lambda change: self._fill(), "selected_index")

    def of(self, name: str) -> None:
        """Begin with the sizes of another ready model."""
        if name != self._name:
            self._name, self.fields, self._own = name, {}, {}
            self._inside.children = []
            self._fill()

    def _fill(self, *, folded: bool = False) -> None:
        if (self.box.selected_index is None and not folded) or self.fields:
            return
        self._own = dict(ready_source(self._name).size)
        for key, value in self._own.items():
            most, tooltip = MAX_SIZES.get(key, MAX_SIZE), f"{value:,} unless you say otherwise"
            field = WholeNumber(key.replace("_", " "), value, 1, most, tooltip=tooltip)
            field.observe(lambda change: self._changed(), "value")
            self.fields[key] = field
        self._inside.children = list(self.fields.values())

    def moved(self) -> dict[str, int]:
        """The sizes that are not the model's own."""
        return {key: field.value for key, field in self.fields.items() if field.value != self._own[key]}

    def state(self) -> dict[str, Any]:
        """The model and its sizes, for `restore`."""
        return {"name": self._name, "moved": self.moved(), "kept": self._kept}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The sizes of a state of the same model."""
        if state["moved"]:
            self._fill(folded=True)
        for key, field in self.fields.items():
            field.value = state["moved"].get(key, self._own[key])
        self._kept = state["kept"]  # the object that these sizes were

    def source(self) -> Any:
        """The name, or, in other sizes, the model; an `InputError` for sizes that do not go together.

        The same sizes are the same object: a compile that differs in options alone uses the trace again.
        """
        moved = self.moved()
        if not moved:
            return self._name
        if self._kept is None or self._kept[0] != (self._name, moved):
            self._kept = (self._name, moved), ready_source(self._name, **moved)
        return self._kept[1]


__all__ = ["Sizes"]
