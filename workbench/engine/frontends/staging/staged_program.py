"""A program of stages that can be run and assembled in several ways: under a schedule, with recomputation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from workbench.base.identity import ByIdentities
from workbench.engine.frontends.numbers.replicated import for_all
from workbench.engine.frontends.staging.recompute import Cuts, Recomputation, has_marks, recomputed
from workbench.engine.frontends.staging.scheduled import ScheduledProgram
from workbench.engine.frontends.staging.whole_step import recomputed_step
from workbench.engine.frontends.trace.staged_calls import Program, host_function
from workbench.engine.graph.stages import stage_calls

if TYPE_CHECKING:
    from workbench.engine.frontends.describe.source import Source
    from workbench.engine.graph import Graph

Compute = Callable[..., Sequence[Any]]
Runs = Callable[[Program], Compute]


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """`weighted` traces the same program with a sample weight behind the targets; `graph_of` assembles a program.
    `finish`: what is done to a program last, before it is run; `graph_of` does it too.

    `in_stages`: the program has a call per stage and direction; else one for a whole micro-batch. `layers` maps layer
    paths to Keras classes. `apart` are variables of which each replica has a value of its own between runs.
    """

    program: Program
    graph: Graph
    graph_of: Callable[[Program], Graph]
    weighted: Callable[[], Program] | None
    in_stages: bool
    layers: Mapping[str, str]
    replicas: int = 1
    apart: frozenset[str] = frozenset()
    finish: Callable[[Program], Program] = lambda program: program
    variants: dict[Recomputation, Source] = field(default_factory=dict)  # made before, by how they recompute
    cuts: Cuts = field(default_factory=ByIdentities)  # what they have in common

    def _for_all(self, run: Compute) -> Compute:
        if self.replicas == 1:
            return run
        return for_all(run, self.graph.inputs, self.graph.outputs, self.replicas, self.apart)

    def compute(self, runs: Runs = host_function) -> Compute:
        """Values of the entry parameters to values of the results."""
        return self._for_all(runs(self.finish(self.program)))

    def compute_weighted(self, runs: Runs = host_function) -> Callable[[Sequence[Any], Any], Sequence[Any]] | None:
        """The same with sample weights; traced and compiled when they are first given."""
        weighted, made = self.weighted, list[Compute]()
        if weighted is None:
            return None

        def run(values: Sequence[Any], weights: Any) -> Sequence[Any]:
            if not made:
                compiled = runs(self.finish(weighted()))
                made.append(self._for_all(lambda held, more: compiled([*held, more])))
            return made[0](values, weights)

        return run


def scheduled(source: Source, schedule: str, devices: Sequence[int] = (), **more: Any) -> Source:
    """The source with its stages run in the order of a schedule; one without stages as it is.

    `devices` is the IPU of each stage, default one each; `more` goes to `ScheduledProgram`.
    """
    staged = source.staged
    if not isinstance(staged, Staged) or not staged.in_stages:
        return source

    def runs(program: Program) -> Compute:
        return ScheduledProgram(program, schedule, devices, **more)

    return replace(source, compute=staged.compute(runs), weighted=staged.compute_weighted(runs))


_NOTHING_NAMED = "recomputation: nothing is computed again; name layers in recomputation_checkpoints"
_NOTHING_WAITS = (
    "recomputation: nothing is computed again, since it would save nothing: under the Sequential schedule no stage "
    "keeps anything of an earlier micro-batch, and all that its backward pass reads is there at once; layers named in "
    "recomputation_checkpoints part it. The driver computes it again all the same, as "
    "recomputation='RecomputeAndBackpropagateInterleaved' does"
)


def as_it_is(source: Source, how: Recomputation) -> Source | None:
    """The source in stages with what it says where computing again saves nothing: nothing waits for later micro-batches
    and no checkpoint parts a stage. Else None.
    """
    staged = source.staged
    if not isinstance(staged, Staged) or not staged.in_stages or how.checkpoints or has_marks(staged.program):
        return None
    several = len({call.stage for call in staged.program.calls}) > 1
    return replace(source, graph=_saying(source.graph, _NOTHING_WAITS if several else _NOTHING_NAMED))


@lru_cache(maxsize=8)  # a graph that is compiled with other options
def _saying(graph: Graph, text: str) -> Graph:
    trains = any(call.direction == "backward" for call in stage_calls(graph))
    return replace(graph, assumptions=(*graph.assumptions, text)) if trains else graph


def with_recomputation(source: Source, how: Recomputation) -> Source:
    """The source with residuals computed again; one that has no backward pass as it is."""
    staged = source.staged
    if not isinstance(staged, Staged) or not staged.in_stages:
        return replace(source, graph=recomputed_step(source.graph, how.checkpoints))
    if how not in staged.variants:
        staged.variants[how] = _recomputing(source, staged, how)
    return staged.variants[how]


def _recomputing(source: Source, staged: Staged, how: Recomputation) -> Source:
    program, weighted = recomputed(staged.program, how, staged.layers, staged.cuts), staged.weighted
    if program.calls == staged.program.calls:
        return source
    heavier = (lambda: recomputed(weighted(), how, staged.layers)) if weighted else None
    changed = replace(staged, program=program, graph=staged.graph_of(program), weighted=heavier, variants={})
    return replace(
        source,
        graph=changed.graph,
        staged=changed,
        compute=changed.compute(),
        weighted=changed.compute_weighted(),
        jaxprs={call.name: call.closed for call in program.calls},
    )
