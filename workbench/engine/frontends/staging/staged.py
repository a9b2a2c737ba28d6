"""Training over several micro-batches, in stages or not: gradients are accumulated, then the weights are updated."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import keras

from workbench.engine.frontends.describe.checks import traced_control_flow
from workbench.engine.frontends.describe.keras_layers import layer_classes, numbered_calls
from workbench.engine.frontends.describe.name_stack import LOSS_LAYER, METRICS_LAYER, OPTIMIZER_LAYER, UPDATE_SCOPE
from workbench.engine.frontends.describe.replicas import axis_env, total
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.staging.pipeline import Forward, Pipeline
from workbench.engine.frontends.staging.program import Described, program_of, staged_source, sum_input, updates_by_stage
from workbench.engine.frontends.staging.stages import assign_stages, stage_of_path
from workbench.engine.frontends.staging.vjp import accumulator
from workbench.engine.frontends.step.prepare import ModelToTrace, new_step, packer, with_draws
from workbench.engine.frontends.trace.jaxpr import cut
from workbench.engine.frontends.trace.staged_calls import Program, StagedCall, whole_batch
from workbench.engine.graph import Input, Output
from workbench.errors import InputError

_HEAD = "scaled loss"
_LOSSES = {_HEAD: LOSS_LAYER, "loss": LOSS_LAYER}


def check_steps(steps: Any) -> int:
    """`gradient_accumulation_steps` is a positive whole number."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InputError(f"gradient_accumulation_steps is {steps!r}", expected="a whole number of at least 1")
    return steps


def _trace_forward(prepared: ModelToTrace) -> tuple[Any, Forward]:
    """The forward program with its loss, undifferentiated."""
    step = replace(new_step(prepared), forward_only=True)
    with prepared.scope(), numbered_calls(prepared.model), traced_control_flow():
        closed = jax.make_jaxpr(lambda *arrays: step(*arrays))(*prepared.types())
    names = tuple(item.name for item in prepared.inputs)
    training = prepared.recipe is not None
    if training:
        head = [_HEAD, "loss", *step.metrics]
    else:
        count = len(closed.jaxpr.outvars) - len(step.updated)
        head = ["output"] if count == 1 else [f"output_{i}" for i in range(count)]
    owners = {item.name: item.layer for item in prepared.inputs}
    late = {item.name for item in prepared.inputs if item.role in ("target", "optimizer")}
    return step, Forward(
        closed=closed,
        names=names,
        results=(*head, *(names[i] for i in step.updated)),
        owners={**dict.fromkeys(head, METRICS_LAYER), **_LOSSES, **owners} if training else owners,
        trained=frozenset(item.name for item in prepared.inputs if item.role == "parameter" and training),
        state=frozenset(names[i] for i in step.updated),
        late=frozenset(late),
        head=_HEAD if training else "",
    )


def _micro_batch(forward: Forward) -> StagedCall:
    """Loss and gradients of one micro-batch without stages, gradients added to the accumulators."""
    trained = [name for name in forward.names if name in forward.trained]
    buffers = [accumulator(name) for name in trained]
    run = jax.extend.core.jaxpr_as_fun(forward.closed)

    def gradients(*values: Any) -> list[Any]:
        held, added = list(values[: len(forward.names)]), values[len(forward.names) :]

        def loss_of(parameters: list[Any]) -> tuple[Any, list[Any]]:
            changed = dict(zip(trained, parameters, strict=True))
            results = run(*(changed.get(n, value) for n, value in zip(forward.names, held, strict=True)))
            return results[0], list(results[1:])

        parameters = [value for n, value in zip(forward.names, held, strict=True) if n in forward.trained]
        (_, rest), found = jax.value_and_grad(loss_of, has_aux=True)(parameters)
        return [*rest, *(buffer + gradient for buffer, gradient in zip(added, found, strict=True))]

    invars = forward.closed.jaxpr.invars
    types = [jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype) for var in invars]
    extra = [kind for kind, name in zip(types, forward.names, strict=True) if name in forward.trained]
    closed = jax.make_jaxpr(gradients)(*types, *extra)
    names = dict(zip(closed.jaxpr.invars, (*forward.names, *buffers), strict=True))
    results = (*forward.results[1:], *buffers)
    part, used = cut(closed, closed.jaxpr.eqns, closed.jaxpr.invars, closed.jaxpr.outvars)
    owners = [forward.owners.get(name, "") for name in forward.results[1:]]
    return StagedCall(
        name="micro_batch",
        closed=part,
        operands=tuple(names[var] for var in used),
        results=results,
        owners=(*owners, *(forward.owners[name] for name in trained)),
        stage=0,
        direction="forward",
    )


def _updates(prepared: ModelToTrace, steps: int, stages: dict[str, int] | None) -> list[StagedCall]:
    """The optimizer applied to the mean of the gradients, one call per stage."""
    assert prepared.recipe is not None
    trainable, slots = prepared.variables.trainable, prepared.variables.slots
    optimizer, count = prepared.recipe.optimizer, len(prepared.variables.trainable)

    def apply(*values: Any) -> list[Any]:
        weights, held, sums = values[:count], values[count : len(values) - count], values[len(values) - count :]
        with jax.named_scope(UPDATE_SCOPE):
            shared = steps * prepared.replicas
            totals = total(sums, prepared.replicas)
            gradients = [value / shared for value in totals] if shared > 1 else totals
            new_weights, new_slots = optimizer.stateless_apply(list(held), gradients, list(weights))
            cleared = [jnp.zeros(value.shape, value.dtype) for value in sums]
        return [*new_weights, *new_slots, *cleared]

    variables = [*trainable, *slots, *trainable]
    with prepared.scope():
        traced = jax.make_jaxpr(apply, axis_env=axis_env(prepared.replicas))
        closed = traced(*(jax.ShapeDtypeStruct(tuple(v.shape), v.dtype) for v in variables))
    described = [item for item in prepared.inputs if item.role in ("parameter", "optimizer")]
    updated = [*described, *_sums(prepared)]
    owners = {item.name: item.layer or OPTIMIZER_LAYER for item in updated}
    homes = {item.name: 0 if stages is None else stage_of_path(item.layer, stages) or 0 for item in updated}
    return updates_by_stage(closed, [item.name for item in updated], homes, owners, staged=stages is not None)


def _sums(prepared: ModelToTrace) -> list[Input]:
    """The buffers gradients are added up in."""
    trained = [item for item in prepared.inputs if item.role == "parameter"]
    return [sum_input(item.name, item.layer) for item in trained] if prepared.recipe is not None else []


def _shown(forward: Forward) -> Iterator[tuple[Output, str]]:
    """Loss and metrics, or outputs."""
    for name in forward.results:
        if name != _HEAD and name not in forward.names:
            role: Any = "output" if not forward.head else "loss" if name == "loss" else "metric"
            yield Output(name=name, role=role), name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traced:
    """A staged program, with what the source needs of it."""

    program: Program
    tree: Any
    asked: int


def _program(prepared: ModelToTrace, assignment: dict[str, int] | None, steps: int) -> _Traced:
    step, forward = _trace_forward(prepared)
    training = prepared.recipe is not None
    with traced_control_flow():
        if assignment is None:
            calls = [_micro_batch(forward)]
        else:
            pipeline = Pipeline(forward, assignment, layer_classes(prepared.model))
            calls = pipeline.training() if training else pipeline.forward_only()
    if training:
        calls += _updates(prepared, steps, assignment)
    types = dict(zip((item.name for item in prepared.inputs), prepared.types(), strict=True))
    buffers = _sums(prepared)
    types.update((item.name, types[item.of]) for item in buffers)
    held = len(prepared.variables.all)
    inputs = (*prepared.inputs[:held], *buffers, *prepared.inputs[held:])
    program = program_of(calls, inputs, _shown(forward), types, steps)
    return _Traced(program=program, tree=step.tree, asked=step.asked)


def _weighted(prepared: ModelToTrace, assignment: dict[str, int] | None, steps: int) -> Program:
    """The same program with a sample weight behind the targets."""
    weight = prepared.weight
    heavier = replace(
        prepared,
        specs=(*prepared.specs, weight),
        inputs=(*prepared.inputs, Input(name=weight.name, role="target")),
    )
    return _program(heavier, assignment, steps).program


def trace_staged(prepared: ModelToTrace, stages: Any, steps: int) -> Source:
    """Trace in stages, or as one micro-batch function and an update, over `steps` micro-batches per update."""
    assignment = None if stages is None else assign_stages(prepared.model, stages)
    traced = _program(prepared, assignment, steps)
    if traced.asked > prepared.draws:
        prepared = with_draws(prepared, traced.asked)
        traced = _program(prepared, assignment, steps)
    program, held = traced.program, prepared.variables.all
    described = Described(
        name=prepared.model.name,
        batch_size=prepared.batch_size,
        mode=prepared.mode,
        assumptions=prepared.assumptions,
        stages=1 if assignment is None else max(assignment.values()) + 1,
        in_stages=assignment is not None,
        calls_per_update=prepared.calls_per_update,
        replicas=prepared.replicas,
        layers=layer_classes(prepared.model),
    )
    return staged_source(
        program,
        described,
        {item.name: kept for item, kept in zip(prepared.inputs, held, strict=False)},
        weighted=functools.cache(lambda: _weighted(prepared, assignment, steps)) if prepared.recipe else None,
        specs=tuple(whole_batch(spec, steps * prepared.replicas) for spec in prepared.specs),
        pack=packer(traced.tree, prepared.mode),
        unpack=keras.tree.flatten,
        model=prepared.model,
        optimizer=prepared.recipe.optimizer if prepared.recipe else None,
        lazy=prepared.built.lazy,
        outputs=prepared.built.output_names_compared,
        compared=prepared.built.compared,
    )
