"""Small graphs lowered on a few tiles, and what came of them in plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.engine.graph import Function, Graph, GraphBuilder, Input, Output, Value, verify_graph
from workbench.engine.lower import Lowered, lower
from workbench.engine.lower.in_place import find_in_place, verify_in_place
from workbench.engine.memory.lifetimes import lifetimes
from workbench.engine.options import options
from workbench.engine.program import DoExchange, OnTileExecute, Program, StreamCopy, verify_program
from workbench.engine.target import target
from workbench.engine.time.execute import execute
from workbench.engine.time.trace import Trace

Kind = tuple[tuple[int, ...], str]
F32 = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A lowered graph with its trace."""

    graph: Graph
    lowered: Lowered
    trace: Trace

    @property
    def computes(self) -> list[OnTileExecute]:
        """Compute steps in order."""
        return [step for step in self.lowered.program.steps if isinstance(step, OnTileExecute)]

    @property
    def exchanges(self) -> list[DoExchange]:
        """Exchanges in order."""
        return [step for step in self.lowered.program.steps if isinstance(step, DoExchange)]

    def vertices(self, name: str = "") -> list[tuple[str, dict[str, Any], list[int], int]]:
        """(vertex, arguments, tiles, count) of every group whose step's name ends with `name`, copies left out."""
        return [
            (group.vertex, dict(group.arguments), list(group.tiles.tiles), group.count)
            for step in self.computes
            if step.name.endswith(name)
            for group in step.compute_set.groups
            if group.vertex != "poplar::Memcpy"
        ]

    def vertex(self, name: str) -> tuple[dict[str, Any], list[int], int]:
        """Arguments, tiles and count of the one group of this vertex."""
        (found,) = [(arguments, tiles, count) for vertex, arguments, tiles, count in self.vertices() if vertex == name]
        return found

    def received(self, name: str = "") -> list[int]:
        """Bytes each tile receives in the exchanges whose name ends with `name`."""
        found = [step.exchange.received_bytes for step in self.exchanges if step.name.endswith(name)]
        return [int(value) for value in sum(found)] if found else []

    def variable(self, name: str) -> list[int]:
        """Bytes per tile of the one variable whose name ends with `name`."""
        (found,) = [one for one in self.lowered.program.variables if one.name.endswith(name)]
        return [int(value) for value in found.bytes_per_tile]

    def names(self) -> list[str]:
        """Names of all variables."""
        return [one.name for one in self.lowered.program.variables]

    def streamed(self) -> list[int]:
        """Bytes of what goes to the host, in the order of the outputs."""
        return [
            step.size_bytes
            for step in self.lowered.program.steps
            if isinstance(step, StreamCopy) and step.direction == "to_host" and not step.remote
        ]


def compiled(
    builder: GraphBuilder,
    results: Sequence[Value],
    *,
    tiles: int = 4,
    kind: str = "ipu2",
    roles: Sequence[Any] = (),
    updates: dict[int, int] | None = None,
    bodies: Sequence[Function] = (),
) -> Case:
    """Lower the builder's function; `roles` of its parameters (default input), `updates`: result → parameter."""
    main = builder.function(tuple(results))
    given = [*roles, *["input"] * (len(main.params) - len(roles))]
    graph = verify_graph(
        Graph(
            functions={main.name: main, **{body.name: body for body in bodies}},
            entry=main.name,
            inputs=tuple(Input(name=f"in{number}", role=role) for number, role in enumerate(given)),
            outputs=tuple(
                Output(name=f"out{number}", updates=(updates or {}).get(number)) for number in range(len(results))
            ),
        )
    )
    return lowered_graph(graph, tiles=tiles, kind=kind)


def lowered_graph(graph: Graph, *, tiles: int = 4, kind: str = "ipu2") -> Case:
    """Lower a graph as it is, with what can be in place in place."""
    chosen = verify_in_place(graph, find_in_place(graph))
    lowered = lower(graph, target(kind, tiles_per_ipu=tiles), options(), chosen)
    verify_program(lowered.program)
    return Case(graph=graph, lowered=lowered, trace=execute(lowered.program))


def single(
    op: str,
    operands: Sequence[Kind],
    results: Sequence[Kind],
    *,
    tiles: int = 4,
    kind: str = "ipu2",
    roles: Sequence[Any] = (),
    bodies: Sequence[Function] = (),
    times: int = 1,
    **attributes: Any,
) -> Case:
    """One node over inputs, its results returned."""
    builder = GraphBuilder("main")
    values = tuple(builder.param(shape, dtype) for shape, dtype in operands)
    made = builder.node(
        op, values, tuple(results), calls=tuple(body.name for body in bodies), times=times, **attributes
    )
    return compiled(builder, made, tiles=tiles, kind=kind, roles=roles, bodies=bodies)


def body(name: str, params: Sequence[Kind], *operations: tuple[Any, ...], results: Sequence[int]) -> Function:
    """A function of single-result nodes: (op, operand numbers, type, attributes); numbers count params, then nodes."""
    builder = GraphBuilder(name)
    values = [builder.param(shape, dtype) for shape, dtype in params]
    for op, numbers, kind, *attributes in operations:
        values += builder.node(
            op, tuple(values[number] for number in numbers), (kind,), **(attributes[0] if attributes else {})
        )
    return builder.function(tuple(values[number] for number in results))


def exposed(case: Case) -> list[str]:
    """Variables with bytes that are read before anything was written to them."""
    program = case.lowered.program
    found = [program.variables[number] for number in lifetimes(program).exposed]
    return [one.name for one in found if not one.always_live and one.size_bytes]


def tree(program: Program) -> list[str]:
    """Names of the classes of the control nodes, outermost first, leaves left out."""
    from workbench.engine.program import Step, children

    if isinstance(program, Step):
        return []
    return [type(program).__name__, *(name for child in children(program) for name in tree(child))]
