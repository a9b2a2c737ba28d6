"""The steps of a program written by hand. `lower` makes the tile program of them, `run` the numbers.

A step may stand in a program several times; it is then stored once and called.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol

from workbench.base.checked import checked_methods
from workbench.base.source.lines import calling_line
from workbench.engine.by_hand.tensor import Tensor, check_tile
from workbench.engine.by_hand.vertex import Vertex, make_vertex
from workbench.errors import InputError

MOST_NESTED = 64  # levels of steps in steps: each is up to two of the control tree, whose readers follow 200

if TYPE_CHECKING:
    from workbench.engine.program import TileProgram
    from workbench.engine.target import Target


class StepOwner(Protocol):
    """The graph that steps belong to."""

    @property
    def target(self) -> Target:
        """The machine."""

    def compile_program(self, program: Step, *, prefetched: bool = True) -> TileProgram:
        """The tile program of a step and all it contains."""


def check_graph(part: object, graph: object) -> None:
    """An error when a tensor or step belongs to another graph."""
    owner = part.variable.graph if isinstance(part, Tensor) else part.graph if isinstance(part, Step) else graph
    if owner is not graph:
        raise InputError(f"{part} belongs to another graph", todo="use tensors and steps of one graph")


@checked_methods
class Step:
    """Anything a program is made of; `wb.profile` takes one, with all it contains."""

    __slots__ = ("graph", "line", "name")

    def __init__(self, graph: StepOwner, name: str) -> None:
        self.graph = graph
        self.name = name
        self.line = calling_line(through_own=True)

    @property
    def target(self) -> Target:
        """The machine of its graph."""
        return self.graph.target

    @property
    def parts(self) -> tuple[Step, ...]:
        """The steps directly inside."""
        return ()

    def compile_program(self, *, prefetched: bool = True) -> TileProgram:
        """The tile program of this step and all it contains; `prefetched`: as in the program of a graph."""
        return self.graph.compile_program(self, prefetched=prefetched)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


@checked_methods
class ComputeSet(Step):
    """Vertices that run at the same time."""

    __slots__ = ("vertices",)

    def __init__(self, graph: StepOwner, name: str) -> None:
        super().__init__(graph, name)
        self.vertices: list[Vertex] = []

    def vertex(
        self,
        name: str,
        *,
        tile: int,
        reads: Iterable[Tensor] = (),
        writes: Iterable[Tensor] | None = None,
        **fields: Any,
    ) -> ComputeSet:
        """Add a vertex of class `name` on a tile; returns the compute set.

        Tensor fields are its edges: `out…`, `dst` and `…Out` are written, the first field of an in-place vertex and
        `inOut` are read and written, all others read. The codelet's element type and counts follow from them; its
        other arguments are given by name. `reads` and `writes` add tensors that are no field; a vertex with fields that
        writes none of them is told `writes=()`.
        Errors: unknown vertices, operations, arguments and tiles, and fields none of which is written.
        """
        check_tile(tile, self.target.tiles_per_ipu, f"vertex {name!r} of {self.name!r} is on tile {tile!r}")
        more_reads, more_writes = tuple(reads), None if writes is None else tuple(writes)
        for part in (*fields.values(), *more_reads, *(more_writes or ())):
            check_graph(part, self.graph)
        self.vertices.append(make_vertex(name, tile, fields, more_reads, more_writes, self.target.machine))
        return self


class Sequence(Step):
    """Steps one after the other."""

    __slots__ = ("steps",)

    def __init__(self, graph: StepOwner, steps: tuple[Step, ...], name: str = "") -> None:
        super().__init__(graph, name)
        self.steps = steps

    @property
    def parts(self) -> tuple[Step, ...]:
        """The steps."""
        return self.steps


class Repeat(Step):
    """A body that runs `times` times."""

    __slots__ = ("body", "times")

    def __init__(self, graph: StepOwner, times: int, body: Step, name: str = "") -> None:
        super().__init__(graph, name)
        self.times = times
        self.body = body

    @property
    def parts(self) -> tuple[Step, ...]:
        """The body."""
        return (self.body,)


class Copy(Step):
    """Overwrite `destination` with `source`."""

    __slots__ = ("destination", "source")

    def __init__(self, graph: StepOwner, source: Tensor, destination: Tensor) -> None:
        super().__init__(graph, f"copy {source.variable.name} to {destination.variable.name}")
        self.source = source
        self.destination = destination


class HostCopy(Step):
    """Copy a whole variable from or to the host."""

    __slots__ = ("direction", "tensor")

    def __init__(self, graph: StepOwner, tensor: Tensor, direction: Literal["to_device", "to_host"]) -> None:
        super().__init__(graph, f"host {direction} {tensor.variable.name}")
        self.tensor = tensor
        self.direction = direction


class Function(Step):
    """A body stored once; in a program it stands for a call of it."""

    __slots__ = ("body",)

    def __init__(self, graph: StepOwner, name: str, body: Step) -> None:
        super().__init__(graph, name)
        self.body = body

    @property
    def parts(self) -> tuple[Step, ...]:
        """The body."""
        return (self.body,)


class If(Step):
    """The first arm runs when the one element of `condition` is not zero, else the second."""

    __slots__ = ("arms", "condition")

    def __init__(self, graph: StepOwner, condition: Tensor, arms: tuple[Step, Step]) -> None:
        super().__init__(graph, f"if {condition.variable.name}")
        self.condition = condition
        self.arms = arms

    @property
    def parts(self) -> tuple[Step, ...]:
        """Both arms."""
        return self.arms


def check_nesting(program: Step) -> None:
    """An `InputError` where steps stand in steps deeper than views and files of profiles follow them."""
    level = {program}
    for _ in range(MOST_NESTED):
        level = {part for step in level for part in step.parts}
        if not level:
            return
    raise InputError(
        f"steps stand in one another more than {MOST_NESTED} deep",
        expected=f"at most {MOST_NESTED} levels of sequences, repeats, conditions and functions",
        todo="give a sequence all its steps at once, not one sequence in the next",
    )


def uses(step: Step) -> dict[Step, int]:
    """How often each step stands in the program, bodies of functions counted once."""
    found: dict[Step, int] = {}
    pending = [step]
    while pending:
        now = pending.pop()
        found[now] = found.get(now, 0) + 1
        if found[now] == 1:
            pending += now.parts
    return found
