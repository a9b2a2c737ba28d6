"""A staged model: every stage's forward pass, its transpose, and its weight update as functions of their own.

The forward program is cut by layer; `jax.vjp` of each piece gives the stage's residuals, which are what the stage
stashes between its forward and its backward pass. Parameters among them are not stashed: they are read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from workbench.engine.frontends.calls import Call
from workbench.engine.frontends.jaxpr import cut, equation_stacks
from workbench.engine.frontends.name_stack import LOSS_LAYER, LayerNames, place_of
from workbench.engine.frontends.stages import stage_of_path
from workbench.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """The forward program of a model and what its parameters and results are called.

    `names` and `results` follow the jaxpr's parameters and results. `owners` is the layer of each parameter;
    `trained` and `state` are parameter names; `head` is the result that is differentiated, "" in inference.
    """

    closed: Any
    names: tuple[str, ...]
    results: tuple[str, ...]
    owners: Mapping[str, str]
    trained: frozenset[str]
    state: frozenset[str]
    late: frozenset[str]
    head: str


@dataclass(slots=True)
class Piece:
    """The equations of one stage: what it takes, what later stages or the caller take from it."""

    stage: int
    equations: list[Any] = field(default_factory=list)
    takes: list[Any] = field(default_factory=list)
    gives: list[Any] = field(default_factory=list)


class Pipeline:
    """Cuts a forward program into stages and makes the calls of a training step or an inference pass."""

    def __init__(self, forward: Forward, stages: Mapping[str, int], classes: Mapping[str, str]) -> None:
        self.forward = forward
        self.stages = stages
        self.count = max(stages.values()) + 1
        self.layers = LayerNames(classes)
        self.jaxpr = forward.closed.jaxpr
        self.names: dict[Any, str] = dict(zip(self.jaxpr.invars, forward.names, strict=True))
        self.given = frozenset(self.jaxpr.invars)
        self.differentiable = self._differentiable()
        self.pieces = self._cut()
        self.contributions: dict[str, list[str]] = {}

    def _home(self, name: str) -> int:
        """The stage of a parameter."""
        if name in self.forward.late:
            return self.count - 1
        return stage_of_path(self.forward.owners.get(name, ""), self.stages) or 0

    def _differentiable(self) -> set[Any]:
        """The values that depend on a trained parameter and have derivatives."""
        found = {var for var, name in self.names.items() if name in self.forward.trained}
        for eqn in self.jaxpr.eqns:
            if any(not isinstance(atom, Literal) and atom in found for atom in eqn.invars):
                found.update(var for var in eqn.outvars if jnp.issubdtype(var.aval.dtype, jnp.inexact))
        return found

    def _stage_of(self, eqn: Any, stack: Any, stage: Mapping[Any, int]) -> int:
        made = [atom for atom in eqn.invars if not isinstance(atom, Literal)]
        earliest = max((stage[atom] for atom in made if atom in stage), default=0)
        path = place_of((), stack, self.layers).layer
        if path == LOSS_LAYER:
            return self.count - 1
        wanted = stage_of_path(path, self.stages)
        if wanted is None:
            given = [self._home(self.names[atom]) for atom in made if atom in self.given]
            return max([earliest, *given])
        if wanted < earliest:
            raise InputError(
                f"the layer {path!r} is on stage {wanted} and uses what stage {earliest} computes",
                expected="stages that never step back along the flow of data",
                todo=f"put {path!r} on stage {earliest} or later",
            )
        return wanted

    def _is_free(self, eqn: Any, stack: Any, free: set[Any]) -> bool:
        """Whether an equation outside any layer computes with constants only; every stage that needs it repeats it."""
        if any(not isinstance(atom, Literal) and atom not in free for atom in eqn.invars):
            return False
        return stage_of_path(place_of((), stack, self.layers).layer, self.stages) is None

    def _cut(self) -> list[Piece]:
        pieces = [Piece(number) for number in range(self.count)]
        stage: dict[Any, int] = {}
        free = set(self.jaxpr.constvars)
        for eqn, stack in zip(self.jaxpr.eqns, equation_stacks(self.forward.closed), strict=True):
            if self._is_free(eqn, stack, free):
                free.update(eqn.outvars)
                for piece in pieces:
                    piece.equations.append(eqn)
                continue
            number = self._stage_of(eqn, stack, stage)
            pieces[number].equations.append(eqn)
            for atom in eqn.invars:
                if not isinstance(atom, Literal):
                    self._take(pieces, number, atom, stage)
            stage.update(dict.fromkeys(eqn.outvars, number))
        for var, name in zip(self.jaxpr.outvars, self.forward.results, strict=True):
            if not isinstance(var, Literal) and var in stage:
                pieces[stage[var]].gives.append((var, name))
        return pieces

    def _take(self, pieces: Sequence[Piece], number: int, var: Any, stage: Mapping[Any, int]) -> None:
        made = stage.get(var)
        if made == number or (made is None and var not in self.names):
            return
        if var not in pieces[number].takes:
            pieces[number].takes.append(var)
        if made is None:
            return
        name = self.names.setdefault(var, f"stage{made}/value_{len(self.names)}")
        if (var, name) not in pieces[made].gives:
            pieces[made].gives.append((var, name))

    def forward_only(self) -> list[Call]:
        """The calls of an inference pass."""
        calls = []
        for piece in self.pieces:
            outvars, results = [var for var, _ in piece.gives], tuple(name for _, name in piece.gives)
            closed, used = cut(self.forward.closed, piece.equations, piece.takes, outvars)
            calls.append(self._call(piece.stage, closed, [self.names[var] for var in used], results))
        return calls

    def _call(self, stage: int, closed: Any, operands: Sequence[str], results: Sequence[str]) -> Call:
        owners = [LOSS_LAYER if name in self.forward.late else self.forward.owners.get(name, "") for name in results]
        return Call(
            name=f"stage{stage}_forward", closed=closed, operands=tuple(operands), results=tuple(results),
            owners=tuple(owners), stage=stage, direction="forward",
        )  # fmt: skip

    def training(self) -> list[Call]:
        """Forward calls of all stages, then their backward calls from the last to the first."""
        differentiated = [Differentiated(self, piece) for piece in self.pieces]
        forwards = [stage.forward_call() for stage in differentiated]
        backwards = [stage.backward_call() for stage in reversed(differentiated)]
        return [*forwards, *backwards]


def accumulator(name: str) -> str:
    """The name of the buffer a parameter's gradients are added up in."""
    return f"{name}/accumulator"


class Differentiated:
    """`jax.vjp` of one piece: the forward function with its residuals, and the backward function that takes them."""

    def __init__(self, pipeline: Pipeline, piece: Piece) -> None:
        self.pipeline = pipeline
        self.stage = piece.stage
        names, forward = pipeline.names, pipeline.forward
        head = [(var, name) for var, name in piece.gives if name == forward.head]
        active = [(v, n) for v, n in piece.gives if v in pipeline.differentiable and n not in forward.results]
        self.active = [*active, *head]
        self.passive = [pair for pair in piece.gives if pair not in self.active]
        outvars = [var for var, _ in (*self.active, *self.passive)]
        self.closed, self.takes = cut(forward.closed, piece.equations, piece.takes, outvars)
        self.inputs = [names[var] for var in self.takes]
        self.wanted = [i for i, var in enumerate(self.takes) if var in pipeline.differentiable]
        self.residuals: list[Any] = []
        self.residual_types: dict[str, Any] = {}
        self.tree: Any = None

    def _vjp(self, *values: Any) -> list[Any]:
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

    def forward_call(self) -> Call:
        """Results, then residuals that are neither parameters nor results already."""
        types = [jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype) for var in self.takes]
        closed = jax.make_jaxpr(self._vjp)(*types)
        named = [name for _, name in (*self.active, *self.passive)]
        outvars = list(closed.jaxpr.outvars)
        taken = dict(zip(closed.jaxpr.invars, self.inputs, strict=True))
        known = {var: name for var, name in taken.items() if name not in self.pipeline.forward.state}
        for var, name in zip(outvars, named, strict=False):
            if not isinstance(var, Literal):
                known.setdefault(var, name)
        kept = list(zip(outvars, named, strict=False))
        for var in outvars[len(named) :]:
            if isinstance(var, Literal):
                self.residuals.append(var)
                continue
            if var not in known:
                known[var] = f"stage{self.stage}/residual_{len(self.residuals)}"
                kept.append((var, known[var]))
            self.residuals.append(known[var])
        part, used = cut(closed, closed.jaxpr.eqns, closed.jaxpr.invars, [var for var, _ in kept])
        self.residual_types = {known[var]: var.aval for var in known}
        return self.pipeline._call(self.stage, part, [taken[var] for var in used], [name for _, name in kept])

    def backward_call(self) -> Call:
        """Cotangents of the results in; cotangents of the inputs and accumulators with their gradients added out."""
        pipeline = self.pipeline
        operands = list(dict.fromkeys(name for name in self.residuals if isinstance(name, str)))
        cotangents = [pipeline.contributions.get(name, []) for _, name in self.active]
        arriving = [name for names in cotangents for name in names]
        wanted = [self.inputs[i] for i in self.wanted]
        buffers = [accumulator(name) for name in wanted if name in pipeline.forward.trained]
        avals = {name: self.residual_types[name] for name in operands}
        for (var, _), names in zip(self.active, cotangents, strict=True):
            avals.update(dict.fromkeys(names, var.aval))
        for i in self.wanted:
            if self.inputs[i] in pipeline.forward.trained:
                avals[accumulator(self.inputs[i])] = self.takes[i].aval
        order = [*operands, *arriving, *buffers]

        def transposed(*values: Any) -> list[Any]:
            env = dict(zip(order, values, strict=True))
            leaves = [env[leaf] if isinstance(leaf, str) else leaf.val for leaf in self.residuals]
            pull = jax.tree_util.tree_unflatten(self.tree, leaves)
            seeds = [
                _cotangent(var, name == pipeline.forward.head, [env[part] for part in parts])
                for (var, name), parts in zip(self.active, cotangents, strict=True)
            ]
            (gradients,) = pull(seeds)
            return [
                env[accumulator(name)] + gradient if name in pipeline.forward.trained else gradient
                for name, gradient in zip(wanted, gradients, strict=True)
            ]

        results = [self._gradient_name(name) for name in wanted]
        closed = jax.make_jaxpr(transposed)(*(jax.ShapeDtypeStruct(avals[n].shape, avals[n].dtype) for n in order))
        taken = dict(zip(closed.jaxpr.invars, order, strict=True))
        part, used = cut(closed, closed.jaxpr.eqns, closed.jaxpr.invars, closed.jaxpr.outvars)
        return Call(
            name=f"stage{self.stage}_backward", closed=part, operands=tuple(taken[var] for var in used),
            results=tuple(results), owners=tuple(pipeline.forward.owners.get(name, "") for name in wanted),
            stage=self.stage, direction="backward",
        )  # fmt: skip

    def _gradient_name(self, name: str) -> str:
        """What the gradient of an input is called; a parameter's goes into its accumulator."""
        if name in self.pipeline.forward.trained:
            return accumulator(name)
        arriving = self.pipeline.contributions.setdefault(name, [])
        arriving.append(f"{name}/cotangent_{self.stage}")
        return arriving[-1]


def _cotangent(var: Any, is_head: bool, parts: Sequence[Any]) -> Any:
    """The sum of what later stages sent back; one for the loss; zero where nothing came."""
    if is_head:
        return jnp.ones(var.aval.shape, var.aval.dtype)
    if not parts:
        return jnp.zeros(var.aval.shape, var.aval.dtype)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
