"""A recorded pipeline as a staged program: its forward pass cut at the stages, gradients, updates, feeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from workbench.engine.frontends.calls import Call, Program, assemble
from workbench.engine.frontends.jaxpr import cut
from workbench.engine.frontends.name_stack import UPDATE_SCOPE
from workbench.engine.frontends.pipeline import Pipeline
from workbench.engine.frontends.source import ArraySpec, Source
from workbench.engine.frontends.staged import Zeros
from workbench.engine.frontends.staged_program import Staged
from workbench.engine.frontends.vjp import accumulator
from workbench.engine.graph import Graph, Input, Output
from workbench.errors import InputError
from workbench.ipu._pipeline_checks import SUM
from workbench.ipu._pipeline_forward import Parts, in_order, parts_of, stage_names
from workbench.ipu._pipeline_options import with_stage_options
from workbench.ipu._pipeline_stages import Recorded, sums_type
from workbench.tf._control import type_of
from workbench.tf._evaluate import Run, State
from workbench.tf._graph import known_shape
from workbench.tf._marks import stage_scope


@dataclass(slots=True)
class Feed:
    """The elements of one run, a leaf at a time: behind each other along the first axis, as programs take them."""

    queue: Any
    count: int
    waiting: list[Any] = field(default_factory=list)

    @property
    def from_host(self) -> bool:
        """Elements are taken anew in each run: there is nothing to keep or to save."""
        return True

    @property
    def value(self) -> Any:
        """The next leaf; the first one takes the elements from the queue."""
        if not self.waiting:
            self.waiting = [np.concatenate(leaves) for leaves in zip(*self.queue.take_many(self.count), strict=True)]
        return self.waiting.pop(0)

    def assign(self, value: Any) -> None:
        """Nothing is written to what came from the host."""


def source_of(recorded: Recorded, held: Callable[[Any], Any]) -> Source:
    """The source of a pipeline; `held` makes of a variable what a runner reads and assigns."""
    parts = parts_of(recorded)
    program = _program(parts)
    asked, data = recorded.asked, [item.name for item in program.inputs if item.role == "input"]
    batch = int(program.types[data[0]].shape[0]) if data else 1

    def graph_of(made: Program) -> Graph:
        graph = assemble(
            made, {}, name=asked.name, batch_size=batch, mode="training" if recorded.training else "inference",
            assumptions=_assumptions(recorded), meta={
                "stages": len(asked.stages), "gradient_accumulation_steps": int(asked.count),
            },
        )  # fmt: skip
        return with_stage_options(graph, asked)

    staged = Staged(
        program=program, graph=graph_of(program), graph_of=graph_of, weighted=None, in_stages=True, layers={}
    )
    feed = Feed(asked.infeed, int(asked.count))
    keepers: dict[str, Any] = {item.handle: held(item) for item in (*parts.variables, *parts.slots)}
    keepers |= dict.fromkeys(data, feed)
    keepers |= {
        item.name: Zeros(shape=tuple(program.types[item.name].shape), dtype=str(program.types[item.name].dtype))
        for item in program.inputs if item.name.endswith(accumulator(""))
    }  # fmt: skip
    return Source(
        graph=staged.graph, compute=staged.compute(), staged=staged, unpack=tuple, interface="function",
        specs=tuple(ArraySpec(name=each.name, shape=known_shape(each), dtype=str(each._dtype))
                    for each in recorded.inputs),
        jaxprs={call.name: call.closed for call in program.calls}, pack=_giver(parts),
        variables=tuple(keepers.get(item.name) for item in program.inputs),
    )  # fmt: skip


def _assumptions(recorded: Recorded) -> tuple[str, ...]:
    asked, found = recorded.asked, []
    if asked.repeats > 1:
        found.append(f"the pipeline: one of its {asked.repeats} equal repetitions is shown")
    if asked.accumulate:
        found.append("the outfeed: its sums are given to the host after every micro-batch, not once")
    if asked.reduction is not SUM:
        found.append(f"{asked.reduction.name}: gradients are added up and divided once, before the update")
    return tuple(found)


def _described(parts: Parts) -> tuple[list[Input], dict[str, Any]]:
    """Entry parameters with their types."""
    recorded, places = parts.recorded, stage_names(parts.recorded)
    described: list[Input] = []
    types: dict[str, Any] = {}

    def add(name: str, role: Any, shape: Any, dtype: str, layer: str = "") -> None:
        described.append(Input(name=name, role=role, layer=layer))
        types[name] = jax.ShapeDtypeStruct(tuple(shape), dtype)

    for variable in parts.variables:
        add(variable.handle, variable.role, variable.shape, str(variable.dtype), places.get(variable.handle, ""))
    for variable in parts.slots:
        add(variable.handle, variable.role, variable.shape, str(variable.dtype), variable.layer)
    for variable in recorded.training.variables if recorded.training else ():
        layer = places[variable.handle]
        add(accumulator(variable.handle), "optimizer", variable.shape, sums_type(recorded.asked, variable), layer)
    for tensor in recorded.inputs:
        add(tensor.name, "argument", *type_of(tensor))
    for place, tensor in enumerate(recorded.element):
        shape, dtype = type_of(tensor)
        if not shape:
            raise InputError(
                f"element {place} of the infeed queue is a single number",
                expected="arrays with a batch dimension",
                todo="batch the dataset",
            )
        add(f"infeed/{place}", "input", shape, dtype)
    return described, types


def _program(parts: Parts) -> Program:
    recorded = parts.recorded
    asked, training = recorded.asked, recorded.training
    described, types = _described(parts)
    stages = {stage_scope(number): number for number in range(len(asked.stages))}
    sums = {name: str(types[accumulator(name)].dtype) for name in parts.forward.trained}
    pipeline = Pipeline(replace(parts.forward, sums=sums), stages, {})
    calls = pipeline.training() if training else pipeline.forward_only()
    if training:
        calls = [*calls, *_updates(parts, types)]
    places = {item.name: place for place, item in enumerate(described)}
    written = {name for call in calls for name in call.results}
    shown = [name for name in parts.forward.results if name.startswith("outfeed/")]
    outputs = [
        *((Output(name=name), name) for name in shown),
        *((Output(name=name, role="update", updates=place), name) for name, place in places.items() if name in written),
    ]
    return Program(
        calls=tuple(calls), inputs=tuple(described), outputs=tuple(outputs), types=types, micro_batches=int(asked.count)
    )


def _updates(parts: Parts, types: Mapping[str, Any]) -> list[Call]:
    """The optimizer's update from the sums, one call for each stage, with the sums cleared behind it."""
    recorded, training = parts.recorded, parts.recorded.training
    assert training is not None
    effects = training.update.effects
    touched = in_order(effects.reads | effects.writes)
    buffers = [accumulator(variable.handle) for variable in training.variables]
    names = [*(each.handle for each in touched), *buffers, *parts.taken]
    captured = list(training.update.graph.captures.values())
    count = 1 if recorded.asked.reduction is SUM else int(recorded.asked.count)

    def apply(*values: Any) -> list[Any]:
        state = State(dict(zip(touched, values, strict=False)))
        sums = values[len(touched) : len(touched) + len(buffers)]
        held = {id(each): value for each, value in zip(captured, values[len(touched) + len(buffers) :], strict=True)}
        with jax.named_scope(UPDATE_SCOPE):
            reduced = [value / count if count > 1 else value for value in sums]
            held.update((id(each), value) for each, value in zip(training.update.params, reduced, strict=True))
            Run(training.update.graph, state, held).evaluate(training.update.results)
            cleared = [jnp.zeros(value.shape, value.dtype) for value in sums]
        return [*(state.values[each] for each in touched), *cleared]

    closed = jax.make_jaxpr(apply)(*(types[name] for name in names))
    homes = _homes(parts)
    taken = dict(zip(closed.jaxpr.invars, names, strict=True))
    made = [
        (var, name) for var, name in zip(closed.jaxpr.outvars, names, strict=False)
        if isinstance(var, Literal) or var not in taken
    ]  # fmt: skip
    calls = []
    for stage in sorted({homes[name] for _, name in made}):
        mine = [(var, name) for var, name in made if homes[name] == stage]
        part, used = cut(closed, closed.jaxpr.eqns, closed.jaxpr.invars, [var for var, _ in mine])
        calls.append(
            Call(
                name=f"stage{stage}_update", closed=part, operands=tuple(taken[var] for var in used),
                results=tuple(name for _, name in mine), owners=(stage_scope(stage),) * len(mine), stage=stage,
                direction="update", repeated=False,
            )
        )  # fmt: skip
    return calls


def _homes(parts: Parts) -> dict[str, int]:
    """The stage whose update writes a variable or a sum: that of what is trained with it, else the last."""
    recorded, training = parts.recorded, parts.recorded.training
    assert training is not None
    last = len(recorded.asked.stages) - 1
    homes = {variable.handle: stage for variable, stage in recorded.stage_of.items()}
    for operation in training.update.graph.operations:
        stages = [recorded.stage_of[each] for each in operation.effects.writes if each in recorded.stage_of]
        homes.update((each.handle, stages[0] if stages else last) for each in operation.effects.writes
                     if each not in recorded.stage_of)  # fmt: skip
    homes.update((accumulator(each.handle), homes[each.handle]) for each in training.variables)
    touched = training.update.effects.reads | training.update.effects.writes
    return {**{each.handle: last for each in touched}, **homes}


def _giver(parts: Parts) -> Callable[[Sequence[Any]], Any]:
    """Gives the outputs of a run to the outfeed, an element for each micro-batch or their sum; none to the session."""
    recorded = parts.recorded
    count, queue = int(recorded.asked.count), recorded.asked.outfeed
    shapes = [known_shape(tensor) for tensor in recorded.enqueued]

    def give(outputs: Sequence[Any]) -> tuple[()]:
        columns = [np.asarray(value).reshape(count, *shape) for value, shape in zip(outputs, shapes, strict=True)]
        if recorded.asked.accumulate:
            columns = [np.sum(column, axis=0, keepdims=True) for column in columns]
        for element in zip(*columns, strict=True):
            queue.put(element)
        return ()

    return give


__all__ = ["Feed", "source_of"]
