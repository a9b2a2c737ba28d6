"""Donated arguments of a jitted function: their memory is a result's, so on the chip they are state.

JAX gives the memory of a donated array to the first result of its shape and type that has none yet (`donate_argnums`
of `jax.jit`, https://docs.jax.dev/en/latest/buffer_donation.html). What a call leaves there, the next call finds there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jax.extend.core import Var

from workbench.base.units import some_text

DONATED = "donated_invars"
LEAST_ARRAYS = 2  # one array that has the shape of the result may be anything


def donated_arguments(jaxpr: Any) -> list[int]:
    """The numbers of the arguments that a call of the function donates, in order."""
    donated = {var for eqn in jaxpr.eqns for var in _donated_to(eqn)}
    return [number for number, var in enumerate(jaxpr.invars) if var in donated]


def donations(jaxpr: Any) -> dict[int, int]:
    """Number of a result → number of the donated argument it is written over.

    What a call wrote over an argument may be donated to the next call. An argument is written over once.
    """
    holds = {var: number for number, var in enumerate(jaxpr.invars)}  # the argument whose memory a value lies in
    results = {var: number for number, var in reversed(list(enumerate(jaxpr.outvars))) if isinstance(var, Var)}
    found: dict[int, int] = {}
    for eqn in jaxpr.eqns:
        free = dict.fromkeys(var for var in _donated_to(eqn) if var in holds and var not in results)
        for made in eqn.outvars:
            taken = next((var for var in free if _alike(var, made)), None)
            if taken is not None:
                del free[taken]
                holds[made] = holds.pop(taken)
                if made in results:
                    found[results[made]] = holds[made]
    return found


def crossing_again(jaxpr: Any, over: Mapping[int, int]) -> int:
    """Bytes of arguments that look like state that is not donated: a result is of their shape and type, and they are
    several, and most of what crosses between host and chip. 0 where there are none."""
    results = [var for number, var in enumerate(jaxpr.outvars) if number not in over]
    given = [var for number, var in enumerate(jaxpr.invars) if number not in set(over.values())]
    free, found = list(results), list[Any]()
    for var in given:
        match = next((place for place, made in enumerate(free) if _alike(var, made)), None)
        if match is not None:
            del free[match]
            found.append(var)
    held = _bytes_of(found)
    return held if len(found) >= LEAST_ARRAYS and 4 * held > _bytes_of([*given, *results]) else 0


def _bytes_of(variables: Iterable[Any]) -> int:
    return sum(var.aval.size * var.aval.dtype.itemsize for var in variables)


def said(names: Sequence[str], kept: Sequence[int], donated: Sequence[int]) -> tuple[str, ...]:
    """What is assumed of donated arguments: which stay on the chip, and which cannot."""
    stays = [names[number] for number in donated if number in kept]
    crosses = [names[number] for number in donated if number not in kept]
    told = []
    if stays:
        kept_as = "donated arguments stay on the chip from call to call, and what they become is written over them"
        told.append(f"{kept_as}: {some_text(stays, 3)}")
    if crosses:
        told.append(f"donated arguments that no result is written over arrive with each call: {some_text(crosses, 3)}")
    return tuple(told)


def _donated_to(eqn: Any) -> list[Any]:
    flags = eqn.params.get(DONATED, ())
    return [var for var, flag in zip(eqn.invars, flags, strict=False) if flag and isinstance(var, Var)]


def _alike(var: Any, other: Any) -> bool:
    return bool(var.aval.shape == other.aval.shape and var.aval.dtype == other.aval.dtype)
