"""Stage bodies lowered once: what another schedule of the same graph lowers alike is taken over under new numbers.

Schedules differ in what waits between the stages, seldom in the stages. What a body is lowered to follows from where
its parameters lie and from what the lowering has met before it; where both are as they were, its variables and steps
are those of before, renumbered. Only what differs is lowered anew, so the result is the same either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.engine.graph import Function
from workbench.engine.lowering import Lowering, Operator
from workbench.engine.passes.layout import find_wishes
from workbench.engine.passes.outline import Outliner, outliner
from workbench.engine.program import (
    Call,
    If,
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
from workbench.engine.target import Target
from workbench.engine.tensor import Tensor

BETWEEN_STAGES = frozenset({"pipeline.schedule"})
"""Options that nothing reads while it lowers a body."""
KEPT = 2  # ways one body was lowered


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Before:
    """What the lowering of a body reads besides the graph. Variables are numbered by the parameters that bring them."""

    context: tuple[Any, ...]
    parameters: tuple[Any, ...]
    names: Mapping[str, int]
    wishes: Mapping[int, Any]

    def equals(self, other: _Before) -> bool:
        """Whether a body lowered in one is the same in the other."""
        return (
            self.context == other.context
            and self.parameters == other.parameters
            and self.names == other.names
            and self.wishes == other.wishes
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Tape:
    """One body as it was lowered. `outside` are the variables it read or wrote that were there before it."""

    before: _Before
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
    names: Mapping[str, int]
    next_tile: Mapping[int, int]
    bodies: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Start:
    """What a lowering knows before its first body: wishes, what finding them left behind, and what is outlined."""

    wishes: Mapping[int, Any]
    summed_halves: frozenset[int]
    plans: Mapping[int, Any]
    next_tile: Mapping[int, int]
    keys: frozenset[Any]
    finders: Mapping[int, Any]
    starts: Mapping[int, Any]


@dataclass(slots=True)
class StageBodies:
    """What lowerings of one graph have in common, while target and options (but the schedule) stay as they are."""

    _made_for: tuple[Target, tuple[Any, ...]] | None = None
    _start: _Start | None = None
    _tapes: dict[str, list[_Tape]] = field(default_factory=dict)

    def begin(self, lowering: Lowering) -> None:
        """Find wishes and an outliner, as before where it is the same."""
        made_for = (lowering.target, tuple(pair for pair in lowering.options.changed if pair[0] not in BETWEEN_STAGES))
        if self._made_for != made_for:
            self._made_for, self._start, self._tapes = made_for, None, {}
        if self._start is None:
            begin(lowering)
            self._start = _started(lowering)
            return
        start = self._start
        lowering.wishes, lowering.summed_halves = dict(start.wishes), set(start.summed_halves)
        lowering.plans.update(start.plans)
        lowering.next_tile.update(start.next_tile)
        lowering.outliner = Outliner(start.keys)
        lowering.outliner.runs.finders.update(start.finders)
        lowering.outliner.runs.starts.update(start.starts)

    def lower(self, lowering: Lowering, function: Function) -> None:
        """Lower every node of a stage's body, whose parameters are bound."""
        if lowering.emit.settled or lowering.homes:  # what lies off the chip is loaded where it is first read
            lowering.lower_function(function)
            return
        before = _before(lowering, function)
        tape = next((each for each in self._tapes.get(function.name, ()) if each.before.equals(before)), None)
        if tape is not None:
            lowering.check()
            _play(tape, lowering, function)
            return
        made = _record(before, lowering, function)
        if made is not None:
            self._tapes.setdefault(function.name, []).insert(0, made)
            del self._tapes[function.name][KEPT:]


def begin(lowering: Lowering) -> None:
    """Find wishes and an outliner."""
    lowering.wishes = find_wishes(lowering)
    if lowering.options.get("optimizations.enable_graph_outlining"):
        merged_inputs = bool(lowering.options.get("optimizations.merge_infeed_io_copies"))
        # A run reads all its arguments at its start, where inputs copied one by one have not come yet.
        lowering.outliner = outliner(lowering.graph, lowering.reuse, runs=merged_inputs)


def _started(lowering: Lowering) -> _Start:
    shared = lowering.outliner
    return _Start(
        wishes=dict(lowering.wishes),
        summed_halves=frozenset(lowering.summed_halves),
        plans=dict(lowering.plans),
        next_tile=dict(lowering.next_tile),
        keys=shared.keys,
        finders=dict(shared.runs.finders),
        starts=dict(shared.runs.starts),
    )


def _outside(lowering: Lowering, function: Function) -> tuple[int, ...]:
    """The variables of a body's parameters, in order of first use."""
    bound = (lowering.get(param) for param in function.params)
    return tuple(dict.fromkeys(variable for tensor in bound for variable in tensor.variables))


def _before(lowering: Lowering, function: Function) -> _Before:
    emit, outside = lowering.emit, _outside(lowering, function)
    number = {variable: place for place, variable in enumerate(outside)}

    def seen(tensor: Tensor) -> tuple[Any, ...]:
        places = tuple(number.get(variable, -1) for variable in tensor.variables)
        return (places, tensor.mapping, tensor.shape, tensor.dtype, tensor.ipu)

    held = [emit.variables[variable] for variable in outside]
    destined = [lowering.destinations.get(id(value)) for node in function.nodes for value in node.results]
    return _Before(
        context=(
            emit.ipu, emit.stage, emit.function, emit.origin, emit.operator, emit.prefetched,
            len(lowering.outliner.bodies) + lowering.outliner.runs.made, dict(lowering.next_tile),
        ),
        parameters=(
            tuple(seen(lowering.get(param)) for param in function.params),
            tuple((each.kind, each.always_live, each.interleaved, each.ipu) for each in held),
            tuple(None if tensor is None else seen(tensor) for tensor in destined),
        ),
        names=dict(lowering.names),
        wishes=dict(lowering.wishes),
    )  # fmt: skip


def _record(before: _Before, lowering: Lowering, function: Function) -> _Tape | None:
    """Lower a body and keep what came of it; None when it did more than make variables, steps and results."""
    emit, outside = lowering.emit, _outside(lowering, function)
    earlier, functions, plans = list(emit.variables), set(emit.functions), dict(lowering.plans)
    first_step, operators, unmodelled = emit.next_step, len(lowering.operators), len(lowering.unmodelled)
    bodies, wishes = len(lowering.outliner.bodies) + lowering.outliner.runs.made, dict(lowering.wishes)
    with emit.body() as collected:
        lowering.lower_function(function)
    for program in collected:
        emit.add(program)
    tape = _Tape(
        before=before,
        outside=outside,
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
        names=dict(lowering.names),
        next_tile=dict(lowering.next_tile),
        bodies=len(lowering.outliner.bodies) + lowering.outliner.runs.made - bodies,
    )
    unchanged = all(now is then for now, then in zip(emit.variables, earlier, strict=False))
    return tape if unchanged and lowering.wishes == wishes and _is_closed(tape, lowering) else None


def _is_closed(tape: _Tape, lowering: Lowering) -> bool:
    """Whether a body touches its own variables and those of its parameters alone, and nothing off the chip."""
    if lowering.emit.settled or lowering.homes:
        return False
    own = range(tape.first_variable, tape.first_variable + len(tape.variables))
    known = {*own, *tape.outside}
    steps = list(_steps(tape))
    touched = {variable for step in steps for variable in (*step.reads, *step.writes)}
    touched.update(variable for tensor in tape.results for variable in tensor.variables)
    return touched <= known and not any(isinstance(step, StreamCopy) and step.buffer >= 0 for step in steps)


def _steps(tape: _Tape) -> Iterator[Step]:
    for program in (*tape.program, *tape.functions.values()):
        yield from leaves(program)


def _play(tape: _Tape, lowering: Lowering, function: Function) -> None:
    """Emit a body as it was lowered before, and leave the lowering as lowering it would have."""
    emit = lowering.emit
    moved, later = len(emit.variables) - tape.first_variable, emit.next_step - tape.first_step
    numbers = dict(zip(tape.outside, _outside(lowering, function), strict=True))
    numbers.update((each.id, each.id + moved) for each in tape.variables)
    same = not later and all(old == new for old, new in numbers.items())
    renumbered = _Renumbered(numbers, later)
    emit.variables.extend(tape.variables if same else (replace(each, id=each.id + moved) for each in tape.variables))
    emit.next_step += tape.steps
    for program in tape.program:
        emit.add(program if same else renumbered.program(program))
    for name, body in tape.functions.items():
        emit.functions[name] = body if same else renumbered.program(body)
    for value, tensor in zip(function.results, tape.results, strict=True):
        if not lowering.has(value):  # else it is a parameter, which is bound
            lowering.bind(value, renumbered.tensor(tensor))
    lowering.operators.extend(renumbered.operator(each) for each in tape.operators)
    lowering.unmodelled.extend(tape.unmodelled)
    lowering.plans.update(tape.plans)
    lowering.names.update(tape.names)
    lowering.next_tile.update(tape.next_tile)
    lowering.outliner.runs.made += tape.bodies


@dataclass(frozen=True, slots=True, eq=False)
class _Renumbered:
    """New numbers: `variables` old to new, step numbers `later` by so many."""

    variables: Mapping[int, int]
    later: int

    def _ids(self, old: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.variables[number] for number in old)

    def tensor(self, tensor: Tensor) -> Tensor:
        """A tensor in the new variables."""
        return replace(tensor, variables=self._ids(tensor.variables))

    def operator(self, operator: Operator) -> Operator:
        """An operator of the new steps."""
        if not operator.repeated or not self.later:
            return operator
        return replace(operator, repeated={step + self.later: n for step, n in operator.repeated.items()})

    def program(self, program: Program) -> Program:
        """A control tree of new steps on the new variables."""
        if isinstance(program, Step):
            return replace(
                program, id=program.id + self.later, reads=self._ids(program.reads), writes=self._ids(program.writes)
            )
        if isinstance(program, Call):
            return program
        below = tuple(self.program(child) for child in children(program))
        if isinstance(program, Repeat):
            return replace(program, body=below[0])
        if isinstance(program, If):
            return replace(program, arms=below)
        if isinstance(program, Overlap):
            return replace(program, branches=below)
        assert isinstance(program, ProgramSequence)
        return replace(program, children=below)
