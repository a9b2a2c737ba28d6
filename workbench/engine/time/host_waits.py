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
from workbench.engine.program.tree import Below
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
    program: TileProgram, steps: Mapping[int, StepCost], turn_cycles: Callable[[Repeat], int], below: Below
) -> Mapping[int, StepCost]:
    """The costs of steps with what loops wait for their feeds, `steps` where none waits; `turn_cycles` of a loop are
    those without."""
    if not any(isinstance(step, StreamCopy) and step.ahead for step in program.steps):
        return steps
    found: dict[int, StepCost] = {}
    waited: dict[int, int] = {}
    fed = _Fed(program, below)
    for loop in _loops(program, below):
        feeds = fed.by(loop.body)
        ways = [[step for step in feeds if step.direction == way] for way in ("to_device", "to_host")]
        waits = [
            (_waiting(program.target, loop.times, turn_cycles(loop), way, steps), way[0].id) for way in ways if way
        ]
        waiting, first = max(waits, key=lambda each: each[0].value, default=(Cost(), 0))
        if waiting.value > waited.get(first, 0):
            waited[first] = waiting.value
            found[first] = replace(steps[first], cost=steps[first].cost + waiting)
    return {**steps, **found} if found else steps


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


def _loops(program: TileProgram, below: Below) -> Iterator[Repeat]:
    """Every loop of the program, inner ones too."""
    waiting: list[Program] = [program.entry, *program.functions.values()]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Repeat):
            yield node
        waiting += below.nodes(node)


class _Fed:
    """Steps that take or give an element in one turn of a loop, but for those of loops inside it, in order."""

    def __init__(self, program: TileProgram, below: Below) -> None:
        self.program, self.below = program, below
        self._functions: dict[str, list[StreamCopy]] = {}

    def by(self, node: Program) -> list[StreamCopy]:
        """Those of one execution of a node."""
        if isinstance(node, StreamCopy):
            return [node] if node.ahead and node.prefetched else []
        if isinstance(node, Call):
            if node.function not in self._functions:
                self._functions[node.function] = self.by(self.program.functions[node.function])
            return self._functions[node.function]
        if isinstance(node, Step | Repeat):
            return []
        parts = children(node) if any(isinstance(step, StreamCopy) for step in self.below.steps(node)) else ()
        return [feed for part in parts or self.below.nodes(node) for feed in self.by(part)]


__all__ = ["with_waits"]
