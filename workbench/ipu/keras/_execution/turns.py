"""What a model does with one batch, as functions of plain arrays: the body of an execution, and its numbers.

Keras' own `train_step`, `test_step` and `predict_step` are called; where gradients are added up over batches, what
`train_step` does is done in two halves, one for a batch and one for an update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import keras

from workbench.engine.frontends.describe.name_stack import METRICS_LAYER, UPDATE_SCOPE
from workbench.engine.frontends.describe.replicas import total
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.ipu.keras._extensions.options import Accumulation

State = tuple[list[Any], ...]

# The lists of Keras' state that each mode has, by the attributes of a model that hold their variables.
LISTS: Mapping[str, tuple[str, ...]] = {
    "training": ("trainable_variables", "non_trainable_variables", "optimizer_variables", "metrics_variables"),
    "evaluation": ("trainable_variables", "non_trainable_variables", "metrics_variables"),
    "prediction": ("trainable_variables", "non_trainable_variables"),
}


def variables_of(model: Any, mode: str) -> State:
    """The variables behind the lists of a mode's state."""
    held = {"optimizer_variables": lambda: model.optimizer.variables}
    return tuple(list(held[name]() if name in held else getattr(model, name)) for name in LISTS[mode])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turns:
    """One batch in a mode on one replica of several; `accumulation` says how gradients of batches become an update."""

    model: Any
    mode: str
    accumulation: Accumulation
    replicas: int = 1

    @property
    def accumulates(self) -> bool:
        """Whether an update has gradients of several batches."""
        return self.mode == "training" and self.accumulation.steps > 1

    def whole(self, state: State, data: Any) -> tuple[Any, State]:
        """A batch and, in training, its update: what goes to the host, and the new state."""
        with self._named():
            if self.mode == "prediction":
                outputs, other = self.model.predict_step(state, data)
                return outputs, (state[0], _kept(state[1], other))
            step = self.model.train_step if self.mode == "training" else self.model.test_step
            logs, new = step(state, data)
            return logs, _all_kept(state, new)

    def ahead(self, state: State, data: Any) -> tuple[Any, Any, State]:
        """A batch without its gradients: the loss as it is differentiated, what goes to the host, and the new state."""
        if self.mode == "prediction":
            return None, *self.whole(state, data)
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        training = self.mode == "training"
        trainable, other, metrics = state[0], state[1], state[-1]
        slots = state[2] if training else None
        with self._named():
            scaled, (loss, outputs, new_other, measured) = self.model.compute_loss_and_updates(
                trainable, other, metrics, x, y, weight, training=training, optimizer_variables=slots
            )
            logs, measured = self.model._update_metrics_variables(measured, loss, x, y, outputs, weight)
        after = (trainable, new_other, *([slots] if training else []), measured)
        return scaled, logs, _all_kept(state, after)

    def add(self, state: State, sums: Sequence[Any], number: Any, data: Any) -> tuple[Any, State, list[Any]]:
        """A batch whose gradients are added to sums; `number` counts the batches of the update before it."""
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        trainable, other, slots, metrics = state
        with self._named():
            (_, aux), gradients = jax.value_and_grad(self.model.compute_loss_and_updates, has_aux=True)(
                trainable, other, metrics, x, y, weight, training=True, optimizer_variables=slots
            )
            loss, outputs, new_other, measured = aux
            logs, measured = self.model._update_metrics_variables(measured, loss, x, y, outputs, weight)
        added = [self._added(each, gradient, number) for each, gradient in zip(sums, gradients, strict=True)]
        return logs, _all_kept(state, (trainable, new_other, slots, measured)), added

    def _added(self, before: Any, gradient: Any, number: Any) -> Any:
        """SUM, MEAN and RUNNING_MEAN as `GradientAccumulationReductionMethod` tells them."""
        accumulation = self.accumulation
        gradient = gradient.astype(before.dtype)
        if accumulation.normalize:
            gradient = gradient / (accumulation.steps * self.replicas)
        if accumulation.method is GradientAccumulationReductionMethod.MEAN:
            return before + gradient / accumulation.steps
        if accumulation.method is GradientAccumulationReductionMethod.RUNNING_MEAN:
            share = (1.0 / (jnp.asarray(number, jnp.float32) + 1.0)).astype(before.dtype)
            return before * (1 - share) + gradient * share
        return before + gradient

    def update(self, state: State, sums: Sequence[Any]) -> State:
        """The update by the sums."""
        trainable, other, slots, metrics = state
        with self._named():
            gradients = [each.astype(value.dtype) for each, value in zip(sums, trainable, strict=True)]
            new, new_slots = self.model.optimizer.stateless_apply(slots, gradients, trainable)
        return _all_kept(state, (new, other, new_slots, metrics))

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Updates and metrics are marked as such; gradients are summed over the replicas before an update."""
        changed: list[tuple[Any, str]] = []

        def wrap(owner: Any, name: str, scope: str, before: Callable[..., tuple[Any, ...]]) -> None:
            inner = getattr(owner, name)

            def named(*args: Any, **kwargs: Any) -> Any:
                with jax.named_scope(scope):
                    return inner(*before(*args), **kwargs)

            object.__setattr__(owner, name, named)
            changed.append((owner, name))

        def reduced(slots: Any, gradients: Any, *rest: Any) -> tuple[Any, ...]:
            return (slots, self._over_replicas(gradients), *rest)

        try:
            if self.mode == "training":
                wrap(self.model.optimizer, "stateless_apply", UPDATE_SCOPE, reduced)
            if self.mode != "prediction":
                wrap(self.model, "_update_metrics_variables", METRICS_LAYER, lambda *args: args)
            yield
        finally:
            for owner, name in changed:
                object.__delattr__(owner, name)

    def _over_replicas(self, gradients: Sequence[Any]) -> list[Any]:
        """The sum over the replicas, as the SDK's strategy reduces them; the mean where means are accumulated."""
        summed = total(gradients, self.replicas)
        means = self.accumulates and self.accumulation.method is not GradientAccumulationReductionMethod.SUM
        return [each / self.replicas for each in summed] if means and self.replicas > 1 else summed

    def sums(self, state: State) -> list[Any]:
        """Accumulators that hold nothing."""
        return [jnp.zeros(each.shape, self.accumulation.dtype_of(str(each.dtype))) for each in state[0]]


def _kept(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    return [before if after is None else after for before, after in zip(old, new, strict=True)]


def _all_kept(old: State, new: Sequence[Sequence[Any]]) -> State:
    return tuple(_kept(before, after) for before, after in zip(old, new, strict=True))


__all__ = ["LISTS", "State", "Turns", "variables_of"]
