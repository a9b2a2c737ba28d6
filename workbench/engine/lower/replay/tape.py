"""Tapes: a stage's body as it was lowered once, and how it is emitted again under other numbers, names and IPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.engine.emit.context import Operator
from workbench.engine.graph import Function, Node
from workbench.engine.lower.driver import Driver
from workbench.engine.lower.replay.form import Form, Renaming
from workbench.engine.lower.replay.reads import Reads, reading
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.planner.plan import ConvPlan
from workbench.engine.program import (
    Call,
    DoExchange,
    GlobalExchange,
    If,
    OnTileExecute,
    Overlap,
    Program,
    Repeat,
    Step,
    StreamCopy,
    Variable,
    children,
    leaves,
)
from workbench.engine.program import Sequence as ProgramSequence


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tape:
    """One body as it was lowered, with what it read of what was there before it.

    `movable`: nothing in it says of another IPU. `counts` are the operators of each label of the form that the body
    counted, and `next_tile` where it left off mapping on each IPU, by the distance from its own. `played` is what it
    was played to in this lowering and the one before, by place, names and the variables outside, with its turn.
    """

    reads: Reads
    form: Form
    function: Function
    ipu: int
    stage: int | None
    first_variable: int
    first_step: int
    steps: int
    variables: tuple[Variable, ...]
    program: tuple[Program, ...]
    functions: Mapping[str, Program]
    operators: tuple[Operator, ...]
    unmodelled: tuple[tuple[str, str], ...]
    plans: Mapping[Node, Any]
    results: tuple[Tensor, ...]
    counts: Mapping[int, int]
    next_tile: Mapping[int, int]
    first_body: int
    bodies: int
    movable: bool
    played: dict[Any, tuple[int, _Played]] = field(default_factory=dict)


def bodies_so_far(lowering: Driver) -> int:
    """Outlined bodies made so far, by which the next one is named."""
    return len(lowering.outliner.bodies) + lowering.outliner.runs.made


def record(lowering: Driver, function: Function, form: Form) -> Tape | None:
    """Lower a body and keep what came of it; None when it did more than make variables, steps and results."""
    emit = lowering.emit
    earlier, functions, plans = list(emit.variables), set(emit.functions), dict(lowering.plans)
    first_step, operators, unmodelled = emit.next_step, len(lowering.operators), len(lowering.unmodelled)
    bodies = bodies_so_far(lowering)
    with reading(lowering, form) as reads:
        with emit.body() as collected:
            lowering.lower_function(function)
        results = tuple(lowering.get(value) for value in function.results)
    for program in collected:
        emit.add(program)
    counted = reads.written["lowering", "names"]
    tape = Tape(
        reads=reads,
        form=form,
        function=function,
        ipu=emit.ipu,
        stage=emit.stage,
        first_variable=len(earlier),
        first_step=first_step,
        steps=emit.next_step - first_step,
        variables=tuple(emit.variables[len(earlier) :]),
        program=tuple(collected),
        functions={name: body for name, body in emit.functions.items() if name not in functions},
        operators=tuple(lowering.operators[operators:]),
        unmodelled=tuple(lowering.unmodelled[unmodelled:]),
        plans={node: plan for node, plan in lowering.plans.items() if plans.get(node) is not plan},
        results=results,
        counts={place: lowering.names[label] for place, label in enumerate(form.labels) if label in counted},
        next_tile={ipu - emit.ipu: lowering.next_tile[ipu] for ipu in reads.written["lowering", "next_tile"]},
        first_body=bodies,
        bodies=bodies_so_far(lowering) - bodies,
        movable=_is_movable(emit.variables[len(earlier) :], collected, emit.ipu),
    )
    return None if reads.why_not or not _is_closed(tape, lowering) else tape


def _is_movable(variables: Sequence[Variable], programs: Sequence[Program], ipu: int) -> bool:
    steps = (step for program in programs for step in leaves(program))
    return all(each.ipu == ipu for each in variables) and all(step.ipus == (ipu,) for step in steps)


def _is_closed(tape: Tape, lowering: Driver) -> bool:
    """Whether a body touches its own variables and those of its parameters alone, and nothing off the chip."""
    if lowering.emit.settled or lowering.homes:
        return False
    own = range(tape.first_variable, tape.first_variable + len(tape.variables))
    known = {*own, *tape.reads.variables}
    steps = [step for program in (*tape.program, *tape.functions.values()) for step in leaves(program)]
    touched = {variable for step in steps for variable in (*step.reads, *step.writes)}
    touched.update(variable for tensor in tape.results for variable in tensor.variables)
    return touched <= known and not any(isinstance(step, StreamCopy) and step.buffer >= 0 for step in steps)


def playing(tape: Tape, lowering: Driver, function: Function, form: Form) -> Renaming | None:
    """The names under which a tape is played for a function; None where they would not be clear."""
    later = bodies_so_far(lowering) - tape.first_body
    functions = {name: _counted(name, later) for name in tape.functions}
    functions[tape.function.name] = function.name
    found = Renaming(tape.form, form, functions, lowering.graph.name)
    moved = tape.ipu != lowering.emit.ipu or not found.same
    return found if found.is_clear and (tape.movable or not moved) else None


def _counted(name: str, later: int) -> str:
    """The name of an outlined body, `shared3_matmul`, made so many bodies later."""
    head, word = name.split("_", 1)
    return f"shared{int(head.removeprefix('shared')) + later}_{word}"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Played:
    """What a tape is in one place, under one function's names: the same objects for each program that has it there."""

    variables: Sequence[Variable]
    program: Sequence[Program]
    functions: Mapping[str, Program]
    results: Sequence[Tensor]
    operators: Sequence[Operator]
    unmodelled: Sequence[tuple[str, str]]


def play(tape: Tape, lowering: Driver, function: Function, form: Form, outside: Sequence[int], turn: int) -> bool:
    """Emit a body as it was lowered before, and leave the lowering as lowering it would have; False, and nothing of
    this, where its names would not be clear.

    `outside` are the variables in the place of those that it read, `turn` the number of the lowering.
    """
    played = _played(tape, lowering, function, form, outside, turn)
    if played is None:
        return False
    lowering.check()
    emit = lowering.emit
    emit.variables.extend(played.variables)
    emit.next_step += tape.steps
    for program in played.program:
        emit.add(program)
    emit.functions |= played.functions
    for value, tensor in zip(function.results, played.results, strict=True):
        if not lowering.has(value):  # else it is a parameter, which is bound
            lowering.bind(value, tensor)
    lowering.operators.extend(played.operators)
    lowering.unmodelled.extend(played.unmodelled)
    lowering.plans.update(_plans(tape, form))
    lowering.names.update((form.labels[place], count) for place, count in tape.counts.items())
    lowering.next_tile.update((emit.ipu + away, tile) for away, tile in tape.next_tile.items())
    if tape.reads.heard.noted is not None:
        lowering.outliner.runs.room.need(emit.ipu, tape.reads.heard.noted)
    lowering.outliner.runs.made += tape.bodies
    return True


def _played(
    tape: Tape, lowering: Driver, function: Function, form: Form, outside: Sequence[int], turn: int
) -> _Played | None:
    """A tape in the place where the lowering is, as it was played there before or anew."""
    emit = lowering.emit
    moved, later = len(emit.variables) - tape.first_variable, emit.next_step - tape.first_step
    bodies, place = bodies_so_far(lowering), (emit.ipu, emit.stage)
    key = (form, function.name, lowering.graph.name, bodies, moved, later, place, outside)
    _, found = tape.played.get(key, (turn, None))
    if found is None:
        names = playing(tape, lowering, function, form)
        if names is None:
            return None
        numbers = dict(zip(tape.reads.variables, outside, strict=True))
        numbers.update((each.id, each.id + moved) for each in tape.variables)
        found = _Again(numbers, later, names, tape.ipu, emit.ipu, tape.stage, emit.stage).played(tape, moved)
    for old in [each for each, (last, _) in list(tape.played.items()) if last < turn - 1]:
        tape.played.pop(old, None)  # another thread may have
    tape.played[key] = (turn, found)
    return found


def _plans(tape: Tape, form: Form) -> Iterator[tuple[Node, Any]]:
    """What was planned, by node; of another function only what says nothing of its values."""
    stands_for = dict(zip(tape.form.nodes, form.nodes, strict=True))
    for node, plan in tape.plans.items():
        same = stands_for.get(node)
        if same is not None and (same is node or isinstance(plan, ConvPlan)):
            yield same, plan


@dataclass(frozen=True, slots=True, eq=False)
class _Again:
    """A body in another place: `variables` old to new, step numbers `later` by so many, other names, IPU and stage."""

    variables: Mapping[int, int]
    later: int
    names: Renaming
    old_ipu: int
    ipu: int
    old_stage: int | None
    stage: int | None

    @property
    def stays(self) -> bool:
        """Whether steps keep numbers and places."""
        return not self.later and self.old_ipu == self.ipu and self.old_stage == self.stage

    def played(self, tape: Tape, moved: int) -> _Played:
        """All of a tape, whose variables are numbered so much higher."""
        names, stay = self.names, self.names.same and self.stays and not moved
        return _Played(
            variables=tape.variables if stay else tuple(map(self.variable, tape.variables)),
            program=tuple(map(self.program, tape.program)),
            functions={names.function(name): self.program(body) for name, body in tape.functions.items()},
            results=tuple(map(self.tensor, tape.results)),
            operators=tuple(map(self.operator, tape.operators)),
            unmodelled=tuple((primitive, names.layer(layer)) for primitive, layer in tape.unmodelled),
        )

    def _ids(self, old: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.variables[number] for number in old)

    def _ipu(self, ipu: int) -> int:
        return self.ipu if ipu == self.old_ipu else ipu

    def tensor(self, tensor: Tensor) -> Tensor:
        """A tensor in the new variables."""
        return replace(tensor, variables=self._ids(tensor.variables), ipu=self._ipu(tensor.ipu))

    def variable(self, old: Variable) -> Variable:
        """A variable of the body."""
        if self.names.same:
            return replace(old, id=self.variables[old.id], ipu=self._ipu(old.ipu))
        return replace(
            old,
            id=self.variables[old.id],
            ipu=self._ipu(old.ipu),
            name=self.names.text(old.name),
            origin=self.names.origin(old.origin),
            function=self.names.function(old.function),
        )

    def operator(self, old: Operator) -> Operator:
        """An operator of the new steps."""
        repeated = {step + self.later: times for step, times in old.repeated.items()}
        if self.names.same:
            return replace(old, repeated=repeated) if old.repeated and self.later else old
        text = self.names.text
        return replace(
            old,
            id=text(old.id),
            name=text(old.name),
            layer=self.names.layer(old.layer),
            body=text(old.body),
            repeated=repeated,
        )

    def step(self, old: Step) -> Step:
        """A step on the new variables."""
        reads, writes = self._ids(old.reads), self._ids(old.writes)
        if self.names.same and self.stays and reads == old.reads and writes == old.writes:
            return old
        changed: dict[str, Any] = {"id": old.id + self.later, "reads": reads, "writes": writes}
        if not self.names.same or self.old_ipu != self.ipu or self.old_stage != self.stage:
            text = self.names.text
            changed |= {
                "name": text(old.name),
                "operator": text(old.operator),
                "origin": self.names.origin(old.origin),
                "ipu": self._ipu(old.ipu),
                "stage": self.stage if old.stage == self.old_stage else old.stage,
            }
            changed |= self._inside(old)
        return replace(old, **changed)

    def _inside(self, old: Step) -> dict[str, Any]:
        """What a step does, under its new name; where another IPU takes part, that IPU."""
        text = self.names.text
        if isinstance(old, OnTileExecute):
            return {"compute_set": replace(old.compute_set, name=text(old.compute_set.name))}
        if isinstance(old, DoExchange | StreamCopy):
            return {"exchange": replace(old.exchange, name=text(old.exchange.name))}
        if isinstance(old, GlobalExchange):
            ends = {"sent": old.sent, "received": old.received}
            moved = {name: replace(end, name=text(end.name)) for name, end in ends.items() if end is not None}
            return {"to_ipu": self._ipu(old.to_ipu), **moved}
        return {}

    def program(self, program: Program) -> Program:
        """A control tree of new steps."""
        if isinstance(program, Step):
            return self.step(program)  # type: ignore[return-value]
        if isinstance(program, Call):
            return self._call(program)
        before = children(program)
        below = tuple(map(self.program, before))
        if self.names.same and all(one is other for one, other in zip(before, below, strict=True)):
            return program
        name = self.names.text(program.name)
        if isinstance(program, Repeat):
            return replace(program, body=below[0], name=name)
        if isinstance(program, If):
            return replace(program, arms=below, name=name)
        if isinstance(program, Overlap):
            return replace(program, branches=below, name=name)
        assert isinstance(program, ProgramSequence)
        return replace(program, children=below, name=name)

    def _call(self, old: Call) -> Call:
        if self.names.same and self.old_ipu == self.ipu:
            return old
        return replace(
            old,
            function=self.names.function(old.function),
            name=self.names.text(old.name),
            ipu=None if old.ipu is None else self._ipu(old.ipu),
            origin=self.names.origin(old.origin),
            operator=self.names.text(old.operator),
            sources=tuple(self.names.source(source) for source in old.sources),
        )
