"""Compile: graph → passes → tile program → footprint, liveness, allocation and trace, each phase timed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.base.collection import paused_collection
from workbench.engine import ops, vertices
from workbench.engine.compile.bounds import refuse_large_values, refuse_long_runs
from workbench.engine.compile.phases import AGAIN, Clock, Phase, Progress
from workbench.engine.compile.reuse import Optimised, prepare
from workbench.engine.graph import Graph
from workbench.engine.lower import Lowered, lower
from workbench.engine.lower.io_tiles import compute_target, io_tiles_of
from workbench.engine.memory.allocation import Allocation, allocate
from workbench.engine.memory.footprint import Footprint, footprint
from workbench.engine.memory.liveness import Liveness, liveness
from workbench.engine.options import NotedOptions, Options, answers_alike
from workbench.engine.planner.family import Ahead, search_ahead
from workbench.engine.program import Sound, TileProgram, verify_program
from workbench.engine.remembered import trim
from workbench.engine.target import Target
from workbench.engine.time.execute import costs_of, execute
from workbench.engine.time.step_cost import StepCosts
from workbench.engine.time.trace import Trace

MEASURES = ("footprint", "liveness", "allocate", "execute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """Everything the compiler knows about one program."""

    graph: Graph
    lowered: Lowered | None
    program: TileProgram
    options: Options
    footprint: Footprint
    liveness: Liveness
    allocation: Allocation
    trace: Trace
    phases: tuple[Phase, ...]
    prepared: Optimised | None = None
    costs: StepCosts | None = field(default=None, repr=False)
    sound: Sound | None = field(default=None, repr=False)
    read: Mapping[tuple[str, Any], Any] = field(default_factory=dict, repr=False)  # options behind the graph passes

    def serves(self, prepared: Optimised, target: Target, options: Options, ipus: int) -> bool:
        """Whether all of it but the options is what a compile of the same graph with these would make."""
        same = self.prepared is not None and self.prepared.graph.is_but_for_words(prepared.graph)
        there = same and self.lowered is not None and self.lowered.target == target
        return there and self.program.ipus == ipus and answers_alike(options, self.read)

    def serves_wholly(self, graph: Graph, target: Target, options: Options, ipus: int) -> bool:
        """Whether all of it but the options and what is assumed is what a compile of this graph would make."""
        prepared = self.prepared
        return prepared is not None and prepared.serves(graph, options) and self.serves(prepared, target, options, ipus)

    def again(self, prepared: Optimised, options: Options, clock: Clock) -> Compiled:
        """The same with other options, of a graph of which maybe other things are assumed."""
        for phase in (phase for phase in self.phases if phase.phase in MEASURES):
            clock.progress(phase.phase)
            clock.phases.append(phase.again())
        return replace(self, graph=prepared.graph, prepared=prepared, options=options, phases=tuple(clock.phases))


def plan_ahead(graph: Graph, target: Target, options: Options) -> None:
    """Have a graph's products planned beside for the tiles that compute, if somebody is there to."""
    search_ahead(graph, compute_target(target, io_tiles_of(options, target)), options)


def products_ahead(target: Target, options: Options) -> Ahead:
    """Has the products of a graph that is not whole yet planned beside, as `plan_ahead` does."""
    return Ahead(compute_target(target, io_tiles_of(options, target)), options)


@paused_collection()
def compile_graph(
    graph: Graph,
    target: Target,
    options: Options,
    *,
    ipus: int = 1,
    progress: Progress = lambda phase: None,
    like: Compiled | None = None,
) -> Compiled:
    """Compile a graph for `ipus` IPUs of a target.

    `like` is an earlier compile: where it was of the same graph and the graph passes read the same options, what they
    made is taken over, and where all that is read later says the same, everything is; of another graph, stage bodies
    that are lowered alike; and costs of compute sets of both.
    `progress` hears the name of every phase and operator as it begins; an exception it raises stops the compile with
    nothing kept.
    """
    trim()
    clock = Clock(progress)
    known = like.prepared if like is not None else None
    serves = known is not None and known.serves(graph, options)
    if not serves:
        refuse_large_values(graph)
        plan_ahead(graph, target, options)
    ops.load()
    vertices.load()  # while products are planned, and before the first phase, whose time is the program's
    if known is not None and serves:
        known = known.saying(graph)  # of the same values, so that none is too large
        clock.phases.extend(known.repeated())
    else:
        known = prepare(graph, options, clock.phase, clock.phases, known)
    noted = NotedOptions.of(options)
    sound = Sound(target.tiles_per_ipu, like.sound if like is not None else None)
    with clock.phase("lower") as changed:
        same = like is not None and like.serves(known, target, options, ipus)
        lowered = like.lowered if like is not None and same else None
        if lowered is None:
            plan_ahead(known.graph, target, options)
            lowered = lower(
                known.graph,
                target,
                noted,
                known.in_place,
                ipus=ipus,
                check=lambda: progress("lower"),
                bodies=known.bodies,
                earlier=like.footprint.sizes if like is not None else None,
                costs=like.costs if like is not None else None,
            )
            verify_program(lowered.program, sound)
        size = f"{len(lowered.program.steps)} steps, {len(lowered.program.variables)} variables"
        changed.append(f"{size}, {AGAIN}" if same else size)
    if like is not None and same:
        return like.again(known, options, clock)
    measured = measure(lowered.program, noted, clock, graph=known.graph, lowered=lowered, earlier=like)
    return replace(measured, options=options, prepared=known, read=noted.noted, sound=sound)


@paused_collection()
def measure(
    program: TileProgram,
    options: Options,
    clock: Clock,
    *,
    graph: Graph | None = None,
    lowered: Lowered | None = None,
    earlier: Compiled | None = None,
) -> Compiled:
    """Memory and time of a finished tile program, whoever made it; `earlier` has measured some of its steps maybe."""
    with clock.phase("footprint"):
        is_compiled = bool(options.get("ipu_model.compile_ipu_code"))
        before = earlier.footprint if earlier is not None else None
        sizes = lowered.sizes if lowered is not None else None
        code = footprint(program, compile_ipu_code=is_compiled, earlier=before, sizes=sizes)
    with clock.phase("liveness"):
        live = liveness(program, code)
    with clock.phase("allocate") as changed:
        allocation = allocate(program, live, code)
        changed.append(f"{len(allocation.allocated)} tiles allocated")
    with clock.phase("execute"):
        costs = lowered.costs if lowered is not None else None
        if costs is None or not costs.are_of(program):
            costs = costs_of(program, earlier.costs if earlier is not None else None)
        trace = execute(program, costs)
        refuse_long_runs(trace)
    empty = Graph(functions={}, entry="", inputs=(), outputs=(), name=program.name)
    return Compiled(
        graph=graph or empty,
        lowered=lowered,
        program=program,
        options=options,
        footprint=code,
        liveness=live,
        allocation=allocation,
        trace=trace,
        phases=tuple(clock.phases),
        costs=costs,
    )
