"""Primitives that a program of smaller ones computes, as on machines that have no library function for them.

The numbers of a run still come from the primitive itself; the expansion is what the tile program does. Algorithms are
those of textbooks, written with what JAX offers everybody; `G&VL` is Golub and Van Loan, "Matrix Computations", 4th
edition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jax import lax

from workbench.engine.frontends.expand import special_functions
from workbench.engine.frontends.expand.eigenvalues import EIGENVALUES, iterations
from workbench.engine.frontends.expand.factorisations import FACTORISATIONS, Expansion
from workbench.engine.frontends.expand.known_places import Known, at_places


def _gamma(params: Mapping[str, Any]) -> Expansion:
    """Marsaglia and Tsang, "A simple method for generating gamma variables" (2000), until all are accepted."""

    def draw(keys: Any, alpha: Any) -> Any:
        boosted = jnp.where(alpha >= 1, alpha, alpha + 1)
        d = boosted - 1 / 3
        c = lax.rsqrt(9 * d)
        key = keys if keys.ndim == 0 else keys.reshape(-1)[0]

        def missing(state: Any) -> Any:
            return jnp.any(state[1] < 0)

        def attempt(state: Any) -> Any:
            key, found = state
            key, one, two = jax.random.split(key, 3)
            normal = jax.random.normal(one, alpha.shape, alpha.dtype)
            uniform = jax.random.uniform(two, alpha.shape, alpha.dtype)
            v = (1 + c * normal) ** 3
            bound = normal * normal / 2 + d * (1 - v + jnp.log(jnp.where(v > 0, v, 1)))
            accepted = (v > 0) & (jnp.log(uniform) < bound)
            return key, jnp.where((found < 0) & accepted, v, found)

        key, found = lax.while_loop(missing, attempt, (key, jnp.full(alpha.shape, -1, alpha.dtype)))
        boost = jnp.log(jax.random.uniform(key, alpha.shape, alpha.dtype)) / alpha
        drawn = jnp.log(d * found) + jnp.where(alpha >= 1, 0, boost)
        return drawn if params["log_space"] else jnp.exp(drawn)

    return draw


def _approximate_top(params: Mapping[str, Any]) -> Expansion:
    """The exact one: nothing is gained by approximation where all tiles compare at once."""

    def largest(operand: Any) -> Any:
        axis = params["reduction_dimension"] % operand.ndim
        turned = jnp.moveaxis(operand if params["is_max_k"] else -operand, axis, -1)
        values, places = lax.top_k(turned, params["k"])
        values = values if params["is_max_k"] else -values
        return jnp.moveaxis(values, -1, axis), jnp.moveaxis(places, -1, axis)

    return largest


def _ragged_dot(params: Mapping[str, Any]) -> Expansion | None:
    """Rows multiplied by the matrix of their group: every group's product, of which each row keeps its own."""
    numbers = params["ragged_dot_dimension_numbers"]
    plain = tuple(tuple(map(tuple, pair)) for pair in numbers.dot_dimension_numbers) == (((1,), (1,)), ((), ()))
    if not plain or tuple(numbers.lhs_ragged_dimensions) != (0,) or tuple(numbers.rhs_group_dimensions) != (0,):
        return None

    def multiply(lhs: Any, rhs: Any, sizes: Any) -> Any:
        ends = jnp.cumsum(sizes)
        rows = jnp.arange(lhs.shape[0], dtype=sizes.dtype)[:, None]
        inside = ((rows < ends) & (rows >= ends - sizes)).astype(lhs.dtype)
        return jnp.einsum("mk,mg,gkn->mn", lhs, inside, rhs)

    return multiply


def _platform(params: Mapping[str, Any]) -> Expansion:
    """The branch for platforms that are not named, the first where all are."""
    platforms = list(params["platforms"])
    number = platforms.index(None) if None in platforms else 0
    return lambda: jnp.int32(number)


def _scaled_dot(params: Mapping[str, Any]) -> Expansion:
    """Blocks of the contracted axes times their scales in bfloat16, then the product: as JAX defines it."""
    (lhs_axes, rhs_axes), _ = params["dimension_numbers"]

    def scaled(operand: Any, scale: Any, axes: Sequence[int]) -> Any:
        for axis in axes:
            scale = jnp.repeat(scale, operand.shape[axis] // scale.shape[axis], axis)
        return operand.astype(jnp.bfloat16) * scale.astype(jnp.bfloat16)

    def multiply(lhs: Any, rhs: Any, lhs_scale: Any, rhs_scale: Any) -> Any:
        return lax.dot_general(
            scaled(lhs, lhs_scale, lhs_axes),
            scaled(rhs, rhs_scale, rhs_axes),
            params["dimension_numbers"],
            preferred_element_type=params["preferred_element_type"] or jnp.bfloat16,
        )

    return multiply


def _scaled_matmul(params: Mapping[str, Any]) -> Expansion:
    """The same of [batch, rows, block] matrices, the second transposed."""
    numbers = (((2,), (2,)), ((0,), (0,)))
    product = _scaled_dot({**params, "dimension_numbers": numbers})
    return lambda *operands: (product(*operands),)


def _over_elements(params: Mapping[str, Any], name: str) -> Callable[..., Any]:
    """A function of two numbers that an equation carries, over arrays."""
    closed = jax.extend.core.ClosedJaxpr(params[f"{name}_jaxpr"], params[f"{name}_consts"])
    mapped: Callable[..., Any] = jax.vmap(jax.extend.core.jaxpr_as_fun(closed))
    return mapped


def _select_and_scatter(params: Mapping[str, Any]) -> Expansion:
    """Which place of its window each source goes to, then place by place what has been chosen is scattered."""
    select, scatter = (_over_elements(params, name) for name in ("select", "scatter"))

    def run(operand: Any, source: Any, init: Any) -> Any:
        padding, strides = params["padding"], params["window_strides"]
        around = [(low, high, 0) for low, high in padding]
        held = lax.pad(operand, jnp.zeros((), operand.dtype), around)
        inside = lax.pad(jnp.ones(operand.shape, bool), False, around)
        places = list(np.ndindex(*params["window_dimensions"]))

        def cut(array: Any, place: Sequence[int]) -> Any:
            ends = [at + (size - 1) * step + 1 for at, size, step in zip(place, source.shape, strides, strict=True)]
            return lax.slice(array, place, ends, strides).reshape(-1)

        chosen, best = jnp.full(source.size, -1, jnp.int32), jnp.zeros(source.size, operand.dtype)
        for number, place in enumerate(places):
            found = cut(held, place)
            (stays,) = select(best, found)
            taken = cut(inside, place) & ((chosen < 0) | ~stays)
            chosen, best = jnp.where(taken, number, chosen), jnp.where(taken, found, best)
        result = jnp.full(held.shape, init)
        for number, place in enumerate(places):
            before = cut(result, place)
            (added,) = scatter(before, source.reshape(-1))
            after = jnp.where(chosen == number, added, before).reshape(source.shape)
            at = tuple(
                slice(first, first + (size - 1) * step + 1, step)
                for first, size, step in zip(place, source.shape, strides, strict=True)
            )
            result = result.at[at].set(after)
        return lax.slice(
            result,
            [low for low, _ in padding],
            [low + size for (low, _), size in zip(padding, operand.shape, strict=True)],
        )

    return run


def _over_batch(
    params: Mapping[str, Any], reduced: Callable[..., Any], between: Callable[..., Any]
) -> Expansion | None:
    """What `vmap` makes of a collective: a reduction along axes of the array, and one over the axes that have names."""
    along = tuple(axis for axis in params["axes"] if isinstance(axis, int))
    named = tuple(axis for axis in params["axes"] if not isinstance(axis, int))
    if not along:
        return None

    def run(*operands: Any) -> list[Any]:
        found = [reduced(each, along) for each in operands]
        return [between(each, named) for each in found] if named else found

    return run


EXPANSIONS: Mapping[str, Callable[[Mapping[str, Any]], Expansion | None]] = {
    **FACTORISATIONS,
    **EIGENVALUES,
    "random_gamma": _gamma,
    "ragged_dot_general": _ragged_dot,
    "scaled_dot": _scaled_dot,
    "scaled_matmul": _scaled_matmul,
    "scaled_matmul_wrapper": _scaled_matmul,
    "select_and_scatter": _select_and_scatter,
    "approx_top_k": _approximate_top,
    "igamma": lambda params: special_functions.igamma,
    "igammac": lambda params: special_functions.igammac,
    "igamma_grad_a": lambda params: special_functions.igamma_grad_a,
    "regularized_incomplete_beta": lambda params: special_functions.incomplete_beta,
    "platform_index": _platform,
    "psum": lambda params: _over_batch(params, lax.reduce_sum, lax.psum),
    "pmax": lambda params: _over_batch(params, lax.reduce_max, lax.pmax),
    "pmin": lambda params: _over_batch(params, lax.reduce_min, lax.pmin),
    "empty2": lambda params: lambda: jnp.zeros((), params["dtype"]),
    "empty": lambda params: lambda: jnp.zeros(params["shape"], params["dtype"]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """A jaxpr that stands for an equation; it takes the operands whose numbers are `taken`.

    `assumed`: of one that runs until it has converged, how long it counts.
    """

    jaxpr: Any
    consts: Sequence[Any]
    taken: Sequence[int]
    assumed: str = ""


@dataclass(slots=True)
class Expander:
    """Traces expansions, each once for equal parameters and types."""

    known: dict[str, Expanded | None] = field(default_factory=dict)

    def of(self, eqn: Any) -> Expanded | None:
        """What stands for the equation, None where it is an operation of its own."""
        name = eqn.primitive.name
        if name == "custom_linear_solve":
            return _solved(eqn)
        if name not in EXPANSIONS:
            return None
        return self._once(eqn, "", lambda: EXPANSIONS[name](eqn.params))

    def at_places(self, eqn: Any, values: Known) -> Expanded | None:
        """What stands for a slice, look-up or update, given what is known of its operands; None: nothing else does."""
        told = [None if value is None else (value.shape, value.tobytes()) for value in values]
        return self._once(eqn, f"{hash(tuple(told))}", lambda: at_places(eqn, values))

    def _once(self, eqn: Any, more: str, make: Callable[[], Expansion | None]) -> Expanded | None:
        types = [var.aval for var in eqn.invars]
        params = sorted((key, str(value)) for key, value in eqn.params.items())
        key = f"{eqn.primitive.name} {types} {params} {more}"
        if key not in self.known:
            # What is inside may name an axis; how long that is nothing asks.
            named = [(axis, 1) for axis in eqn.params.get("axes", ()) if isinstance(axis, str)]
            found = _traced(make(), types, [var.aval for var in eqn.outvars], named)
            assumed = iterations(eqn.primitive.name, types[0].shape[-1]) if types and types[0].shape else ""
            self.known[key] = replace(found, assumed=assumed) if found and assumed else found
        return self.known[key]


def _traced(
    function: Expansion | None, types: Sequence[Any], results: Sequence[Any], named: Sequence[tuple[str, int]] = ()
) -> Expanded | None:
    if function is None:
        return None
    closed = jax.make_jaxpr(function, axis_env=named)(*(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in types))
    made = [(each.shape, each.dtype) for each in closed.out_avals]
    if made != [(each.shape, each.dtype) for each in results]:
        raise TypeError(f"an expansion makes {made}, not {list(results)}")
    return Expanded(jaxpr=closed.jaxpr, consts=closed.consts, taken=range(len(types)))


def _solved(eqn: Any) -> Expanded:
    """The solver a linear solve was given, which the gradients have been taken through already.

    Its operands: what the product, the transposed product, the solver and the transposed solver close over, then the
    right-hand sides.
    """
    lengths, solve = eqn.params["const_lengths"], eqn.params["jaxprs"].solve
    products = lengths.matvec + lengths.vecmat
    own = range(products, products + lengths.solve)
    sides = range(own.stop + lengths.transpose_solve, len(eqn.invars))
    return Expanded(jaxpr=solve.jaxpr, consts=solve.consts, taken=(*own, *sides))
