"""Lists that were there before a loop or a branch: what is appended inside is there once, however often it runs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import jax

from workbench.base.units import things_text
from workbench.errors import InputError
from workbench.tf._function import lines
from workbench.tf._graph.convert import is_symbolic


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A list that was found, by the name it was found by, and what was in it."""

    name: str
    values: Any
    before: tuple[Any, ...]


@contextmanager
def refuse_kept(kind: str, todo: str, *blocks: Callable[..., Any]) -> Iterator[None]:
    """An `InputError` where recording these blocks changes how many tensors a list has that is not theirs."""
    held = list(_lists(blocks))
    yield
    for each in held:
        if len(each.values) == len(each.before):
            continue
        counts = [Counter(map(id, values)) for values in (each.before, each.values)]
        other = {found for found in counts[0] | counts[1] if counts[0][found] != counts[1][found]}
        if any(_has_tensor(value) for value in (*each.before, *each.values) if id(value) in other):
            line = lines.here()
            raise InputError(
                f"{each.name} has {things_text(len(each.before), 'element')} before a {kind} on tensors and "
                f"{len(each.values)} behind it{f' ({line})' if line else ''}, which is recorded once, however often it "
                "runs",
                expected="no tensor kept in a list from outside",
                todo=todo,
            )


def _has_tensor(value: Any) -> bool:
    return any(is_symbolic(leaf) or isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(value))


def _lists(blocks: tuple[Callable[..., Any], ...]) -> Iterator[_Held]:
    """Lists that blocks name, also inside others, in attributes they name, and in functions written around them."""
    named: list[tuple[str, Any, tuple[str, ...]]] = [("", block, ()) for block in blocks]
    seen: dict[int, Any] = {}
    while named:
        name, value, attributes = named.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value  # kept, so that no other gets its id
        if isinstance(value, FunctionType):
            code = value.__code__
            named += [(each, found, code.co_names) for each, found in _variables(value)]
        elif isinstance(value, dict):
            named += [(name, each, attributes) for each in value.values()]
        elif isinstance(value, list | tuple | deque):
            named += [(name, each, attributes) for each in value]
            if not isinstance(value, tuple):
                yield _Held(name=name, values=value, before=tuple(value))
        elif isinstance(held := getattr(value, "__dict__", None), dict) and attributes:
            named += [
                (f"{name}.{each}", held[each], ())
                for each in attributes
                if isinstance(held.get(each), list | dict | deque)
            ]


def _variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Variables of a function that are not its own: functions around it have them, or, as lists, its module."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # nothing was assigned yet
            continue
    for name in function.__code__.co_names:
        found = function.__globals__.get(name)
        if isinstance(found, list | dict | deque):
            yield name, found


__all__ = ["refuse_kept"]
