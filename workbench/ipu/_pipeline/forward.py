"""The forward pass of a recorded pipeline: one micro-batch of all stages as a traced program of named values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from workbench.engine.frontends.describe.replicas import axes
from workbench.engine.frontends.staging.pipeline import Forward
from workbench.engine.frontends.trace.jaxpr import closed_of
from workbench.errors import InputError
from workbench.ipu._pipeline.recorded import Recorded, given_as
from workbench.ipu._pipeline.sums import outfeed_names, outsums
from workbench.tf._graph import Tensor
from workbench.tf._graph.evaluate import Run, State
from workbench.tf._graph.marks import stage_scope
from workbench.tf._ops.control import type_of

_HEAD = "gradients of"  # begins the name of the result that is differentiated: the loss may be enqueued under its own


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """A pipeline's forward pass, and the names of what else its program holds.

    `variables` are those the stages touch, `slots` those that only the update touches; `taken` names what the update
    takes besides sums and variables.
    """

    recorded: Recorded
    variables: tuple[Any, ...]
    slots: tuple[Any, ...]
    forward: Forward
    taken: tuple[str, ...]


def in_order(variables: Iterable[Any]) -> tuple[Any, ...]:
    """Variables by name."""
    return tuple(sorted(variables, key=lambda variable: variable.name))


def stage_names(recorded: Recorded) -> dict[str, str]:
    """The layer of each variable of the stages: its own below its stage."""
    return {
        variable.handle: "/".join(part for part in (stage_scope(stage), variable.layer) if part)
        for variable, stage in recorded.stage_of.items()
    }


def parts_of(recorded: Recorded, replicas: int = 1) -> Parts:
    """Trace the forward pass over everything it is given, for one of so many replicas."""
    training, variables = recorded.training, in_order(recorded.forward.reads | recorded.forward.writes)
    captured = [] if training is None else list(training.update.graph.captures)
    inside = [given_as(tensor) for tensor in captured if tensor.graph is recorded.graph]
    micro_batch = _MicroBatch(recorded, variables, inside)
    closed = jax.make_jaxpr(micro_batch, axis_env=axes(replicas))(*micro_batch.types())
    names, results = micro_batch.names(), micro_batch.results()
    passed = _passed(closed.jaxpr, names, results)
    for tensor in inside:
        if tensor.name not in passed:
            raise InputError(
                f"the optimizer uses {tensor.name}, which a stage computes in every micro-batch",
                expected="what is the same for the whole update, such as a learning rate",
                todo="pass it in inputs, and hand it on unchanged from stage to stage",
            )
    last = stage_scope(len(recorded.asked.stages) - 1)
    # Because what the optimizer takes under the name it was given by leaves no stage.
    handed = {tensor.name for tensor in inside}
    given = [(var, name) for var, name in zip(closed.jaxpr.outvars, results, strict=True) if name not in handed]
    results = tuple(name for _, name in given)
    forward = Forward(
        closed=closed_of([closed], closed.jaxpr.eqns, closed.jaxpr.invars, [var for var, _ in given]),
        names=names,
        results=results,
        owners={**dict.fromkeys(results, last), **stage_names(recorded)},
        trained=frozenset(each.handle for each in training.variables) if training else frozenset(),
        state=frozenset({*(each.handle for each in micro_batch.written), *micro_batch.sums}),
        late=frozenset(),
        head=results[0] if training else "",
        replicas=replicas,
    )
    updated = frozenset() if training is None else training.update.effects.reads | training.update.effects.writes
    return Parts(
        recorded=recorded,
        variables=variables,
        slots=in_order(updated - set(variables)),
        forward=forward,
        taken=tuple(passed[given_as(each).name] if each.graph is recorded.graph else each.name for each in captured),
    )


class _MicroBatch:
    """The forward pass as a function: variables, inputs, then an element in; loss, outfeed, captures, state out."""

    def __init__(self, recorded: Recorded, variables: tuple[Any, ...], captured: list[Tensor]) -> None:
        self.recorded, self.variables, self.captured = recorded, variables, captured
        self.written = [variable for variable in variables if variable in recorded.forward.writes]
        self.loss = [] if recorded.training is None else [recorded.training.loss]
        outside = recorded.inputs[len(recorded.arguments) :]
        self.given = [*recorded.arguments, *outside, *recorded.element]
        self.sums = outsums(recorded)

    def __call__(self, *values: Any) -> list[Any]:
        recorded, count = self.recorded, len(self.variables)
        state = State(dict(zip(self.variables, values, strict=False)))
        held = dict(zip(self.given, values[count:], strict=False))
        Run(recorded.graph, state, held).evaluate([*self.loss, *recorded.enqueued, *self.captured])
        last = len(recorded.asked.stages) - 1
        with jax.named_scope(stage_scope(last)):  # what another stage made leaves from here all the same
            out = [
                jnp.asarray(held[each]) if each.op.scopes.stage == last else jnp.copy(held[each])
                for each in recorded.enqueued
            ]
            if self.sums:
                buffers = values[count + len(self.given) :]
                out = [buffer + value.astype(buffer.dtype) for buffer, value in zip(buffers, out, strict=True)]
        made = [*(held[each] for each in self.loss), *out, *(held[each] for each in self.captured)]
        return [*map(jnp.asarray, made), *(state.values[variable] for variable in self.written)]

    def types(self) -> list[jax.ShapeDtypeStruct]:
        """Types of what it is given."""
        kinds = [(each.shape, str(each.dtype)) for each in self.variables] + [type_of(each) for each in self.given]
        return [*(jax.ShapeDtypeStruct(tuple(shape), dtype) for shape, dtype in kinds), *self.sums.values()]

    def names(self) -> tuple[str, ...]:
        """Names of what it is given."""
        recorded = self.recorded
        return (
            *(each.handle for each in self.variables),
            *(each.name for each in recorded.inputs),
            *(f"infeed/{place}" for place in range(len(recorded.element))),
            *self.sums,
        )

    def results(self) -> tuple[str, ...]:
        """Names of what it gives."""
        return (
            *(f"{_HEAD} {each.name}" for each in self.loss),
            *(self.sums or outfeed_names(self.recorded)),
            *(each.name for each in self.captured),
            *(each.handle for each in self.written),
        )


def _passed(jaxpr: Any, names: tuple[str, ...], results: tuple[str, ...]) -> dict[str, str]:
    """Results that are what was given, by the name it was given under."""
    known = dict(zip(jaxpr.invars, names, strict=True))
    return {
        result: known[var]
        for var, result in zip(jaxpr.outvars, results, strict=True)
        if not isinstance(var, Literal) and var in known
    }


__all__ = ["Parts", "in_order", "parts_of", "stage_names"]
