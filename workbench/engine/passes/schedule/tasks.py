"""A function as tasks to be ordered: what each waits for, the buffers it reads and makes, and an order's peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workbench.engine import ops
from workbench.engine.graph import RESIDENT_ROLES, Function, Graph, Node, Value
from workbench.engine.graph.flow import callees_first
from workbench.engine.passes.schedule.liveness import Instruction, peak_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Nodes by number. `needs` are the numbers that run before; `readers[b]` the numbers that read buffer b.

    Buffers are the values that made them: a view shows those of its operands. Memory that is there anyway
    (parameters, slots, constants) is no buffer. `shares` are pairs (made, read) of buffers that may be one.
    """

    needs: tuple[frozenset[int], ...]
    reads: tuple[tuple[Value, ...], ...]
    makes: tuple[tuple[Value, ...], ...]
    shares: tuple[tuple[tuple[Value, Value], ...], ...]
    called_bytes: tuple[tuple[int, ...], ...]
    sizes: Mapping[Value, int]
    results: frozenset[Value]
    readers: Mapping[Value, frozenset[int]]

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self.needs)


@dataclass(slots=True)
class _Buffers:
    shown: dict[Value, tuple[Value, ...]] = field(default_factory=dict)
    sizes: dict[Value, int] = field(default_factory=dict)

    def of(self, value: Value) -> tuple[Value, ...]:
        return self.shown.get(value, (value,) if value in self.sizes else ())

    def make(self, value: Value) -> Value:
        self.sizes[value] = value.size_bytes
        return value


def tasks_of(graph: Graph, function: Function, needs: Sequence[set[int]]) -> Tasks:
    """The tasks of the entry; `needs` as data and in-place updates demand."""
    buffers = _Buffers()
    peaks = _peaks(graph)
    for value, item in zip(function.params, graph.inputs, strict=True):
        if item.role not in RESIDENT_ROLES:
            buffers.make(value)
    reads, makes, shares = [], [], []
    for node in function.nodes:
        reads.append(tuple(dict.fromkeys(name for value in node.operands for name in buffers.of(value))))
        makes.append(_made(node, buffers, reads[-1]))
        pairs = () if not makes[-1] else ops.family_of(node).in_place(node)
        shares.append(tuple((node.results[new], name) for new, old in pairs for name in buffers.of(node.operands[old])))
    readers: dict[Value, set[int]] = {}
    for number, names in enumerate(reads):
        for name in names:
            readers.setdefault(name, set()).add(number)
    return Tasks(
        needs=tuple(map(frozenset, needs)),
        reads=tuple(reads),
        makes=tuple(makes),
        shares=tuple(shares),
        called_bytes=tuple(tuple(peaks.get(name, 0) for name in node.calls) for node in function.nodes),
        sizes=buffers.sizes,
        results=frozenset(name for value in function.results for name in buffers.of(value)),
        readers={name: frozenset(numbers) for name, numbers in readers.items()},
    )


def _made(node: Node, buffers: _Buffers, read: tuple[Value, ...]) -> tuple[Value, ...]:
    if node.op == "constant":
        return ()
    if ops.family_of(node).pure_view:
        buffers.shown.update((value, read) for value in node.results)
        return ()
    return tuple(buffers.make(value) for value in node.results)


def _peaks(graph: Graph) -> dict[str, int]:
    """The peak of every called body in its own order; what a region holds is its caller's."""
    regions = {
        name
        for function in graph.functions.values()
        for node in function.nodes
        for name in node.calls
        if node.op == "region"
    }
    found: dict[str, int] = {}
    for function in callees_first(graph):
        if function.name == graph.entry or function.name in regions:
            continue
        buffers = _Buffers()
        order = []
        for node in function.nodes:
            read = tuple(name for value in node.operands for name in buffers.of(value))
            called = tuple(found.get(name, 0) for name in node.calls)
            order.append(Instruction(reads=read, makes=_made(node, buffers, read), called_bytes=called))
        results = [name for value in function.results for name in buffers.of(value)]
        found[function.name] = peak_bytes(order, results, buffers.sizes)
    return found


def peak_of(tasks: Tasks, order: Sequence[int]) -> int:
    """The peak of an order, in bytes; a result takes the place of an operand that is read for the last time."""
    last = {name: number for number in order for name in tasks.reads[number]}
    place: dict[Value, Value] = {}  # buffer → the buffer whose place it took
    instructions = []
    for number in order:
        made = list(tasks.makes[number])
        for new, old in tasks.shares[number]:
            at = place.get(old, old)
            ends = last.get(old) == number and old not in tasks.results
            if new in made and ends and tasks.sizes[new] <= tasks.sizes[at]:
                place[new] = at
                made.remove(new)
        read = tuple(place.get(name, name) for name in tasks.reads[number])
        instructions.append(Instruction(reads=read, makes=tuple(made), called_bytes=tasks.called_bytes[number]))
    results = {place.get(name, name) for name in tasks.results}
    return peak_bytes(instructions, results, tasks.sizes)
