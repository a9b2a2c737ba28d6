"""The drawer behind `?`: options with default, effect, phase and a measured example, names with what they do."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import traitlets

from workbench.base.units import count_text
from workbench.widgets.kit import assets
from workbench.widgets.kit.library import Drawn

DATA = Path(__file__).parent / "reference.json"


@cache
def entries() -> list[dict[str, Any]]:
    """Every entry as it is shown: `name, kind, head, text, lines`."""
    found = json.loads(DATA.read_text(encoding="utf-8"))
    options = [_of_option(each) for each in found["options"]]
    names = [
        {"name": each["name"], "kind": "name", "head": each["signature"], "text": each["doc"], "lines": []}
        for each in found["api"]
    ]
    return options + names


def _of_option(each: dict[str, Any]) -> dict[str, Any]:
    lines = [["Default", each["default"]], ["Takes", each["takes"]], ["Effect", each["effect"]]]
    lines += [["Why", each["reason"]]] if each["reason"] else [["Read in", each["phase"]]]
    if not each["reason"]:
        lines += [["Example", _example(each["example"])]]
    return {"name": each["name"], "kind": "option", "head": each["name"], "text": each["doc"], "lines": lines}


def _example(found: dict[str, Any] | None) -> str:
    if found is None:
        return "no value beside the default changed one of the programs that were tried"
    parts = [
        f"{count_text(first)} to {count_text(second)} {unit}" if first != second else f"the same {unit}"
        for unit, (first, second) in (("bytes", found["bytes"]), ("cycles", found["cycles"]))
    ]
    return f"{found['value']} in {found['program']}: {', '.join(parts)} (modelled)"


class ReferencePanel(Drawn):
    """Closed at first; `entries` are sent when it is opened the first time."""

    _esm = assets.stub("app/reference/panel.js")
    _css = assets.style("app/app", "app/reference/panel")
    entries = traitlets.List().tag(sync=True)

    def __init__(self) -> None:
        super().__init__()
        self.on_msg(lambda _, message, buffers: self._open() if message == "open" else None)

    def _open(self) -> None:
        if not self.entries:
            self.entries = entries()


__all__ = ["ReferencePanel", "entries"]
