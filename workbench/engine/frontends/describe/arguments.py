"""What people hand to `run`, as the arrays it takes: lists of numbers are arrays, lists of arrays are several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np


def arrays_of(value: Any, count: int, flatten: Callable[[Any], Sequence[Any]]) -> list[Any]:
    """The `count` arrays of one argument of a model: one, or several in a list, a tuple or by name."""
    if count == 1 and is_numbers(value):
        return [value]
    if isinstance(value, list | tuple) and len(value) == count and any(is_numbers(part) for part in value):
        return list(value)
    if isinstance(value, Mapping) and len(value) == count:
        return [value[name] for name in sorted(value)]
    return list(flatten(value))


def leaves_as(tree: Any, values: Sequence[Any]) -> list[Any]:
    """The leaves of a function's arguments where a tree that was compiled has its leaves; its own, where it differs."""
    try:
        return list(tree.flatten_up_to(tuple(values)))
    except ValueError:  # a tuple for a list, say
        found = list(jax.tree_util.tree_leaves(values))
        return found if len(found) == tree.num_leaves else list(jax.tree_util.tree_leaves(values, is_leaf=is_numbers))


def is_numbers(value: Any) -> bool:
    """Whether it is a list of numbers, or of such lists."""
    if not isinstance(value, list | tuple):
        return False
    return all(isinstance(each, bool | int | float | np.generic) or is_numbers(each) for each in value)
