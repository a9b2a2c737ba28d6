"""Gradients of a graph, and the optimizers of `tf.train` as operations over variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from workbench.tf import _graph
from workbench.tf._graph import Effects, Operation, Running, Tensor
from workbench.tf._graph.convert import is_symbolic, symbolic
from workbench.tf._graph.evaluate import GradientOf, path_between
from workbench.tf._graph.shapes import UNKNOWN
from workbench.tf._graph.variables import TRAINABLE, Variable
from workbench.tf._ops.control import as_tensor


def gradients(
    ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients", stop_gradients: Any = None, **others: Any
) -> list[Any]:
    """The gradients of the sum of `ys` with respect to each of `xs`, tensors or variables; None where none flows.

    They run where the operations they differentiate run, so on the same shards.
    """
    targets = tuple(as_tensor(symbolic(each)) for each in _as_list(ys))
    sources = tuple(each if isinstance(each, Variable) else as_tensor(each) for each in _as_list(xs))
    given = [] if grad_ys is None else [as_tensor(each) for each in _as_list(grad_ys)]
    asked = [depends(targets, source) for source in sources]
    connected = tuple(source for source, reached in zip(sources, asked, strict=True) if reached)
    made = iter(gradient_operation(GradientOf(targets, connected), given, name) if connected else ())
    return [next(made) if reached else None for reached in asked]


def depends(targets: Sequence[Tensor], source: Any, spans: tuple[tuple[int, int], ...] = ()) -> bool:
    """Whether a target depends on a tensor or a variable, through operations of these numbers if any are said."""
    if any(each is source for each in targets):
        return True
    path = set(path_between(GradientOf(tuple(targets), (source,), spans)))
    return any(each.op in path for each in targets)


def gradient_operation(asked: GradientOf, given: Sequence[Tensor], name: str) -> list[Any]:
    """The operation that differentiates as asked, `given` the gradients of the targets, ones when there are none."""
    targets, sources = asked.targets, asked.sources
    types = [(None if each.shape is UNKNOWN else each.shape, str(each.dtype)) for each in sources]

    def compute(run: Running, values: Sequence[Any]) -> Sequence[Any]:
        made = values[: len(targets)]
        seeds = list(values[-len(given) :]) if given else [jnp.ones(each.shape, each.dtype) for each in made]
        return list(run.pullback(asked)(seeds)[0])

    tensors = [each for each in sources if isinstance(each, Tensor)]
    read = frozenset(each for each in sources if isinstance(each, Variable))
    with _graph.scoped(shard=None):
        made = Operation(
            "Gradients", (*targets, *tensors, *given), types, compute, name=name, effects=Effects(reads=read)
        )
    made.gradient = asked
    return list(made.outputs)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


class Optimizer:
    """Base of optimizers: `minimize`, or `compute_gradients` and `apply_gradients`. `slots`: how many per variable."""

    slots: tuple[str, ...] = ()

    def __init__(self, learning_rate: Any = 0.001, use_locking: bool = False, name: str = "Optimizer") -> None:
        self._lr = learning_rate
        self._name = name
        self._slots: dict[tuple[Variable, str], Variable] = {}

    def get_name(self) -> str:
        """Its name."""
        return self._name

    def compute_gradients(self, loss: Any, var_list: Any = None, **others: Any) -> list[tuple[Any, Variable]]:
        """Pairs of gradient and variable, of all trainable variables unless a list says which."""
        found = _graph.get_default_graph().root.get_collection(TRAINABLE) if var_list is None else list(var_list)
        if not found:
            raise ValueError("No variables to optimize.")
        return list(zip(gradients(loss, found), found, strict=True))

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Operation:
        """The operation that updates the variables."""
        pairs = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        updates = [self._update(grad, variable).op for grad, variable in pairs]
        if global_step is not None:
            updates.append(global_step.assign_add(1).op)
        with _graph.scoped(after=(*_graph.current_scopes().after, *updates)):
            return Operation(name or self._name, (), (), lambda run, values: ())

    def minimize(self, loss: Any, global_step: Any = None, var_list: Any = None, **others: Any) -> Operation:
        """The operation that updates the variables to lower the loss."""
        return self.apply_gradients(self.compute_gradients(loss, var_list), global_step)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """A variable this optimizer keeps for another."""
        return self._slots.get((var, name))

    def variables(self) -> list[Variable]:
        """All variables it keeps."""
        return list(self._slots.values())

    def slot(self, variable: Variable, name: str, first: float = 0.0, shape: Any = None, dtype: Any = None) -> Variable:
        """The variable of this name kept for another, made when first asked for."""
        key = (variable, name)
        if key not in self._slots:
            size = variable.shape if shape is None else shape
            kind = str(dtype or variable.dtype)
            with _graph.scoped(names=(), after=()):
                self._slots[key] = Variable(
                    lambda: jnp.full(size, first, kind),
                    False,
                    f"{variable.handle}/{self._name}/{name}",
                    kind,
                    deferred=True,
                    role="optimizer",
                )
            self._slots[key].layer = variable.layer
        return self._slots[key]

    def _update(self, grad: Any, variable: Variable) -> Tensor:
        """The operation for one variable, whose output is the new value."""
        kept = [self.slot(variable, name) for name in self.slots]
        rate = self._lr() if callable(self._lr) else self._lr
        inputs = [as_tensor(grad)] + ([as_tensor(symbolic(rate))] if is_symbolic(rate) else [])

        def compute(run: Running, values: Sequence[Any]) -> Sequence[Any]:
            old = run.state.read(variable)
            step = values[1] if len(values) > 1 else np.float32(rate)
            new, changed = self.rule(old, values[0], step, [run.state.read(each) for each in kept])
            run.state.write(variable, jnp.asarray(new, old.dtype))
            for each, value in zip(kept, changed, strict=True):
                run.state.write(each, jnp.asarray(value, str(each.dtype)))
            return [jnp.asarray(new, old.dtype)]

        touched = frozenset({variable, *kept})
        with _graph.scoped(shard=variable.scopes.shard):
            return self._apply(variable, inputs, compute, touched)

    def _apply(
        self, variable: Variable, inputs: Sequence[Tensor], compute: Any, touched: frozenset[Variable]
    ) -> Tensor:
        """The operation of one update, where its variable is."""
        operation = Operation(
            f"Apply{type(self).__name__}",
            inputs,
            [(variable.shape, str(variable.dtype))],
            compute,
            name=f"{variable.handle}/update",
            effects=Effects(reads=touched, writes=touched),
        )
        operation.updates = True
        return operation.outputs[0]

    def rule(self, value: Any, grad: Any, rate: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
        """The new value of a variable and of its slots."""
        raise NotImplementedError


class GradientDescentOptimizer(Optimizer):
    """value - rate * gradient."""

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(learning_rate, use_locking, name)

    def rule(self, value: Any, grad: Any, rate: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
        """One step down the gradient."""
        return value - jnp.asarray(rate, value.dtype) * grad, []


class MomentumOptimizer(Optimizer):
    """The steps so far, fading by `momentum`, and the gradient."""

    slots = ("momentum",)

    def __init__(
        self,
        learning_rate: Any,
        momentum: float,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, use_locking, name)
        self._momentum, self._nesterov = momentum, use_nesterov

    def rule(self, value: Any, grad: Any, rate: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
        """The velocity is kept, not scaled by the rate."""
        velocity = kept[0] * jnp.asarray(self._momentum, value.dtype) + grad
        step = grad + velocity * jnp.asarray(self._momentum, value.dtype) if self._nesterov else velocity
        return value - jnp.asarray(rate, value.dtype) * step, [velocity]


class AdamOptimizer(Optimizer):
    """Adam, with its powers of beta kept for each variable."""

    slots = ("m", "v", "step")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(learning_rate, use_locking, name)
        self._betas, self._epsilon = (beta1, beta2), epsilon

    def slot(self, variable: Variable, name: str, first: float = 0.0, shape: Any = None, dtype: Any = None) -> Variable:
        """The count of steps is one number."""
        if name == "step":
            return super().slot(variable, name, first, (), "float32")
        return super().slot(variable, name, first, shape, dtype)

    def rule(self, value: Any, grad: Any, rate: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
        """Moments, corrected for their start."""
        first, second = self._betas
        step = kept[2] + 1
        mean = kept[0] * first + grad * (1 - first)
        square = kept[1] * second + grad * grad * (1 - second)
        corrected = jnp.asarray(rate * jnp.sqrt(1 - second**step) / (1 - first**step), value.dtype)
        return value - corrected * mean / (jnp.sqrt(square) + self._epsilon), [mean, square, step]


class RMSPropOptimizer(Optimizer):
    """The gradient over the root of its mean square."""

    slots = ("rms", "momentum")

    def __init__(
        self,
        learning_rate: Any,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(learning_rate, use_locking, name)
        self._decay, self._momentum, self._epsilon = decay, momentum, epsilon

    def slot(self, variable: Variable, name: str, first: float = 0.0, shape: Any = None, dtype: Any = None) -> Variable:
        """The mean square begins at one."""
        return super().slot(variable, name, 1.0 if name == "rms" else 0.0, shape, dtype)

    def rule(self, value: Any, grad: Any, rate: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
        """A running mean of squares scales the step."""
        square = kept[0] * self._decay + grad * grad * (1 - self._decay)
        step = kept[1] * self._momentum + jnp.asarray(rate, value.dtype) * grad / jnp.sqrt(square + self._epsilon)
        return value - step, [square, step]


__all__ = [
    "AdamOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "RMSPropOptimizer",
    "depends",
    "gradient_operation",
    "gradients",
]
