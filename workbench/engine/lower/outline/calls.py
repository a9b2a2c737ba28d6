"""Outline, calls: equal runs of operators are lowered once, and called with copies of what differs between them.

The first run decides whether its class is worth a body: it is lowered on arguments of its own, and its code and that of
the copies are measured. A body is kept when calling it at least halves the code on the fullest tile and leaves room for
the arguments and results that then exist twice; where the copies take little of the time, as far as these rise over
what is needed anyway (`room.py`). What is the same value for all runs is read where it is; what a run
overwrites must lie as in the body, and is overwritten by the copy of the result; what it loads and stores again comes
from a row of the same remote buffer. A call whose operands lie so differently that bringing them would take more than
half the body's code is lowered in its place instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from workbench.base.arrays import IntArray
from workbench.engine import ops
from workbench.engine.emit import Emitter
from workbench.engine.emit.context import Lowering
from workbench.engine.emit.loaded import home_of, leave, may_lie
from workbench.engine.graph import Node, Value
from workbench.engine.graph.flow import INLINE
from workbench.engine.lower.outline.room import Room
from workbench.engine.lower.outline.runs import LEAST_CALLS, Run, RunClass, RunFinder, is_view
from workbench.engine.mapping import Mapping, reshape
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.memory.footprint import StepSizes, kept_by
from workbench.engine.options import NotedOptions, answers_alike
from workbench.engine.program import Call, DoExchange, Program, Sync, leaves
from workbench.engine.program import Sequence as ProgramSequence
from workbench.engine.target import Target
from workbench.engine.time.step_cost import StepCosts

CODE = (
    "internal_exchange_code",
    "global_exchange_code",
    "host_exchange_code",
    "host_exchange_packet_headers",
    "control_code",
    "vertex_instance_state",
    "copy_descriptor",
)
"""What a step keeps on its tiles for itself; the code of codelets is there once for all."""

# A body that is kept for the room there is takes this many times as long as its copies. Ours: nothing is published on
# it; less would share more code for more time.
LEAST_TIMES = 5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RunBody:
    """A run lowered once. `arguments` and `results` (by number of the class) are where the body reads and leaves them.

    `homes` is how the variables lie that the body loads, `overwritten` are the variables of arguments that it writes,
    `own` all variables that belong to it, and `paths` the parts of the body by number of the operator.
    """

    name: str
    arguments: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    homes: tuple[Mapping, ...]
    overwritten: frozenset[int]
    own: frozenset[int]
    paths: tuple[str, ...]
    program: ProgramSequence
    code_bytes: IntArray


@dataclass(slots=True)
class SharedRuns:
    """The runs of a program by their first operator, and the bodies made of them; a body per IPU and function.

    `sizes` and `costs` are what is known of the steps of the program, which takes what is found. `refused` are trials
    that ended without a body for what they keep, by all they follow from, with the options they read: the next lowering
    of the graph need not make them.
    """

    finders: dict[RunClass, RunFinder] = field(default_factory=dict)  # class → who found it
    starts: dict[Node, tuple[RunClass, Run]] = field(default_factory=dict)
    bodies: dict[tuple[RunClass, int, str], list[RunBody]] = field(default_factory=dict)
    paths: dict[Node, str] = field(default_factory=dict)  # operator → its part of the body that has been called
    room: Room = field(default_factory=Room)
    made: int = 0  # bodies
    sizes: StepSizes | None = None
    costs: StepCosts | None = None
    refused: dict[tuple[object, ...], dict[tuple[str, Any], Any]] = field(default_factory=dict)

    def unused(self) -> SharedRuns:
        """The same runs, of which nothing has been lowered yet."""
        return SharedRuns(
            finders=dict(self.finders), starts=dict(self.starts), room=self.room.unused(), refused=self.refused
        )

    def add(self, found: Sequence[RunClass], runs: RunFinder) -> None:
        """Take over classes of one function."""
        for each in found:
            self.finders[each] = runs
            self.starts.update((run.nodes[0], (each, run)) for run in each.runs)

    def sizes_of(self, lowering: Lowering) -> StepSizes:
        """What is known of the steps."""
        if self.sizes is None:
            self.sizes = StepSizes(lowering.emit.target)
        return self.sizes

    def costs_of(self, lowering: Lowering) -> StepCosts:
        """What is known of how long they take."""
        if self.costs is None or self.costs.ipus <= lowering.emit.ipu:
            self.costs = StepCosts(lowering.emit.target, None, lowering.emit.ipu + 1)
        return self.costs

    def lower(self, node: Node, lowering: Lowering, number: int) -> str | None:
        """The part of a body that stands for the operator; None if it has to be lowered. `number` is for a new body."""
        while node in self.starts:
            shared, run = self.starts[node]
            for each in run.nodes:
                self.paths.pop(each, None)
            sizes = self.sizes_of(lowering)
            bodies = self.bodies.setdefault((shared, lowering.emit.ipu, lowering.emit.function), [])
            body = next((each for each in bodies if call(each, shared, run, lowering, sizes)), None)
            if body is None:
                body = self._new(shared, run, bodies, lowering, number)
            if body is not None:
                self.paths.update((each, path) for each, path in zip(run.nodes, body.paths, strict=True))
            if bodies:
                break
            self._part(shared)
        return self.paths.get(node)

    def _new(
        self, shared: RunClass, run: Run, bodies: list[RunBody], lowering: Lowering, number: int
    ) -> RunBody | None:
        """A further body for runs that lie otherwise; of the runs left it takes as many to come as each body before."""
        left = next(place for place, each in enumerate(shared.runs) if each is run)
        calls = (len(shared.runs) - left) // (1 + len(bodies))
        body = self._tried(shared, run, lowering, number, calls) if calls >= LEAST_CALLS else None
        if body is None or not call(body, shared, run, lowering, self.sizes_of(lowering)):
            return None
        bodies.append(body)
        self.made += 1
        return body

    def _tried(self, shared: RunClass, run: Run, lowering: Lowering, number: int, calls: int) -> RunBody | None:
        """The body that a first run makes, or None; known where it was refused before and would be again."""
        told = None if self.room.heard else _told(shared, run, lowering, calls)  # a stage's body notes what it reads
        if told is None:
            return first_body(shared, run, lowering, number, calls, self)[0]
        if told in self.refused and answers_alike(lowering.options, self.refused[told]):
            return None
        given, lowering.options = lowering.options, NotedOptions.of(lowering.options)
        try:
            body, verdict = first_body(shared, run, lowering, number, calls, self)
            if verdict == "no":
                self.refused[told] = lowering.options.noted
        finally:
            lowering.options = given
        return body

    def _part(self, shared: RunClass) -> None:
        """Look one by one at the operators of a class that is not worth a body."""
        for run in shared.runs:
            del self.starts[run.nodes[0]]
        if len(shared.runs[0].nodes) > 1:
            runs = self.finders[shared]
            self.add(runs.single(shared), runs)


def _told(shared: RunClass, run: Run, lowering: Lowering, calls: int) -> tuple[object, ...] | None:
    """What a trial follows from, options apart: the target, and types, layouts and attributes, as all that is shared.

    None where more may come to it: what is inside a region, variables off the chip, results with places of their own.
    """
    whole = all(node.op not in INLINE or ops.family_of(node).pointwise for node in run.nodes)
    if not whole or run.loads or run.stores or lowering.destinations or lowering.emit.settled:
        return None
    operands = [lowering.get(value) for value in run.arguments]
    variables = lowering.emit.variables
    common = tuple(
        (
            operands[place].itemsize_bytes,
            tuple((variables[each].size_bytes, variables[each].always_live) for each in operands[place].variables),
        )
        for place in sorted(shared.common)
    )
    wished = tuple((lowering.wish(value), value in lowering.summed_halves) for value in run.values)
    lie = tuple(tensor.mapping for tensor in operands)
    return (lowering.emit.target, shared, calls, lie, common, wished, lowering.next_tile.get(lowering.emit.ipu, 0))


Verdict: TypeAlias = Literal["yes", "no", "no room"]
"""On a body: it follows from what is tried alone, but for the room there is."""


def first_body(
    shared: RunClass, run: Run, lowering: Lowering, number: int, calls: int, runs: SharedRuns
) -> tuple[RunBody | None, Verdict]:
    """The body of a class as this run makes it, or None when it is not worth the copies of so many calls."""
    back = lowering.marked()
    body = _body(shared, run, lowering, number, runs.sizes_of(lowering))
    verdict = "no" if body is None else is_worth_calling(body, shared, run, lowering, calls, runs)
    if verdict != "yes":
        back()
        return None, verdict
    return body, verdict


def is_worth_calling(
    body: RunBody, shared: RunClass, run: Run, lowering: Lowering, calls: int, runs: SharedRuns
) -> Verdict:
    """Whether the body and all calls, taken to be as the first, keep less on the fullest tile; nothing is emitted."""
    each_bytes = calls * int(body.code_bytes.max())
    if 2 * int(least_kept_bytes(body, shared, calls, lowering.emit.target).max()) > each_bytes:
        return "no"  # as for most operators, whose copies need not be made to see it
    back = lowering.marked()
    copies = copies_of(body, shared, run, lowering)
    if copies is None:
        return "no"
    copied = (*copies.before, *copies.after)
    kept_bytes = body.code_bytes + calls * code_bytes(copied, lowering, runs.sizes_of(lowering))
    twice = {name for tensor in (*body.arguments, *body.results) for name in tensor.variables} & body.own
    held_bytes = _bytes_of(twice, lowering)
    verdict: Verdict = "yes" if 2 * int(kept_bytes.max()) <= each_bytes else "no"
    if verdict == "yes" and int((kept_bytes + held_bytes).max()) > each_bytes:
        copied_cycles = runs.room.share_of_turns(run.nodes[0]) * cycles(copied, runs.costs_of(lowering))
        is_quick = LEAST_TIMES * copied_cycles <= cycles((body.program,), runs.costs_of(lowering))
        own_bytes = _bytes_of(body.own, lowering)
        fits = is_quick and runs.room.fits(run.nodes[0], own_bytes, held_bytes, kept_bytes, each_bytes, lowering)
        verdict = "yes" if fits else "no room" if is_quick else "no"
    back()
    return verdict


def least_kept_bytes(body: RunBody, shared: RunClass, calls: int, target: Target) -> IntArray:
    """What the body and all calls keep at least on each tile, int64[tiles]: arguments come by one set of copies where
    the first call's operands lie, and results leave by another, but those that may be views of arguments."""
    moved = [tensor for place, tensor in enumerate(body.arguments) if place not in shared.common]
    kept = {tensor.variables for tensor in moved if not body.overwritten.intersection(tensor.variables)}
    leaving = [each for each in body.results if each.variables not in kept and body.own.intersection(each.variables)]
    sets = sum((_are_held(tensors, target.tiles_per_ipu) for tensors in (moved, leaving)), body.code_bytes * 0)
    return np.asarray(body.code_bytes + calls * copy_code_bytes(target) * sets)


def _are_held(tensors: Sequence[Tensor], tiles: int) -> IntArray:
    """1 where any of the tensors has elements, int64[tiles]."""
    held = np.zeros(tiles, bool)
    for tensor in tensors:
        held |= tensor.mapping.elements_per_tile(tiles) > 0
    return held.astype(np.int64)


@lru_cache(maxsize=8)
def copy_code_bytes(target: Target) -> int:
    """What a copy inside a tile keeps there, of whatever length."""
    emit, there = Emitter(target), np.arange(target.tiles_per_ipu) == 0
    with emit.body() as collected:
        emit.compute("copy", emit.copy_groups(there.astype(np.int64)), (), ())
    return int(kept_by([step for program in collected for step in leaves(program)], StepSizes(target), 0, CODE).max())


def _bytes_of(names: Iterable[int], lowering: Lowering) -> IntArray:
    total = np.zeros(lowering.tiles, np.int64)
    for name in names:
        total += lowering.emit.variables[name].bytes_per_tile
    return total


def call(body: RunBody, shared: RunClass, run: Run, lowering: Lowering, sizes: StepSizes) -> bool:
    """Call the body for a run; False, with nothing emitted, when its operands lie too differently."""
    pairs = zip(map(lowering.get, run.arguments), body.arguments, strict=True)
    back = None if all(outside.mapping == inside.mapping for outside, inside in pairs) else lowering.marked()
    copies = copies_of(body, shared, run, lowering)
    if copies is None:
        return False
    if back is not None and not are_worth_it(copies, body, lowering, sizes):
        back()
        return False
    emit, first = lowering.emit, run.nodes[0]
    emit.functions[body.name] = body.program
    for program in copies.before:
        emit.add(program)
    label, sources = lowering.label(first), _sources(body, run)
    emit.add(Call(function=body.name, name=label, ipu=emit.ipu, origin=first.origin, sources=sources))
    for program in copies.after:
        emit.add(program)
    for value, tensor in copies.bound:
        lowering.bind(value, tensor)
    leave(run.loads, run.stores, body.homes, lowering)
    for place in shared.shown:
        lowering.lower_node(run.nodes[place])
    return True


def _sources(body: RunBody, run: Run) -> tuple[str, ...]:
    """The line of each operator that has a part of the body, where they are not all one."""
    made = {f"{body.name}/{part.name}" for part in body.program.children if isinstance(part, ProgramSequence)}
    found = [node.origin.source for node, path in zip(run.nodes, body.paths, strict=True) if path in made]
    return tuple(found) if len(set(found)) > 1 else ()


def are_worth_it(copies: Copies, body: RunBody, lowering: Lowering, sizes: StepSizes) -> bool:
    """Whether copies from and to where a call's operands and results lie take at most half of the body's code."""
    copied, most_bytes = (*copies.before, *copies.after), int(body.code_bytes.max())
    if 2 * most_kept_bytes(copied, sizes) <= most_bytes:
        return True  # as for most bodies
    return 2 * int(code_bytes(copied, lowering, sizes).max()) <= most_bytes


def most_kept_bytes(copied: Sequence[Program], sizes: StepSizes) -> int:
    """What no tile exceeds by the copies around a call: the most of each exchange and set of copies, and barriers."""
    target, total = sizes.target, 0
    for step in (step for program in copied for step in leaves(program)):
        if isinstance(step, DoExchange):
            instructions, _ = sizes.of_exchange(step.exchange)
            total += (
                target.exchange_instruction_bytes * int(instructions.max()) + target.code.exchange_bytes_per_exchange
            )
            total += target.code.control_bytes_per_run
        else:
            total += target.code.control_bytes_per_sync if isinstance(step, Sync) else copy_code_bytes(target)
    return total


def cycles(programs: Iterable[Program], costs: StepCosts) -> int:
    """How long the steps take, one after the other."""
    return sum(costs.cost(step).cycles for program in programs for step in leaves(program))


def code_bytes(programs: Sequence[Program], lowering: Lowering, sizes: StepSizes) -> IntArray:
    """What the steps keep on each tile for themselves, int64[tiles]."""
    steps = [step for program in programs for step in leaves(program)]
    return kept_by(steps, sizes, lowering.emit.ipu, CODE)


# The body


def _body(shared: RunClass, run: Run, lowering: Lowering, number: int, sizes: StepSizes) -> RunBody | None:
    """Lower the run on arguments of its own; None when what it leaves cannot be taken from there."""
    emit = lowering.emit
    if any(value in lowering.destinations for value in run.values):
        return None
    if run.loads and lowering.options.get("optimizations.merge_remote_buffers") == "NO_MERGING":
        return None
    operands = [lowering.get(value) for value in run.arguments]
    homes = tuple(home_of(load, lowering).mapping for load in run.loads)
    if not all(tensor.mapping.is_owner for tensor in operands):
        return None
    word = lowering.label(next(node for node in run.nodes if not is_view(node))).rsplit("/", 1)[-1]
    name = f"shared{number}_{word}"
    first = len(emit.variables)
    try:
        with emit.inside(function=name, operator=""):
            with lowering.at(run.nodes[0]):
                arguments = tuple(
                    tensor
                    if place in shared.common
                    else emit.tensor(f"{name}/argument{place}", tensor.shape, tensor.dtype, tensor.mapping, "temporary")
                    for place, tensor in enumerate(operands)
                )
            for value, tensor in zip(run.arguments, arguments, strict=True):
                lowering.bind(value, tensor)
            parts = [_part(node, place, run, lowering) for place, node in enumerate(run.nodes)]
            results = tuple(lowering.get(run.values[place]) for place in shared.results)
    finally:
        for value, tensor in zip(run.arguments, operands, strict=True):
            lowering.bind(value, tensor)
    program = ProgramSequence(children=tuple(child for _, children in parts for child in children), name=name)
    own = frozenset(v.id for v in emit.variables[first:] if v.function == name)
    written = {variable for step in leaves(program) for variable in step.writes}
    if not all(_can_leave(tensor, own) for tensor in results):
        return None
    return RunBody(
        name=name,
        arguments=arguments,
        results=results,
        homes=homes,
        overwritten=frozenset(written & {v for tensor in arguments for v in tensor.variables}),
        own=own,
        paths=tuple("/".join((name, part)) if part else name for part, _ in parts),
        program=program,
        code_bytes=code_bytes((program,), lowering, sizes),
    )


def _part(node: Node, place: int, run: Run, lowering: Lowering) -> tuple[str, tuple[Program, ...]]:
    """The steps of one operator of a body, under a name of their own when there are several."""
    with lowering.emit.body() as collected:
        lowering.lower_node(node)
    if len(run.nodes) == 1:
        return "", tuple(collected)
    name = f"{place}_{lowering.label(node).rsplit('/', 1)[-1]}"
    return name, (ProgramSequence(children=tuple(collected), name=name),) if collected else ()


def _can_leave(tensor: Tensor, own: frozenset[int]) -> bool:
    """What lies in the body whole, each element once, can be copied out of it; what lies outside is there anyway."""
    inside = own.intersection(tensor.variables)
    return not inside or (len(inside) == len(set(tensor.variables)) and tensor.mapping.is_owner)


# The copies


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Copies:
    """Steps before and after a call, and the tensors outside that the run's results are bound to."""

    before: tuple[Program, ...]
    after: tuple[Program, ...]
    bound: tuple[tuple[Value, Tensor], ...]


def copies_of(body: RunBody, shared: RunClass, run: Run, lowering: Lowering) -> Copies | None:
    """What a call takes for a run; None when it overwrites what lies otherwise than in the body, or has its place."""
    if any(value in lowering.destinations for value in run.values):
        return None
    homes = zip(run.loads, body.homes, strict=True)
    if not all(may_lie(load, mapping, lowering) for load, mapping in homes):
        return None
    pairs = list(zip(map(lowering.get, run.arguments), body.arguments, strict=True))
    for place, (outside, inside) in enumerate(pairs):
        if place in shared.common and (outside.variables != inside.variables or outside.mapping != inside.mapping):
            return None
        if outside.mapping != inside.mapping and not outside.mapping.is_owner:
            return None
    emit, label = lowering.emit, lowering.label(run.nodes[0])
    moved = [pair for place, pair in enumerate(pairs) if place not in shared.common]
    with lowering.at(run.nodes[0]):
        with emit.body() as before:
            if moved:
                emit.move_all(f"{label}/arguments", moved)
        placed = [
            _outside(run, value, inside, body, moved, lowering)
            for value, inside in zip((run.values[number] for number in shared.results), body.results, strict=True)
        ]
        leaving = [(inside, outside) for inside, outside, copied in placed if copied]
        with emit.body() as after:
            if leaving:
                emit.move_all(f"{label}/results", leaving)
    bound = zip((run.values[number] for number in shared.results), (outside for _, outside, _ in placed), strict=True)
    return Copies(before=tuple(before), after=tuple(after), bound=tuple(bound))


def _outside(
    run: Run, value: Value, inside: Tensor, body: RunBody, moved: Sequence[tuple[Tensor, Tensor]], lowering: Lowering
) -> tuple[Tensor, Tensor, bool]:
    """A result in the body and outside of it, and whether it is copied there: over the operand it overwrites, else in
    new memory; a view of an argument is the same view of the operand.
    """
    if not body.own.intersection(inside.variables):
        return inside, inside, False
    for operand, argument in moved:
        whole = argument.variables == inside.variables and argument.mapping.size == inside.mapping.size
        if whole and reshape(argument.mapping, value.shape) == inside.mapping:
            seen = replace(inside, variables=operand.variables, mapping=reshape(operand.mapping, value.shape))
            return inside, seen, bool(body.overwritten & set(inside.variables))
    emit = lowering.emit
    made = emit.tensor(lowering.label(run.nodes[0]), value.shape, value.dtype, inside.mapping, emit.result_kind())
    return inside, made, True
