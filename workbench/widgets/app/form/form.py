"""The form as one: what it asks for, where it stands, and how it is moved to what a fix or a result asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import ipywidgets

from workbench.errors import WorkbenchError
from workbench.widgets.app.bar import asked_for
from workbench.widgets.app.form.changes import Asked, changes
from workbench.widgets.app.form.code import AppCode, code_of
from workbench.widgets.app.form.number import Number
from workbench.widgets.app.form.options import OptionsForm
from workbench.widgets.app.form.run import RunForm, request_of
from workbench.widgets.app.form.source import SourcePicker


class Stands:
    """Where the `parts` of a form stand, each with `state()` and `restore(state)`; they are moved in their order.

    `said()` is what the form says: once it says something else than where `use` set it, there is no way back.
    """

    def __init__(self, parts: Sequence[Any], said: Callable[[], Any]) -> None:
        self._parts, self._said = parts, said
        self._before: Any = None
        self._used: Any = None

    def state(self) -> tuple[Any, ...]:
        """Where they stand, for `restore`."""
        return tuple(part.state() for part in self._parts)

    def restore(self, state: Sequence[Any]) -> None:
        """Move them to where they stood."""
        for part, each in zip(self._parts, state, strict=True):
            part.restore(each)

    @property
    def undoes(self) -> bool:
        """Whether the form stands where `use` set it, and can go back."""
        return self._before is not None and bool(self._said() == self._used)

    def use(self, state: Sequence[Any]) -> None:
        """Move them to where they stood, and remember where they stand: of several moves in a row the first place."""
        before = self._before if self.undoes else self.state()
        self.restore(state)
        self._before, self._used = before, self._said()

    def undo(self) -> None:
        """Back to before `use`."""
        before, self._before = self._before, None
        self.restore(before)


class Form:
    """`box` is the form; `picker`, `run` and `options` are its parts, `stands` where they stand; `code` is what they
    ask for, and so is `asked`, None where that is nothing that can be compiled.

    `source` and `config` as of the app. `changed()` is called behind every change, `try_option(name)` when values
    beside an option's are to be compiled.
    """

    def __init__(
        self, source: Any, config: Any, changed: Callable[[], None], try_option: Callable[[str], None]
    ) -> None:
        self._changed = changed
        self._ready = False
        self.picker = SourcePicker(source, self._pick)
        self.run = RunForm(self._tell)
        self.options = OptionsForm(config, self._tell, try_option)
        self.code = AppCode(title="What is compiled, as code")
        self.asked: Asked | None = None
        self.stands = Stands((self.picker, self.options, self.run), lambda: self.asked or self.code.problem)
        self.box = self._cards()
        self._ready = True

    def request(self, target: Any = None) -> Any:
        """What is asked for, of a machine in place of the one that the options describe; `InputError` or `OptionError`
        when that is not possible."""
        return request_of(self.picker.choice(), self.run, self.options.options(), target)

    def show_code(self, target: Any = None) -> str:
        """Show what is asked for as code; returns it in words, or why it is nothing that can be compiled."""
        try:
            choice = self.picker.choice()
            self.run.count_layers(choice.layers >= max(1, self.options.options().ipus() // self.run.replicas.value))
            request = self.request(target)
        except WorkbenchError as error:
            self.asked, self.code.problem = None, str(error)
            return str(error)
        self.asked = Asked.of(choice, request)
        self.code.code, self.code.problem = code_of(choice, request), ""
        return asked_for(choice.name, request)

    def changes(self, before: Asked, *, same: bool = True) -> list[str] | None:
        """What it asks for otherwise, by name; None where that is the same, which is never so of a profile that was not
        compiled here (`same`). An empty list where nobody knows."""
        if self.asked is None:
            return []
        return changes(before, self.asked) or (None if same else [])

    def settle(self) -> None:
        """Number fields tell no more of a value that was brought into their bounds: it is compiled now."""
        controls = [*self.run.box.children, *self.options.controls.values(), *self.picker.sizes.fields.values()]
        for each in controls:
            if isinstance(each, Number):
                each.settle()

    def take(self, arguments: Mapping[str, Any], options: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Move the controls to arguments and options of a compile; options first, which may be refused."""
        steps = arguments.get("gradient_accumulation_steps")
        accumulation = {"pipeline.gradient_accumulation_steps": steps} if steps else {}
        self.options.set({**options, **accumulation})
        self.run.set(arguments)

    def take_found(self, found: Any) -> str:
        """Take the options that a compile which found its stages set: of micro-batches that were left at one, and what
        memory asked for; cuts by hand begin from them. Returns them as `"name = value, ..."`, or ""."""
        own = dict(self.options.options().changed)
        written = self.run.writes()  # by fields of the form, which are left where they stand
        kept = {name: value for name, value in found.changed if name not in written or name in own}
        if kept != own:
            self.options.restore(replace(found, changed=tuple(kept.items())))
        return ", ".join(f"{name} = {value}" for name, value in kept.items() if own.get(name) != value)

    def _cards(self) -> Any:
        parts = ipywidgets.Box([self.picker.box, self.code])
        parts.add_class("wb-app-model")
        model = _card("Model", parts)
        run = _card("Run", self.run.box, ipywidgets.HTML("<h4>Options</h4>"), self.options.box)
        box = ipywidgets.Box([model, run])
        box.add_class("wb-app-form")
        return box

    def _pick(self) -> None:
        """Another source: cuts that were made by hand are none of its."""
        if self._ready:
            self.run.cut_by_hand([])
            self._tell()

    def _tell(self) -> None:
        if self._ready:
            self._changed()


def _card(title: str, *children: Any) -> Any:
    box = ipywidgets.VBox([ipywidgets.HTML(f"<h3>{title}</h3>"), *children])
    box.add_class("wb-app-card")
    return box


__all__ = ["Form", "Stands"]
