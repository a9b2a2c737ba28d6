"""Tapes: a stage's body as it was lowered once, and how it is emitted again under other numbers, names and IPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.base.arrays import IntArray
from workbench.engine.emit.context import Operator
from workbench.engine.graph import Function
from workbench.engine.lower.driver import Driver
from workbench.engine.lower.outline import key_of
from workbench.engine.lower.outline.room import Heard
from workbench.engine.lower.replay.form import Form, Renaming
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

TOLD_KINDS = frozenset({"constant", "temporary"})
"""Kinds of variables that families treat otherwise than all others: ops/free.py, ops/sort.py."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Before:
    """What the lowering of a body reads besides its form, by the form's numbers. Variables are numbered by the
    parameters that bring them, IPUs by their distance from that of the body.
    """

    read: tuple[Any, ...]
    needed: IntArray | None  # what outlining knows to be needed on the IPU, int64[tiles]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tape:
    """One body as it was lowered. `outside` are the variables it read or wrote that were there before it.

    `movable`: nothing in it says of another IPU. `heard`: what it asked and told outlining of what is needed.
    """

    before: Before
    form: Form
    function: Function
    ipu: int
    stage: int | None
    outside: tuple[int, ...]
    first_variable: int
    first_step: int
    steps: int
    variables: tuple[Variable, ...]
    program: tuple[Program, ...]
    functions: Mapping[str, Program]
    operators: tuple[Operator, ...]
    unmodelled: tuple[tuple[str, str], ...]
    plans: Mapping[int, Any]
    results: tuple[Tensor, ...]
    counts: tuple[int, ...]  # of the form's labels, afterwards
    next_tile: int | None
    heard: Heard
    first_body: int
    bodies: int
    movable: bool

    def serves(self, now: Before) -> bool:
        """Whether the body would be lowered the same now."""
        if self.before.read != now.read:
            return False
        needed = now.needed
        return needed is None or all(bool((needed >= least).all()) is answer for least, answer in self.heard.asked)


def bodies_so_far(lowering: Driver) -> int:
    """Outlined bodies made so far, by which the next one is named."""
    return len(lowering.outliner.bodies) + lowering.outliner.runs.made


def outside_of(lowering: Driver, function: Function) -> tuple[int, ...]:
    """The variables of a body's parameters, in order of first use."""
    bound = (lowering.get(param) for param in function.params)
    return tuple(dict.fromkeys(variable for tensor in bound for variable in tensor.variables))


def before(lowering: Driver, function: Function, form: Form) -> Before:
    """What lowering the body would read now."""
    emit, outside, shared = lowering.emit, outside_of(lowering, function), lowering.outliner
    number = {variable: place for place, variable in enumerate(outside)}

    def seen(tensor: Tensor) -> tuple[Any, ...]:
        places = tuple(number.get(variable, -1) for variable in tensor.variables)
        return (places, tensor.mapping, tensor.shape, tensor.dtype, tensor.ipu - emit.ipu)

    held = [emit.variables[variable] for variable in outside]
    destined = [lowering.destinations.get(id(value)) for value in form.values]
    spans = shared.runs.room.spans.get(function.name)
    keys = (key_of(node) for node in form.nodes)
    return Before(
        read=(
            (emit.stage is None, emit.origin, emit.operator, emit.prefetched, lowering.next_tile.get(emit.ipu)),
            tuple(seen(lowering.get(param)) for param in function.params),
            tuple(
                (each.kind if each.kind in TOLD_KINDS else "", each.always_live, each.interleaved, each.ipu - emit.ipu)
                for each in held
            ),
            tuple(None if tensor is None else seen(tensor) for tensor in destined),
            tuple(lowering.wishes.get(id(value)) for value in form.values),
            tuple(_reused(lowering, form)),
            tuple(id(value) in lowering.summed_halves for value in form.values),
            tuple(lowering.names.get(label, 0) for label in form.labels),
            tuple(key in shared.keys for key in keys if key is not None),
            tuple(id(node) in shared.runs.starts for node in form.nodes),
            None if spans is None else tuple(form.number[id(value)] for value in spans.values),
            shared.runs.room.share_of(function.name),
            shared.runs.room.needed.get(emit.ipu) is None,
        ),
        needed=shared.runs.room.needed.get(emit.ipu),
    )  # fmt: skip


def _reused(lowering: Driver, form: Form) -> Iterator[int | None]:
    for value in form.values:
        old = lowering.reuse.get(id(value))
        yield None if old is None else form.number.get(id(old), -1)


def record(known: Before, lowering: Driver, function: Function, form: Form) -> Tape | None:
    """Lower a body and keep what came of it; None when it did more than make variables, steps and results."""
    emit, outside = lowering.emit, outside_of(lowering, function)
    earlier, functions, plans = list(emit.variables), set(emit.functions), dict(lowering.plans)
    first_step, operators, unmodelled = emit.next_step, len(lowering.operators), len(lowering.unmodelled)
    bodies, wishes = bodies_so_far(lowering), dict(lowering.wishes)
    heard = lowering.outliner.runs.room.heard = Heard()
    with emit.body() as collected:
        lowering.lower_function(function)
    lowering.outliner.runs.room.heard = None
    for program in collected:
        emit.add(program)
    tape = Tape(
        before=known, form=form, function=function, ipu=emit.ipu, stage=emit.stage, outside=outside,
        first_variable=len(earlier),
        first_step=first_step,
        steps=emit.next_step - first_step,
        variables=tuple(emit.variables[len(earlier) :]),
        program=tuple(collected),
        functions={name: body for name, body in emit.functions.items() if name not in functions},
        operators=tuple(lowering.operators[operators:]),
        unmodelled=tuple(lowering.unmodelled[unmodelled:]),
        plans={node: plan for node, plan in lowering.plans.items() if plans.get(node) is not plan},
        results=tuple(lowering.get(value) for value in function.results),
        counts=tuple(lowering.names.get(label, 0) for label in form.labels),
        next_tile=lowering.next_tile.get(emit.ipu),
        heard=heard,
        first_body=bodies,
        bodies=bodies_so_far(lowering) - bodies,
        movable=_is_movable(emit.variables[len(earlier) :], collected, emit.ipu),
    )  # fmt: skip
    unchanged = all(now is then for now, then in zip(emit.variables, earlier, strict=False))
    return tape if unchanged and lowering.wishes == wishes and _is_closed(tape, lowering) else None


def _is_movable(variables: Sequence[Variable], programs: Sequence[Program], ipu: int) -> bool:
    steps = (step for program in programs for step in leaves(program))
    return all(each.ipu == ipu for each in variables) and all(step.ipus == (ipu,) for step in steps)


def _is_closed(tape: Tape, lowering: Driver) -> bool:
    """Whether a body touches its own variables and those of its parameters alone, and nothing off the chip."""
    if lowering.emit.settled or lowering.homes:
        return False
    own = range(tape.first_variable, tape.first_variable + len(tape.variables))
    known = {*own, *tape.outside}
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


def play(tape: Tape, lowering: Driver, function: Function, form: Form, names: Renaming) -> None:
    """Emit a body as it was lowered before, and leave the lowering as lowering it would have."""
    emit = lowering.emit
    moved, later = len(emit.variables) - tape.first_variable, emit.next_step - tape.first_step
    numbers = dict(zip(tape.outside, outside_of(lowering, function), strict=True))
    numbers.update((each.id, each.id + moved) for each in tape.variables)
    again = _Again(numbers, later, names, tape.ipu, emit.ipu, tape.stage, emit.stage)
    same = names.same and again.stays and all(old == new for old, new in numbers.items())
    emit.variables.extend(tape.variables if same else map(again.variable, tape.variables))
    emit.next_step += tape.steps
    for program in tape.program:
        emit.add(program if same else again.program(program))
    for name, body in tape.functions.items():
        emit.functions[names.function(name)] = body if same else again.program(body)
    for value, tensor in zip(function.results, tape.results, strict=True):
        if not lowering.has(value):  # else it is a parameter, which is bound
            lowering.bind(value, again.tensor(tensor))
    lowering.operators.extend(again.operator(each) for each in tape.operators)
    lowering.unmodelled.extend((primitive, names.layer(layer)) for primitive, layer in tape.unmodelled)
    lowering.plans.update(_plans(tape, form))
    lowering.names.update((label, count) for label, count in zip(form.labels, tape.counts, strict=True) if count)
    if tape.next_tile is not None:
        lowering.next_tile[emit.ipu] = tape.next_tile
    if tape.heard.noted is not None:
        lowering.outliner.runs.room.need(emit.ipu, tape.heard.noted)
    lowering.outliner.runs.made += tape.bodies


def _plans(tape: Tape, form: Form) -> Iterator[tuple[int, Any]]:
    """What was planned, by node; of another function only what says nothing of its values."""
    stands_for = {id(old): id(new) for old, new in zip(tape.form.nodes, form.nodes, strict=True)}
    for node, plan in tape.plans.items():
        place = stands_for.get(node)
        if place is not None and (place == node or isinstance(plan, ConvPlan)):
            yield place, plan


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
            old, id=self.variables[old.id], ipu=self._ipu(old.ipu), name=self.names.text(old.name),
            origin=self.names.origin(old.origin), function=self.names.function(old.function),
        )  # fmt: skip

    def operator(self, old: Operator) -> Operator:
        """An operator of the new steps."""
        repeated = {step + self.later: times for step, times in old.repeated.items()}
        if self.names.same:
            return replace(old, repeated=repeated) if old.repeated and self.later else old
        text = self.names.text
        return replace(
            old, id=text(old.id), name=text(old.name), layer=self.names.layer(old.layer), body=text(old.body),
            repeated=repeated,
        )  # fmt: skip

    def step(self, old: Step) -> Step:
        """A step on the new variables."""
        changed: dict[str, Any] = {
            "id": old.id + self.later, "reads": self._ids(old.reads), "writes": self._ids(old.writes)
        }  # fmt: skip
        if not self.names.same or self.old_ipu != self.ipu or self.old_stage != self.stage:
            text = self.names.text
            changed |= {
                "name": text(old.name), "operator": text(old.operator),
                "origin": self.names.origin(old.origin), "ipu": self._ipu(old.ipu),
                "stage": self.stage if old.stage == self.old_stage else old.stage,
            }  # fmt: skip
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
        below = tuple(self.program(child) for child in children(program))
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
            old, function=self.names.function(old.function), name=self.names.text(old.name),
            ipu=None if old.ipu is None else self._ipu(old.ipu),
            origin=self.names.origin(old.origin),
        )  # fmt: skip
