"""`jax.vjp` of one pipeline stage as two functions: forward with the residuals it leaves, backward that takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from workbench.engine.frontends.describe.replicas import axes
from workbench.engine.frontends.trace.jaxpr import cut
from workbench.engine.frontends.trace.staged_calls import StagedCall
from workbench.engine.graph.stages import body_name, stage_name

Add: TypeAlias = Callable[[Any, Any, Any, bool], Any]
"""(buffer, gradient, micro-batches before, whether this is the micro-batch's first gradient for it) to the new sum."""


def accumulator(name: str) -> str:
    """The name of the buffer a parameter's gradients are added up in."""
    return f"{name}/accumulator"


def counter(stage: int) -> str:
    """The name of the number of micro-batches whose gradients a stage has added up since the last update."""
    return f"{stage_name(stage)}/micro_batches"


def plain_sum(buffer: Any, gradient: Any, number: Any, first: bool) -> Any:
    """The gradient added as it is, in the buffer's type."""
    return buffer + gradient.astype(buffer.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """How gradients are added up: `types` where not a parameter's own; `counted`: the micro-batches of an update where
    `add` is given how many came before, which every stage then counts, else 0."""

    types: Mapping[str, str] = field(default_factory=dict)
    add: Add = plain_sum
    counted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the stages of one model share.

    `names` maps values that have one to their names; `head` is the result that is differentiated; `results` are the
    caller's; `cotangents` collects, per value that crossed to a later stage, the names of what came back for it;
    `sums` says how gradients are added up, `summed` collects the parameters some stage has added to.
    """

    names: Mapping[Any, str]
    trained: frozenset[str]
    state: frozenset[str]
    head: str
    results: frozenset[str]
    differentiable: set[Any]
    owner: Callable[[str], str]
    cotangents: dict[str, list[str]] = field(default_factory=dict)
    sums: Sums = field(default_factory=Sums)
    summed: set[str] = field(default_factory=set)
    replicas: int = 1


class Differentiated:
    """One stage: `takes` are the values it reads, `gives` the values others read from it, with their names."""

    def __init__(
        self,
        around: Surroundings,
        stage: int,
        program: Any,
        equations: Sequence[Any],
        takes: Sequence[Any],
        gives: Sequence[tuple[Any, str]],
    ) -> None:
        self.around = around
        self.stage = stage
        head = [(var, name) for var, name in gives if name == around.head]
        crossing = [(v, n) for v, n in gives if n not in around.results and v in around.differentiable]
        self.active = [*crossing, *head]
        self.passive = [pair for pair in gives if pair not in self.active]
        self.closed, self.takes = cut(program, equations, takes, [var for var, _ in (*self.active, *self.passive)])
        self.inputs = [around.names[var] for var in self.takes]
        self.wanted = [i for i, var in enumerate(self.takes) if var in around.differentiable]
        self.residuals: list[str | Callable[[], Any]] = []
        self.avals: dict[str, Any] = {}
        self.tree: Any = None

    def _vjp(self, *values: Any) -> list[Any]:
        """Results, then the leaves of the transposed function."""
        run = jax.extend.core.jaxpr_as_fun(self.closed)

        def piece(wanted: list[Any]) -> tuple[list[Any], list[Any]]:
            merged = list(values)
            for place, value in zip(self.wanted, wanted, strict=True):
                merged[place] = value
            results = run(*merged)
            return list(results[: len(self.active)]), list(results[len(self.active) :])

        active, transposed, passive = jax.vjp(piece, [values[i] for i in self.wanted], has_aux=True)
        leaves, self.tree = jax.tree_util.tree_flatten(transposed)
        return [*active, *passive, *leaves]

    def forward_call(self) -> StagedCall:
        """The forward function: results, then the residuals that are neither parameters nor results already."""
        traced = jax.make_jaxpr(self._vjp, axis_env=axes(self.around.replicas))
        closed = traced(*(_type(var.aval) for var in self.takes))
        named = [name for _, name in (*self.active, *self.passive)]
        outvars = list(closed.jaxpr.outvars)
        taken = dict(zip(closed.jaxpr.invars, self.inputs, strict=True))
        kept = list(zip(outvars[: len(named)], named, strict=True))
        # State is overwritten before the backward pass reads it, so what is needed of it is kept as a residual.
        known = {var: name for var, name in taken.items() if name not in self.around.state}
        for var, name in kept:
            if not isinstance(var, Literal):
                known.setdefault(var, name)
        kept += self._keep(closed, outvars[len(named) :], known)
        self.avals.update((name, var.aval) for var, name in known.items())
        part, used = cut(closed, closed.jaxpr.eqns, closed.jaxpr.invars, [var for var, _ in kept])
        names = tuple(name for _, name in kept)
        return StagedCall(
            name=body_name(self.stage, "forward"),
            closed=part,
            operands=tuple(taken[var] for var in used),
            results=names,
            owners=tuple(self.around.owner(name) for name in names),
            stage=self.stage,
            direction="forward",
        )

    def _keep(self, closed: Any, leaves: Sequence[Any], known: dict[Any, str]) -> list[tuple[Any, str]]:
        """Say where the backward pass finds each leaf; what no input determines it makes again from constants."""
        kept: list[tuple[Any, str]] = []
        free = _free(closed)
        for var in leaves:
            if isinstance(var, Literal):
                self.residuals.append(lambda value=var.val: value)  # type: ignore[misc]
            elif var in free:
                part, _ = cut(closed, closed.jaxpr.eqns, (), [var])
                self.residuals.append(lambda again=part: jax.extend.core.jaxpr_as_fun(again)()[0])  # type: ignore[misc]
            else:
                if var not in known:
                    known[var] = f"{stage_name(self.stage)}/residual_{len(kept)}"
                    kept.append((var, known[var]))
                self.residuals.append(known[var])
        return kept

    def backward_call(self) -> StagedCall:
        """The backward function: cotangents of results in; cotangents of inputs, and accumulators added to, out."""
        around = self.around
        wanted = [self.inputs[i] for i in self.wanted]
        trained = [name for name in wanted if name in around.trained]
        counts = [counter(self.stage)] if around.sums.counted and trained else []
        order = [*self._backward_operands(wanted), *counts]
        self.avals.update((name, jax.ShapeDtypeStruct((), "int32")) for name in counts)

        def transposed(*values: Any) -> list[Any]:
            env = dict(zip(order, values, strict=True))
            leaves = [env[leaf] if isinstance(leaf, str) else leaf() for leaf in self.residuals]
            (gradients,) = jax.tree_util.tree_unflatten(self.tree, leaves)(self._seeds(env))
            before = [env[name] for name in counts]
            number = before[0] if before else None
            added = [
                around.sums.add(env[accumulator(name)], gradient, number, name not in around.summed)
                if name in around.trained
                else gradient
                for name, gradient in zip(wanted, gradients, strict=True)
            ]
            return [*added, *(jax.lax.rem(held + 1, jnp.int32(around.sums.counted)) for held in before)]

        traced = jax.make_jaxpr(transposed, axis_env=axes(around.replicas))
        closed = traced(*(_type(self.avals[name]) for name in order))
        around.summed.update(trained)
        taken = dict(zip(closed.jaxpr.invars, order, strict=True))
        part, used = cut(closed, closed.jaxpr.eqns, closed.jaxpr.invars, closed.jaxpr.outvars)
        return StagedCall(
            name=body_name(self.stage, "backward"),
            closed=part,
            operands=tuple(taken[var] for var in used),
            results=(*(self._gradient_name(name) for name in wanted), *counts),
            owners=(*(around.owner(name) for name in wanted), *("" for _ in counts)),
            stage=self.stage,
            direction="backward",
        )

    def _backward_operands(self, wanted: Sequence[str]) -> list[str]:
        """Residuals, cotangents and accumulators by name, with their types noted."""
        order = list(dict.fromkeys(leaf for leaf in self.residuals if isinstance(leaf, str)))
        for var, name in self.active:
            for arriving in self.around.cotangents.get(name, ()):
                self.avals[arriving] = var.aval
                order.append(arriving)
        for place, name in zip(self.wanted, wanted, strict=True):
            if name in self.around.trained:
                aval = self.takes[place].aval
                kind = self.around.sums.types.get(name, aval.dtype)
                self.avals[accumulator(name)] = jax.ShapeDtypeStruct(aval.shape, kind)
                order.append(accumulator(name))
        return order

    def _seeds(self, env: Mapping[str, Any]) -> list[Any]:
        """Cotangents of the active results: one for the loss, else the sum of what came back, zero if nothing did."""
        seeds = []
        for var, name in self.active:
            parts = [env[part] for part in self.around.cotangents.get(name, ())]
            if name == self.around.head:
                parts = [jnp.ones(var.aval.shape, var.aval.dtype)]
            seeds.append(sum(parts[1:], parts[0]) if parts else jnp.zeros(var.aval.shape, var.aval.dtype))
        return seeds

    def _gradient_name(self, name: str) -> str:
        """What the gradient of an input is called; a parameter's goes into its accumulator."""
        if name in self.around.trained:
            return accumulator(name)
        arriving = self.around.cotangents.setdefault(name, [])
        arriving.append(f"{name}/cotangent_{self.stage}")
        return arriving[-1]


def _type(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _free(closed: Any) -> set[Any]:
    """The values of a program that constants alone determine."""
    found = set(closed.jaxpr.constvars)
    for eqn in closed.jaxpr.eqns:
        if all(isinstance(atom, Literal) or atom in found for atom in eqn.invars):
            found.update(eqn.outvars)
    return found
