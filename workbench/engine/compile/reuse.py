"""The graph as it is lowered: after all graph passes, with what is updated in place, and the options they read.

Compiles that differ in other options alone, as a sweep over one option of the planner makes them, share one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial

from workbench.engine.compile.phases import Phase
from workbench.engine.cost import Plain
from workbench.engine.graph import Graph, verify_graph
from workbench.engine.lower.in_place import InPlace, find_in_place, verify_in_place
from workbench.engine.lower.replay.bodies import StageBodies
from workbench.engine.options import NotedOptions, Options, answers_alike
from workbench.engine.passes import PIPELINE
from workbench.engine.passes.by_function import Remembered

Timed = Callable[[str], AbstractContextManager[list[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimised:
    """What the graph passes made of `source`; `read` are the options they read, with the values they had.

    `bodies` keeps what lowerings of the graph have in common, `remembered` what passes made of its functions.
    """

    source: Graph
    graph: Graph
    in_place: InPlace
    read: tuple[tuple[tuple[str, str], Plain], ...]
    phases: tuple[Phase, ...] = field(repr=False)
    bodies: StageBodies = field(default_factory=StageBodies, repr=False, compare=False)
    remembered: Remembered = field(default_factory=Remembered, repr=False, compare=False)

    def read_alike(self, options: Options) -> bool:
        """Whether the passes would read the same of these options."""
        return answers_alike(options, dict(self.read))

    def serves(self, graph: Graph, options: Options) -> bool:
        """Whether the passes would make the same of a graph with these options."""
        return graph.is_but_for_words(self.source) and self.read_alike(options)

    def saying(self, graph: Graph) -> Optimised:
        """The same of a graph that differs in what is assumed of it, which passes only add to."""
        if graph is self.source:
            return self
        added = self.graph.assumptions[len(self.source.assumptions) :]
        return replace(self, source=graph, graph=replace(self.graph, assumptions=(*graph.assumptions, *added)))

    def repeated(self) -> tuple[Phase, ...]:
        """The rows of the phases for a compile that takes them over."""
        return tuple(phase.again() for phase in self.phases)


def prepare(
    graph: Graph, options: Options, timed: Timed, phases: list[Phase], like: Optimised | None = None
) -> Optimised:
    """Run the graph passes and find what is updated in place; `timed` appends a row for each to `phases`.

    `like` is what was made of another graph, maybe of the same model: functions that both have are passed once, and
    what both are lowered to is shared.
    """
    source, before = graph, len(phases)
    read, remembered = NotedOptions.of(options), Remembered()
    if like is not None and like.read_alike(options):
        read.noted.update(like.read)
        remembered = Remembered(earlier=like.remembered.made)
    for graph_pass in PIPELINE:
        with timed(graph_pass.name) as changed:
            run = partial(graph_pass.apply, options=read)
            after = remembered.apply(graph_pass.name, run, graph) if graph_pass.per_function else run(graph)
            if told := graph_pass.told(graph, read):
                after = replace(after, assumptions=(*after.assumptions, *told))
            nodes, graph = _nodes(graph), verify_graph(after, known=graph)
            changed.append(f"{nodes} → {_nodes(graph)} nodes")
    with timed("in_place") as changed:
        in_place = verify_in_place(graph, find_in_place(graph))
        changed.append(f"{len(in_place.reuse)} results take an operand's memory, {len(in_place.updated)} updates")
    return Optimised(
        source=source,
        graph=graph,
        in_place=in_place,
        read=tuple(read.noted.items()),
        phases=tuple(phases[before:]),
        bodies=StageBodies() if like is None else like.bodies.of_another_graph(graph),
        remembered=remembered,
    )


def _nodes(graph: Graph) -> int:
    return sum(len(function.nodes) for function in graph.functions.values())
