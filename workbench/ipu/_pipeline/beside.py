"""Other work in a program with a pipeline: what was asked for before it runs before all its micro-batches, the rest
after its weight update, each once, on the IPU of the first stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp

from workbench.engine.frontends.describe.replicas import axes
from workbench.engine.frontends.trace.staged_calls import StagedCall
from workbench.errors import InputError
from workbench.ipu._pipeline.recorded import Recorded
from workbench.tf._graph import Effects, Graph, Operation, Tensor
from workbench.tf._graph.evaluate import Run, State
from workbench.tf._graph.marks import stage_scope

TODO = "return the pipeline from the function given to ipu_compiler.compile, with nothing beside it that does this"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Operations on one side of the pipeline: tensors they take and somebody else needs of them, what they touch."""

    turn: Literal["before", "after"]
    graph: Graph
    operations: tuple[Operation, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    effects: Effects

    @property
    def written(self) -> tuple[Any, ...]:
        """The variables it writes."""
        return _by_name(self.effects.writes)

    def call(self, types: Mapping[str, Any], replicas: int) -> StagedCall:
        """It as a call of the program."""
        touched = _by_name(self.effects.reads | self.effects.writes)
        names = [*(each.name for each in self.inputs), *(each.handle for each in touched)]
        mine = set(self.operations)
        others = [operation for operation in self.graph.operations if operation not in mine]

        def run(*values: Any) -> list[Any]:
            held = dict(zip(self.inputs, values, strict=False))
            state = State(dict(zip(touched, values[len(self.inputs) :], strict=True)))
            Run(self.graph, state, held).evaluate([*self.operations, *self.outputs], known=others)
            made = [held[tensor] for tensor in self.outputs]
            return [jnp.asarray(each) for each in (*made, *(state.values[each] for each in self.written))]

        closed = jax.make_jaxpr(run, axis_env=axes(replicas))(*(types[name] for name in names))
        results = (*(each.name for each in self.outputs), *(each.handle for each in self.written))
        return StagedCall(
            name=f"{self.turn}_pipeline",
            closed=closed,
            operands=tuple(names),
            results=results,
            owners=(stage_scope(0),) * len(results),
            stage=0,
            repeated=False,
            turn=self.turn,
            direction="forward" if self.turn == "before" else "update",
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beside:
    """All other work of a program: what the program takes and gives, and the parts with something to do."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parts: tuple[Part, ...]

    @property
    def effects(self) -> Effects:
        """What it touches."""
        found = Effects()
        for part in self.parts:
            found = found | part.effects
        return found

    @property
    def made(self) -> tuple[Tensor, ...]:
        """The tensors it makes for somebody else."""
        return tuple(tensor for part in self.parts for tensor in part.outputs)


def beside_of(found: Any, recorded: Recorded) -> Beside:
    """The work of a cluster besides its pipeline; an `InputError` for what cannot be in one program with it."""
    (pipeline,) = (operation for operation in found.operations if operation.pipeline is recorded)
    working = [each for each in found.operations if each is not pipeline and (each.outputs or each.effects)]
    sides = {
        "before": tuple(each for each in working if each.number < pipeline.number),
        "after": tuple(each for each in working if each.number > pipeline.number),
    }
    needed = {
        "before": {*found.outputs, *recorded.inputs, *_taken(sides["after"])},
        "after": set(found.outputs),
    }
    parts = tuple(_part(found, turn, sides[turn], needed[turn]) for turn in ("before", "after") if sides[turn])
    _check(parts, recorded)
    return Beside(inputs=found.inputs, outputs=found.outputs, parts=parts)


def _part(found: Any, turn: Any, operations: tuple[Operation, ...], needed: set[Tensor]) -> Part:
    effects = Effects()
    for operation in operations:
        effects = effects | operation.effects
    made = {tensor for operation in operations for tensor in operation.outputs}
    return Part(
        turn=turn,
        graph=found.graph,
        operations=operations,
        effects=effects,
        inputs=tuple(each for each in _taken(operations) if each not in made),
        outputs=tuple(each for operation in operations for each in operation.outputs if each in needed),
    )


def _taken(operations: Sequence[Operation]) -> tuple[Tensor, ...]:
    return tuple(dict.fromkeys(each for operation in operations for each in operation.inputs))


def _check(parts: Sequence[Part], recorded: Recorded) -> None:
    """Each variable is written on one side, and by the pipeline or beside it; queues are the pipeline's."""
    piped, training = recorded.forward, recorded.training
    if training is not None:
        piped = piped | training.update.effects
    written: frozenset[Any] = frozenset()
    for part in parts:
        if part.effects.queues:
            raise InputError(
                "a queue is used beside a pipeline in one program", expected="queues of one program", todo=TODO
            )
        for variable in _by_name(part.effects.writes & (piped.reads | piped.writes | written)):
            raise InputError(
                f"{variable.handle!r} is written {part.turn} a pipeline that uses it too, or on both sides of one",
                expected="variables that the pipeline alone uses, or the work on one side of it",
                todo=TODO,
            )
        _check_read(part, recorded, piped)
        written |= part.effects.writes
    if int(recorded.asked.repeats) > 1 and written:
        names = ", ".join(each.handle for each in _by_name(written))
        raise InputError(
            f"{names} would be written once beside a pipeline that runs {recorded.asked.repeats} times",
            expected="repeat_count=1, or other work that writes no variable",
            todo=TODO,
        )


def _check_read(part: Part, recorded: Recorded, piped: Effects) -> None:
    """What the pipeline changes is read after it, by its own stage; what it only reads, on the same IPU."""
    for variable in _by_name(part.effects.reads & (piped.reads | piped.writes)):
        stage = recorded.stage_of.get(variable, -1)
        changed = variable in piped.writes
        if changed and part.turn == "before" and int(recorded.asked.repeats) > 1:
            raise InputError(
                f"{variable.handle!r} is read before a pipeline that changes it {recorded.asked.repeats} times",
                expected="repeat_count=1",
                todo=TODO,
            )
        away = stage != 0 if changed and part.turn == "after" else stage > 0
        if away and (stage < 0 or recorded.asked.devices[stage] != recorded.asked.devices[0] or changed):
            raise InputError(
                f"{variable.handle!r} of a later stage is read {part.turn} the pipeline",
                expected="variables of the first stage, where the work beside a pipeline runs",
                todo=TODO,
            )


def _by_name(variables: frozenset[Any]) -> tuple[Any, ...]:
    return tuple(sorted(variables, key=lambda variable: variable.name))


__all__ = ["Beside", "Part", "beside_of"]
