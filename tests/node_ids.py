"""Tests by their node ids, as the tables of stories and of parity name them: found in their files, not run."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def functions(path: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def function_of(test: str) -> ast.FunctionDef | None:
    path, _, name = test.partition("::")
    return functions(path).get(name) if (ROOT / path).exists() else None


def decorators_of(function: ast.FunctionDef) -> set[str]:
    lines = function.decorator_list
    return {each.attr for line in lines for each in ast.walk(line) if isinstance(each, ast.Attribute)}
