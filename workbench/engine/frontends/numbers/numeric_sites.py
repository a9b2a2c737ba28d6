"""Which equations of a traced program an IPU computes otherwise than the host, found without evaluating any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from workbench.engine.frontends.describe.name_stack import attributes_of
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.trace.body import open_program
from workbench.engine.frontends.trace.jaxpr import new_converter
from workbench.engine.frontends.trace.jaxpr_params import is_program
from workbench.engine.graph.primitives import names

MOVES = names(exact=True)  # nothing is computed, so nothing is raised
# The attribute that scopes.stochastic_rounding sets, and its values.
ROUNDING, ALWAYS, NEVER = "STOCHASTIC_ROUNDING", "THREESTATE_ON", "THREESTATE_OFF"


def somewhere(source: Source, test: Callable[[Any], bool]) -> bool:
    """Whether an equation of the program, or of a body in it, passes a test."""

    def found(jaxpr: Any) -> bool:
        for eqn in jaxpr.eqns:
            if test(eqn):
                return True
            for value in eqn.params.values():
                programs = value if isinstance(value, list | tuple) else [value]
                if any(is_program(each) and found(open_program(each)[0]) for each in programs):
                    return True
        return False

    return source.jaxpr is not None and found(source.jaxpr.jaxpr)


def rounds_somewhere(source: Source) -> bool:
    """Whether a scope of the program asks for stochastic rounding."""
    converter = new_converter(None)
    return somewhere(source, lambda eqn: attributes_of(converter.read_stack(eqn)).get(ROUNDING) == ALWAYS)


def differs_from_host(source: Source) -> bool:
    """Whether the program computes halves, or makes integers of real numbers."""
    return somewhere(source, lambda eqn: makes_integers(eqn) or _makes_halves(eqn))


def makes_integers(eqn: Any) -> bool:
    """Whether an equation turns real numbers into integers."""
    if eqn.primitive.name != "convert_element_type":
        return False
    (given,), (made,) = eqn.invars, eqn.outvars
    return jnp.issubdtype(given.aval.dtype, jnp.floating) and jnp.issubdtype(made.aval.dtype, jnp.integer)


def _makes_halves(eqn: Any) -> bool:
    if eqn.primitive.name in MOVES:
        return False
    return any(getattr(made.aval, "dtype", None) == jnp.float16 for made in eqn.outvars)


__all__ = ["ALWAYS", "MOVES", "NEVER", "ROUNDING", "differs_from_host", "makes_integers", "rounds_somewhere"]
