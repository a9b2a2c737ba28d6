"""The options of the app: controls of the common ones, marked where they left their default, and the panel of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets

from workbench.base.text import literal, shown
from workbench.errors import WorkbenchError
from workbench.executable import options_of
from workbench.executable.configured import defaults, text_of
from workbench.ipu.config import form_options
from workbench.widgets.app.form.number import Number, PartNumber, WholeNumber
from workbench.widgets.app.form.panel import OptionPanel

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
    label, bounds = shared.pop("description"), (declared.minimum, declared.maximum)
    first = value[0] if isinstance(value, tuple) else value
    if declared.type is float:
        return PartNumber(label, first, *bounds, step=STEP, **shared)
    return WholeNumber(label, int(first), *bounds, **shared)


def tooltip_of(declared: Any) -> str:
    """What the option does, its full name, its default, and whether anything reads it yet."""
    unread = " Nothing reads it yet: it has no effect." if has_no_effect(declared) else ""
    return f"{declared.doc}{unread} {declared.name}, default {literal(declared.default)}"


def has_no_effect(declared: Any) -> bool:
    """Whether the option is only declared so far."""
    return str(declared.status).endswith("not yet read")


def _label(control: Any, text: str) -> None:
    if isinstance(control, Number):
        control.label(text)
    else:
        control.description = text


def _noted(*notes: str) -> str:
    """`" (default 4, no effect yet)"`, of those notes that say something."""
    told = ", ".join(each for each in notes if each)
    return f" ({told})" if told else ""


class OptionsForm:
    """`box` is the form; `options()` what it says, over the configuration it began with.

    `on_change` is called behind every change, `try_option(name)` when values beside an option's are to be compiled.
    """

    def __init__(
        self,
        config: Any = None,
        on_change: Callable[[], None] = lambda: None,
        try_option: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._options = options_of(config)
        self._changed = on_change
        self._following = False
        self._declared = {each.name: each for each in form_options()}
        self.controls = {name: control_of(each, self._options.get(name)) for name, each in self._declared.items()}
        self.reset_button = ipywidgets.Button(
            description="Reset", tooltip="Set every option to its default", layout={"width": "auto"}
        )
        self.reset_button.on_click(lambda _: self.reset())
        self.count = ipywidgets.HTML()
        self.panel = OptionPanel(lambda name, value: self.set({name: value}), self._set_all, try_option)
        grid = ipywidgets.Box(list(self.controls.values()))
        grid.add_class("wb-app-options")
        foot = ipywidgets.HBox([self.reset_button, self.count])
        foot.add_class("wb-app-foot")
        self.box = ipywidgets.VBox([grid, foot, self.panel])
        for name, control in self.controls.items():
            control.observe(lambda change, name=name: self._moved(name, change["new"]), "value")
        self._show()

    def options(self) -> Any:
        """The options of a compile."""
        return self._options

    def set(self, values: Mapping[str, Any]) -> None:
        """Set options by name; those that have a control move it."""
        self.restore(self._options.with_values(values))

    def state(self) -> Any:
        """What is set, for `restore`."""
        return self._options

    def restore(self, options: Any) -> None:
        """All options as they were, and the controls with them."""
        self._options = options
        self._following = True
        try:
            for name, control in self.controls.items():
                value = options.get(name)
                control.value = value[0] if isinstance(value, tuple) and value else value
        finally:
            self._following = False
        self._show()
        self._changed()

    def reset(self) -> None:
        """Every option to the default of its declaration."""
        self.restore(defaults())

    def _set_all(self, values: Mapping[str, Any]) -> None:
        self.restore(defaults().with_values(values))

    def _moved(self, name: str, value: Any) -> None:
        if self._following:
            return
        try:
            self.set({name: value})
        except WorkbenchError as error:
            self.restore(self._options)
            self.panel.refuse(name, error)
            if isinstance(control := self.controls[name], Number):
                control.tell(shown(str(error)))

    def _show(self) -> None:
        changed = dict(self._options.changed)
        for name, control in self.controls.items():
            declared = self._declared[name]
            label = declared.form_label or name
            zero = f"0: {declared.form_zero}" if declared.form_zero else ""
            unread = "no effect yet" if has_no_effect(declared) else ""
            if name in changed:
                control.add_class("wb-app-changed")
                several = f": {text_of(changed[name])}" if isinstance(changed[name], tuple) else ""
                default = f"default {zero or declared.default}"
                _label(control, f"{label}{several}{_noted(default, unread)}")
            else:
                control.remove_class("wb-app-changed")
                _label(control, f"{label}{_noted(zero, unread)}")
        self.reset_button.disabled = not changed
        text = f"{len(changed)} changed from the default" if changed else "all at their defaults"
        self.count.value = f'<span class="wb-app-note">{text}</span>'
        self.panel.show(self._options)
