"""A staged model: every stage's forward pass, its transpose, and its weight update as functions of their own.

The forward program is cut by layer; `jax.vjp` of each piece gives the stage's residuals, which are what the stage
stashes between its forward and its backward pass. Parameters among them are not stashed: they are read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
from jax.extend.core import Literal

from workbench.engine.frontends.describe.name_stack import LOSS_LAYER, LayerNames, Place, place_of
from workbench.engine.frontends.staging.stages import Calls, outermost, stage_of_path, stage_of_place
from workbench.engine.frontends.staging.vjp import Differentiated, Sums, Surroundings
from workbench.engine.frontends.trace.jaxpr import cut, equation_stacks
from workbench.engine.frontends.trace.staged_calls import StagedCall
from workbench.engine.graph.stages import body_name, stage_name
from workbench.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """The forward program of a model and what its parameters and results are called.

    `names` and `results` follow the jaxpr's parameters and results. `owners` is the layer of each of them; `trained`
    and `state` are parameter names, `late` those the last stage has; `head` is the result that is differentiated,
    "" in inference. `sums`: how gradients are added up. `replicas`: of the program, which collectives may name.
    """

    closed: Any
    names: tuple[str, ...]
    results: tuple[str, ...]
    owners: Mapping[str, str]
    trained: frozenset[str]
    state: frozenset[str]
    late: frozenset[str]
    head: str
    sums: Sums = field(default_factory=Sums)
    replicas: int = 1


@dataclass(slots=True)
class Piece:
    """The equations of one stage: what it takes, what later stages or the caller take from it."""

    stage: int
    equations: list[Any] = field(default_factory=list)
    takes: list[Any] = field(default_factory=list)
    gives: list[Any] = field(default_factory=list)


class Pipeline:
    """Cuts a forward program into stages and makes the calls of a training step or an inference pass."""

    def __init__(
        self, forward: Forward, stages: Mapping[str, int], classes: Mapping[str, str], calls: Calls | None = None
    ) -> None:
        self.forward = forward
        self.stages = stages
        self.calls = calls or {}
        self.count = max([*stages.values(), *self.calls.values()]) + 1
        self.layers = LayerNames(classes)
        self.jaxpr = forward.closed.jaxpr
        self.places = [place_of((), stack, self.layers) for stack in equation_stacks(forward.closed)]
        self.names: dict[Any, str] = dict(zip(self.jaxpr.invars, forward.names, strict=True))
        self.given = frozenset(self.jaxpr.invars)
        self.differentiable = self._differentiable()
        self.calls = self._later_calls() if calls is None else calls
        self.pieces = self._cut()
        self.crossing_owners = self._crossing_owners()

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

    def _asked(self, eqn: Any, place: Place, stage: Mapping[Any, int]) -> tuple[int, int]:
        """The stage an equation is asked to be on, and the earliest that has what it reads."""
        made = [atom for atom in eqn.invars if not isinstance(atom, Literal)]
        earliest = max((stage[atom] for atom in made if atom in stage), default=0)
        if place.layer == LOSS_LAYER:
            return self.count - 1, earliest
        wanted = stage_of_place(place, self.stages, self.calls)
        if wanted is None:
            given = [self._home(self.names[atom]) for atom in made if atom in self.given]
            return max([earliest, *given]), earliest
        return wanted, earliest

    def _stage_of(self, eqn: Any, place: Place, stage: Mapping[Any, int]) -> int:
        wanted, earliest = self._asked(eqn, place, stage)
        if wanted < earliest:
            raise InputError(
                f"the layer {place.layer!r} is on stage {wanted} and uses what stage {earliest} computes",
                expected="stages that never step back along the flow of data",
                todo=f"put {place.layer!r} on stage {earliest} or later",
            )
        return wanted

    def _later_calls(self) -> Calls:
        """Calls of a layer behind its first that read what stages behind its own compute: each is on the last of these.

        A table that embeds at the beginning of a model and scores at its end is read on both stages.
        """
        self.calls = found = dict[tuple[str, int], int]()
        several = any(place.outer_call > 1 for place in self.places)
        while several:
            before, stage, free = dict(found), dict[Any, int](), set(self.jaxpr.constvars)
            for eqn, place in zip(self.jaxpr.eqns, self.places, strict=True):
                if self._is_free(eqn, place, free):
                    free.update(eqn.outvars)
                    continue
                wanted, earliest = self._asked(eqn, place, stage)
                if wanted < earliest and place.outer_call > 1:
                    found[outermost(place.layer), place.outer_call] = earliest
                stage.update(dict.fromkeys(eqn.outvars, max(wanted, earliest)))
            several = found != before
        return found

    def _is_free(self, eqn: Any, place: Place, free: set[Any]) -> bool:
        """Whether an equation outside any layer computes with constants only; every stage that needs it repeats it."""
        if any(not isinstance(atom, Literal) and atom not in free for atom in eqn.invars):
            return False
        return stage_of_path(place.layer, self.stages) is None

    def _cut(self) -> list[Piece]:
        pieces = [Piece(number) for number in range(self.count)]
        stage: dict[Any, int] = {}
        free = set(self.jaxpr.constvars)
        for eqn, place in zip(self.jaxpr.eqns, self.places, strict=True):
            if self._is_free(eqn, place, free):
                free.update(eqn.outvars)
                for piece in pieces:
                    piece.equations.append(eqn)
                continue
            number = self._stage_of(eqn, place, stage)
            pieces[number].equations.append(eqn)
            for atom in eqn.invars:
                if not isinstance(atom, Literal):
                    self._take(pieces, number, atom, stage)
            stage.update(dict.fromkeys(eqn.outvars, number))
        for var, name in zip(self.jaxpr.outvars, self.forward.results, strict=True):
            self._give(pieces, var, name, stage)
        return pieces

    def _give(self, pieces: Sequence[Piece], var: Any, name: str, stage: Mapping[Any, int]) -> None:
        """Have a result given by the stage that makes it; what none makes, a constant or a parameter, by `_giver`."""
        literal = isinstance(var, Literal)
        if not literal and var in stage:
            pieces[stage[var]].gives.append((var, name))
        elif literal or self.names.get(var) != name:  # what a state is already is no result
            piece = pieces[self._giver(pieces, var, name)]
            if not literal:
                self._take(pieces, piece.stage, var, stage)
            piece.gives.append((var, name))

    def _giver(self, pieces: Sequence[Piece], var: Any, name: str) -> int:
        """The stage that gives what none makes: that of the state it is written to, one that takes it, or the last."""
        if name in self.forward.names:
            return self._home(name)
        takers = (piece.stage for piece in pieces if any(each is var for each in piece.takes))
        return next(takers, self.count - 1)

    def _take(self, pieces: Sequence[Piece], number: int, var: Any, stage: Mapping[Any, int]) -> None:
        made = stage.get(var)
        if made == number or (made is None and var not in self.names):
            return
        if var not in pieces[number].takes:
            pieces[number].takes.append(var)
        if made is None:
            return
        name = self.names.setdefault(var, f"{stage_name(made)}/value_{len(self.names)}")
        if (var, name) not in pieces[made].gives:
            pieces[made].gives.append((var, name))

    def _layers(self) -> list[str]:
        """The layer of each equation, that of its first consumer for equations outside any."""
        found = [place.layer for place in self.places]
        consumer = {
            var: self.forward.owners.get(name, "")
            for var, name in zip(self.jaxpr.outvars, self.forward.results, strict=True)
            if not isinstance(var, Literal)
        }
        for place in reversed(range(len(found))):
            eqn = self.jaxpr.eqns[place]
            found[place] = found[place] or next((consumer[var] for var in eqn.outvars if var in consumer), "")
            consumer.update((atom, found[place]) for atom in eqn.invars if not isinstance(atom, Literal))
        return found

    def _crossing_owners(self) -> dict[str, str]:
        """The layer of the first consumer of each value that crosses to another stage."""
        owners: dict[str, str] = {}
        for eqn, layer in zip(self.jaxpr.eqns, self._layers(), strict=True):
            for atom in eqn.invars:
                if not isinstance(atom, Literal) and atom in self.names:
                    owners.setdefault(self.names[atom], layer)
        return owners

    def owner(self, name: str) -> str:
        """The layer what makes a result belongs to when its name stack says nothing."""
        return self.forward.owners.get(name) or self.crossing_owners.get(name, "")

    def forward_only(self) -> list[StagedCall]:
        """The calls of an inference pass."""
        calls = []
        for piece in self.pieces:
            outvars, results = [var for var, _ in piece.gives], tuple(name for _, name in piece.gives)
            closed, used = cut(self.forward.closed, piece.equations, piece.takes, outvars)
            calls.append(self._call(piece.stage, closed, [self.names[var] for var in used], results))
        return calls

    def _call(self, stage: int, closed: Any, operands: Sequence[str], results: Sequence[str]) -> StagedCall:
        return StagedCall(
            name=body_name(stage, "forward"),
            closed=closed,
            operands=tuple(operands),
            results=tuple(results),
            owners=tuple(self.owner(name) for name in results),
            stage=stage,
            direction="forward",
        )

    def training(self) -> list[StagedCall]:
        """Forward calls of all stages, then their backward calls from the last to the first."""
        around = Surroundings(
            names=self.names,
            trained=self.forward.trained,
            state=self.forward.state,
            head=self.forward.head,
            results=frozenset(self.forward.results),
            differentiable=self.differentiable,
            owner=self.owner,
            sums=self.forward.sums,
            replicas=self.forward.replicas,
        )
        differentiated = [
            Differentiated(around, piece.stage, self.forward.closed, piece.equations, piece.takes, piece.gives)
            for piece in self.pieces
        ]
        forwards = [stage.forward_call() for stage in differentiated]
        backwards = [stage.backward_call() for stage in reversed(differentiated)]
        return [*forwards, *backwards]
