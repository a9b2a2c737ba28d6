"""Recomputation: what a stage's backward pass needs is computed again instead of waiting for it.

Recompute then backpropagate: a call of its own makes the residuals of a stage again, all of them, from what the stage
was given. Recompute and backpropagate interleaved: the backward pass makes each when it first reads it, from the last
checkpoint before it, so that no more than what lies between two checkpoints is there at a time.

Never made again: what checkpoints hold, and what comes of state that the forward pass overwrites (seeds, moving
statistics), which is kept as it was. The last stage, whose backward pass follows at once, makes again only what lies
before a checkpoint. Source: graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/passes/
pipeline_recomputation_stage_inserter.cc, pipeline_recomputation.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from jax.extend.core import Literal as Constant

from workbench.base.identity import ByIdentities
from workbench.engine.frontends.describe.name_stack import LayerNames, is_mark, place_of
from workbench.engine.frontends.staging.checkpoints import Patterns
from workbench.engine.frontends.trace.jaxpr import again, closed_of, cut, equation_stacks
from workbench.engine.frontends.trace.staged_calls import Program, StagedCall
from workbench.engine.graph.stages import body_name, stage_name
from workbench.errors import InputError

Mode = Literal["Auto", "RecomputeThenBackpropagate", "RecomputeAndBackpropagateInterleaved"]
MODES = ("Auto", "RecomputeThenBackpropagate", "RecomputeAndBackpropagateInterleaved")
_SUPPORTED = {
    "Grouped": MODES[1:],
    "Interleaved": MODES[1:2],
    "Sequential": MODES[2:],
}


def mode_for(mode: str, schedule: str) -> str:
    """The mode `"Auto"` stands for under a schedule; an `InputError` where a schedule has no such mode."""
    if mode not in MODES:
        raise InputError(f"the recomputation mode is {mode!r}", expected=f"one of: {', '.join(MODES)}")
    supported = _SUPPORTED[schedule]
    if mode != "Auto" and mode not in supported:
        raise InputError(
            f"the recomputation mode is {mode!r} under the {schedule} schedule", expected=f"{supported[0]!r} or 'Auto'"
        )
    return supported[0] if mode == "Auto" else mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """How residuals are made again. `checkpoints` are layers (names or patterns) whose results are kept."""

    mode: str
    checkpoints: tuple[str, ...] = ()


Cuts = ByIdentities[Any, tuple[Any, list[Any]]]  # of a jaxpr with its results: what is left of it, and what that reads
"""By a jaxpr and what it is to return (by identity): the jaxpr, and what `cut` makes of it."""


def recomputed(program: Program, how: Recomputation, layers: Mapping[str, str], cuts: Cuts | None = None) -> Program:
    """The program with recomputation; `layers` maps layer paths to classes. `cuts` keeps what forward passes become
    for another way to recompute, which leaves them the same.
    """
    forwards = {call.stage: call for call in program.calls if call.direction == "forward"}
    backwards = {call.stage: call for call in program.calls if call.direction == "backward"}
    last = max(forwards)
    checkpoints = _Checkpoints(Patterns(how.checkpoints), LayerNames(layers))
    changed: dict[str, tuple[StagedCall, ...]] = {}
    for stage, backward in backwards.items():
        others = [call for call in program.calls if call is not forwards[stage] and call is not backward]
        elsewhere = {name for call in others for name in call.operands} | {name for _, name in program.outputs}
        change = _Stage(forwards[stage], backward, frozenset(elsewhere), ByIdentities() if cuts is None else cuts)
        if how.mode == "RecomputeThenBackpropagate":
            calls = None if stage == last else change.then()
        else:
            calls = change.interleaved(checkpoints.of(forwards[stage]), stage == last)
        if calls is not None:
            changed[forwards[stage].name], changed[backward.name] = calls[:1], calls[1:]
    checkpoints.check()
    return replace(program, calls=tuple(made for call in program.calls for made in changed.get(call.name, (call,))))


def has_marks(program: Program) -> bool:
    """Whether some value is marked as a checkpoint in the program."""
    return any(_is_marked(eqn) for call in program.calls for eqn in call.closed.jaxpr.eqns)


@dataclass(slots=True)
class _Checkpoints:
    """Finds the values that are checkpoints: marked in the program, or results of named layers."""

    patterns: Patterns
    layers: LayerNames

    def of(self, forward: StagedCall) -> set[Any]:
        """The variables of a stage's forward pass that are kept."""
        equations = forward.closed.jaxpr.eqns
        given = set(forward.closed.jaxpr.invars)
        found = {var for eqn in equations if _is_marked(eqn) for var in _read(eqn) if var not in given}
        if not self.patterns.names:
            return found
        inside = [
            self.patterns.matching(place_of((), stack, self.layers).layer) for stack in equation_stacks(forward.closed)
        ]
        made = {var: layer for eqn, layer in zip(equations, inside, strict=True) for var in eqn.outvars if layer}
        for eqn, layer in zip(equations, inside, strict=True):
            found.update(var for var in _read(eqn) if made.get(var, layer) != layer)
        return {var for var in found if _has_gradient(var)}

    def check(self) -> None:
        """A pattern that no layer has is an `InputError`, where layers are known."""
        if self.layers.classes:
            self.patterns.check()


def _has_gradient(var: Any) -> bool:
    """Whether a variable holds numbers that gradients flow through."""
    return getattr(var.aval.dtype, "kind", "") in ("f", "V")


def _is_marked(eqn: Any) -> bool:
    return is_mark(eqn.primitive.name, eqn.params.get("name"))


def _read(eqn: Any) -> list[Any]:
    return [atom for atom in eqn.invars if not isinstance(atom, Constant)]


class _Stage:
    """A forward and a backward call; `elsewhere` are the names that anybody but these two reads."""

    def __init__(self, forward: StagedCall, backward: StagedCall, elsewhere: frozenset[str], cuts: Cuts) -> None:
        self.forward = forward
        self.backward = backward
        self.elsewhere = elsewhere
        self.cuts = cuts
        self.jaxpr = forward.closed.jaxpr
        self.given = dict(zip(self.jaxpr.invars, forward.operands, strict=True))
        self.made = {
            name: var
            for name, var in zip(forward.results, self.jaxpr.outvars, strict=True)
            if not isinstance(var, Constant) and var not in self.given
        }
        self.overwritten = frozenset(forward.operands) & frozenset(forward.results)
        self.owner = dict(zip(forward.results, forward.owners, strict=True))
        self.wanted = [name for name in backward.operands if name in self.made and name not in self.overwritten]
        self.kept: dict[str, Any] = {}  # name → variable that the forward pass returns besides

    def _name_of(self, var: Any) -> str:
        """What a parameter of the forward pass is called later: state is kept as it was before the pass."""
        name: str = self.given[var]
        if name not in self.overwritten:
            return name
        before = f"{stage_name(self.forward.stage)}/{name}/before"
        self.kept[before] = var
        return before

    def _without(self, dropped: Sequence[str]) -> StagedCall:
        """The forward call without results that nobody reads any more, and with what is kept besides."""
        pairs = [
            (name, var, owner)
            for name, var, owner in zip(self.forward.results, self.jaxpr.outvars, self.forward.owners, strict=True)
            if name not in dropped or name in self.elsewhere
        ]
        pairs += [(name, var, "") for name, var in self.kept.items()]
        outvars = [var for _, var, _ in pairs]
        key = (self.forward.closed, *outvars)
        if key not in self.cuts:
            self.cuts[key] = cut(self.forward.closed, self.jaxpr.eqns, self.jaxpr.invars, outvars)
        closed, used = self.cuts[key]
        return replace(
            self.forward,
            closed=closed,
            operands=tuple(self.given[var] for var in used),
            results=tuple(name for name, _, _ in pairs),
            owners=tuple(owner for _, _, owner in pairs),
        )

    def then(self) -> tuple[StagedCall, ...] | None:
        """Forward, recompute and backward calls; None when there is nothing to make again."""
        if not self.wanted:
            return None
        outvars = [self.made[name] for name in self.wanted]
        closed, used = cut(self.forward.closed, self.jaxpr.eqns, self.jaxpr.invars, outvars)
        recompute = StagedCall(
            name=body_name(self.forward.stage, "recompute"),
            closed=closed,
            operands=tuple(self._name_of(var) for var in used),
            results=tuple(map(_again, self.wanted)),
            owners=tuple(self.owner[name] for name in self.wanted),
            stage=self.forward.stage,
            direction="recompute",
        )
        operands = tuple(_again(name) if name in self.wanted else name for name in self.backward.operands)
        return self._without(self.wanted), recompute, replace(self.backward, operands=operands)

    def interleaved(self, checkpoints: set[Any], last: bool) -> tuple[StagedCall, ...] | None:
        """Forward and backward calls, the backward pass with what it makes again where it first reads it."""
        maker = {var: number for number, eqn in enumerate(self.jaxpr.eqns) for var in eqn.outvars}
        may = self._before(checkpoints, maker) if last else set(range(len(self.jaxpr.eqns)))
        names = [name for name in self.wanted if maker[self.made[name]] in may and self.made[name] not in checkpoints]
        if not names:
            return None
        merging = _Merging(self, maker, checkpoints)
        backward = merging.backward(names)
        return self._without(names), backward

    def _before(self, checkpoints: set[Any], maker: Mapping[Any, int]) -> set[int]:
        """The equations that some checkpoint comes of, and what branches off them for the backward pass alone."""
        found: set[int] = set()
        pending = [maker[var] for var in checkpoints]
        while pending:
            number = pending.pop()
            if number not in found:
                found.add(number)
                pending += [maker[var] for var in _read(self.jaxpr.eqns[number]) if var in maker]
        last = checkpoints - {var for number in found for var in _read(self.jaxpr.eqns[number])}
        for number, eqn in enumerate(self.jaxpr.eqns):
            read = [var for var in _read(eqn) if var in maker]
            if read and all(maker[var] in found and var not in last for var in read):
                found.add(number)
        return found


def _again(name: str) -> str:
    return f"{name}/again"


class _Merging:
    """Writes equations of a forward pass into a backward pass."""

    def __init__(self, stage: _Stage, maker: Mapping[Any, int], checkpoints: set[Any]) -> None:
        self.stage = stage
        self.maker = maker
        self.checkpoints = checkpoints
        self.back = stage.backward.closed.jaxpr
        self.operand_of = dict(zip(stage.backward.operands, self.back.invars, strict=True))
        self.name_of = {var: name for name, var in stage.made.items()}
        self.stands_for: dict[Any, Any] = {}  # variable of the forward pass → the one in the backward pass
        self.more: dict[str, Any] = {}  # further operands by name
        self.written: set[int] = set()
        self.equations: list[Any] = []

    def backward(self, names: Sequence[str]) -> StagedCall:
        """The backward call that makes these residuals again."""
        gone = {self.operand_of[name]: self.stage.made[name] for name in names}
        for eqn in self.back.eqns:
            for var in _read(eqn):
                if var in gone:
                    self._write(gone[var])
            renamed = [gone.get(a, a) if not isinstance(a, Constant) else a for a in eqn.invars]
            self.equations.append(eqn.replace(invars=renamed))
        for var in self.back.outvars:
            if not isinstance(var, Constant) and var in gone:
                self._write(gone[var])
        kept = [(name, var) for name, var in self.operand_of.items() if name not in names]
        operands = [*kept, *self.more.items()]
        outvars = [gone.get(a, a) if not isinstance(a, Constant) else a for a in self.back.outvars]
        closed = closed_of(
            (self.stage.backward.closed, self.stage.forward.closed),
            self.equations,
            [var for _, var in operands],
            outvars,
        )
        return replace(self.stage.backward, closed=closed, operands=tuple(name for name, _ in operands))

    def _write(self, var: Any) -> None:
        """Write the equations that make a variable and have not been written, in their order."""
        for number in sorted(self._missing(var)):
            eqn = self.stage.jaxpr.eqns[number]
            self.written.add(number)
            renamed = [a if isinstance(a, Constant) else self._read_as(a) for a in eqn.invars]
            self.equations.append(again(eqn.replace(invars=renamed)))

    def _missing(self, var: Any) -> Iterator[int]:
        pending, seen = [var], set[int]()
        while pending:
            number = self.maker.get(pending.pop())
            if number is None or number in seen or number in self.written:
                continue
            seen.add(number)
            yield number
            pending += [v for v in _read(self.stage.jaxpr.eqns[number]) if v not in self.checkpoints]

    def _kept_as(self, var: Any) -> str:
        """What a checkpoint is called that is kept for the backward pass alone: one name for each result of a loop."""
        number = self.maker[var]
        beside = [each for each in self.stage.jaxpr.eqns[number].outvars if each in self.checkpoints]
        place = next(place for place, each in enumerate(beside) if each is var)
        return f"{stage_name(self.stage.forward.stage)}/checkpoint_{number}{f'_{place}' if place else ''}"

    def _read_as(self, var: Any) -> Any:
        """A variable of the forward pass as the backward pass has it."""
        if var in self.stands_for:
            return self.stands_for[var]
        if var in self.stage.given:
            name = self.stage._name_of(var)
        elif var in self.checkpoints:
            name = self.name_of.get(var) or self._kept_as(var)
            if name not in self.stage.made:
                self.stage.kept[name] = var
        else:
            return var
        if name not in self.operand_of:
            self.more[name] = var
        self.stands_for[var] = self.operand_of.get(name, var)
        return self.stands_for[var]
