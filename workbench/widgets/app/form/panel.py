"""Every option that acts, in one panel made from the declarations: searched, set, tried, loaded and saved as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import traitlets

from workbench.base.text import shown
from workbench.errors import WorkbenchError
from workbench.executable.configured import (
    MOST_TEXT,
    WRITERS,
    acting,
    as_toml,
    defaults,
    found,
    holder_of,
    neighbours,
    read,
    text_of,
    value_of,
)
from workbench.widgets.app.trial import Tries
from workbench.widgets.kit import assets
from workbench.widgets.kit.library import Drawn


class OptionPanel(Drawn):
    """`rows` are the declarations; `state` holds values that are not the default, problems, reads and what was tried.

    `set_option(name, value)` and `set_all(values)` are called with checked values, `try_option(name)` when a trial is
    asked for; an error of ours that they raise stands at its row, or at the text.
    """

    _esm = assets.stub("app/form/panel.js")
    _css = assets.style("app/app", "app/form/panel")
    rows = traitlets.List().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        set_option: Callable[[str, Any], None],
        set_all: Callable[[Mapping[str, Any]], None],
        try_option: Callable[[str], None],
    ) -> None:
        self._set, self._set_all, self._try = set_option, set_all, try_option
        self._options: Any = defaults()
        self._tries: dict[str, Tries] = {}
        self.asked = {"set": self._on_set, "try": self._on_try, "write": self._on_write, "read": self._on_read}
        super().__init__(rows=[_row(each) for each in acting()], state=_EMPTY)
        self.on_msg(self._hear)

    def show(self, options: Any) -> None:
        """The values as they are now."""
        self._options = options
        known = {each["name"] for each in self.rows}
        self._say(values={name: text_of(value) for name, value in options.changed if name in known}, problems={})

    def refuse(self, name: str, error: WorkbenchError) -> None:
        """Say at the row of an option why a value is none."""
        self._say(problems={**self.state["problems"], name: _told(error)})

    def show_reads(self, reads: Mapping[str, str] | None) -> None:
        """Where what is shown read each option; None where that is not known."""
        self._say(reads=None if reads is None else dict(reads))

    def forget_tried(self, outlived: Callable[[Tries], bool] = lambda of: True) -> None:
        """Show no more what neighbouring values gave, of those that are outlived."""
        gone = {name for name, of in self._tries.items() if outlived(of)}
        if gone:
            self._tries = {name: of for name, of in self._tries.items() if name not in gone}
            self._say(tried={name: told for name, told in self.state["tried"].items() if name not in gone})

    def show_tried(self, of: Tries, rows: list[dict[str, Any]]) -> None:
        """What neighbouring values of an option give."""
        self._tries = {**self._tries, of.name: of}
        told = {"against": text_of(of.value) or "none", "rows": rows}
        self._say(tried={**self.state["tried"], of.name: told})

    def _say(self, **changes: Any) -> None:
        self.state = {**self.state, **changes}

    def _hear(self, _: Any, content: Any, buffers: Any) -> None:
        """A message of the browser: one of `asked` and what goes with it; anything else is no message of ours."""
        if isinstance(content, dict) and str(content.get("do")) in self.asked:
            self.asked[str(content["do"])](content)

    def _on_set(self, content: Mapping[str, Any]) -> None:
        name = str(content.get("name"))
        try:
            self._set(name, value_of(found(name), content.get("value")))
        except WorkbenchError as error:
            self.refuse(name, error)

    def _on_try(self, content: Mapping[str, Any]) -> None:
        name = str(content.get("name"))
        try:
            self._try(found(name).name)
        except WorkbenchError as error:
            self.refuse(name, error)

    def _on_write(self, content: Mapping[str, Any]) -> None:
        write = WRITERS.get(str(content.get("format")), as_toml)
        self._say(text=write(self._options), problem="")

    def _on_read(self, content: Mapping[str, Any]) -> None:
        try:
            self._set_all(read(str(content.get("text", ""))))
        except WorkbenchError as error:
            self._say(problem=_told(error), text=str(content.get("text", ""))[:MOST_TEXT])
        else:
            self._say(problem="")


_EMPTY: Mapping[str, Any] = {"values": {}, "problems": {}, "reads": None, "tried": {}, "text": "", "problem": ""}


def _told(error: WorkbenchError) -> str:
    return shown(str(error))


def _row(each: Any) -> dict[str, Any]:
    holder = holder_of(each.name)
    group, _, last = (holder, "", each.name.removeprefix(f"{holder}.")) if holder else each.name.rpartition(".")
    return {
        "name": each.name,
        "group": group or "general",
        "last": last,
        "doc": each.doc,
        "effect": each.effect,
        "kind": "switch" if each.type is bool else "choice" if each.choices and not each.many else "text",
        "choices": [text_of(choice) for choice in each.choices],
        "default": text_of(each.default),
        "zero": each.form_zero,
        "bounds": _bounds(each),
        "tries": bool(neighbours(each, each.default)),
    }


def _bounds(each: Any) -> str:
    low = "" if each.minimum is None else f"at least {each.minimum:g}"
    high = "" if each.maximum is None else f"at most {each.maximum:g}"
    many = "one for all IPUs, or one for each with commas between" if each.many else ""
    one_of = f"of {', '.join(map(text_of, each.choices))}" if each.choices and each.many else ""
    return ", ".join(part for part in (low, high, one_of, many) if part)
