"""A staged program as both front doors make it: sums of gradients, weight updates by stage, results, and its source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax.extend.core import Literal

from workbench.engine.frontends.describe.replicas import meta
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.staging.staged_program import Staged
from workbench.engine.frontends.staging.vjp import accumulator, counter
from workbench.engine.frontends.trace.jaxpr import cut
from workbench.engine.frontends.trace.staged_calls import Converted, Program, StagedCall, assemble
from workbench.engine.graph import Graph, Input, Output
from workbench.engine.graph.execution import of_updates
from workbench.engine.graph.stages import body_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Zeros:
    """Stands for a buffer that is zero whenever a run begins, where others stand for a variable."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def value(self) -> Any:
        """Zeros."""
        return jnp.zeros(self.shape, self.dtype)

    def assign(self, value: Any) -> None:
        """The update leaves zeros behind; there is nothing to keep."""


def sum_input(name: str, layer: str = "") -> Input:
    """The buffer in which the gradients of a parameter, or what leaves under a name, are added up."""
    return Input(name=accumulator(name), role="accumulator", layer=layer, of=name)


def updates_by_stage(
    closed: Any, names: Sequence[str], homes: Mapping[str, int], owners: Mapping[str, str], *, staged: bool = True
) -> list[StagedCall]:
    """A traced weight update, cut to one call for each stage.

    `names` are those of its parameters; its results are the next values of the first of these, each of which is made
    by the stage that is its home. `staged`: there are stages; else the only one is the whole step.
    """
    taken = dict(zip(closed.jaxpr.invars, names, strict=True))
    made = [
        (var, name)
        for var, name in zip(closed.jaxpr.outvars, names, strict=False)
        if isinstance(var, Literal) or var not in taken
    ]
    calls = []
    for stage in sorted({homes[name] for _, name in made}):
        mine = [(var, name) for var, name in made if homes[name] == stage]
        part, used = cut(closed, closed.jaxpr.eqns, closed.jaxpr.invars, [var for var, _ in mine])
        calls.append(
            StagedCall(
                name=body_name(stage, "update") if staged else "update",
                closed=part,
                operands=tuple(taken[var] for var in used),
                results=tuple(name for _, name in mine),
                owners=tuple(owners[name] for _, name in mine),
                stage=stage,
                direction="update",
                repeated=False,
            )
        )
    return calls


def program_of(
    calls: Sequence[StagedCall],
    inputs: Sequence[Input],
    shown: Iterable[tuple[Output, str]],
    types: Mapping[str, Any],
    micro_batches: int,
) -> Program:
    """The program of these calls; it gives what is shown, then every parameter that some call writes."""
    written = {name for call in calls for name in call.results}
    updates = [
        (Output(name=item.name, role="update", updates=place), item.name)
        for place, item in enumerate(inputs)
        if item.name in written
    ]
    return Program(
        calls=tuple(calls), inputs=tuple(inputs), outputs=(*shown, *updates), types=types, micro_batches=micro_batches
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What is said of a staged program besides its calls. `layers` maps layer paths to Keras classes; `finish` is done
    to a program last, before it is run or assembled, and `finish_graph` to its graph."""

    name: str
    batch_size: int
    mode: str
    assumptions: tuple[str, ...]
    stages: int
    replicas: int
    layers: Mapping[str, str]
    in_stages: bool = True
    calls_per_update: int = 1
    apart: frozenset[str] = frozenset()
    finish: Callable[[Program], Program] = lambda program: program
    finish_graph: Callable[[Graph], Graph] = lambda graph: graph


def staged_source(
    program: Program,
    described: Described,
    kept: Mapping[str, Any],
    weighted: Callable[[], Program] | None = None,
    **more: Any,
) -> Source:
    """The source of a staged program; `kept` is what keeps the values of parameters, by name, between runs.

    `weighted` traces the program with a sample weight; `more` goes to `Source`.
    """
    converted: Converted = {}

    def graph_of(made: Program) -> Graph:
        graph = assemble(
            described.finish(made),
            described.layers,
            converted,
            name=described.name,
            mode=described.mode,
            batch_size=described.batch_size,
            assumptions=described.assumptions,
            meta={
                "stages": described.stages,
                "gradient_accumulation_steps": made.micro_batches,
                **meta(described.replicas),
                **of_updates(described.calls_per_update),
            },
        )
        return described.finish_graph(graph)

    staged = Staged(
        program=program,
        graph=graph_of(program),
        graph_of=graph_of,
        in_stages=described.in_stages,
        weighted=weighted,
        replicas=described.replicas,
        apart=described.apart,
        layers=described.layers,
        finish=described.finish,
    )
    keepers = {**_zeros(program), **kept}
    return Source(
        graph=staged.graph,
        compute=staged.compute(),
        weighted=staged.compute_weighted(),
        staged=staged,
        jaxprs={call.name: call.closed for call in program.calls},
        variables=tuple(keepers.get(item.name) for item in program.inputs),
        **more,
    )


def _zeros(program: Program) -> dict[str, Zeros]:
    """What stands for sums of gradients, and for the numbers of micro-batches that are in them."""
    counters = {counter(call.stage) for call in program.calls}
    held = [item.name for item in program.inputs if item.role == "accumulator" or item.name in counters]
    return {name: Zeros(shape=tuple(program.types[name].shape), dtype=str(program.types[name].dtype)) for name in held}
