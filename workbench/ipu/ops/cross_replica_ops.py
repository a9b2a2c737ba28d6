"""`tensorflow.python.ipu.ops.cross_replica_ops`: sums and means over replicas of a program, and what they share.

Outside a program, and in one that is not replicated, there is one replica, and its value is the result.
"""

from __future__ import annotations

from typing import Any

import jax

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.engine.frontends.describe.replicas import ask_for_group, replicas_here, total_in_groups
from workbench.errors import InputError
from workbench.ipu._replicas import copied
from workbench.tf._graph.convert import array, check_tensors, lift
from workbench.tf._ops.operands import numbers, reals


@checked
def cross_replica_sum(x: Any, replica_group_size: int | None = None, name: str | None = None) -> Any:
    """What all replicas have as `x`, summed; every replica gets the sum.

    `replica_group_size`: the sum of each is over a group of so many, replicas that follow each other; None: over all.
    Errors: `InputError` for a size that does not divide the number of replicas of the program; outside one there is
    no group to be smaller than it.
    """
    return _sum(x, _group_size(replica_group_size), name=name)


@checked
def cross_replica_mean(x: Any, replica_group_size: int | None = None, name: str | None = None) -> Any:
    """As `cross_replica_sum`, divided by the number of replicas that it is over."""
    return _mean(x, _group_size(replica_group_size), name=name)


@checked
def assume_equal_across_replicas(tensors: Any, inplace: bool = False) -> Any:
    """A tensor or a structure of them, as values that are the same in every replica.

    `inplace`: False copies them, as a slice of a tensor needs. Conditions on what replicas may have otherwise are not
    refused by this compiler, so that nothing else changes.
    """
    check_tensors("tensors", tensors)
    alike = _same if inplace else _copy
    return jax.tree_util.tree_map(alike, tensors)


def _group_size(given: int | None) -> int | None:
    if given is not None and given < 1:
        raise InputError(
            f"replica_group_size is {given}", expected="a whole number of at least 1, or None for all replicas"
        )
    return given


def _sizes(asked: int | None) -> tuple[int, int]:
    """The replicas there are, and those of a group."""
    replicas = replicas_here()
    if replicas == 1 and asked is not None:
        ask_for_group(asked)
    size = replicas if asked is None or replicas == 1 else asked
    if replicas % size:
        raise InputError(
            f"replica_group_size is {short(asked)}, and the program has {replicas} replicas",
            expected=f"a size that divides {replicas}",
        )
    return replicas, size


def _summed(x: Any, replica_group_size: int | None = None) -> Any:
    replicas, size = _sizes(replica_group_size)
    return total_in_groups(numbers(x), replicas, size)


def _averaged(x: Any, replica_group_size: int | None = None) -> Any:
    replicas, size = _sizes(replica_group_size)
    found = total_in_groups(reals(x), replicas, size)
    return found if size == 1 else found / size


_sum = lift("cross_replica_sum", _summed)
_mean = lift("cross_replica_mean", _averaged)
_same = lift("assume_equal_across_replicas", array)
_copy = lift("assume_equal_across_replicas", lambda tensors: copied(array(tensors)))

__all__ = ["assume_equal_across_replicas", "cross_replica_mean", "cross_replica_sum"]
