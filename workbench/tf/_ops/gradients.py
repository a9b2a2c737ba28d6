"""Gradients of a graph, and the optimizers of `tf.train` as operations over variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.errors import InputError, KindError
from workbench.tf import _graph
from workbench.tf._graph import Effects, Operation, Running, Tensor
from workbench.tf._graph.convert import is_symbolic, symbolic
from workbench.tf._graph.evaluate import GradientOf, path_between
from workbench.tf._graph.shapes import UNKNOWN, may_agree
from workbench.tf._graph.variables import TRAINABLE, Variable
from workbench.tf._ops.control import as_tensor
from workbench.tf._ops.math import OPERATIONS


@checked
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: Literal[0, 1, 2] = 0,
    aggregation_method: None = None,
    stop_gradients: Any = None,
    unconnected_gradients: Literal["none", "zero"] = "none",
) -> list[Any]:
    """The gradients of the sum of `ys` with respect to each of `xs`, tensors or variables.

    `grad_ys`: the gradients of `ys`, ones unless given. `stop_gradients`: tensors that are constants to it. Where no
    gradient flows: None, or zeros with `unconnected_gradients="zero"`. They run where the operations they differentiate
    run, so on the same shards, and at once: `colocate_gradients_with_ops` and `gate_gradients` change nothing.
    Errors: `InputError` for what is neither tensor nor variable nor numbers, or has another shape than it belongs to.
    """
    targets = tuple(_tensors("ys", ys))
    sources = tuple(each if isinstance(each, Variable) else _tensor("xs", each) for each in _as_list(xs))
    given = [] if grad_ys is None else _tensors("grad_ys", grad_ys)
    if grad_ys is not None and not all_agree(given, targets):
        raise InputError(f"grad_ys is {short(grad_ys)}", expected="a gradient of the shape of each of ys")
    stopped = frozenset() if stop_gradients is None else frozenset(_stopped(stop_gradients))
    asked = [depends(targets, source, stopped=stopped) for source in sources]
    connected = tuple(source for source, reached in zip(sources, asked, strict=True) if reached)
    of = GradientOf(targets, connected, stopped=stopped)
    made = iter(gradient_operation(of, given, name) if connected else ())
    none = OPERATIONS["zeros_like"] if unconnected_gradients == "zero" else lambda source: None
    return [next(made) if reached else none(source) for source, reached in zip(sources, asked, strict=True)]


def all_agree(given: Sequence[Tensor], targets: Sequence[Tensor]) -> bool:
    """Whether there is a gradient for each target, of its shape."""
    return len(given) == len(targets) and all(
        may_agree(one.shape, other.shape) for one, other in zip(given, targets, strict=True)
    )


def _tensor(called: str, value: Any) -> Tensor:
    try:
        return as_tensor(symbolic(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{called} is {short(value)}: {error}", expected="tensors, variables, or numbers of one shape"
        ) from None


def _tensors(called: str, value: Any) -> list[Tensor]:
    return [_tensor(called, each) for each in _as_list(value)]


def _stopped(given: Any) -> list[Tensor]:
    """Tensors of the graph: what is none of them has no gradient that could be stopped."""
    for each in _as_list(given):
        if not isinstance(each, Tensor):
            raise InputError(
                f"stop_gradients is {short(given)}",
                expected="tensors of the graph",
                todo="of a variable, use tf.stop_gradient where it is read",
            )
    return _as_list(given)


def depends(
    targets: Sequence[Tensor],
    source: Any,
    spans: tuple[tuple[int, int], ...] = (),
    stopped: frozenset[Tensor] = frozenset(),
) -> bool:
    """Whether a target depends on a tensor or a variable, through operations of these numbers if any are said, and
    through none of the tensors that are stopped."""
    if any(each is source for each in targets):
        return True
    path = set(path_between(GradientOf(tuple(targets), (source,), spans, stopped)))
    return any(each.op in path and each not in stopped for each in targets)


def gradient_operation(asked: GradientOf, given: Sequence[Tensor], name: str) -> list[Any]:
    """The operation that differentiates as asked, `given` the gradients of the targets, ones when there are none."""
    targets, sources = asked.targets, asked.sources
    types = [(None if each.shape is UNKNOWN else each.shape, str(each.dtype)) for each in sources]

    def compute(run: Running, values: Sequence[Any]) -> Sequence[Any]:
        made = values[: len(targets)]
        seeds = list(values[-len(given) :]) if given else [jnp.ones(each.shape, each.dtype) for each in made]
        try:
            return list(run.pullback(asked)(seeds)[0])
        except ValueError as error:
            if "lax.while_loop" not in str(error):
                raise
        raise InputError(
            "a gradient goes through a loop whose number of turns only the running program knows",
            expected="a loop whose turns are counted when the program is built",
            todo="loop over tf.range of a Python number, or over ipu.loops.repeat",
        )

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
    """Base of optimizers: `minimize`, or `compute_gradients` and `apply_gradients`. `slots`: how many per variable.

    A subclass has a `rule` of its own, or wraps another optimizer: it overrides `compute_gradients` and
    `apply_gradients`, and needs no learning rate.
    """

    slots: tuple[str, ...] = ()

    def __init__(self, use_locking: bool = False, name: str = "Optimizer", learning_rate: Any = 0.001) -> None:
        self._lr = _rate("learning_rate", learning_rate)
        self._name, self._use_locking = _name(name), _switch("use_locking", use_locking)
        self._slots: dict[tuple[Variable, str], Variable] = {}

    def get_name(self) -> str:
        """Its name."""
        return self._name

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: Literal[0, 1, 2] = 1,
        aggregation_method: None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Variable]]:
        """Pairs of gradient and variable, of all trainable variables unless a list says which.

        `loss`: a tensor, or a function without arguments that gives one; `grad_loss`: its gradient. The other arguments
        are those of `tf.gradients`.
        """
        every = _graph.get_default_graph().root.get_collection(TRAINABLE)
        found = every if var_list is None else _variables("var_list", _as_list(var_list))
        if not found:
            raise InputError(
                "No variables to optimize" + ("" if var_list is None else f": var_list is {short(var_list)}")
            )
        total = _tensor("loss", loss() if callable(loss) else loss)
        made = gradients(
            total,
            found,
            _shaped("grad_loss", grad_loss, total),
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
        )
        return list(zip(made, found, strict=True))

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Operation:
        """The operation that updates the variables, and adds one to `global_step` where that variable is given.

        Errors: `ValueError` where no variable has a gradient, `InputError` for what is no list of pairs.
        """
        pairs = [(grad, variable) for grad, variable in _pairs(grads_and_vars) if grad is not None]
        if global_step is not None:
            _variables("global_step", [global_step])
        if name is not None:
            _name(name)
        if not pairs:
            raise InputError(
                f"No gradients provided for any variable: grads_and_vars is {short(grads_and_vars)}",
                todo="minimize a loss that depends on one",
            )
        updates = [self._update(grad, variable).op for grad, variable in pairs]
        if global_step is not None:
            updates.append(global_step.assign_add(1).op)
        with _graph.scoped(after=(*_graph.current_scopes().after, *updates)):
            return Operation(name or self._name, (), (), lambda run, values: ())

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: Literal[0, 1, 2] = 1,
        aggregation_method: None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """The operation that updates the variables to lower the loss; see `compute_gradients` and `apply_gradients`."""
        given: dict[str, Any] = {
            "gate_gradients": gate_gradients,
            "aggregation_method": aggregation_method,
            "colocate_gradients_with_ops": colocate_gradients_with_ops,
            "grad_loss": grad_loss,
        }
        asked = {
            key: value for key, value in given.items() if value is not _OF_MINIMIZE[key]
        }  # as a subclass takes them
        pairs = self.compute_gradients(loss, var_list, **asked)
        if all(grad is None for grad, _ in pairs):
            raise InputError(
                f"No gradients provided for any variable: loss is {short(loss)}",
                expected="a loss that depends on one",
            )
        return self.apply_gradients(pairs, global_step, name)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """A variable this optimizer keeps for another, None where it keeps none of this name."""
        _variables("var", [var])
        _name(name)
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


_OF_MINIMIZE = {
    "gate_gradients": 1,
    "aggregation_method": None,
    "colocate_gradients_with_ops": False,
    "grad_loss": None,
}


def _switch(called: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise KindError(f"{called} is {short(value)}", expected="True or False")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise KindError(f"name is {short(value)}", expected="text")
    return value


def _number(called: str, value: Any) -> float:
    """A real number of an optimizer's rule."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise KindError(f"{called} is {short(value)}", expected="a number")
    if not np.isfinite(float(value)):
        raise InputError(f"{called} is {short(value)}", expected="a finite number")
    return float(value)


def _rate(called: str, value: Any) -> Any:
    """A learning rate: a number, a tensor or variable of one, or a function without arguments that gives one."""
    one = isinstance(value, np.ndarray | jnp.ndarray) and value.ndim == 0
    if callable(value) or is_symbolic(value) or isinstance(value, Variable):
        return value
    return _number(called, value.item() if one else value)


def _shaped(called: str, value: Any, like: Tensor) -> Any:
    """A gradient of a tensor: of its shape, or None for ones."""
    made = None if value is None else _tensor(called, value)
    if made is not None and not may_agree(made.shape, like.shape):
        raise InputError(f"{called} is {short(value)}", expected=f"a gradient of shape {tuple(like.shape)}, the loss'")
    return made


def _variables(called: str, given: Any) -> list[Variable]:
    for each in given:
        if not isinstance(each, Variable):
            raise InputError(f"{called} is {short(given)}", expected="variables")
    return list(given)


def _pairs(given: Any) -> list[tuple[Any, Variable]]:
    """Pairs of gradient and variable."""
    held = given if isinstance(given, list | tuple) else list(given) if hasattr(given, "__next__") else None
    if held is None or not all(isinstance(each, list | tuple) and len(each) == 2 for each in held):
        raise InputError(f"grads_and_vars is {short(given)}", expected="pairs of gradient and variable")
    _variables("grads_and_vars", [variable for _, variable in held])
    return [(grad, variable) for grad, variable in held]


class GradientDescentOptimizer(Optimizer):
    """value - rate * gradient."""

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name, learning_rate)

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
        super().__init__(use_locking, name, learning_rate)
        self._momentum, self._nesterov = _number("momentum", momentum), _switch("use_nesterov", use_nesterov)

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
        super().__init__(use_locking, name, learning_rate)
        self._betas = _number("beta1", beta1), _number("beta2", beta2)
        self._epsilon = _number("epsilon", epsilon)

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

    slots: tuple[str, ...] = ("rms", "momentum")

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
        super().__init__(use_locking, name, learning_rate)
        self._decay, self._momentum = _number("decay", decay), _number("momentum", momentum)
        self._epsilon = _number("epsilon", epsilon)
        if _switch("centered", centered):
            self.slots = (*self.slots, "mg")

    def slot(self, variable: Variable, name: str, first: float = 0.0, shape: Any = None, dtype: Any = None) -> Variable:
        """The mean square begins at one."""
        return super().slot(variable, name, 1.0 if name == "rms" else 0.0, shape, dtype)

    def rule(self, value: Any, grad: Any, rate: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
        """A running mean of squares scales the step; centered, that of the gradients' variance."""
        square = kept[0] * self._decay + grad * grad * (1 - self._decay)
        mean = [each * self._decay + grad * (1 - self._decay) for each in kept[2:]]
        spread = square - sum(each * each for each in mean)
        step = kept[1] * self._momentum + jnp.asarray(rate, value.dtype) * grad / jnp.sqrt(spread + self._epsilon)
        return value - step, [square, step, *mean]


__all__ = [
    "AdamOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "RMSPropOptimizer",
    "all_agree",
    "depends",
    "gradient_operation",
    "gradients",
]
