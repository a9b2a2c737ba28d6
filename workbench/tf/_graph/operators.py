"""Python's operators on tensors and variables: there from the beginning, since those of Keras are others.

Arithmetic stands above and is looked for when an operator is used: a program that uses none does not load it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from workbench.tf import _hooks

Kind = TypeVar("Kind", bound=type)

# Python's names, by the operation each stands for.
_BOTH_WAYS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floordiv",
    "mod": "mod",
    "pow": "pow",
    "matmul": "matmul",
    "and": "logical_and",
    "or": "logical_or",
}
_ONE_WAY = {
    **{"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"},
    **{"neg": "negative", "abs": "abs", "invert": "logical_not", "getitem": "getitem"},
}


def with_operators(kind: Kind) -> Kind:
    """Give a class the operators."""
    for sign, name in (*_BOTH_WAYS.items(), *_ONE_WAY.items()):
        setattr(kind, f"__{sign}__", _operator(name))
    for sign, name in _BOTH_WAYS.items():
        setattr(kind, f"__r{sign}__", _operator(name, reverse=True))
    return kind


def _operator(name: str, reverse: bool = False) -> Callable[..., Any]:
    def operate(*operands: Any) -> Any:
        return _hooks.operators.get()[name](*(operands[::-1] if reverse else operands))

    return operate


__all__ = ["with_operators"]
