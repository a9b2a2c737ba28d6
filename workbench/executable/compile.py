"""From a request to an executable: the source is found and traced, its graph compiled or what a cache kept taken."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.base.checked import heard
from workbench.base.collection import paused_collection
from workbench.base.units import bytes_text, things_text
from workbench.engine.compile import Clock, Compiled, Phase, compile_graph, measure, plan_ahead, products_ahead
from workbench.engine.graph.branches import with_branches_said
from workbench.engine.graph.iterations import with_iterations_said
from workbench.engine.graph.trip_counts import with_trip_counts
from workbench.engine.lower.io_tiles import apart_by_hand
from workbench.engine.options import Options
from workbench.engine.passes import PIPELINE
from workbench.engine.passes.shard import shards_of
from workbench.engine.planner.family import search_no_more
from workbench.errors import InputError
from workbench.executable import cache
from workbench.executable.arguments import refuse_idle
from workbench.executable.executable import Executable, Kept, profile_of
from workbench.executable.pipelines import devices_of, recomputed_source
from workbench.executable.request import Request, make_request
from workbench.executable.sources import TRACING, check_source, made_by_hand, trace_source
from workbench.ipu._files.outputs import write
from workbench.ipu.devices import check_ipus

if TYPE_CHECKING:
    from workbench.engine.frontends.describe.source import Source
    from workbench.engine.graph import Graph

# What `progress` hears, in order; some phases are heard once for each operator.
PHASES = (
    "trace",
    *(each.name for each in PIPELINE),
    "in_place",
    "lower",
    "footprint",
    "liveness",
    "allocate",
    "execute",
)
Progress = Callable[[str], None]


def check_progress(progress: Any) -> None:
    """An `InputError` for what cannot be told the name of a phase, before a compile gets as far as its first."""
    if progress is not None:
        heard("progress", progress, "a function of the name of a phase")


@paused_collection()
def compile_request(request: Request, progress: Progress | None = None, like: Executable | None = None) -> Executable:
    """Trace and compile; an exception raised by `progress` stops the compile with nothing kept.

    `like`: an executable whose trace, and graph after the passes, are taken where the request asks for the same ones;
    what one of its kin has made wholly is taken over from that.
    """
    check_progress(progress)
    check_source(request)
    listener = progress or (lambda phase: None)
    if made_by_hand(request.source):
        clock = Clock(listener)
        with clock.phase("trace"):
            prefetched = bool(request.options.get("optimizations.prefetch_data_streams"))
            program = apart_by_hand(request.source.compile_program(prefetched=prefetched), request.options)
        return Executable(request, measure(program, request.options, clock))
    listener("trace")
    start = time.perf_counter()
    reused = like.traced if like is not None and request.same_trace(like.request) else None
    traced, graph = traced_graph(request, reused)
    changed = _trace_text(traced.graph) + (", traced before" if reused else "")
    phase = Phase(phase="trace", seconds=time.perf_counter() - start, changed=changed)
    like = _nearest(request, graph, like) if reused else like
    earlier = like._result if like is not None and isinstance(like._result, Compiled) else None
    compiled, content = _compiled(request, graph, listener, earlier)
    compiled = dataclasses.replace(compiled, phases=(phase, *compiled.phases))
    return Executable(request, compiled, traced, content, like)


def _nearest(request: Request, graph: Graph, like: Executable | None) -> Executable | None:
    """Of an executable and its kin the one that was compiled to all that this request would be; else itself."""
    if like is None:
        return None
    ipus = needed_ipus(request, graph)
    plan_ahead(graph, request.target, request.options)
    known: list[Executable] = [like, *like.kin]
    for each in known:
        made = each._result
        if isinstance(made, Compiled) and made.serves_wholly(graph, request.target, request.options, ipus):
            return each
    return like


def traced_graph(request: Request, traced: Source | None = None) -> tuple[Source, Graph]:
    """A request's source as traced, now unless it is given, and the graph that its options and counts make of it."""
    with TRACING:
        found = traced or _traced_source(request)
        graph = recomputed_source(found, request.options).graph
    graph = with_iterations_said(with_branches_said(with_trip_counts(graph, request.trip_counts or {})))
    refuse_idle(request, graph)
    return found, graph


def _traced_source(request: Request) -> Source:
    """A request's source, traced now, while its products are planned."""
    from workbench.engine.frontends.trace.heard import products_told

    with products_told(products_ahead(request.target, request.options).hear):
        return trace_source(request)


def compile_and_write(request: Request, progress: Progress | None = None) -> Executable:
    """Compile, and write the report and the executable that options or `POPLAR_ENGINE_OPTIONS` ask for, to disk."""
    executable = compile_request(request, progress)
    write(executable)
    return executable


def compile_traced(source: Any, options: Options, *, replicas: int) -> Executable:
    """Compile what has a `trace_source`, with these options; what they ask for is written."""
    return compile_and_write(make_request(source, replicas=replicas).replace(options=options))


def _beyond_this_machine(graph: Graph, request: Request, ipus: int) -> InputError:
    """What to say of a program whose tables this machine cannot hold: mostly one far beyond the IPUs it is for."""
    target, given = request.target, sum(value.size_bytes for value in graph.body.params)
    room = ipus * target.tiles_per_ipu * target.bytes_per_tile
    return InputError(
        f"this machine has not the memory to compile the program: what it is given, weights and inputs, takes "
        f"{bytes_text(given)}, and {things_text(ipus, 'IPU')} {'has' if ipus == 1 else 'have'} {bytes_text(room)}",
        expected="a program nearer to what its IPUs hold",
        todo="Use smaller layers or a smaller batch, or more IPUs by stages.",
    )


def _compiled(
    request: Request, graph: Graph, listener: Progress, like: Compiled | None
) -> tuple[Compiled | Kept, cache.Content | None]:
    """The graph compiled, or what a cache kept of the same content; and the content."""
    ipus = needed_ipus(request, graph)

    def compile_now(like: Compiled | None = like) -> Compiled:
        try:
            return compile_graph(graph, request.target, request.options, ipus=ipus, progress=listener, like=like)
        except MemoryError as error:
            raise _beyond_this_machine(graph, request, ipus) from error

    if not cache.enabled():
        return compile_now(), None
    start = time.perf_counter()
    content = cache.content(graph, request.options, request.target, ipus)
    known = cache.held(content)
    if known is None:
        earlier = cache.earlier_profile(content)
        if earlier is None:
            return cache.cached(content, compile_now), content
        search_no_more()
        row = _found_row(start, "the profile an earlier session kept of equal content")
        return Kept(profile=lambda: earlier, phases=row, compile=lambda: cache.cached(content, compile_now)), content
    search_no_more()
    row, before, found = _found_row(start, "the result of an equal compile"), known.content, known.compiled
    if before == content:
        return dataclasses.replace(found, phases=row), content
    moved = Kept(  # equal but for its source lines, which the graph and the program hold everywhere
        profile=lambda: cache.laid_over(profile_of(found, request), before.positions, content.positions),
        phases=row,
        compile=lambda: cache.cached(content, lambda: compile_now(like or found)),
    )
    return moved, content


def _found_row(start: float, changed: str) -> tuple[Phase, ...]:
    return (Phase(phase="cache", seconds=time.perf_counter() - start, changed=changed),)


def _trace_text(graph: Graph) -> str:
    return f"{sum(len(function.nodes) for function in graph.functions.values())} nodes"


def needed_ipus(request: Request, graph: Graph) -> int:
    """IPUs of one replica: one per stage, or as many as the stages are mapped to."""
    stages = max(int(str(graph.meta.get("stages", 1))), shards_of(graph))
    needed = max(devices_of(request.options), default=stages - 1) + 1
    asked, every = request.options.ipus(), needed * request.replicas
    what = f"{things_text(stages, 'stage')} on {things_text(request.replicas, 'replica')}"
    if asked and asked != every:
        fits = f"replicas={asked // needed}" if asked % needed == 0 else f"a multiple of {things_text(needed, 'IPU')}"
        raise InputError(
            f"the configuration selects {things_text(asked, 'IPU')}, but {what} need {every:,}",
            expected=f"{things_text(every, 'IPU')}, or {fits}",
            todo=f"set config.auto_select_ipus = {every}",
        )
    check_ipus(every, request.target, what=what)
    return needed


__all__ = [
    "PHASES",
    "Progress",
    "compile_and_write",
    "compile_request",
    "compile_traced",
    "needed_ipus",
    "traced_graph",
]
