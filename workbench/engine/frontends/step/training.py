"""One training step and one inference pass of a Keras model as functions of plain arrays, ready to be traced."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import keras

from workbench.engine.frontends.describe.name_stack import LOSS_SCOPE, UPDATE_SCOPE
from workbench.engine.frontends.describe.replicas import mean
from workbench.engine.frontends.describe.unseeded import Draws, states
from workbench.engine.frontends.step.losses import Recipe, loss_of_outputs
from workbench.engine.frontends.step.own_step import check_whole, own_step
from workbench.engine.frontends.trace import jaxpr


@dataclass(slots=True)
class Variables:
    """The variables of a step, in the order their values are passed."""

    trainable: list[Any]
    state: list[Any]
    slots: list[Any] = field(default_factory=list)
    unseeded: list[Any] = field(default_factory=list)

    @property
    def all(self) -> list[Any]:
        """Trainable, then other model variables, then optimizer variables, then the state of unseeded draws."""
        return [*self.trainable, *self.state, *self.slots, *self.unseeded]

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Values in that order as the three lists."""
        first, second = len(self.trainable), len(self.trainable) + len(self.state)
        return list(values[:first]), list(values[first:second]), list(values[second : second + len(self.slots)])


def training_argument(model: Any, training: bool) -> dict[str, bool]:
    """The `training` keyword, for models whose call takes one."""
    return {"training": training} if "training" in inspect.signature(type(model).call).parameters else {}


@dataclass(slots=True)
class TracedStep:
    """A function of flat arrays under trace, and what it found out about its results while being traced.

    After tracing: `metrics` names the metric results, `updated` the places in `variables.all` whose new values are
    returned, `tree` is the model's output for its structure. Results: loss, metrics and updates when training,
    outputs and updates otherwise; with `forward_only`, nothing is differentiated and the loss as the optimizer wants
    it scaled comes first. `draws` is how many draws without a seed the step has room for, `asked` how many it made.
    """

    model: Any
    variables: Variables
    structure: Callable[[Sequence[Any]], Any]
    inputs: int
    recipe: Recipe | None = None
    metrics: list[str] = field(default_factory=list)
    updated: list[int] = field(default_factory=list)
    tree: Any = None
    forward_only: bool = False
    targets: int = 1
    target_structure: Callable[[Sequence[Any]], Any] = operator.itemgetter(0)
    replicas: int = 1
    draws: int = 0
    asked: int = 0

    def __call__(self, *arrays: Any) -> list[Any]:
        """Values of the variables, then inputs, then targets, then sample weight."""
        count = len(self.variables.all)
        drawn = states(arrays[count - 1] if self.variables.unseeded else jax.numpy.zeros(2, "uint32"), self.draws)
        draws = Draws(drawn)
        with jaxpr.unseeded_draws(draws):
            head, new = self._step(*arrays)
        self.asked = draws.asked
        if self.variables.unseeded:
            new = [*new, drawn[-1]]
        self.updated = [i for i, (old, value) in enumerate(zip(arrays, new, strict=False)) if value is not old]
        return [*head, *(new[i] for i in self.updated)]

    def _step(self, *arrays: Any) -> tuple[list[Any], list[Any]]:
        """What goes first, and new values of the variables of the model and the optimizer."""
        count = len(self.variables.all)
        values, data = list(arrays[:count]), list(arrays[count:])
        x = self.structure(data[: self.inputs])
        if self.recipe is None:
            return self._infer(values, x)
        rest = data[self.inputs :]
        y = self.target_structure(rest[: self.targets]) if self.targets else None
        weight = self._weights(rest[self.targets]) if len(rest) > self.targets else None
        return (self._forward if self.forward_only else self._train)(values, x, y, weight)

    def _data(self, x: Any, y: Any, weight: Any) -> tuple[Any, ...]:
        """A batch as Keras hands it to a step: nothing stands for targets or weights that are not there."""
        if not self.targets and weight is None:
            return (x,)
        return (x, y) if weight is None else (x, y, weight)

    def _weights(self, weight: Any) -> Any:
        """Sample weights as Keras takes them: with a column for each of several outputs, in their structure."""
        if self.targets == 1 or weight.ndim == 1:
            return weight
        return self.target_structure([weight[..., i] for i in range(weight.shape[-1])])

    def _infer(self, values: list[Any], x: Any) -> tuple[list[Any], list[Any]]:
        trainable, state, _ = self.variables.split(values)
        outputs, new_state = self.model.stateless_call(
            trainable, state, x, **training_argument(self.model, training=False)
        )
        self.tree = outputs
        return keras.tree.flatten(outputs), [*trainable, *_kept(state, new_state)]

    def _train(self, values: list[Any], x: Any, y: Any, weight: Any) -> tuple[list[Any], list[Any]]:
        assert self.recipe is not None
        trainable, state, slots = self.variables.split(values)
        if self.recipe.own_step:
            return self._own_step(trainable, state, slots, self._data(x, y, weight))
        loss_of = self._compiled_loss if self.recipe.compiled else self._own_loss
        (_, (loss, outputs, new_state, measured)), gradients = jax.value_and_grad(loss_of, has_aux=True)(
            trainable, state, slots, x, y, weight
        )
        optimizer = self.recipe.optimizer
        with jax.named_scope(UPDATE_SCOPE):
            averaged = mean(gradients, self.replicas)
            new_trainable, new_slots = optimizer.stateless_apply(slots, averaged, trainable)
        logs = self._metrics(x, y, outputs, weight, measured)
        self.metrics = list(logs)
        new = [*_kept(trainable, new_trainable), *_kept(state, new_state), *_kept(slots, new_slots)]
        return [loss, *logs.values()], new

    def _own_step(self, trainable: Any, state: Any, slots: Any, data: Any) -> tuple[list[Any], list[Any]]:
        """What the model's own `train_step` does."""
        check_whole(self.model, whole=self.replicas == 1)
        logs, new = own_step(self.model, trainable, state, slots, data)
        self.metrics = [name for name in logs if name != "loss"]
        return list(logs.values()), [*_kept(trainable, new[0]), *_kept(state, new[1]), *_kept(slots, new[2])]

    def _forward(self, values: list[Any], x: Any, y: Any, weight: Any) -> tuple[list[Any], list[Any]]:
        """The loss as it is differentiated, the loss, metrics; only state changes."""
        assert self.recipe is not None
        check_whole(self.model, whole=not self.recipe.own_step)
        trainable, state, slots = self.variables.split(values)
        loss_of = self._compiled_loss if self.recipe.compiled else self._own_loss
        scaled, (loss, outputs, new_state, measured) = loss_of(trainable, state, slots, x, y, weight)
        logs = self._metrics(x, y, outputs, weight, measured)
        self.metrics = list(logs)
        return [scaled, loss, *logs.values()], [*trainable, *_kept(state, new_state), *slots]

    def _compiled_loss(
        self, trainable: Any, state: Any, slots: Any, x: Any, y: Any, weight: Any
    ) -> tuple[Any, tuple[Any, Any, Any, list[Any]]]:
        """Scaled; then the loss, outputs, state, and variables of the metrics: a loss of many outputs keeps each's."""
        return self.model.compute_loss_and_updates(  # type: ignore[no-any-return]
            trainable, state, self._fresh_metrics(), x, y, weight, training=True, optimizer_variables=slots
        )

    def _own_loss(
        self, trainable: Any, state: Any, slots: Any, x: Any, y: Any, weight: Any
    ) -> tuple[Any, tuple[Any, Any, Any, list[Any]]]:
        assert self.recipe is not None
        outputs, new_state, extra = self.model.stateless_call(
            trainable, state, x, return_losses=True, **training_argument(self.model, training=True)
        )
        with jax.named_scope(LOSS_SCOPE):
            loss = total_loss(loss_of_outputs(self.recipe, self.model, y, outputs, weight), extra)
            scaled = scale_loss(self.recipe.optimizer, self.variables.slots, slots, loss)
        return scaled, (loss, outputs, new_state, [])

    def _fresh_metrics(self) -> list[Any]:
        """What the metrics' variables hold before a batch; those of compiled metrics, which no loss reads, anything."""
        early = [metric for metric in self.model.metrics if not _is_compiled(metric)]
        return _fresh(early, self.model.metrics_variables)

    def _metrics(self, x: Any, y: Any, outputs: Any, weight: Any, measured: Sequence[Any]) -> dict[str, Any]:
        """Metrics of this batch alone, as `train_on_batch` returns them; `measured` is what their variables hold."""
        if self.recipe is None or not self.recipe.compiled:
            return {}
        held = list(zip(self.model.metrics_variables, measured, strict=True))
        late = [metric for metric in self.model.metrics if _is_compiled(metric)]

        def compute(fresh: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
            with keras.StatelessScope(state_mapping=[*held, *fresh]):
                return self.model.compute_metrics(x, y, outputs, sample_weight=weight)  # type: ignore[no-any-return]

        def build() -> None:
            compute(())

        with jax.named_scope("metrics"):
            if not all(metric.built for metric in late):  # outside of the trace, or the next one would be another
                jax.eval_shape(build)
            variables = [variable for metric in late for variable in metric.variables]
            logs = compute(list(zip(variables, _fresh(late, variables), strict=True)))
        return {name: value for name, value in logs.items() if name != "loss" and value is not None}


def _is_compiled(metric: Any) -> bool:
    """Whether a metric holds those that `compile` was given, which Keras builds when they are first computed."""
    return metric.name == "compile_metrics" and hasattr(metric, "metrics")


def _fresh(metrics: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
    """What variables of these metrics hold before a batch."""
    with keras.StatelessScope() as scope:
        for metric in metrics:
            metric.reset_state()
    held = ((variable, scope.get_current_value(variable)) for variable in variables)
    return [variable.value if value is None else value for variable, value in held]


def _kept(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    return [before if after is None else after for before, after in zip(old, new, strict=True)]


def total_loss(value: Any, extra: Sequence[Any]) -> Any:
    """The loss of the outputs plus the losses layers added (regularisation)."""
    for addend in extra:
        value = value + keras.ops.cast(keras.ops.sum(addend), value.dtype)
    return value


def scale_loss(optimizer: Any, variables: Sequence[Any], values: Sequence[Any], loss: Any) -> Any:
    """The loss as the optimizer wants it differentiated; only loss-scaling optimizers change it."""
    with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
        return optimizer.scale_loss(loss)
