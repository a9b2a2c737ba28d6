"""Numbers that remember how they were worked out, so that a formula can be shown evaluated, as arithmetic.

A function of numbers is called with `Remembered` ones; what it returns writes down the additions, products and
roundings that led to it, with the names its arguments were given. Of a maximum or a branch that is the side taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Number: TypeAlias = "int | float"
LONGEST = 400  # characters; what is longer shows its smallest parts as numbers
_ROOMS = ((40, 20), (12, 8), (8, 6), (6, 4), (4, 3), (3, 2), (2, 1))  # terms of a sum, and how deep


@dataclass(frozen=True, slots=True)
class Node:
    """A step of a calculation: `kind` is "leaf", "sum", "product" or an operator; `value` what it came to.

    A leaf has its name as its only part, a sum pairs of a part and how often it counts, and a number without a part.
    """

    kind: str
    parts: tuple[Any, ...]
    value: Number


def _plain(value: Number) -> Node:
    return Node("leaf", (_text(value),), value)


def _text(value: Number) -> str:
    return repr(value) if isinstance(value, float) and not value.is_integer() else str(int(value))


def _added(first: Node, second: Node, sign: int, value: Number) -> Node:
    """A sum with like parts counted together."""
    counts: dict[Node | None, Number] = {}
    for node, factor in ((first, 1), (second, sign)):
        for part, count in _terms(node):
            counts[part] = counts.get(part, 0) + factor * count
    kept = tuple((part, count) for part, count in counts.items() if count)
    if len(kept) == 1 and kept[0][0] is not None and kept[0][1] == 1:
        return kept[0][0]
    return Node("sum", kept, value)


def _terms(node: Node) -> tuple[tuple[Node | None, Number], ...]:
    if node.kind == "sum":
        return node.parts
    if _is_number(node):
        return ((None, node.value),)
    if node.kind == "product" and _is_number(node.parts[0]) and isinstance(node.parts[0].value, int):
        return ((node.parts[1], node.parts[0].value),)
    return ((node, 1),)


def _is_number(node: Node) -> bool:
    return node.kind == "leaf" and node.parts[0] == _text(node.value)


def _multiplied(first: Node, second: Node, value: Number) -> Node:
    """A product, a number first."""
    if _is_number(second) and not _is_number(first):
        first, second = second, first
    for one, other in ((first, second), (second, first)):
        if _is_number(one) and one.value == 1:
            return other
    if _is_number(first) and second.kind == "product" and _is_number(second.parts[0]):
        return Node("product", (_plain(first.value * second.parts[0].value), second.parts[1]), value)
    return Node("product", (first, second), value)


def _negated(node: Node, value: Number) -> Node:
    """The negative; -(-a // b) is written as the quotient rounded up that it is."""
    if node.kind == "//" and next((count < 0 for part, count in _terms(node.parts[0]) if part), False):
        upper = _added(_plain(0), node.parts[0], -1, -node.parts[0].value)
        return Node("ceil", (Node("/", (upper, node.parts[1]), upper.value / node.parts[1].value),), value)
    return _added(_plain(0), node, -1, value)


_MAKERS: Mapping[str, Callable[[Node, Node, Number], Node]] = {
    "+": lambda first, second, value: _added(first, second, 1, value),
    "-": lambda first, second, value: _added(first, second, -1, value),
    "*": _multiplied,
    "//": lambda first, second, value: Node("//", (first, second), value),
    "/": lambda first, second, value: Node("/", (first, second), value),
    "%": lambda first, second, value: Node("%", (first, second), value),
    "**": lambda first, second, value: Node("**", (first, second), value),
}
_EVALUATE: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
}


class Remembered:
    """A number with its calculation. It compares, rounds and counts as the number; what it joins remembers too."""

    __slots__ = ("node", "value")

    def __init__(self, value: Number, node: Node | None = None) -> None:
        self.value, self.node = value, node or _plain(value)

    def _with(self, operator: str, other: Any, *, turned: bool = False) -> Any:
        if isinstance(other, bool):
            other = int(other)
        if isinstance(other, Remembered):
            value, node = other.value, other.node
        elif isinstance(other, int | float):
            value, node = other, _plain(other)
        else:
            return NotImplemented
        numbers, nodes = (self.value, value), (self.node, node)
        if turned:
            numbers, nodes = numbers[::-1], nodes[::-1]
        found = _EVALUATE[operator](*numbers)
        return Remembered(found, _MAKERS[operator](*nodes, found))

    def __add__(self, other: Any) -> Any:
        return self._with("+", other)

    def __radd__(self, other: Any) -> Any:
        return self._with("+", other, turned=True)

    def __sub__(self, other: Any) -> Any:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("-", other, turned=True)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, list | tuple):
            return other * int(self)
        return self._with("*", other)

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, list | tuple):
            return other * int(self)
        return self._with("*", other, turned=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._with("//", other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with("//", other, turned=True)

    def __truediv__(self, other: Any) -> Any:
        return self._with("/", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with("/", other, turned=True)

    def __mod__(self, other: Any) -> Any:
        return self._with("%", other)

    def __rmod__(self, other: Any) -> Any:
        return self._with("%", other, turned=True)

    def __pow__(self, other: Any) -> Any:
        return self._with("**", other)

    def __rpow__(self, other: Any) -> Any:
        return self._with("**", other, turned=True)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Remembered:
        return Remembered(-self.value, _negated(self.node, -self.value))

    def __abs__(self) -> Remembered:
        return self if self.value >= 0 else -self

    def _rounded(self, how: str, value: int) -> Remembered:
        if isinstance(self.value, int):
            return self
        return Remembered(value, Node(how, (self.node,), value))

    def __ceil__(self) -> Remembered:
        return self._rounded("ceil", math.ceil(self.value))

    def __floor__(self) -> Remembered:
        return self._rounded("floor", math.floor(self.value))

    def __trunc__(self) -> Remembered:
        return self._rounded("floor" if self.value >= 0 else "ceil", math.trunc(self.value))

    def bit_length(self) -> int:
        """As an integer has it; what is made of it does not remember."""
        return int(self.value).bit_length()

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return self.value.__index__()  # type: ignore[union-attr]

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == _value(other))

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < _value(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= _value(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > _value(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= _value(other))

    def __and__(self, other: Any) -> int:
        return int(self) & int(other)

    __rand__ = __and__

    def __rshift__(self, other: Any) -> Any:
        return self // 2 ** int(other)

    def __lshift__(self, other: Any) -> Any:
        return self * 2 ** int(other)


def _value(of: Any) -> Any:
    return of.value if isinstance(of, Remembered) else of


def remembered(name: str, value: Any) -> Any:
    """A value whose numbers remember: one by its name, those of a tuple each as it is. Other values as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float | tuple | list):
        return value
    if isinstance(value, int | float):
        return Remembered(value, Node("leaf", (name,), value))
    return tuple(remembered(_text(item) if _counts(item) else name, item) for item in value)


def _counts(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def worked_out(function: Callable[..., Any], inputs: Mapping[str, Any]) -> str:
    """The arithmetic that a function does on these inputs, in their names."""
    found = function(**{name: remembered(name, value) for name, value in inputs.items()})
    if not isinstance(found, Remembered):
        return _text(found)
    for width, depth in _ROOMS:
        text = _written(found.node, width, depth)
        if len(text) <= LONGEST:
            return text
    return _text(found.value)


def _written(node: Node, width: int, depth: int) -> str:
    if node.kind == "leaf":
        return str(node.parts[0])
    if depth == 0:
        return _text(node.value)
    if node.kind == "sum":
        return _sum(node, width, depth)
    if node.kind in ("ceil", "floor"):
        return f"{node.kind}({_written(node.parts[0], width, depth - 1)})"
    first, second = (_written(part, width, depth - 1) for part in node.parts)
    if node.kind == "product":
        return f"{_bracketed(first)} * {_bracketed(second)}"
    return f"{_bracketed(first, strict=True)} {node.kind} {_bracketed(second, strict=True)}"


def _sum(node: Node, width: int, depth: int) -> str:
    named = [(part, count) for part, count in node.parts if part is not None]
    left = sum(count for part, count in node.parts if part is None)
    left += sum(part.value * count for part, count in named[width:])
    texts = []
    for part, count in named[:width]:
        text = _written(part, width, depth - 1)
        size = abs(count)
        texts.append(("-" if count < 0 else "+", text if size == 1 and not _loose(text) else _times(size, text)))
    if left or not texts:  # what is taken off is written last
        texts.insert(len(texts) if left < 0 else 0, ("-" if left < 0 else "+", _text(abs(left))))
    (sign, first), *others = texts
    begun = first if sign == "+" else f"-{_bracketed(first, strict=True)}"
    return " ".join([begun, *(f"{sign} {text}" for sign, text in others)])


def _times(count: Number, text: str) -> str:
    return _bracketed(text) if count == 1 else f"{_text(count)} * {_bracketed(text)}"


def _loose(text: str) -> bool:
    """Whether a text has an operator that binds more loosely than a product, outside brackets."""
    level = 0
    for sign in text:
        level += (sign == "(") - (sign == ")")
        if not level and sign in "+-":
            return True
    return False


def _bracketed(text: str, *, strict: bool = False) -> str:
    level, tight = 0, False
    for sign in text:
        level += (sign == "(") - (sign == ")")
        tight = tight or (not level and sign in "/*%")
    divides = any(mark in text for mark in ("/", "%")) and tight
    return f"({text})" if _loose(text) or divides or (strict and tight) else text
