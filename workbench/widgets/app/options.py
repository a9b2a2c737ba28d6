"""The options form of the app, made from the declarations: a control each, marked where it left its default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets

from workbench.base.text import literal
from workbench.executable import options_of
from workbench.ipu.config import form_options

NO_MAXIMUM = 1_000_000
STEP = 0.05


def control_of(declared: Any, value: Any) -> Any:
    """The control of one declaration: a checkbox, a list of choices, or a number within its bounds."""
    shared = {
        "description": declared.form_label or declared.name,
        "tooltip": tooltip_of(declared),
        "disabled": has_no_effect(declared),
    }
    if declared.type is bool:
        return ipywidgets.Checkbox(value=bool(value), indent=False, **shared)
    if declared.choices:
        return ipywidgets.Dropdown(options=list(declared.choices), value=value, **shared)
    low = 0 if declared.minimum is None else declared.minimum
    high = NO_MAXIMUM if declared.maximum is None else declared.maximum
    if declared.type is float:
        return ipywidgets.BoundedFloatText(value=value, min=low, max=high, step=STEP, **shared)
    first = value[0] if isinstance(value, tuple) else value
    return ipywidgets.BoundedIntText(value=int(first), min=int(low), max=int(high), **shared)


def tooltip_of(declared: Any) -> str:
    """What the option does, its full name, its default, and whether anything reads it yet."""
    unread = " Nothing reads it yet: it has no effect." if has_no_effect(declared) else ""
    return f"{declared.doc}{unread} {declared.name}, default {literal(declared.default)}"


def has_no_effect(declared: Any) -> bool:
    """Whether the option is only declared so far."""
    return str(declared.status).endswith("not yet read")


class OptionsForm:
    """`box` is the form; `options()` what it says, over the configuration it began with."""

    def __init__(self, config: Any = None, on_change: Callable[[], None] = lambda: None) -> None:
        self._base = options_of(config)
        self._changed = on_change
        self._declared = {each.name: each for each in form_options()}
        self.controls = {name: control_of(each, self._base.get(name)) for name, each in self._declared.items()}
        self._first = {name: control.value for name, control in self.controls.items()}
        self.reset_button = ipywidgets.Button(
            description="Reset", tooltip="Set every option of the form to its default", layout={"width": "auto"}
        )
        self.reset_button.on_click(lambda _: self.reset())
        self.count = ipywidgets.HTML()
        grid = ipywidgets.Box(list(self.controls.values()))
        grid.add_class("wb-app-options")
        foot = ipywidgets.HBox([self.reset_button, self.count])
        foot.add_class("wb-app-foot")
        self.box = ipywidgets.VBox([grid, foot])
        for control in self.controls.values():
            control.observe(self._show, "value")
        self._mark()

    def options(self) -> Any:
        """The options of a compile: those of the configuration, with the controls that were moved."""
        moved = {name: control.value for name, control in self.controls.items() if control.value != self._first[name]}
        return self._base.with_values(moved)

    def changed(self) -> dict[str, Any]:
        """The options that differ from their default, by name."""
        return {
            name: control.value
            for name, control in self.controls.items()
            if control.value != self._declared[name].default
        }

    def set(self, values: Mapping[str, Any]) -> None:
        """Move controls; names that are not in the form go into the configuration below it."""
        outside = {name: value for name, value in values.items() if name not in self.controls}
        self._base = self._base.with_values(outside)
        for name, value in values.items():
            if name in self.controls:
                self.controls[name].value = value

    def state(self) -> tuple[Any, dict[str, Any]]:
        """The configuration below, and where the controls stand, for `restore`."""
        return self._base, {name: control.value for name, control in self.controls.items()}

    def restore(self, state: tuple[Any, dict[str, Any]]) -> None:
        """The configuration and the controls as they were."""
        self._base, values = state
        self.set(values)

    def reset(self) -> None:
        """Every control to the default of its declaration."""
        self.set({name: declared.default for name, declared in self._declared.items()})

    def _show(self, change: Any) -> None:
        self._mark()
        self._changed()

    def _mark(self) -> None:
        changed = self.changed()
        for name, control in self.controls.items():
            declared = self._declared[name]
            label = declared.form_label or name
            unread = ", no effect yet" if has_no_effect(declared) else ""
            if name in changed:
                control.add_class("wb-app-changed")
                control.description = f"{label} (default {declared.default}{unread})"
            else:
                control.remove_class("wb-app-changed")
                control.description = f"{label}{f' ({unread[2:]})' if unread else ''}"
        self.reset_button.disabled = not changed
        text = f"{len(changed)} changed from the default" if changed else "all at their defaults"
        self.count.value = f'<span class="wb-app-note">{text}</span>'
