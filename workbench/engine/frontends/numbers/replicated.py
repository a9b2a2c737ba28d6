"""One replica's program run for all of them, by batching over their axis.

Every replica keeps its own state (moving statistics); what is kept and reported of it is that of the first. The first
replica draws the random numbers of a program without replicas, each other one numbers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp

from workbench.engine.frontends.describe.replicas import AXIS
from workbench.engine.frontends.numbers.replica_identical import only_identical_rounds
from workbench.engine.graph import Input, Output
from workbench.errors import InputError

SEED_STRIDE = 0x9E3779B9  # 2^32 over the golden ratio: seeds of replicas far from each other

_APART = ContextVar("replicas hold everything apart", default=False)
_ALIKE = ContextVar("only what is alike on all replicas is rounded", default=False)


@contextmanager
def replicas_apart(apart: bool, only_alike: bool = False) -> Iterator[None]:
    """What is traced inside gives every replica variables of its own, so that each rounds them by its own chance.

    `only_alike`: what differs between replicas is marked not to be rounded by chance.
    """
    tokens = (_APART.set(apart), _ALIKE.set(only_alike))
    try:
        yield
    finally:
        _APART.reset(tokens[0])
        _ALIKE.reset(tokens[1])


def for_each(compute: Callable[..., Any], axes: Any, replicas: int) -> Callable[..., Any]:
    """`compute` of one replica for all of them; `axes` are None for arguments they share."""
    if _ALIKE.get():
        compute = only_identical_rounds(compute, axes)
    batched: Callable[..., Any] = jax.vmap(compute, in_axes=axes, axis_name=AXIS, axis_size=replicas)
    return batched


def on_each(value: Any, replicas: int) -> tuple[Any, int | None]:
    """A variable of all replicas, and the axis they have it along: none while they share it."""
    return (jnp.broadcast_to(value, (replicas, *jnp.shape(value))), 0) if _APART.get() else (value, None)


def for_all(
    compute: Callable[..., Sequence[Any]],
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    replicas: int,
    apart: Container[str] = (),
    one_value: bool = False,
) -> Callable[..., list[Any]]:
    """`compute(values, *more)` for all replicas at once.

    Data (and `more`) hold the replicas' parts behind each other along their first axis; so do outputs. Losses and
    metrics are the mean over the replicas. Variables named in `apart` are given, and come back, with those of all
    replicas along a first axis; of the others all have one value. Where `one_value`, an `InputError` tells of one of
    the others that comes back with several.
    """
    own = [item.name in apart for item in inputs if item.role != "constant"]
    data = [item.role in ("input", "target") for item in inputs if item.role != "constant"]
    seeds = [item.role == "seed" for item in inputs if item.role != "constant"]

    def parts(value: Any) -> tuple[Any, int | None]:
        shape = jnp.shape(value)
        if not shape:
            return on_each(value, replicas)
        return jnp.reshape(value, (replicas, shape[0] // replicas, *shape[1:])), 0

    def run(values: Sequence[Any], *more: Any) -> list[Any]:
        placed = [
            (value, 0)
            if is_own
            else parts(value)
            if is_data
            else (seeds_of(value, replicas), 0)
            if is_seed
            else on_each(value, replicas)
            for value, is_data, is_seed, is_own in zip(values, data, seeds, own, strict=True)
        ]
        behind = [parts(value) for value in more]
        axes = ([axis for _, axis in placed], *(axis for _, axis in behind))
        batched = for_each(lambda *args: list(compute(*args)), axes, replicas)
        try:
            results = batched([value for value, _ in placed], *(value for value, _ in behind))
        except NotImplementedError:
            raise InputError(
                "the program's collectives are over groups of replicas, which cannot be run here",
                expected="collectives over all replicas for `run`; `profile` has both",
            ) from None
        kept = [each.updates is not None and inputs[each.updates].name in apart for each in outputs]
        if one_value:
            _check_alike(inputs, outputs, results, kept)
        return [
            value if is_own else _joined(output, value)
            for output, value, is_own in zip(outputs, results, kept, strict=True)
        ]

    return run


def _check_alike(inputs: Sequence[Input], outputs: Sequence[Output], results: Sequence[Any], own: list[bool]) -> None:
    """Only one replica's value would be kept, and on the chip each replica goes on with its own."""
    for output, value, is_own in zip(outputs, results, own, strict=True):
        if output.updates is None or is_own or isinstance(value, jax.core.Tracer):
            continue
        first, others = value[:1], value[1:]
        if not bool(jnp.all((others == first) | ((others != others) & (first != first)))):  # a NaN is like another
            raise InputError(
                f"{inputs[output.updates].name} is donated and comes back with another value on another replica",
                expected="one value of all replicas, as one is given and one is returned",
                todo=f"make it one, as jax.lax.pmean(value, {AXIS!r}) does, or do not donate it: each replica then has "
                "its own part of it, behind each other along its first axis",
            )


def seeds_of(value: Any, replicas: int) -> Any:
    """The state of a random generator on each replica: the first has it as it is, each other one its own."""
    steps = jnp.arange(replicas, dtype=jnp.uint32) * jnp.uint32(SEED_STRIDE)
    many = jnp.broadcast_to(jnp.asarray(value), (replicas, *jnp.shape(value)))
    return many.at[:, 0].add(steps.astype(many.dtype))


def _joined(output: Output, value: Any) -> Any:
    if output.role == "update" or value.shape[0] == 1:  # one replica's scalar stays one
        return value[0]
    if output.role == "output":
        return jnp.reshape(value, (-1, *value.shape[2:])) if value.ndim > 1 else value
    return jnp.mean(value, axis=0)
