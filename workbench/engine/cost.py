"""A cost is never a bare number: `Cost(terms)`, each term naming its formula and the inputs it was evaluated on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from workbench.base.arithmetic import worked_out
from workbench.base.registry import Registry

Plain: TypeAlias = "int | float | bool | str | tuple[Plain, ...] | None"
Inputs: TypeAlias = tuple[tuple[str, Plain], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """One modelled quantity: `text` states the arithmetic in words, `source` where it comes from.

    `error_kind` is the kind of number it gives: published numbers of that kind say how far ours usually are off.
    """

    id: str
    text: str
    source: str
    unit: str  # "cycles" or "bytes"
    error_kind: str
    evaluate: Callable[..., int]


formulas: Registry[Formula] = Registry("formula")


def formula(
    id: str, *, text: str, source: str, unit: str = "cycles", error_kind: str = "compute"
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Register the decorated function as the formula `id`; its keyword arguments are the formula's inputs."""

    def register(evaluate: Callable[..., int]) -> Callable[..., int]:
        formulas.add(
            id,
            Formula(id=id, text=text, source=source, unit=unit, error_kind=error_kind, evaluate=evaluate),
        )
        return evaluate

    return register


_PLAIN = frozenset({int, str, float, bool, type(None)})


def freeze(value: Any) -> Plain:
    """Lists and numpy scalars as hashable plain data, so that equal arguments are one key."""
    if type(value) in _PLAIN:  # nearly all
        return value  # type: ignore[no-any-return]
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        return freeze(value.item())
    if value is None or isinstance(value, (int, float, bool, str)):
        return value
    raise TypeError(f"{value!r} is not plain data")


def inputs_of(arguments: Mapping[str, Any]) -> Inputs:
    """Keyword arguments as a frozen tuple of (name, value)."""
    return tuple([(name, freeze(value)) for name, value in arguments.items()])


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a cost: `value == formulas[formula].evaluate(**inputs)`; `of` are what inputs were worked out by."""

    name: str
    value: int
    formula: str
    inputs: Inputs
    of: tuple[Term, ...] = ()

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.inputs)
        return f"{self.name} {self.value} = {self.formula}({shown})"


@lru_cache(maxsize=200_000)
def _term(name: str, formula_id: str, inputs: Inputs) -> Term:
    return Term(name, int(formulas.get(formula_id).evaluate(**dict(inputs))), formula_id, inputs)


def term(name: str, formula_id: str, /, **arguments: Any) -> Term:
    """Evaluate a registered formula; equal terms are one object."""
    return _term(name, formula_id, inputs_of(arguments))


def evaluated(formula_id: str, inputs: Mapping[str, Any]) -> str:
    """The arithmetic that a formula does on these inputs, in their names."""
    return worked_out(formulas.get(formula_id).evaluate, {name: freeze(value) for name, value in inputs.items()})


@dataclass(frozen=True, slots=True)
class Cost:
    """A sum of terms, all in one unit; costs add, and `Cost()` is zero. `value` is the total of the terms."""

    terms: tuple[Term, ...] = ()
    value: int = field(init=False, repr=False, compare=False)  # summed once, as it is asked for often

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", sum([part.value for part in self.terms]))

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.terms + other.terms)

    def __str__(self) -> str:
        return " + ".join(str(part) for part in self.terms) or "0"


def total(costs: Iterable[Cost]) -> Cost:
    """The sum of costs, with every term kept."""
    return Cost(tuple(part for cost in costs for part in cost.terms))
