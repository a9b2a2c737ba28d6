"""Writes `workbench/profiler/offers.pyi` from the registries: what a profile offers by name, with types and words."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workbench.profiler import offers
from workbench.profiler.registry import methods, reports

PATH = Path(offers.__file__).with_suffix(".pyi")
WIDTH = 120
HEAD = '''"""What a profile offers by name: its reports, exports and methods. Written by `make stub`; do not edit."""

'''


def stub() -> str:
    """The text of the stub."""
    imports: dict[str, set[str]] = {}
    parts = [line for name, made in sorted(reports.items()) for line in _report(name, made, imports)]
    parts += [line for name, function in sorted(methods.items()) for line in _method(name, function, imports)]
    modules = sorted(imports, key=lambda module: (module.startswith("workbench"), module))
    lines = [f"from {module} import {', '.join(sorted(imports[module]))}" for module in modules]
    first = next(place for place, module in enumerate(modules) if module.startswith("workbench"))
    return HEAD + "\n".join([*lines[:first], "", *lines[first:], "", "class Offers:", *parts])


def _report(name: str, made: Any, imports: dict[str, set[str]]) -> Iterator[str]:
    imports.setdefault(made.__module__, set()).add(made.__name__)
    words = inspect.getdoc(sys.modules[made.__module__]) or ""
    yield "    @property"
    yield f"    def {name}(self) -> {made.__name__}:"
    yield _quoted(words)


def _method(name: str, function: Callable[..., Any], imports: dict[str, set[str]]) -> Iterator[str]:
    origin = _origins(sys.modules[function.__module__])
    signature = inspect.signature(function)
    given = list(signature.parameters.values())[1:]
    for text in [*(each.annotation for each in given), signature.return_annotation]:
        for word in {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)} & set(origin):
            imports.setdefault(origin[word], set()).add(word)
    star, shown = False, ["self"]
    for each in given:
        if each.kind is each.KEYWORD_ONLY and not star:
            star = True
            shown.append("*")
        default = "" if each.default is each.empty else " = ..."
        shown.append(f"{each.name}: {each.annotation}{default}")
    head, tail = f"    def {name}(", f") -> {signature.return_annotation}:"
    line, broken = ", ".join(shown), ",\n        ".join(shown)
    fits = len(head + line + tail) <= WIDTH
    yield head + (line if fits else f"\n        {broken},\n    ") + tail
    yield _quoted(inspect.getdoc(function) or "")


def _quoted(words: str) -> str:
    """The first line of a docstring, as one that fits."""
    text = f'"""{words.splitlines()[0]}"""'
    return textwrap.fill(text, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8) + "\n"


def _origins(module: Any) -> dict[str, str]:
    """Names that a module imports or defines → where they are from."""
    found = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.name: node.module for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            found[node.name] = module.__name__
    return found


if __name__ == "__main__":
    PATH.write_text(stub(), encoding="utf-8")
    print(PATH)
