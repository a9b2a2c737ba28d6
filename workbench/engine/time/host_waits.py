"""What a loop waits for its feeds: the host moves elements one after another, and has room for some of them.

A loop begins with `ahead` elements fetched (the depth of its feed's buffer) and the host goes on fetching while there
is room: with room for one element alone not while the IPUs copy it, with more beside all that a turn does. Where that
is fast enough, nothing waits; else the last turn begins when its element is there, and each turn waits for an equal
share of what is missing. Elements that leave are waited for in the same way: there has to be room for them. Of what
comes and what leaves, a loop waits for the later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil

from workbench.engine.cost import Cost, formula, term
from workbench.engine.program import Call, Program, Repeat, Step, StreamCopy, TileProgram, children
from workbench.engine.target import Target
from workbench.engine.time.trace import StepCost


@formula(
    "host.starved",
    text="elements are fetched one after another while the loop runs, but for those held ready at its start, and, "
    "where one alone is held, but for the time in which it is copied: what the last of them comes later than its turn, "
    "shared by all turns, in cycles, rounded up; 0 where it comes earlier",
    source="API reference 21.4, IPUInfeedQueue prefetch_depth: entries are in the buffer before the device reads them, "
    "else it waits for them; rate as host.fetch",
    error_kind="host_wait",
)
def starved_cycles(
    turns: int, ahead: int, turn: int, transfer: int, size_bytes: int, bytes_per_second: float, clock_hz: float
) -> int:
    """Cycles one turn waits."""
    each = ceil(size_bytes * clock_hz / bytes_per_second) + (transfer if ahead == 1 else 0)
    return max(0, ceil(((turns - ahead) * each - (turns - 1) * turn) / turns)) if turns else 0


def with_waits(
    program: TileProgram, steps: Mapping[int, StepCost], turn_cycles: Callable[[Repeat], int]
) -> dict[int, StepCost]:
    """The costs of steps with what loops wait for their feeds; `turn_cycles` of a loop are those without."""
    found = dict(steps)
    waited: dict[int, int] = {}
    for loop in _loops(program):
        feeds = list(_feeds(program, loop.body))
        ways = [[step for step in feeds if step.direction == way] for way in ("to_device", "to_host")]
        waits = [
            (_waiting(program.target, loop.times, turn_cycles(loop), way, steps), way[0].id) for way in ways if way
        ]
        waiting, first = max(waits, key=lambda each: each[0].value, default=(Cost(), 0))
        if waiting.value > waited.get(first, 0):
            waited[first] = waiting.value
            found[first] = replace(steps[first], cost=steps[first].cost + waiting)
    return found


def _waiting(target: Target, turns: int, turn: int, feeds: Sequence[StreamCopy], steps: Mapping[int, StepCost]) -> Cost:
    """What a turn waits for the elements of some feeds."""
    counts = {
        "turns": turns,
        "ahead": min(turns, *(step.ahead for step in feeds)),
        "turn": turn,
        "transfer": sum(steps[step.id].cycles for step in feeds),
        "size_bytes": sum(step.size_bytes for step in feeds),
    }
    rate = {"bytes_per_second": target.host_copy_bytes_per_second, "clock_hz": target.clock_hz}
    return Cost((term("starved", "host.starved", **counts, **rate),))


def _loops(program: TileProgram) -> Iterator[Repeat]:
    """Every loop of the program, inner ones too."""
    waiting: list[Program] = [program.entry, *program.functions.values()]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Repeat):
            yield node
        if not isinstance(node, Step | Call):
            waiting += children(node)


def _feeds(program: TileProgram, node: Program) -> Iterator[StreamCopy]:
    """Steps that take or give an element in one turn of a loop, but for those of loops inside it, in order."""
    if isinstance(node, StreamCopy):
        if node.ahead and node.prefetched:
            yield node
    elif isinstance(node, Call):
        yield from _feeds(program, program.functions[node.function])
    elif not isinstance(node, Step | Repeat):
        for child in children(node):
            yield from _feeds(program, child)


__all__ = ["with_waits"]
