"""When variables are live: per IPU the timeline of steps with calls expanded, and the intervals of each variable.

The analysis goes up the control tree once. For a variable a node tells its intervals, whether the node reads it before
writing it (`exposed`) and whether it writes it on every way through (`must`). What is exposed in the body of a loop
is live around it; what a loop shares with the program outside is live in all of it. A variable owned by a function
starts a new interval with each call that finds it overwritten; writes before a call belong to that call, reads after
it too. Reads alone, before a call that makes it anew, are of an earlier value: so a loop that uses what its last call
left and then calls again holds nothing between the two. A write may be of a part, so within one call, and for the
entry's variables, an interval runs from the first access to the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from workbench.base.arrays import IntArray
from workbench.engine.memory.intervals import Interval, Intervals
from workbench.engine.program import Call, If, Overlap, Program, Repeat, Step, TileProgram, children
from workbench.engine.program.columns import columns_of
from workbench.errors import VerificationError

_Span: TypeAlias = tuple[int, int, int, int, bool]
"""First and last position, those it grows to when joined with accesses outside its loops, whether a call is in it."""


def _joined(one: _Span, other: _Span) -> _Span:
    """A span that holds another too."""
    first, last = min(one[2], other[2]), max(one[3], other[3])
    return (first, last, first, last, one[4] or other[4])


@dataclass(slots=True)
class _Life:
    """Spans of a variable in a node. A finished node is shared: only one being made changes its lives."""

    spans: list[_Span]
    exposed: bool
    must: bool
    written: bool  # on some way through

    def shifted(self, offset: int) -> _Life:
        """A copy so much later."""
        return _Life(_shifted(self.spans, offset), self.exposed, self.must, self.written)

    def follow(self, other: _Life, offset: int) -> None:
        """Go on with another life, so much later: asked for at each variable of each call, so without calls."""
        spans, (first, last, outer_first, outer_last, called) = self.spans, other.spans[0]
        _, _, before, after, was_called = spans[-1]
        # Another value: after a call, or after nothing but reads of what was there before.
        if other.must and not other.exposed and (was_called or (called and not self.written)):
            spans.append((first + offset, last + offset, outer_first + offset, outer_last + offset, called))
        else:
            if outer_first + offset < before:
                before = outer_first + offset
            if outer_last + offset > after:
                after = outer_last + offset
            spans[-1] = (before, after, before, after, was_called or called)
        if len(other.spans) > 1:
            spans += _shifted(other.spans[1:], offset)
        if not self.must:
            self.exposed = self.exposed or other.exposed
            self.must = other.must
        self.written = self.written or other.written

    def touch(self, place: int, reads: bool, writes: bool) -> None:
        """Go on with an access of a step."""
        span = self.spans[-1]
        if span[4] and writes and not reads:
            self.spans.append((place, place, place, place, False))
        else:
            self.spans[-1] = (span[2], place, span[2], place, span[4])
        self._note(reads, writes, writes)

    def _note(self, exposed: bool, must: bool, written: bool) -> None:
        self.exposed = self.exposed or (not self.must and exposed)
        self.must = self.must or must
        self.written = self.written or written

    def repeated(self, length: int) -> _Life:
        """As the life of a loop whose body has `length` positions."""
        spans = list(self.spans)
        first, last, _, outer_last, called = spans[0]
        spans[0] = (0 if self.exposed else first, last, 0, outer_last, called)
        first, last, outer_first, _, called = spans[-1]
        spans[-1] = (first, length - 1 if self.exposed else last, outer_first, length - 1, called)
        return replace(self, spans=spans)

    def as_called(self) -> _Life:
        """In a call of the function that owns the variable."""
        return replace(self, spans=[(*span[:4], True) for span in self.spans])

    def settled(self) -> Iterator[Interval]:
        """What is read before it was ever written was there before the program: it is live from the start."""
        for index, span in enumerate(self.spans):
            yield (0 if index == 0 and self.exposed else span[0], span[1])


def _shifted(spans: list[_Span], offset: int) -> list[_Span]:
    return [(a + offset, b + offset, c + offset, d + offset, called) for a, b, c, d, called in spans]


@dataclass(frozen=True, slots=True, eq=False)
class _Closed:
    """Intervals that nothing outside changes: variable, first and last position, int64[3, intervals], those of a
    variable in order."""

    rows: IntArray

    @classmethod
    def of(cls, lives: Iterable[tuple[int, Iterator[Interval]]]) -> _Closed:
        """From variables with their intervals."""
        found = [(variable, first, last) for variable, spans in lives for first, last in spans]
        return cls(np.array(found, np.int64).reshape(-1, 3).T)

    @classmethod
    def together(cls, parts: list[tuple[int, _Closed]]) -> _Closed:
        """Several, each so many positions later."""
        if not parts:
            return cls(np.zeros((3, 0), np.int64))
        rows = np.concatenate([part.rows for _, part in parts], axis=1)
        rows[1:] += np.repeat([offset for offset, _ in parts], [part.rows.shape[1] for _, part in parts])
        return cls(rows)


@dataclass(slots=True)
class _Part:
    """A node as one IPU sees it: its step ids in order, and the lives of the variables they touch.

    `closed` are the calls in it of functions with variables of their own, and where.
    """

    steps: list[int] = field(default_factory=list)
    lives: dict[int, _Life] = field(default_factory=dict)
    closed: list[tuple[int, _Closed]] = field(default_factory=list)

    def append(self, other: _Part) -> None:
        offset, lives = len(self.steps), self.lives
        self.steps.extend(other.steps)
        self.closed.extend([(offset + place, closed) for place, closed in other.closed])
        for variable, life in other.lives.items():
            before = lives.get(variable)
            if before is None:
                lives[variable] = life.shifted(offset)
            else:
                before.follow(life, offset)

    def append_step(self, step: Step, shared: frozenset[int]) -> None:
        """Append a step of this IPU; the variables that are not always live are `shared`."""
        place, lives, reads, writes = len(self.steps), self.lives, step.reads, step.writes
        self.steps.append(step.id)
        for number in {*reads, *writes} & shared:
            before = lives.get(number)
            if before is None:
                written = number in writes
                lives[number] = _Life([(place, place, place, place, False)], number in reads, written, written)
            else:
                before.touch(place, number in reads, number in writes)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Lifetimes:
    """Per IPU the step id at each position; per variable its intervals in the timeline of its IPU.

    `exposed` are the variables that are read before the program ever wrote them.
    """

    timelines: tuple[list[int], ...]
    intervals: Intervals
    exposed: frozenset[int] = frozenset()


def lifetimes(program: TileProgram) -> Lifetimes:
    """Timelines of all IPUs and intervals of all variables that are not always live."""
    _check_places(program)
    own, places = _own(program), _Places(program)
    timelines: list[list[int]] = []
    found: list[tuple[int, _Closed]] = []
    exposed: set[int] = set()
    for ipu in range(program.ipus):
        part = _Analysis(program, ipu, own, places).part(program.entry)
        timelines.append(part.steps)
        found.append((0, _Closed.of((variable, life.settled()) for variable, life in part.lives.items())))
        found += part.closed
        exposed.update(variable for variable, life in part.lives.items() if life.exposed)
    intervals = Intervals.by_variable(len(program.variables), *_Closed.together(found).rows)
    return Lifetimes(timelines=tuple(timelines), intervals=intervals, exposed=frozenset(exposed))


def _check_places(program: TileProgram) -> None:
    columns = columns_of(program)
    accesses, ipu = columns.accesses, columns.ipu[columns.accesses.variable]
    astray = (ipu != columns.step_ipu[accesses.step]) & (ipu != columns.step_other[accesses.step])
    if astray.any():
        row = int(astray.argmax())
        step, variable = program.steps[accesses.step[row]], program.variables[accesses.variable[row]]
        raise VerificationError(f"step {step.id} {step.name} on ipu {step.ipu} uses {variable}")


def _own(program: TileProgram) -> dict[str, frozenset[int]]:
    """Of each function the variables it owns that no other body touches; none of one that may not run where it is
    called, for what was there before then lives on."""
    columns, names = columns_of(program), (*program.functions, "")
    body, variable = columns.step_body[columns.accesses.step], columns.accesses.variable
    lowest, highest = np.full(len(columns.ipu), len(names)), np.full(len(columns.ipu), -1)
    np.minimum.at(lowest, variable, body)
    np.maximum.at(highest, variable, body)
    found: dict[str, list[int]] = {name: [] for name in program.functions}
    for number in np.flatnonzero(lowest == highest).tolist():
        name = names[lowest[number]]
        if name and program.variables[number].function == name:
            found[name].append(number)
    loose = _loose(program)
    return {name: frozenset(() if name in loose else numbers) for name, numbers in found.items()}


def _loose(program: TileProgram) -> set[str]:
    """Functions called below a branch, or below a loop that may not run."""
    found: set[str] = set()
    waiting = [(body, False) for body in (*program.functions.values(), program.entry)]
    while waiting:
        node, may_not_run = waiting.pop()
        if isinstance(node, Call):
            if may_not_run and node.function not in found:
                found.add(node.function)
                waiting.append((program.functions[node.function], True))
        elif not isinstance(node, Step):
            maybe = isinstance(node, If) or (isinstance(node, Repeat) and (node.times < 1 or node.unknown_times))
            waiting += [(child, may_not_run or maybe) for child in children(node)]
    return found


class _Places:
    """The IPUs that a node occupies, calls followed; each node is looked at once for all of them."""

    def __init__(self, program: TileProgram) -> None:
        self._functions = program.functions
        self._known: dict[Program, frozenset[int]] = {}
        self._branches: dict[Program, dict[int, list[Program]]] = {}

    def branches(self, node: Overlap, ipu: int) -> Sequence[Program]:
        """The branches of an overlap that occupy an IPU."""
        known = self._branches.get(node)
        if known is None:
            known = self._branches[node] = {}
            for branch in node.branches:
                for place in self.of(branch):
                    known.setdefault(place, []).append(branch)
        return known.get(ipu, ())

    def of(self, node: Program) -> frozenset[int]:
        """The IPUs of a node."""
        if isinstance(node, Step):
            return frozenset(node.ipus)
        if isinstance(node, Call):
            return self.of(self._functions[node.function])
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = frozenset[int]().union(*map(self.of, children(node)))
        return known


class _Analysis:
    """One IPU's pass over the control tree; bodies of functions are analysed once. `own`: see `_own`."""

    def __init__(self, program: TileProgram, ipu: int, own: dict[str, frozenset[int]], places: _Places) -> None:
        self.program = program
        self.ipu = ipu
        self.own = own
        self.places = places
        self._functions: dict[str, _Part] = {}
        self._calls: dict[tuple[str, ...], _Part] = {}
        columns = columns_of(program)
        self._shared = frozenset(np.flatnonzero((columns.ipu == ipu) & ~columns.always_live).tolist())

    def part(self, program: Program) -> _Part:
        """The node's timeline and lives, not to be changed."""
        if isinstance(program, Call):
            return self._function(program.function)
        if isinstance(program, If):
            return _branches([self.part(arm) for arm in program.arms])
        if isinstance(program, Overlap):
            below = self.places.branches(program, self.ipu)
        else:
            below = (program,) if isinstance(program, Step) else children(program)
        alone = len(below) == 1 and not isinstance(below[0], Step)
        result = self.part(below[0]) if alone else self._in_turn(below)
        return self._repeat(program, result) if isinstance(program, Repeat) else result

    def _in_turn(self, programs: Sequence[Program]) -> _Part:
        """Calls of the same functions, as a stage makes them column by column, are one part."""
        calls = tuple([child.function for child in programs if isinstance(child, Call)])
        if len(calls) < len(programs):
            return self._appended(programs)
        if calls not in self._calls:
            self._calls[calls] = self._appended(programs)
        return self._calls[calls]

    def _appended(self, programs: Sequence[Program]) -> _Part:
        result = _Part()
        for child in programs:
            if not isinstance(child, Step):
                result.append(self.part(child))
            elif self.ipu in child.ipus:
                result.append_step(child, self._shared)
        return result

    def _repeat(self, program: Repeat, body: _Part) -> _Part:
        lives = body.lives
        if program.times > 1 or program.unknown_times:
            lives = {variable: life.repeated(len(body.steps)) for variable, life in lives.items()}
        if program.times < 1 or program.unknown_times:
            lives = {variable: replace(life, must=False) for variable, life in lives.items()}
        return replace(body, lives=lives)

    def _function(self, name: str) -> _Part:
        if name not in self._functions:
            self._functions[name] = self._called(name, self.part(self.program.functions[name]))
        return self._functions[name]

    def _called(self, name: str, body: _Part) -> _Part:
        """What a call of a function with this body is."""
        variables, own = self.program.variables, self.own[name]
        closed, lives = list(body.closed), dict[int, _Life]()
        alone = {number for number, life in body.lives.items() if number in own and life.must and not life.exposed}
        for number, life in body.lives.items():
            if number not in alone:
                lives[number] = life.as_called() if variables[number].function == name else life
        closed.append((0, _Closed.of((number, body.lives[number].settled()) for number in alone)))
        return _Part(body.steps, lives, [(0, _Closed.together(closed))])


def _branches(arms: Iterable[_Part]) -> _Part:
    """Arms of which one runs, laid out one after the other."""
    result = _Part()
    parts = list(arms)
    for part in parts:
        offset = len(result.steps)
        result.steps.extend(part.steps)
        result.closed.extend((offset + place, closed) for place, closed in part.closed)
        for variable, life in part.lives.items():
            later = life.shifted(offset)
            before = result.lives.get(variable)
            if before is None:
                result.lives[variable] = later
                continue
            before.spans[-1] = _joined(before.spans[-1], later.spans[0])
            before.spans += later.spans[1:]
            before.written = before.written or later.written
            before.exposed, before.must = before.exposed or later.exposed, before.must and later.must
    for variable, life in result.lives.items():
        life.must = life.must and all(variable in part.lives for part in parts)
    return result
