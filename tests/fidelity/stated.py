"""Programs whose case states them whole: arithmetic in words, with its numbers, made into functions of tensors."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def arithmetic(text: str) -> Callable[[Mapping[str, Any]], Any] | None:
    """Sums, differences, products and quotients of names and numbers as a function of the names; else None."""
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    known = (ast.BinOp, ast.Name, ast.Constant, ast.UnaryOp, ast.USub, ast.Load, *OPERATIONS)
    if not all(isinstance(part, known) for part in ast.walk(body)):
        return None
    return lambda names: _value(body, names)


def _value(part: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(part, ast.BinOp):
        return OPERATIONS[type(part.op)](_value(part.left, names), _value(part.right, names))
    if isinstance(part, ast.UnaryOp):
        return -_value(part.operand, names)
    return names[part.id] if isinstance(part, ast.Name) else part.value  # type: ignore[attr-defined]


def numbers(text: str) -> dict[str, float]:
    """What a text sets single letters to: `a=1, b=-2`, or `of 1, -2` from `a` on."""
    if found := re.search(r"\) of (-?\d+(?:, ?-?\d+)*)", text):
        return dict(zip("abcdefgh", map(float, found[1].split(",")), strict=False))
    return {name: float(value) for name, value in re.findall(r"\b([a-z])=(-?\d+(?:\.\d+)?)\b", text)}


def two_arms(text: str) -> list[Callable[[Mapping[str, Any]], Any]] | None:
    """The arms of `cond(p, this, that)`."""
    found = re.search(r"cond\(\w+, ?([^,()]+), ?([^,()]+)\)", text)
    arms = [arithmetic(found[place]) for place in (1, 2)] if found else [None]
    return None if None in arms else arms  # type: ignore[return-value]


def pair_loop(text: str) -> tuple[int, Callable[[Any, Any], tuple[Any, Any]]] | None:
    """Turns and body of `repeat 4: (a,b)->(a+b,a)`."""
    found = re.search(r"repeat (\d+): ?\(a, ?b\) ?-> ?\(([^,()]+), ?([^,()]+)\)", text)
    parts = [arithmetic(found[place]) for place in (2, 3)] if found else [None]
    if found is None or None in parts:
        return None
    one, other = parts
    return int(found[1]), lambda a, b: (one({"a": a, "b": b}), other({"a": a, "b": b}))  # type: ignore[misc]


def fed_sum(text: str) -> tuple[int, int, float, bool] | None:
    """Of a loop that adds what it is fed: how many numbers come over and over, turns, the start, whether in pairs."""
    last, turns = re.search(r"\bn=(\d+)", text), re.search(r"repeat\((\d+)|i ?< ?(\d+)", text)
    added, start = re.search(r"v ?\+= ?(x|a ?\+ ?b)\b", text), re.search(r"v0=(-?\d+)", text)
    if not (last and turns and added):
        return None
    return int(last[1]), int(turns[1] or turns[2]), float(start[1]) if start else 0.0, added[1] != "x"
