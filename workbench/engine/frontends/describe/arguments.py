"""What people hand to `run`, as the arrays it takes: lists of numbers are arrays, lists of arrays are several."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from workbench.base.units import some_text
from workbench.errors import InputError


def arrays_of(value: Any, count: int, flatten: Callable[[Any], Sequence[Any]]) -> list[Any]:
    """The `count` arrays of one argument of a model: one, or several in a list, a tuple or by name."""
    if count == 1 and is_numbers(value):
        return [value]
    if isinstance(value, list | tuple) and len(value) == count and any(is_numbers(part) for part in value):
        return list(value)
    if isinstance(value, Mapping) and len(value) == count:
        return [value[name] for name in sorted(value)]
    return list(flatten(value))


def those_compared(value: Any, names: Sequence[str], compared: Sequence[bool]) -> Any:
    """Of targets for all outputs those that are compared with one, by name or place; else the targets as they are."""
    if not compared or is_numbers(value):
        return value
    if isinstance(value, Mapping) and set(names) <= set(value):
        return {name: value[name] for name in names}
    if isinstance(value, list | tuple) and len(value) == len(compared):
        return list(itertools.compress(value, compared))
    return value


def leaves_as(tree: Any, values: Sequence[Any]) -> list[Any]:
    """The leaves of a function's arguments where a tree that was compiled has its leaves; its own, where it differs.

    Errors: `InputError` for an array under a name that was not compiled.
    """
    try:
        return list(tree.flatten_up_to(tuple(values)))
    except ValueError:  # a tuple for a list, say
        _check_names(tree, tuple(values))
        found = list(jax.tree_util.tree_leaves(values))
        return found if len(found) == tree.num_leaves else list(jax.tree_util.tree_leaves(values, is_leaf=is_numbers))


def _check_names(tree: Any, values: tuple[Any, ...]) -> None:
    """What lies in dictionaries has the names that were compiled: others would be taken for them in order."""
    compiled = _by_names(jax.tree_util.tree_unflatten(tree, [""] * tree.num_leaves))
    for names, path in _by_names(values).items():
        if names not in compiled:
            raise InputError(
                f"run was called with args{path}",
                expected=f"as compiled: {some_text([f'args{each}' for each in compiled.values()], 8)}",
                todo="give the arrays in the containers, and by the names, of the compiled ones",
            )


def _by_names(values: tuple[Any, ...]) -> dict[tuple[Any, ...], str]:
    """Names in dictionaries on the way to a leaf → the path to the first leaf that has them."""
    found: dict[tuple[Any, ...], str] = {}
    leaves, _ = jax.tree_util.tree_flatten_with_path(
        values, is_leaf=lambda each: each is not values and is_numbers(each)
    )
    for path, _ in leaves:
        names = tuple(each.key for each in path if isinstance(each, jax.tree_util.DictKey))
        found.setdefault(names, jax.tree_util.keystr(path))
    return found


def is_numbers(value: Any) -> bool:
    """Whether it is a list of numbers, or of such lists."""
    if not isinstance(value, list | tuple):
        return False
    return all(isinstance(each, bool | int | float | np.generic) or is_numbers(each) for each in value)
