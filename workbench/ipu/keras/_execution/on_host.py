"""A turn on the host: compiled by XLA for all replicas at once, with the numbers an IPU makes as it is configured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.numbers.numerics import with_numerics
from workbench.engine.frontends.numbers.replicated import for_each
from workbench.ipu.config._state import STATE
from workbench.ipu.config.config import in_force
from workbench.ipu.keras._execution.turns import Turns


def on_host(function: Callable[..., Any], turns: Turns, executable: Any) -> Callable[..., Any]:
    """The function of one replica for all of them; arguments and results of several have them along a first axis."""
    for_all = function if turns.replicas == 1 else for_each(function, 0, turns.replicas)
    made: dict[Any, tuple[Callable[..., Any], list[Any]]] = {}

    def run(*args: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(args)
        if tree not in made:
            made[tree] = _compiled(for_all, args, turns, executable)
        compute, results = made[tree]
        return jax.tree_util.tree_unflatten(results[0], compute(leaves))

    return run


def _compiled(function: Any, args: Any, turns: Turns, executable: Any) -> tuple[Callable[..., Any], list[Any]]:
    """The function of flat arrays, and the structure of what it returns."""
    results: list[Any] = []
    values, tree = jax.tree_util.tree_flatten(args)

    def flat(*leaves: Any) -> list[Any]:
        made, found = jax.tree_util.tree_flatten(function(*jax.tree_util.tree_unflatten(tree, leaves)))
        results[:] = [found]
        return list(made)

    closed = jax.make_jaxpr(flat)(*values)
    compiled = jax.jit(jax.extend.core.jaxpr_as_fun(closed))
    source = Source(
        graph=executable.traced.graph,
        compute=lambda held: compiled(*held),
        specs=(),
        jaxpr=closed,
        model=turns.model,
    )
    configured = in_force() is not None
    return with_numerics(source, executable.request.options, STATE.draw, configured).compute, results


__all__ = ["on_host"]
