"""A model called on types alone: what a call in training gives, and how many losses its layers add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import keras
import numpy as np

from workbench.engine.frontends.describe.checks import traced_control_flow
from workbench.engine.frontends.describe.source import ArraySpec
from workbench.engine.frontends.describe.unseeded import Draws
from workbench.engine.frontends.trace import jaxpr


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractCall:
    """The shapes of the flat outputs, and the number of losses added, those of regularised weights aside."""

    shapes: tuple[tuple[int, ...], ...]
    losses: int


def abstract_call(model: Any, structure: Callable[[Sequence[Any]], Any], specs: Sequence[ArraySpec]) -> AbstractCall:
    """What a call in training gives for inputs of these types, which `structure` packs as the model takes them."""
    losses: list[int] = []

    def call(values: Sequence[Any], data: Sequence[Any]) -> list[Any]:
        held = list(zip(model.variables, values, strict=True))
        with keras.StatelessScope(state_mapping=held, collect_losses=True) as scope:
            outputs = model(structure(data), training=True)
        losses.append(len(scope.losses))
        return list(keras.tree.flatten(outputs))

    variables = [jax.ShapeDtypeStruct(tuple(v.shape), v.dtype) for v in model.variables]
    with jaxpr.unseeded_draws(Draws([np.zeros(2, "uint32")])), traced_control_flow():
        found = jax.eval_shape(call, variables, [jax.ShapeDtypeStruct(spec.shape, spec.dtype) for spec in specs])
    return AbstractCall(shapes=tuple(tuple(each.shape) for each in found), losses=losses[-1])
