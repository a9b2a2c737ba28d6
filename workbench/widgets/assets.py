"""Joins a widget's JavaScript and style with what all widgets share, because anywidget loads one file from a blob."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_IMPORT = re.compile(r"^import\s*\{[^}]*\}\s*from\s*\"\./([a-z_]+)\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=async function|function|const|class)", re.MULTILINE)
_LINE_COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)
_INDENT = re.compile(r"^ +", re.MULTILINE)


def _source(stem: str) -> str:
    return (FOLDER / f"{stem}.js").read_text(encoding="utf-8")


def _with_imports(stem: str, seen: list[str]) -> None:
    if stem in seen:
        return
    for imported in _IMPORT.findall(_source(stem)):
        _with_imports(imported, seen)
    seen.append(stem)


@cache
def javascript(stem: str) -> str:
    """The module `<stem>.js` with every module it imports in front of it: no import is left, one default export.

    Whole-line comments and indentation stay behind; no source of ours has text over several lines.
    """
    order: list[str] = []
    _with_imports(stem, order)
    parts = [_IMPORT.sub("", _source(name)) for name in order]
    shared = [_EXPORT.sub("", part) for part in parts]
    return _INDENT.sub("", _LINE_COMMENT.sub("", "\n".join(shared)))


@cache
def style(stem: str) -> str:
    """The shared style followed by the widget's own."""
    return styles((stem,))


def styles(stems: tuple[str, ...]) -> str:
    """The shared style once, then those of several widgets."""
    files = [FOLDER / f"{name}.css" for name in ("kernel", *stems)]
    return "".join(file.read_text(encoding="utf-8") for file in files if file.exists())


@cache
def script(stems: tuple[str, ...]) -> str:
    """Several widgets as one plain script for a stored page: what they share once, then `views[stem] = {render}`."""
    shared: list[str] = []
    for stem in (*stems, "offline"):
        _with_imports(stem, shared)
    common = "\n".join(_EXPORT.sub("", _IMPORT.sub("", _source(name))) for name in shared if name not in stems)
    own = "\n".join(f"views[{stem!r}] = (() => {{\n{_own(stem)}\n}})();" for stem in stems)
    return _INDENT.sub("", _LINE_COMMENT.sub("", f'"use strict";\nconst views = {{}};\n{common}\n{own}'))


def _own(stem: str) -> str:
    text = _EXPORT.sub("", _IMPORT.sub("", _source(stem)))
    return text.replace("export default {render};", "return {render};")
