"""Joins a widget's JavaScript and style with what all widgets share, because anywidget loads one file from a blob.

A shared module is a list of declarations, each beginning at the left margin; a widget gets those it reaches.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from workbench.widgets.kit.tighten import tighten

FOLDER = Path(__file__).parents[1]
_IMPORT = re.compile(r"^import\s*\{[^}]*\}\s*from\s*\"(?:\./|\.\./kit/)([a-z_]+)\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=async function|function|const)", re.MULTILINE)
_DECLARATION = re.compile(r"^(?=(?:async function|function|const) )", re.MULTILINE)
_NAME = re.compile(r"(?:async function|function|const) (\w+)")
_LINE_COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)
_INDENT = re.compile(r"^\s+", re.MULTILINE)


def _file(stem: str, kind: str) -> Path:
    """The file of a stem in the kit, the views or the app; it need not exist."""
    found = (FOLDER / folder / f"{stem}.{kind}" for folder in ("kit", "views", "app"))
    return next((file for file in found if file.exists()), FOLDER / f"{stem}.{kind}")


def _source(stem: str) -> str:
    return _file(stem, "js").read_text(encoding="utf-8")


def _plain(stem: str) -> str:
    """A module without imports, exports, whole-line comments and indentation; no source has text over several lines."""
    text = _EXPORT.sub("", _IMPORT.sub("", _source(stem)))
    return _INDENT.sub("", _LINE_COMMENT.sub("", text))


def _imported(stem: str, seen: list[str]) -> list[str]:
    """Every module that a module imports, what is needed first standing first."""
    for name in _IMPORT.findall(_source(stem)):
        if name not in seen:
            _imported(name, seen)
            seen.append(name)
    return seen


def _shared(stems: tuple[str, ...]) -> str:
    """The declarations of imported modules that the given ones reach, directly or not."""
    modules: list[str] = []
    for stem in stems:
        _imported(stem, modules)
    parts = [part for name in modules for part in _declarations(name)]
    return "".join(part for _, part in _reached(parts, "".join(_plain(stem) for stem in stems)))


def _declarations(stem: str) -> list[tuple[str, str]]:
    """Name and text of each declaration at the left margin of a module."""
    text = _LINE_COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", _source(stem))))
    parts = [part for part in _DECLARATION.split(text) if part.strip()]
    return [(found.group(1), _INDENT.sub("", part)) for part in parts if (found := _NAME.match(part))]


def _reached(parts: list[tuple[str, str]], text: str) -> list[tuple[str, str]]:
    words = set(re.findall(r"\w+", text))
    kept: set[str] = set()
    fresh = True
    while fresh:
        fresh = False
        for name, part in parts:
            if name in words and name not in kept:
                kept.add(name)
                words.update(re.findall(r"\w+", part))
                fresh = True
    return [(name, part) for name, part in parts if name in kept]


@cache
def javascript(stem: str) -> str:
    """The module `<stem>.js` with what it reaches of other modules in front of it: no import, one default export."""
    return tighten(_shared((stem,)) + _plain(stem))


@cache
def script(stems: tuple[str, ...]) -> str:
    """Several widgets as one plain script for a stored page: shared code once, then `views[stem] = {render}` each."""
    own = "".join(f"views[{stem!r}] = (() => {{\n{_plain(stem)}}})();\n" for stem in stems)
    own = own.replace("export default {render};", "return {render};")
    return tighten(f'"use strict";\nconst views = {{}};\n{_shared((*stems, "offline"))}{_plain("offline")}{own}')


@cache
def style(stem: str) -> str:
    """The shared style followed by the widget's own."""
    return styles((stem,))


def styles(stems: tuple[str, ...]) -> str:
    """The shared style once, then those of several widgets."""
    files = [_file(name, "css") for name in ("kernel", *stems)]
    return "".join(file.read_text(encoding="utf-8") for file in files if file.exists())
