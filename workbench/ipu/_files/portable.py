"""Programs with feeds as programs of arrays, so that they can be saved: what an infeed gives is one argument more, and
what an outfeed takes is one result more, each with a place for every time the program asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from workbench.engine.frontends.trace.body import open_program
from workbench.engine.frontends.trace.flatten import INLINED
from workbench.engine.frontends.trace.jaxpr_params import is_program

State = dict[str, Any]  # feed → how often it was asked, and for an outfeed the arrays it filled


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A queue of a program. `count`: how often it is asked in one call, at most; `gives`: to the host."""

    name: str
    gives: bool
    count: int
    types: tuple[tuple[tuple[int, ...], str], ...]

    def empty(self) -> list[Any]:
        """The arrays an outfeed fills."""
        return [jnp.zeros((self.count, *shape), dtype) for shape, dtype in self.types]


def feeds_of(program: Any) -> list[Feed] | None:
    """The feeds of a program; None when it calls the host otherwise, or so often that nobody can tell beforehand."""
    found: dict[str, Feed] = {}
    try:
        for name, times, eqn in _asked(open_program(program)[0], 1):
            gives = not eqn.outvars
            arrays = [atom.aval for atom in (eqn.invars if gives else eqn.outvars)]
            before = found[name].count if name in found else 0
            types = tuple((tuple(each.shape), str(each.dtype)) for each in arrays)
            found[name] = Feed(name=name, gives=gives, count=before + times, types=types)
    except _UnknownError:
        return None
    return list(found.values())


class _UnknownError(Exception):
    """A call of the host that cannot be saved."""


def _asked(jaxpr: Any, times: int) -> Iterator[tuple[str, int, Any]]:
    for eqn in jaxpr.eqns:
        if "callback" in eqn.params:
            yield _feed_name(eqn), times, eqn
            continue
        inner = times * eqn.params["length"] if eqn.primitive.name == "scan" else times
        for body in _bodies(eqn):
            asked = list(_asked(body, inner))
            if asked and eqn.primitive.name == "while":
                raise _UnknownError
            yield from asked


def _bodies(eqn: Any) -> Iterator[Any]:
    for value in eqn.params.values():
        for each in value if isinstance(value, list | tuple) else [value]:
            if is_program(each):
                yield open_program(each)[0]


def _feed_name(eqn: Any) -> str:
    function = getattr(eqn.params["callback"], "callback_func", None)
    name = getattr(function, "feed", "")
    if not name:
        raise _UnknownError
    return str(name)


@dataclass(slots=True)
class Portable:
    """A program and its feeds as a function of arrays: arguments, then every infeed's elements behind each other."""

    program: Any
    feeds: Sequence[Feed]
    _elements: dict[str, list[Any]]

    def __call__(self, arguments: Sequence[Any], elements: Sequence[Sequence[Any]]) -> list[Any]:
        """The results, then for each outfeed how much it took and its arrays."""
        taken, given = ([each for each in self.feeds if each.gives is gives] for gives in (False, True))
        self._elements = {feed.name: list(arrays) for feed, arrays in zip(taken, elements, strict=True)}
        state: State = {feed.name: jnp.int32(0) for feed in taken}
        state |= {feed.name: (jnp.int32(0), feed.empty()) for feed in given}
        jaxpr, consts = open_program(self.program)
        results, state = self._evaluate(jaxpr, consts, arguments, state)
        for feed in given:
            count, arrays = state[feed.name]
            results += [count, *arrays]
        return results

    def _evaluate(
        self, jaxpr: Any, consts: Sequence[Any], values: Sequence[Any], state: State
    ) -> tuple[list[Any], State]:
        env: dict[Any, Any] = dict(zip(jaxpr.invars, values, strict=True))
        env.update(zip(jaxpr.constvars, consts, strict=True))

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else env[atom]

        for eqn in jaxpr.eqns:
            results, state = self._equation(eqn, [read(atom) for atom in eqn.invars], state)
            env.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars], state

    def _equation(self, eqn: Any, values: list[Any], state: State) -> tuple[list[Any], State]:
        name = eqn.primitive.name
        if "callback" in eqn.params:
            return self._feed(_feed_name(eqn), values, state)
        if name in INLINED and INLINED[name] in eqn.params:
            jaxpr, consts = open_program(eqn.params[INLINED[name]])
            return self._evaluate(jaxpr, consts, values, state)
        body: Callable[..., Any] | None = {"scan": self._scan, "cond": self._branch}.get(name)
        if body is not None and any(list(_asked(each, 1)) for each in _bodies(eqn)):
            made: tuple[list[Any], State] = body(eqn, values, state)
            return made
        results = eqn.primitive.bind(*values, **eqn.params)
        return list(results) if eqn.primitive.multiple_results else [results], state

    def _feed(self, name: str, values: Sequence[Any], state: State) -> tuple[list[Any], State]:
        if name in self._elements:
            place = state[name]
            found = [jax.lax.dynamic_index_in_dim(each, place, keepdims=False) for each in self._elements[name]]
            return found, {**state, name: place + 1}
        place, arrays = state[name]
        filled = [array.at[place].set(value) for array, value in zip(arrays, values, strict=True)]
        return [], {**state, name: (place + 1, filled)}

    def _scan(self, eqn: Any, values: list[Any], state: State) -> tuple[list[Any], State]:
        params = eqn.params
        jaxpr, consts = open_program(params["jaxpr"])
        first, behind = params["num_consts"], params["num_consts"] + params["num_carry"]

        def turn(carry: Any, sliced: Any) -> Any:
            held, before = carry
            results, after = self._evaluate(jaxpr, consts, [*values[:first], *held, *sliced], before)
            return (results[: behind - first], after), results[behind - first :]

        (held, state), stacked = jax.lax.scan(
            turn, (values[first:behind], state), values[behind:], length=params["length"], reverse=params["reverse"]
        )
        return [*held, *stacked], state

    def _branch(self, eqn: Any, values: list[Any], state: State) -> tuple[list[Any], State]:
        def taken(program: Any) -> Callable[..., Any]:
            jaxpr, consts = open_program(program)
            return lambda before, *given: self._evaluate(jaxpr, consts, given, before)

        branches = [taken(each) for each in eqn.params["branches"]]
        made: tuple[list[Any], State] = jax.lax.switch(values[0], branches, state, *values[1:])
        return made


def portable(program: Any, feeds: Sequence[Feed]) -> Portable:
    """The program as a function of arrays."""
    return Portable(program, feeds, {})


__all__ = ["Feed", "feeds_of", "portable"]
