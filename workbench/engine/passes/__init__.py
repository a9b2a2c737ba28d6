"""The passes of the compiler, one per file, and the pipeline that lists them in order with their reasons.

A pass is a function from graph to graph with its line and its reason in PIPELINE; `recomputable` and `clusters` are
what several share. Imports the graph, options, families' traits and plans; nothing of `lower`. Tests:
tests/engine/passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.engine.graph import Graph
from workbench.engine.options import Options
from workbench.engine.passes.accumulate import accumulate
from workbench.engine.passes.canonicalise import canonicalise
from workbench.engine.passes.combine import combine
from workbench.engine.passes.expand import expand
from workbench.engine.passes.fuse import fuse
from workbench.engine.passes.memory_proportions import memory_proportions
from workbench.engine.passes.merge import merge
from workbench.engine.passes.norm_moments import norm_moments
from workbench.engine.passes.norms_in_half import norms_in_half
from workbench.engine.passes.offload import offload
from workbench.engine.passes.recognise import recognise
from workbench.engine.passes.rematerialise import rematerialise
from workbench.engine.passes.reuse import reuse
from workbench.engine.passes.schedule import schedule
from workbench.engine.passes.shard import shard
from workbench.engine.passes.simplify import simplify, told_of_vectors
from workbench.engine.passes.sums_of_casts import sums_of_casts


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPass:
    """A graph in, a graph out; `reason` says why it is there and why it stands here.

    A pass that reads options has `configured` in place of `run`. `per_function`: it makes of a function, and of the
    options, the same in every graph, so that what it made is remembered (`by_function.py`). `again` says why a second
    run would change what the first made, of a pass whose second run does. `told`: what the user is told of it, from
    the graph it is given.
    """

    name: str
    reason: str
    run: Callable[[Graph], Graph] | None = None
    configured: Callable[[Graph, Options], Graph] | None = None
    told: Callable[[Graph, Options], tuple[str, ...]] = lambda graph, options: ()
    per_function: bool = False
    again: str = ""

    def apply(self, graph: Graph, options: Options) -> Graph:
        """The graph after the pass."""
        if self.configured is not None:
            graph = self.configured(graph, options)
        return graph if self.run is None else self.run(graph)


PIPELINE: tuple[GraphPass, ...] = (
    GraphPass(name="reuse", run=reuse, reason="first: what two passes of a stage share, no rewrite of one tells apart"),
    GraphPass(
        name="canonicalise",
        run=canonicalise,
        per_function=True,
        reason="before rewrites: equal things look equal to what follows",
    ),
    GraphPass(
        name="simplify",
        configured=simplify,
        told=told_of_vectors,
        per_function=True,
        reason="early: what it makes is combined and fused like the rest",
    ),
    GraphPass(
        name="combine",
        configured=combine,
        per_function=True,
        reason="before shards and fusion, while operators stand alone",
    ),
    GraphPass(
        name="norm_moments",
        configured=norm_moments,
        per_function=True,
        reason="before regions close over the sums of a norm",
    ),
    GraphPass(
        name="sums_of_casts",
        run=sums_of_casts,
        per_function=True,
        reason="after both, which add sums of casts, before regions hold them",
    ),
    GraphPass(
        name="expand",
        configured=expand,
        per_function=True,
        reason="early: blocks and their products are operators like others",
    ),
    GraphPass(name="shard", run=shard, reason="before anything joins nodes: copies between IPUs keep them apart"),
    GraphPass(name="rematerialise", run=rematerialise, reason="before regions close, whose insides nobody moves"),
    GraphPass(
        name="norms_in_half",
        run=norms_in_half,
        reason="after residuals are chosen, which are halves by then, before fusion",
    ),
    GraphPass(
        name="recognise",
        run=recognise,
        per_function=True,
        again="the body of a region is a function, and would become a region in it",
        reason="before fusion, which would mix a norm with its neighbours",
    ),
    GraphPass(
        name="fuse",
        run=fuse,
        per_function=True,
        again="the body of a chain is a function, and would become a chain in it",
        reason="one codelet per elementwise chain, in bodies of regions too",
    ),
    GraphPass(
        name="merge",
        configured=merge,
        reason="before the schedule, which runs a sum or copy once it can",
        again="what waits runs before it is read, later than it stood, and from there it may wait once more",
    ),
    GraphPass(
        name="schedule",
        configured=schedule,
        reason="after fusion: an update is one node that can move early",
        again="an update that waits for no gradient runs where the order it is given first reads it, or has it",
    ),
    GraphPass(name="accumulate", run=accumulate, reason="after fusion too, in bodies that the schedule leaves alone"),
    GraphPass(
        name="memory_proportions",
        configured=memory_proportions,
        reason="late: every product there will be has its number",
    ),
    GraphPass(name="offload", configured=offload, reason="last: loads and stores go beside the readers as they run"),
)
