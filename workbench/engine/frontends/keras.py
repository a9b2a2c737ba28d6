"""Keras models become a `Source`: a whole training step, or inference, of a built model, a builder or a ready name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import keras

from workbench.base.collection import paused_collection
from workbench.engine.frontends.describe.checks import traced_control_flow
from workbench.engine.frontends.describe.keras_layers import layer_classes, numbered_calls, walk_layers
from workbench.engine.frontends.describe.replicas import axis_env, check_replicas, meta
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.numbers.replicated import for_all
from workbench.engine.frontends.staging.staged import check_steps, trace_staged
from workbench.engine.frontends.step.prepare import ModelToTrace, new_step, packer, prepare, with_draws
from workbench.engine.frontends.step.shared_norms import check_members, shared_statistics
from workbench.engine.frontends.step.training import TracedStep
from workbench.engine.frontends.trace.jaxpr import graph_from_jaxpr
from workbench.engine.frontends.trace.staged_calls import whole_batch
from workbench.engine.graph import Output
from workbench.engine.graph.execution import of_updates
from workbench.engine.planner.beside.second import start_for


def trace_step(prepared: ModelToTrace, *extra: jax.ShapeDtypeStruct) -> tuple[TracedStep, Any]:
    """Trace the step; the step (with what tracing found out) and its closed jaxpr."""
    step = new_step(prepared)
    with prepared.scope(), numbered_calls(prepared.model), traced_control_flow(), _shared(prepared):
        closed = jax.make_jaxpr(step, axis_env=axis_env(prepared.replicas))(*prepared.types(), *extra)
    return step, closed


def _shared(prepared: ModelToTrace) -> AbstractContextManager[None]:
    """The batch statistics that replicas share are shared inside."""
    layers = [layer for _, layer in walk_layers(prepared.model)]
    return shared_statistics(layers, prepared.norm_members, prepared.replicas)


def _outputs(prepared: ModelToTrace, step: TracedStep, closed: Any) -> tuple[Output, ...]:
    described = prepared.inputs
    updates = [Output(name=described[i].name, role="update", updates=i) for i in step.updated]
    if prepared.mode == "training":
        head = [Output(name="loss", role="loss"), *(Output(name=name, role="metric") for name in step.metrics)]
    else:
        count = len(closed.jaxpr.outvars) - len(updates)
        head = [Output(name="output" if count == 1 else f"output_{i}") for i in range(count)]
    return (*head, *updates)


def trace_keras(
    model: Any,
    batch_size: int | None = None,
    mode: str | None = None,
    *,
    optimizer: Any = None,
    loss: Any = None,
    precision: str | None = None,
    stages: Any = None,
    gradient_accumulation_steps: int = 1,
    replicas: int = 1,
    norm_members: int = 1,
    inputs: Sequence[Any] = (),
) -> Source:
    """Trace a Keras model, a function that builds one, a ready name or a `ReadyModel` (arguments as `wb.compile`).

    `inputs` gives example arrays or types for models that do not know their own input shapes.
    Errors: `InputError` for everything the model or the arguments lack.
    """
    steps, copies = check_steps(gradient_accumulation_steps), check_replicas(replicas)
    with paused_collection():
        prepared = prepare(
            model,
            batch_size=batch_size,
            mode=mode,
            optimizer=optimizer,
            loss=loss,
            precision=precision,
            inputs=inputs,
            staged=stages is not None,
        )
        start_for(tuple(weight.shape) for weight in prepared.model.weights)
        members = check_members(norm_members, copies, staged=stages is not None or steps > 1)
        prepared = dataclasses.replace(prepared, replicas=copies, norm_members=members)
        if stages is not None or (steps > 1 and prepared.recipe is not None):
            return trace_staged(prepared, stages, steps)
        return _trace_whole(prepared)


def _trace_whole(prepared: ModelToTrace) -> Source:
    """One program for the whole step."""
    step, closed = trace_step(prepared)
    if step.asked > prepared.draws:
        prepared = with_draws(prepared, step.asked)
        step, closed = trace_step(prepared)
    graph = graph_from_jaxpr(
        closed,
        prepared.inputs,
        _outputs(prepared, step, closed),
        name=prepared.model.name,
        batch_size=prepared.batch_size,
        mode=prepared.mode,
        layers=layer_classes(prepared.model),
        assumptions=prepared.assumptions,
        meta={**meta(prepared.replicas), **of_updates(prepared.calls_per_update)},
    )
    compute, weighted = _computer(closed), _weighted(prepared) if prepared.recipe else None
    if prepared.replicas > 1:
        compute = for_all(compute, graph.inputs, graph.outputs, prepared.replicas)
        weighted = for_all(weighted, graph.inputs, graph.outputs, prepared.replicas) if weighted else None
    return Source(
        graph=graph,
        specs=tuple(whole_batch(spec, prepared.replicas) for spec in prepared.specs),
        jaxpr=closed,
        compute=compute,
        weighted=weighted,
        variables=(*prepared.variables.all, *(None for _ in prepared.specs)),
        pack=packer(step.tree, prepared.mode),
        unpack=keras.tree.flatten,
        model=prepared.model,
        optimizer=prepared.recipe.optimizer if prepared.recipe else None,
        lazy=prepared.built.lazy,
        outputs=prepared.built.output_names_compared,
        compared=prepared.built.compared,
    )


def _computer(closed: Any) -> Callable[[Sequence[Any]], Sequence[Any]]:
    compiled = jax.jit(jax.extend.core.jaxpr_as_fun(closed))
    return lambda values: compiled(*values)


def _weighted(prepared: ModelToTrace) -> Callable[[Sequence[Any], Any], Sequence[Any]]:
    step = new_step(prepared)
    compiled = jax.jit(lambda *arrays: step(*arrays))

    def compute(values: Sequence[Any], weight: Any) -> Sequence[Any]:
        with prepared.scope(), _shared(prepared):
            return compiled(*values, weight)  # type: ignore[no-any-return]

    return compute
