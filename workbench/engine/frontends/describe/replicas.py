"""Replicas: one program for all, traced under the name of their axis.

Gradients are averaged over the replicas, so an update is that of one batch of all their micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp

from workbench.errors import InputError

AXIS = "replicas"
_ASKED: ContextVar[set[int] | None] = ContextVar("sizes of groups of replicas that a trace asked for", default=None)


def check_replicas(replicas: Any) -> int:
    """`replicas` is a positive whole number."""
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 1:
        raise InputError(f"replicas is {replicas!r}", expected="a whole number of at least 1")
    return replicas


def axis_env(replicas: int) -> list[tuple[str, int]]:
    """The axes a trace may name in its collectives."""
    return [(AXIS, replicas)]


def axes(replicas: int) -> list[tuple[str, int]] | None:
    """The axes of a trace that is the same as without any for one replica."""
    return axis_env(replicas) if replicas > 1 else None


def meta(replicas: int) -> dict[str, int]:
    """What a graph says of its replicas: nothing of a single one."""
    return {"replicas": replicas} if replicas > 1 else {}


def replicas_here() -> int:
    """Replicas of the program that is being traced; 1 outside one."""
    return _bound() or 1


def _bound() -> int | None:
    """Replicas, where a trace names their axis; None where it does not, or nothing is traced."""
    try:
        return int(jax.lax.psum(1, AXIS))
    except NameError:
        return None


@contextmanager
def groups_asked() -> Iterator[set[int]]:
    """The sizes of groups of replicas that traces inside ask for: a program may be traced before anybody knows how
    many replicas it has."""
    asked: set[int] = set()
    before = _ASKED.set(asked)
    try:
        yield asked
    finally:
        _ASKED.reset(before)


def check_groups(asked: Iterable[int], replicas: int) -> None:
    """An `InputError` for groups of several in a program of one replica."""
    for size in sorted(asked):
        if replicas == 1 < size:
            raise InputError(
                f"replica_group_size is {size}, and the program has 1 replica",
                expected="None or 1, or a program of several replicas",
                todo="give wb.compile replicas=, or a device more IPUs than the program takes, by "
                "config.auto_select_ipus: each copy on them is a replica",
            )


def ask_for_group(size: int) -> None:
    """A group of so many was asked for, and as far as is known there is one replica: noted, or refused in a program."""
    asked = _ASKED.get()
    if asked is not None:
        asked.add(size)
    elif _bound() is not None:
        check_groups([size], 1)


def replica_index() -> Any:
    """The number of this replica."""
    return jax.lax.axis_index(AXIS) if replicas_here() > 1 else jnp.int32(0)


def total(values: Sequence[Any], replicas: int) -> list[Any]:
    """Every value summed over the replicas; with one replica the values themselves."""
    return [jax.lax.psum(value, AXIS) if replicas > 1 else value for value in values]


def mean(values: Sequence[Any], replicas: int) -> list[Any]:
    """Every value averaged over the replicas; with one replica the values themselves."""
    return [value / replicas if replicas > 1 else value for value in total(values, replicas)]


def total_in_groups(value: Any, replicas: int, size: int) -> Any:
    """A value summed over each group of so many replicas that follow each other; its gradient is summed so too."""
    if size in (1, replicas):
        return total([value], size)[0]
    groups = [list(range(first, first + size)) for first in range(0, replicas, size)]

    # The number of the replica tells the axis of replicas from others that a program batches over.
    @jax.custom_batching.custom_vmap  # type: ignore[untyped-decorator]
    def one(number: Any, each: Any) -> Any:
        return jax.lax.psum(each, AXIS, axis_index_groups=groups)

    @one.def_vmap  # type: ignore[untyped-decorator]
    def every(count: int, batched: Any, number: Any, each: Any) -> Any:
        over_replicas, differs = batched
        if not over_replicas:
            return one(number, each), True
        if not differs:
            return each * size, False
        sums = jnp.sum(jnp.reshape(each, (replicas // size, size, *each.shape[1:])), axis=1, dtype=each.dtype)
        return jnp.repeat(sums, size, axis=0), True

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def summed(each: Any) -> Any:
        return one(replica_index(), each)

    summed.defvjp(lambda each: (summed(each), None), lambda _, gradient: (summed(gradient),))
    return summed(value)
