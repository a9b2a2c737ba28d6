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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from workbench.engine.program import Call, If, Overlap, Program, Repeat, Step, TileProgram, children
from workbench.errors import VerificationError

Interval: TypeAlias = tuple[int, int]
"""First and last timeline position at which something is live, both included."""


class _Span(NamedTuple):
    """An interval, the one it grows to when joined with accesses outside its loops, and whether a call is in it."""

    first: int
    last: int
    outer_first: int
    outer_last: int
    called: bool = False

    def joined(self, other: _Span) -> _Span:
        first = min(self.outer_first, other.outer_first)
        last = max(self.outer_last, other.outer_last)
        return _Span(first, last, first, last, self.called or other.called)


class _Life(NamedTuple):
    spans: tuple[_Span, ...]
    exposed: bool
    must: bool
    written: bool  # on some way through

    def shifted(self, offset: int) -> _Life:
        if not offset:
            return self
        spans = [_Span(a + offset, b + offset, c + offset, d + offset, called) for a, b, c, d, called in self.spans]
        return _Life(tuple(spans), self.exposed, self.must, self.written)

    def then(self, other: _Life) -> _Life:
        """This life followed by another, already shifted, one."""
        if self._ends_before(other):
            spans = self.spans + other.spans
        else:
            spans = (*self.spans[:-1], self.spans[-1].joined(other.spans[0]), *other.spans[1:])
        exposed = self.exposed or (not self.must and other.exposed)
        return _Life(spans, exposed, self.must or other.must, self.written or other.written)

    def _ends_before(self, other: _Life) -> bool:
        """Whether what follows is another value: after a call, or after nothing but reads of what was there before."""
        if not other.must or other.exposed:
            return False
        return self.spans[-1].called or (other.spans[0].called and not self.written)

    def repeated(self, length: int) -> _Life:
        """As the life of a loop whose body has `length` positions."""
        spans = list(self.spans)
        spans[0] = spans[0]._replace(outer_first=0)
        spans[-1] = spans[-1]._replace(outer_last=length - 1)
        if self.exposed:
            spans[0] = spans[0]._replace(first=0)
            spans[-1] = spans[-1]._replace(last=length - 1)
        return self._replace(spans=tuple(spans))

    def as_called(self) -> _Life:
        return self._replace(spans=tuple(span._replace(called=True) for span in self.spans))


@dataclass(slots=True)
class _Part:
    """A node as one IPU sees it: its step ids in order, and the lives of the variables they touch."""

    steps: list[int] = field(default_factory=list)
    lives: dict[int, _Life] = field(default_factory=dict)

    def append(self, other: _Part) -> None:
        offset = len(self.steps)
        self.steps.extend(other.steps)
        for variable, life in other.lives.items():
            before = self.lives.get(variable)
            later = life.shifted(offset)
            self.lives[variable] = later if before is None else before.then(later)

    def append_step(self, step: Step, shared: Iterable[int]) -> None:
        """Append a step of this IPU, of whose variables `shared` are not always live."""
        place = len(self.steps)
        self.steps.append(step.id)
        here = (_Span(place, place, place, place),)
        for number in dict.fromkeys(shared):
            writes = number in step.writes
            life = _Life(here, number in step.reads, writes, writes)
            before = self.lives.get(number)
            self.lives[number] = life if before is None else before.then(life)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Lifetimes:
    """Per IPU the step id at each position; per variable its intervals in the timeline of its IPU.

    `exposed` are the variables that are read before the program ever wrote them.
    """

    timelines: tuple[list[int], ...]
    intervals: tuple[tuple[Interval, ...], ...]
    exposed: frozenset[int] = frozenset()


def lifetimes(program: TileProgram) -> Lifetimes:
    """Timelines of all IPUs and intervals of all variables that are not always live."""
    _check_places(program)
    intervals: list[tuple[Interval, ...]] = [() for _ in program.variables]
    timelines: list[list[int]] = []
    exposed: set[int] = set()
    for ipu in range(program.ipus):
        part = _Analysis(program, ipu).part(program.entry)
        timelines.append(part.steps)
        for variable, life in part.lives.items():
            intervals[variable] = tuple(_settled(life))
        exposed.update(variable for variable, life in part.lives.items() if life.exposed)
    return Lifetimes(timelines=tuple(timelines), intervals=tuple(intervals), exposed=frozenset(exposed))


def _settled(life: _Life) -> Iterator[Interval]:
    """What is read before it was ever written was there before the program: it is live from the start."""
    for index, span in enumerate(life.spans):
        yield (0 if index == 0 and life.exposed else span.first, span.last)


def _check_places(program: TileProgram) -> None:
    for step in program.steps:
        for variable in (*step.reads, *step.writes):
            if program.variables[variable].ipu not in step.ipus:
                raise VerificationError(
                    f"step {step.id} {step.name} on ipu {step.ipu} uses {program.variables[variable]}"
                )


class _Analysis:
    """One IPU's pass over the control tree; bodies of functions are analysed once."""

    def __init__(self, program: TileProgram, ipu: int) -> None:
        self.program = program
        self.ipu = ipu
        self._mine: dict[str, bool] = {}
        self._functions: dict[str, _Part] = {}
        self._shared = {each.id for each in program.variables if each.ipu == ipu and not each.always_live}

    def part(self, program: Program) -> _Part:
        """The node's timeline and lives."""
        result = _Part()
        if isinstance(program, Step):
            self._append_step(program, result)
            return result
        if isinstance(program, Call):
            return self._function(program.function)
        if isinstance(program, If):
            return _branches([self.part(arm) for arm in program.arms])
        for child in children(program):
            if isinstance(child, Step):
                self._append_step(child, result)
            elif not isinstance(program, Overlap) or self._concerns(child):
                result.append(self.part(child))
        if isinstance(program, Repeat):
            return self._repeat(program, result)
        return result

    def _append_step(self, step: Step, part: _Part) -> None:
        if self.ipu in step.ipus:
            part.append_step(step, (number for number in (*step.reads, *step.writes) if number in self._shared))

    def _repeat(self, program: Repeat, body: _Part) -> _Part:
        lives = body.lives
        if program.times > 1 or program.unknown_times:
            lives = {variable: life.repeated(len(body.steps)) for variable, life in lives.items()}
        if program.times < 1 or program.unknown_times:
            lives = {variable: life._replace(must=False) for variable, life in lives.items()}
        return _Part(body.steps, lives)

    def _concerns(self, program: Program) -> bool:
        if isinstance(program, Step):
            return self.ipu in program.ipus
        if isinstance(program, Call):
            name = program.function
            if name not in self._mine:
                self._mine[name] = self._concerns(self.program.functions[name])
            return self._mine[name]
        return any(self._concerns(child) for child in children(program))

    def _function(self, name: str) -> _Part:
        if name not in self._functions:
            body = self.part(self.program.functions[name])
            variables = self.program.variables
            lives = {
                number: life.as_called() if variables[number].function == name else life
                for number, life in body.lives.items()
            }
            self._functions[name] = _Part(body.steps, lives)
        return self._functions[name]


def _branches(arms: Iterable[_Part]) -> _Part:
    """Arms of which one runs, laid out one after the other."""
    result = _Part()
    parts = list(arms)
    for part in parts:
        offset = len(result.steps)
        result.steps.extend(part.steps)
        for variable, life in part.lives.items():
            later = life.shifted(offset)
            before = result.lives.get(variable)
            if before is not None:
                joined = before.spans[-1].joined(later.spans[0])
                spans = (*before.spans[:-1], joined, *later.spans[1:])
                written = before.written or later.written
                later = _Life(spans, before.exposed or later.exposed, before.must and later.must, written)
            result.lives[variable] = later
    for variable, life in result.lives.items():
        if not all(variable in part.lives for part in parts):
            result.lives[variable] = life._replace(must=False)
    return result
