"""Numbers as the floating-point unit makes them: exceptions that stop a run, halves that saturate or round at random.

The traced program is interpreted again, equation by equation, and compiled by XLA with what follows each of them. An
exception is the number of the first equation that raised it, carried through calls, branches and loops; so a run that
stops can say which operation of which layer it was. The exceptions are those of IEEE 754-2019 section 7; what a half
does on overflow and that rounding is random under `esr` is told of `floating_point_behaviour` in the API reference.
Without any exception switched on, an IPU still has numbers of its own: an overflow is the largest half, a half divided
by zero is no number, and neither is an integer made of what is none
(graphcore/tensorflow@b2127bba tensorflow/python/ipu/tests/floating_point_control_bits_test.py:50-120).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from workbench.engine.frontends.describe.keras_layers import layer_classes
from workbench.engine.frontends.describe.name_stack import HOST_REGION, Stack, attributes_of
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.numbers.index_checks import OUTSIDE, index_outside
from workbench.engine.frontends.numbers.numeric_sites import (
    ALWAYS,
    MOVES,
    NEVER,
    ROUNDING,
    differs_from_host,
    makes_integers,
    rounds_somewhere,
)
from workbench.engine.frontends.numbers.replicated import replicas_apart
from workbench.engine.frontends.numbers.rounding import draw_key, first_key, round_half, rounded_equation, turn_key
from workbench.engine.frontends.trace.body import Context, Converter, open_program
from workbench.engine.frontends.trace.flatten import INLINED
from workbench.engine.frontends.trace.jaxpr import new_converter
from workbench.engine.graph.primitives import names
from workbench.engine.options import Options
from workbench.errors import NumericError, RowIndexError

LARGEST_HALF = 65504.0
_ROUNDS_BEYOND = 65520.0  # half way to where the next half would be
DIVIDE = names(has_pole=True)  # division by zero, in the sense of IEEE 754
CAUSES = ("an invalid operation", "a division by zero", "an overflow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """`floating_point_behaviour` of a compile. Inactive, a program computes as the host does."""

    inv: bool = False
    div0: bool = False
    oflo: bool = False
    nanoo: bool = False
    stochastic: bool = False
    apart: bool = False  # each replica rounds by its own chance, also what all have in common
    alike: bool = False  # only what is the same on every replica is rounded by chance
    indices: bool = False  # an index outside a table stops the run
    own: bool = False  # halves and integers are the IPU's where it has others than the host

    @property
    def active(self) -> bool:
        """Whether anything differs from the host's numbers."""
        asked = self.inv or self.div0 or self.oflo or self.nanoo or self.stochastic
        return asked or self.indices or self.own


def behaviour_of(options: Options) -> Behaviour:
    """The behaviour that options ask for.

    REPLICA_IDENTICAL_ONLY needs seeds that replicas share, so without `enable_prng_stability` nothing is rounded by
    chance (graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/passes/
    add_stochastic_rounding_options.cc:228-252,325).
    """
    rounding = str(options.get("floating_point_behaviour.esr")).rpartition(".")[2]
    stable = bool(options.get("experimental.enable_prng_stability"))
    return Behaviour(
        inv=bool(options.get("floating_point_behaviour.inv")),
        div0=bool(options.get("floating_point_behaviour.div0")),
        oflo=bool(options.get("floating_point_behaviour.oflo")),
        nanoo=bool(options.get("floating_point_behaviour.nanoo")),
        stochastic=rounding == "ON" or (rounding == "REPLICA_IDENTICAL_ONLY" and stable),
        apart=not stable,
        alike=rounding == "REPLICA_IDENTICAL_ONLY",
        indices=bool(options.get("slices.poplar_options.validateIndices")),
    )


def with_numerics(
    source: Source, options: Options, draw: Callable[[], np.ndarray[Any, Any]], configured: bool = False
) -> Source:
    """The source computing with the behaviour of the options; `draw` gives uint32[2] for each run's rounding.

    `configured`: the options are those of a configured IPU, whose own numbers the program has. The same source when
    nothing is asked for. A run that raises an exception is a `NumericError` and keeps nothing.
    """
    behaviour = replace(behaviour_of(options), own=configured and differs_from_host(source))
    rounds = behaviour.stochastic or rounds_somewhere(source)
    if not behaviour.active and not rounds:
        return source
    behaviour = replace(behaviour, apart=behaviour.apart and rounds)
    layers = layer_classes(source.model) if source.model is not None else None
    compute = _Checked(source.compute, behaviour, layers, draw)
    weighted = source.weighted
    return replace(
        source,
        compute=lambda values: compute(list(values)),
        weighted=None if weighted is None else _weighted(weighted, behaviour, layers, draw),
    )


def _weighted(weighted: Any, behaviour: Behaviour, layers: Any, draw: Any) -> Callable[[Any, Any], Any]:
    checked = _Checked(lambda both: weighted(both[:-1], both[-1]), behaviour, layers, draw)
    return lambda values, weight: checked([*values, weight])


@dataclass(slots=True, eq=False)
class _Checked:
    """A function of arrays, interpreted with checks and compiled once."""

    function: Callable[[list[Any]], Sequence[Any]]
    behaviour: Behaviour
    layers: Mapping[str, str] | None
    draw: Callable[[], np.ndarray[Any, Any]]
    _compiled: Any = None
    _sites: list[tuple[str, str, str]] = field(default_factory=list)

    def __call__(self, values: list[Any]) -> Sequence[Any]:
        if self._compiled is None:
            with replicas_apart(self.behaviour.apart, self.behaviour.alike):
                closed = jax.make_jaxpr(lambda *arrays: self.function(list(arrays)))(*values)
            self._sites = []
            reader = Interpreter(self.behaviour, new_converter(self.layers), self._sites)
            self._compiled = jax.jit(lambda words, arrays: reader.start(closed, words, arrays))
        raised, results = self._compiled(self.draw(), values)
        number = int(raised) if self._sites else 0  # where nothing can raise, nobody waits to read that none did
        if number:
            cause, operation, layer = self._sites[number - 1]
            if cause == OUTSIDE:
                raise RowIndexError(operation=operation, layer=layer)
            raise NumericError(cause=cause, operation=operation, layer=layer)
        return list(results)


@dataclass(frozen=True, slots=True)
class Around:
    """What surrounds an equation: the name stack, and the key its body rounds with."""

    stack: Stack
    key: Any


@dataclass(slots=True, eq=False)
class Interpreter:
    """Evaluates a jaxpr with the behaviour behind each equation.

    `sites` lists what can raise, in the order it is evaluated; an exception is the place in that list, from 1, and
    0 is none. A body gives the first of its equations' exceptions.
    """

    behaviour: Behaviour
    converter: Converter
    sites: list[tuple[str, str, str]]
    _draws: int = 0

    def start(self, closed: Any, words: Any, values: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The first exception, and the results."""
        return self.evaluate(closed.jaxpr, closed.consts, values, Around((), first_key(words)))

    def evaluate(
        self, jaxpr: Any, consts: Sequence[Any], values: Sequence[Any], around: Around
    ) -> tuple[Any, list[Any]]:
        """Evaluate the equations of a jaxpr in order."""
        env: dict[Any, Any] = dict(zip(jaxpr.invars, values, strict=True))
        env.update(zip(jaxpr.constvars, consts, strict=True))
        raised: list[Any] = []

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else env[atom]

        for eqn in jaxpr.eqns:
            found, results = self.equation(eqn, [read(atom) for atom in eqn.invars], around)
            raised += found
            env.update(zip(eqn.outvars, results, strict=True))
        return _first(raised), [read(atom) for atom in jaxpr.outvars]

    def equation(self, eqn: Any, values: list[Any], around: Around) -> tuple[list[Any], list[Any]]:
        """Evaluate one equation; the exceptions it may raise, and its results."""
        name = eqn.primitive.name
        inside = Around(around.stack + self.converter.read_stack(eqn), around.key)
        if name in INLINED and INLINED[name] in eqn.params and HOST_REGION not in str(eqn.params.get("name", "")):
            jaxpr, consts = open_program(eqn.params[INLINED[name]])
            raised, results = self.evaluate(jaxpr, consts, values, inside)
            return [raised], results
        control = {"scan": self.scan, "while": self.loop, "cond": self.branch}.get(name)
        if control is not None:
            raised, results = control(eqn, values, inside)
            return [raised], results
        return self.plain(eqn, values, inside)

    def plain(self, eqn: Any, values: list[Any], inside: Around) -> tuple[list[Any], list[Any]]:
        """Evaluate an operation, check what it made, and round or saturate halves."""
        exact = rounded_equation(eqn, values) if self._stochastic(inside.stack) else None
        results = _bind(eqn, values) if exact is None else [exact]
        raised, kept = self.rows(eqn, values, inside.stack), []
        if eqn.primitive.name in MOVES:
            return raised, results
        if makes_integers(eqn):
            found, integers = self.integers(eqn, values[0], results[0], inside.stack)
            return [*raised, *found], [integers]
        for var, result in zip(eqn.outvars, results, strict=True):
            if not _is_real(result):
                kept.append(result)
                continue
            half = var.aval.dtype == jnp.float16
            found, overflown, divided = self.check(eqn, values, result, half, inside.stack)
            raised += found
            if exact is not None:
                self._draws += 1
                result = round_half(result, draw_key(inside.key, self._draws))
            kept.append(self._half(result, overflown, divided) if half else result)
        return raised, kept

    def rows(self, eqn: Any, values: list[Any], stack: Stack) -> list[Any]:
        """The exception of a look-up or an update whose index is outside."""
        outside = index_outside(eqn, values) if self.behaviour.indices else None
        if outside is None:
            return []
        self.sites.append((OUTSIDE, eqn.primitive.name, self.converter.place(Context(), stack).layer))
        return [outside.astype(jnp.int32) * len(self.sites)]

    def integers(self, eqn: Any, value: Any, made: Any, stack: Stack) -> tuple[list[Any], Any]:
        """Integers of real numbers: what is none is the least integer, and invalid as what is beyond them all."""
        info = jnp.iinfo(made.dtype)
        wide = value.astype(jnp.promote_types(value.dtype, jnp.float32))
        kept = jnp.where(jnp.isnan(wide), jnp.asarray(info.min, made.dtype), made)
        if not self.behaviour.inv:
            return [], kept
        least, beyond = float(info.min), float(info.max) + 1
        inside = (jnp.trunc(wide) >= least) & (wide < beyond)
        self.sites.append((CAUSES[0], eqn.primitive.name, self.converter.place(Context(), stack).layer))
        return [jnp.any(~inside).astype(jnp.int32) * len(self.sites)], kept

    def check(self, eqn: Any, values: list[Any], result: Any, half: bool, stack: Stack) -> tuple[list[Any], Any, Any]:
        """The exceptions an operation raised, which elements overflow, and which were divided by zero."""
        name = eqn.primitive.name
        given = [value for value in values if _is_real(value)]
        wide = half and result.dtype != jnp.float16
        infinite = jnp.isinf(result) | (abs(result) >= _ROUNDS_BEYOND if wide else False)
        beyond = infinite & _all(jnp.isfinite, given, result)
        exact = _is_zero(_divisor(name, values), result) if name in DIVIDE else None
        tests: list[tuple[str, Any]] = []
        if self.behaviour.inv:
            tests.append((CAUSES[0], jnp.isnan(result) & ~_any(jnp.isnan, given, result)))
        if self.behaviour.div0 and exact is not None:
            tests.append((CAUSES[1], beyond & exact))
        overflown = beyond if exact is None else beyond & ~exact
        if self.behaviour.oflo:
            tests.append((CAUSES[2], overflown))
        layer = self.converter.place(Context(), stack).layer
        raised = []
        for cause, where in tests:
            self.sites.append((cause, name, layer))
            raised.append(jnp.any(where).astype(jnp.int32) * len(self.sites))
        return raised, overflown, False if exact is None else beyond & exact

    def _half(self, result: Any, overflown: Any, divided: Any) -> Any:
        """A half that overflowed: not a number with `nanoo`, else the largest half. Divided by zero it is none."""
        beyond = jnp.nan if self.behaviour.nanoo else jnp.sign(result) * LARGEST_HALF
        kept = jnp.where(overflown, beyond, result)
        return jnp.where(divided, jnp.nan, kept).astype(jnp.float16)

    def _stochastic(self, stack: Stack) -> bool:
        return {ALWAYS: True, NEVER: False}.get(attributes_of(stack).get(ROUNDING, ""), self.behaviour.stochastic)

    def scan(self, eqn: Any, values: list[Any], inside: Around) -> tuple[Any, list[Any]]:
        """A counted loop: the exception and a count, for fresh rounding, are carried along."""
        params = eqn.params
        jaxpr, consts = open_program(params["jaxpr"])
        first, carried = params["num_consts"], params["num_carry"]

        def body(carry: Any, sliced: Any) -> Any:
            before, count, *held = carry
            around = Around(inside.stack, turn_key(inside.key, count))
            raised, results = self.evaluate(jaxpr, consts, [*values[:first], *held, *sliced], around)
            return [_earlier(before, raised), count + 1, *results[:carried]], results[carried:]

        start = [jnp.int32(0), jnp.int32(0), *values[first : first + carried]]
        final, stacked = jax.lax.scan(
            body, start, values[first + carried :], length=params["length"], reverse=params["reverse"]
        )
        return final[0], [*final[2:], *stacked]

    def loop(self, eqn: Any, values: list[Any], inside: Around) -> tuple[Any, list[Any]]:
        """A loop until its condition fails, or an exception is raised."""
        params = eqn.params
        (test, test_consts), (jaxpr, consts) = open_program(params["cond_jaxpr"]), open_program(params["body_jaxpr"])
        split, first = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]

        def goes_on(carry: Any) -> Any:
            before, _, *held = carry
            _, (again,) = self.evaluate(test, test_consts, [*values[:split], *held], inside)
            return again & (before == 0)

        def body(carry: Any) -> Any:
            _, count, *held = carry
            around = Around(inside.stack, turn_key(inside.key, count))
            raised, results = self.evaluate(jaxpr, consts, [*values[split:first], *held], around)
            return [raised, count + 1, *results]

        final = jax.lax.while_loop(goes_on, body, [jnp.int32(0), jnp.int32(0), *values[first:]])
        return final[0], list(final[2:])

    def branch(self, eqn: Any, values: list[Any], inside: Around) -> tuple[Any, list[Any]]:
        """The branch that is taken."""

        def taken(program: Any) -> Callable[..., Any]:
            jaxpr, consts = open_program(program)
            return lambda *given: self.evaluate(jaxpr, consts, given, inside)

        raised, results = jax.lax.switch(values[0], [taken(each) for each in eqn.params["branches"]], *values[1:])
        return raised, list(results)


def _first(raised: Sequence[Any]) -> Any:
    """The earliest of exceptions, 0 when there is none."""
    if not raised:
        return jnp.int32(0)
    return functools.reduce(_earlier, raised) if len(raised) < 3 else _earliest(jnp.stack(list(raised)))


def _earliest(raised: Any) -> Any:
    none = jnp.iinfo(jnp.int32).max
    found = jnp.min(jnp.where(raised == 0, none, raised))
    return jnp.where(found == none, 0, found)


def _earlier(before: Any, after: Any) -> Any:
    return jnp.where(before == 0, after, before)


def _is_real(value: Any) -> bool:
    return bool(jnp.issubdtype(jnp.result_type(value), jnp.floating))


def _divisor(name: str, values: Sequence[Any]) -> Any:
    """What is divided by, or taken the logarithm of."""
    return values[1] if name == "div" else values[0] + 1 if name == "log1p" else values[0]


def _is_zero(divisor: Any, result: Any) -> Any:
    return jnp.broadcast_to(divisor == 0, jnp.shape(result))


def _bind(eqn: Any, values: list[Any]) -> list[Any]:
    results = eqn.primitive.bind(*values, **eqn.params)
    return list(results) if eqn.primitive.multiple_results else [results]


def _all(test: Callable[[Any], Any], values: Sequence[Any], result: Any) -> Any:
    """Where all operands pass a test: element by element where they have the result's shape, else whole arrays."""
    passed: Any = True
    for value in values:
        found = test(value)
        passed = found & passed if jnp.shape(value) == jnp.shape(result) else jnp.all(found) & passed
    return passed


def _any(test: Callable[[Any], Any], values: Sequence[Any], result: Any) -> Any:
    """Where some operand passes a test."""
    return ~(_all(lambda value: ~test(value), values, result) | jnp.zeros((), bool))


__all__ = ["Behaviour", "behaviour_of", "with_numerics"]
