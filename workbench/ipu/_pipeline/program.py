"""A recorded pipeline as a staged program: its forward pass cut at the stages, gradients, updates, feeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from workbench.engine.frontends.describe.name_stack import UPDATE_SCOPE
from workbench.engine.frontends.describe.replicas import axes
from workbench.engine.frontends.describe.source import ArraySpec, Source
from workbench.engine.frontends.staging.pipeline import Pipeline
from workbench.engine.frontends.staging.program import Described, program_of, staged_source, sum_input, updates_by_stage
from workbench.engine.frontends.staging.vjp import accumulator, counter
from workbench.engine.frontends.trace.staged_calls import Program, StagedCall
from workbench.engine.graph import Input, Output, Role
from workbench.ipu._pipeline.asked import with_stage_options
from workbench.ipu._pipeline.beside import Beside, beside_of
from workbench.ipu._pipeline.feeds import Feed, giver, serialised
from workbench.ipu._pipeline.forward import Parts, in_order, parts_of, stage_names
from workbench.ipu._pipeline.recorded import Recorded, sums_type
from workbench.ipu._pipeline.sums import check_shared, drained, outfeed_names, outsums, over_replicas, sums_of
from workbench.ipu.config._state import STATE
from workbench.tf._graph import known_shape
from workbench.tf._graph.evaluate import Run, State
from workbench.tf._graph.marks import stage_scope
from workbench.tf._ops.control import type_of


def source_of(found: Any, held: Callable[[Any], Any]) -> Source:
    """The source of a cluster with a pipeline; `held` makes of a variable what a runner reads and assigns."""
    recorded, replicas = found.pipeline, found.replicas
    parts, beside = parts_of(recorded, replicas), beside_of(found, recorded)
    program, serial = _program(parts, beside), int(recorded.asked.serial)
    asked, data = recorded.asked, [item.name for item in program.inputs if item.role == "input"]
    batch = _batch_of([tuple(program.types[name].shape) for name in data])
    described = Described(
        name=asked.name,
        batch_size=batch * serial,
        mode="training" if recorded.training else "inference",
        assumptions=_assumptions(recorded),
        stages=len(asked.stages),
        replicas=replicas,
        layers={},
        finish=lambda made: serialised(made, serial, replicas),
        finish_graph=lambda graph: with_stage_options(graph, asked),
    )
    touched = (*parts.variables, *parts.slots, *beside.effects.reads, *beside.effects.writes)
    feed = Feed(asked.infeed, int(asked.count) * serial, replicas, stacked=serial > 1)
    return staged_source(
        program,
        described,
        {**{item.handle: held(item) for item in touched}, **dict.fromkeys(data, feed)},
        unpack=tuple,
        interface="function",
        pack=giver(recorded, beside.outputs, replicas),
        specs=tuple(
            ArraySpec(name=each.name, shape=known_shape(each), dtype=str(each._dtype)) for each in beside.inputs
        ),
    )


def _batch_of(shapes: Sequence[tuple[int, ...]]) -> int:
    """Samples of an element: the first dimension its arrays share; 1 where they do not, or none has another one."""
    firsts = {shape[:1] for shape in shapes}
    batched = len(firsts) == 1 and any(len(shape) > 1 for shape in shapes)
    return firsts.pop()[0] if batched else 1


def _assumptions(recorded: Recorded) -> tuple[str, ...]:
    asked, found = recorded.asked, []
    if asked.repeats > 1:
        found.append(f"the pipeline: one of its {asked.repeats} equal repetitions is shown")
    if asked.serial > 1:
        found.append(f"batch serialisation: the {asked.serial} elements of a pass arrive, and leave, together")
        if asked.offload["pipeline.offload_activations"]:
            found.append("batch serialisation: what passes leave for each other stays on the chip")
    return tuple(found)


def _described(parts: Parts, beside: Beside) -> tuple[list[Input], dict[str, Any]]:
    """Entry parameters with their types, and the types of what is made beside the pipeline."""
    recorded, places = parts.recorded, stage_names(parts.recorded)
    described: list[Input] = []
    types: dict[str, Any] = {}

    def add(item: Input, shape: Any, dtype: str) -> None:
        described.append(item)
        types[item.name] = jax.ShapeDtypeStruct(tuple(shape), dtype)

    for variable in parts.variables:
        alike = variable.role == "seed" and STATE.identical_replicas  # replicas have seeds of their own, but no states
        role: Role = "state" if alike else variable.role
        item = Input(name=variable.handle, role=role, layer=places.get(variable.handle, ""))
        add(item, variable.shape, str(variable.dtype))
    known = {*parts.variables, *parts.slots}
    for variable in (*parts.slots, *in_order((beside.effects.reads | beside.effects.writes) - known)):
        item = Input(name=variable.handle, role=variable.role, layer=variable.layer)
        add(item, variable.shape, str(variable.dtype))
    for variable in recorded.training.variables if recorded.training else ():
        layer = places[variable.handle]
        add(sum_input(variable.handle, layer), variable.shape, sums_type(recorded.asked, variable))
    last = stage_scope(len(recorded.asked.stages) - 1)
    for name, kind in zip(outfeed_names(recorded), outsums(recorded).values(), strict=False):
        add(sum_input(name, last), kind.shape, str(kind.dtype))
    for tensor in beside.inputs:
        add(Input(name=tensor.name, role="argument"), *type_of(tensor))
    types.update((each.name, jax.ShapeDtypeStruct(*type_of(each))) for each in beside.made)
    for place, tensor in enumerate(recorded.element):
        add(Input(name=f"infeed/{place}", role="input"), *type_of(tensor))
    return described, types


def _program(parts: Parts, beside: Beside) -> Program:
    recorded = parts.recorded
    asked, training = recorded.asked, recorded.training
    described, types = _described(parts, beside)
    stages = {stage_scope(number): number for number in range(len(asked.stages))}
    sums = sums_of(asked, {name: str(types[accumulator(name)].dtype) for name in parts.forward.trained})
    pipeline = Pipeline(replace(parts.forward, sums=sums), stages, {})
    calls = pipeline.training() if training else pipeline.forward_only()
    if training:
        check_shared(asked, {name: _trained_in(calls, name) for name in parts.forward.trained})
        calls = [*calls, *_updates(parts, types)]
    calls = drained(calls, recorded, types, parts.forward.replicas)
    for call in calls:
        if counter(call.stage) in call.results:
            described.append(Input(name=counter(call.stage), role="state", layer=stage_scope(call.stage)))
            types[counter(call.stage)] = jax.ShapeDtypeStruct((), "int32")
    around = {part.turn: [part.call(types, parts.forward.replicas)] for part in beside.parts}
    calls = [*around.get("before", ()), *calls, *around.get("after", ())]
    shown = [*outfeed_names(recorded), *(each.name for each in beside.outputs)]
    return program_of(calls, described, [(Output(name=name), name) for name in shown], types, int(asked.count))


def _trained_in(calls: Sequence[StagedCall], name: str) -> list[int]:
    """The stages that have gradients of a variable."""
    return sorted(call.stage for call in calls if accumulator(name) in call.results)


def _updates(parts: Parts, types: Mapping[str, Any]) -> list[StagedCall]:
    """The optimizer's update from the sums, one call for each stage, with the sums cleared behind it."""
    training = parts.recorded.training
    assert training is not None
    effects = training.update.effects
    touched = in_order(effects.reads | effects.writes)
    buffers = [accumulator(variable.handle) for variable in training.variables]
    names = [*(each.handle for each in touched), *buffers, *parts.taken]
    captured = list(training.update.graph.captures)
    replicas = parts.forward.replicas

    def apply(*values: Any) -> list[Any]:
        state = State(dict(zip(touched, values, strict=False)))
        sums = values[len(touched) : len(touched) + len(buffers)]
        held = dict(zip(captured, values[len(touched) + len(buffers) :], strict=True))
        with jax.named_scope(UPDATE_SCOPE):
            reduced = over_replicas(sums, replicas)
            held.update(zip(training.update.params, reduced, strict=True))
            Run(training.update.graph, state, held).evaluate(training.update.results)
            cleared = [jnp.zeros(value.shape, value.dtype) for value in sums]
        return [*(state.values[each] for each in touched), *cleared]

    closed = jax.make_jaxpr(apply, axis_env=axes(replicas))(*(types[name] for name in names))
    homes = _homes(parts)
    return updates_by_stage(closed, names, homes, {name: stage_scope(stage) for name, stage in homes.items()})


def _homes(parts: Parts) -> dict[str, int]:
    """The stage whose update writes a variable or a sum: that of what is trained with it, else the last."""
    recorded, training = parts.recorded, parts.recorded.training
    assert training is not None
    last = len(recorded.asked.stages) - 1
    homes = {variable.handle: stage for variable, stage in recorded.stage_of.items()}
    for operation in training.update.graph.operations:
        stages = [recorded.stage_of[each] for each in operation.effects.writes if each in recorded.stage_of]
        homes.update(
            (each.handle, stages[0] if stages else last)
            for each in operation.effects.writes
            if each not in recorded.stage_of
        )
    homes.update((accumulator(each.handle), homes[each.handle]) for each in training.variables)
    touched = training.update.effects.reads | training.update.effects.writes
    return {**{each.handle: last for each in touched}, **homes}


__all__ = ["source_of"]
