"""The control tree of a program: what runs, in which order and how often, as one type with one parser.

A profile keeps the tree as JSON data (`engine/program/tree.py` writes it). `parse` is the only reader of those lists,
and what it gives back has been checked: every kind has its shape, every step and function is there, the tree ends.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from workbench.base.causes import PHASES, Phase
from workbench.base.collection import paused_collection
from workbench.profiler.schema import Stored

DIRECTIONS = ("", "forward", "recompute", "backward", "update")
DEEPEST = 200  # of the control tree; programs stay below twenty
MOST_UNROLLED = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the program, by its id in the table of steps."""

    id: int

    def __str__(self) -> str:
        return f"step {self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """Children one after the other."""

    name: str
    children: tuple[Part, ...]

    def __str__(self) -> str:
        return f"sequence {self.name!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The body `times` times."""

    name: str
    times: int
    body: Part

    def __str__(self) -> str:
        return f"repeat {self.name!r} x {self.times}"


class Call(NamedTuple):
    """Runs a function. For a pipeline stage: its IPU, stage, direction and micro-batch.

    In a `Repeat` the micro-batch is `micro_batch` plus the turn. The call of an outlined body says for which layer and
    for which operator it is made, the layer's class, and the line of source of each part of the body, or one of all.
    A tuple, because a long pipeline has tens of thousands.
    """

    function: str
    name: str
    ipu: int | None
    stage: int | None
    direction: str
    micro_batch: int | None
    layer: str = ""
    operator: str = ""
    layer_class: str = ""
    sources: tuple[str, ...] = ()

    @property
    def for_layer(self) -> str | None:
        """The layer that the body's steps belong to in this call, "" for none; None leaves them their own, as the calls
        of stages and loops do. In files written before calls named operators, a layer alone says so."""
        return self.layer if self.layer or self.operator else None

    @property
    def work(self) -> tuple[str, str, int | None, int | None, str, str | None]:
        """What it does, whichever its micro-batch is and whichever operator it is made for."""
        return (self.function, self.name, self.ipu, self.stage, self.direction, self.for_layer)

    def __str__(self) -> str:
        numbers = (("ipu", self.ipu), ("stage", self.stage), ("micro-batch", self.micro_batch))
        texts = (("for layer", self.layer), ("for operator", self.operator))
        words = [f"call {self.function!r} as {self.name!r}", *[self.direction] * bool(self.direction)]
        words += [f"{name} {value}" for name, value in numbers if value is not None]
        return " ".join([*words, *(f"{name} {value!r}" for name, value in texts if value)])


@dataclass(frozen=True, slots=True, kw_only=True)
class If:
    """One of the arms runs: the dearest counts."""

    name: str
    arms: tuple[Part, ...]

    def __str__(self) -> str:
        return f"if {self.name!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Branches on different IPUs at the same time; `phase` says why an IPU without work waits."""

    name: str
    phase: Phase
    branches: tuple[Part, ...]

    def __str__(self) -> str:
        return f"overlap {self.name!r} {self.phase}"


Part: TypeAlias = Step | Sequence | Repeat | Call | If | Overlap


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlTree:
    """The entry of a program, and the bodies of its functions by name, each once."""

    entry: Part
    functions: Mapping[str, Part]

    @property
    def bodies(self) -> dict[str, Part]:
        """Every body by name, the entry as "" first."""
        return {"": self.entry, **self.functions}

    def __str__(self) -> str:
        roots = [("entry", self.entry), *((f"function {name!r}", body) for name, body in self.functions.items())]
        return "\n".join(line for title, root in roots for line in (title, *_lines(root, "  ")))


class Controlled(Stored, Protocol):
    """A stored profile whose control tree has been parsed."""

    @property
    def control(self) -> ControlTree:
        """The control tree."""


def children(part: Part) -> tuple[Part, ...]:
    """What stands directly below a part; the body of a call does not."""
    if isinstance(part, Sequence):
        return part.children
    if isinstance(part, Repeat):
        return (part.body,)
    if isinstance(part, If):
        return part.arms
    return part.branches if isinstance(part, Overlap) else ()


def below(part: Part) -> Iterator[Step | Call]:
    """The steps and calls of a part, in no order; what the calls run is not among them."""
    waiting = [part]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Step | Call):
            yield node
        else:
            waiting += children(node)


def in_order(branch: Part) -> tuple[Part, ...]:
    """The parts of a branch in turn: those of a sequence, or the one it is."""
    return branch.children if isinstance(branch, Sequence) else (branch,)


def _lines(part: Part, indent: str) -> Iterator[str]:
    yield f"{indent}{part}"
    for child in children(part):
        yield from _lines(child, indent + "  ")


def parse(trace: Mapping[str, Any], *, steps: Container[int], ipus: int) -> ControlTree:
    """The control tree that `meta["trace"]` of a profile tells, with these ids of steps and as many IPUs.

    A part of another shape, a step or function that is not there, a function that calls itself and a tree that is
    deeper than any program's are a `ValueError`.
    """
    parser = _Parser(trace["functions"], steps, ipus)
    with paused_collection():
        entry = parser.part(trace["entry"], 0)
        for name in trace["functions"]:
            parser.function(name, 0)
    return ControlTree(entry=entry, functions={name: parser.parsed[name] for name in trace["functions"]})


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any, below: int) -> bool:
    return type(value) is int and 0 <= value < below


def _check(holds: bool) -> None:
    if not holds:
        raise ValueError("a node of the control tree has another shape")


class _Parser:
    """Reads each function once: `parsed` are those that have been read, `open` those that are being read."""

    def __init__(self, functions: Mapping[str, Any], steps: Container[int], ipus: int) -> None:
        self.functions, self.steps, self.ipus = functions, steps, ipus
        self.parsed: dict[str, Part] = {}
        self.open: set[str] = set()
        self.calls: dict[tuple[Any, ...], Call] = {}  # checked, but for their micro-batches
        self.readers: Mapping[str, Callable[[list[Any], int], Part]] = {
            "step": self._step,
            "call": self._call,
            "repeat": self._repeat,
            "sequence": self._sequence,
            "if": self._if,
            "overlap": self._overlap,
        }

    def function(self, name: str, depth: int) -> None:
        if name in self.parsed:
            return
        if name in self.open or name not in self.functions:
            raise ValueError("a function is missing or calls itself")
        self.open.add(name)
        self.parsed[name] = self.part(self.functions[name], depth + 1)
        self.open.remove(name)

    def part(self, node: Any, depth: int) -> Part:
        if depth > DEEPEST or not isinstance(node, list) or not node:
            raise ValueError("the control tree is too deep or no tree")
        read = self.readers.get(node[0] if _text(node[0]) else "")
        if read is None:
            raise ValueError("an unknown node of the control tree")
        return read(node, depth)

    def _parts(self, nodes: Any, depth: int) -> tuple[Part, ...]:
        _check(isinstance(nodes, list))
        return tuple([self.part(node, depth + 1) for node in nodes])

    def _step(self, node: list[Any], depth: int) -> Step:
        _check(len(node) == 2 and _number(node[1], MOST_UNROLLED) and node[1] in self.steps)
        return Step(id=node[1])

    def _call(self, node: list[Any], depth: int) -> Call:
        _check(len(node) in (7, 8, 9) or len(node) > 10)
        try:
            # A long pipeline makes the same call for each of its micro-batches; 1 and True are no same number.
            key = (type(node[3]), type(node[4]), *node[1:6], *node[7:])
            call = self.calls.get(key)
        except TypeError:  # a list where a text should be
            raise ValueError("a node of the control tree has another shape") from None
        if call is None:
            call = self.calls[key] = self._new_call(node)
        micro_batch = node[6]
        _check(micro_batch is None or _number(micro_batch, MOST_UNROLLED))
        self.function(call[0], depth)
        return call if call[5] == micro_batch else Call(*call[:5], micro_batch, *call[6:])

    def _new_call(self, node: list[Any]) -> Call:
        told = [*node[1:6], None, *node[7:10], *([tuple(node[10:])] if node[10:] else [])]
        call = Call(*told)
        _check(_text(call.function) and _text(call.name) and _text(call.layer) and _text(call.operator))
        _check(_text(call.layer_class) and all(map(_text, call.sources)))
        _check(call.direction in DIRECTIONS)
        _check(call.ipu is None or _number(call.ipu, self.ipus))
        _check(call.stage is None or _number(call.stage, MOST_UNROLLED))
        return call

    def _repeat(self, node: list[Any], depth: int) -> Repeat:
        _check(len(node) == 4 and _text(node[1]) and _number(node[2], MOST_UNROLLED))
        return Repeat(name=node[1], times=node[2], body=self.part(node[3], depth + 1))

    def _sequence(self, node: list[Any], depth: int) -> Sequence:
        _check(len(node) == 3 and _text(node[1]))
        return Sequence(name=node[1], children=self._parts(node[2], depth))

    def _if(self, node: list[Any], depth: int) -> If:
        _check(len(node) == 3 and _text(node[1]))
        return If(name=node[1], arms=self._parts(node[2], depth))

    def _overlap(self, node: list[Any], depth: int) -> Overlap:
        _check(len(node) == 4 and _text(node[1]) and node[2] in PHASES)
        return Overlap(name=node[1], phase=node[2], branches=self._parts(node[3], depth))
