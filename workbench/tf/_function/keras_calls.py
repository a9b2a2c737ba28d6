"""What Keras objects are asked while a `tf.function` is recorded: one operation each, their variables its state.

Layers and models, losses, metrics and optimizers run as they are when the program does, on values, in a stateless
scope; which of their variables they read and write is watched once, abstractly. Keras' own classes are as they were
before and after, and for other threads all the time.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import keras

from workbench.engine.frontends.describe.keras_layers import slot_layer
from workbench.engine.frontends.describe.replicas import replicas_here, total
from workbench.engine.frontends.step.losses import check_scale
from workbench.errors import InputError
from workbench.tf import _graph
from workbench.tf._graph import Effects, Operation, Tensor
from workbench.tf._graph.convert import is_symbolic, symbolic
from workbench.tf._graph.layers import known, of_graph
from workbench.tf._graph.variables import Variable

_LOCK = threading.RLock()
_OPEN: list[list[tuple[Any, str, Any]]] = []  # one for each recording of any thread, the first with what Keras had
_NOTHING = object()
_LOSSES = "losses of keras layers"
_STAND_INS: weakref.WeakKeyDictionary[Variable, Any] = weakref.WeakKeyDictionary()


@dataclass  # without slots, which all threads would share
class _Here(threading.local):
    """Calls of Keras that are being watched or run: what they call in turn is part of them."""

    depth: int = field(default=0)


_HERE = _Here()


@contextmanager
def recorded() -> Iterator[None]:
    """What Keras objects are asked inside, in this thread, becomes operations of the graph that is built."""
    with _LOCK:
        _OPEN.append([] if _OPEN else _exchanged())
    try:
        yield
    finally:
        with _LOCK:
            if len(_OPEN) == 1:
                for owner, name, before in _OPEN[0]:
                    delattr(owner, name) if before is _NOTHING else setattr(owner, name, before)
            _OPEN.pop()


def _exchanged() -> list[tuple[Any, str, Any]]:
    """Put ours in the place of what Keras has; where they were, and what was there."""
    ours = {
        (keras.Layer, "__call__"): _layer_call(keras.Layer.__call__),
        (keras.Layer, "losses"): property(_layer_losses(keras.Layer.losses.fget)),
        (keras.Loss, "__call__"): _loss_call(keras.Loss.__call__),
        (keras.Metric, "__getattribute__"): _metric_attribute,
        (keras.optimizers.Optimizer, "apply"): _applied(keras.optimizers.Optimizer.apply),
        (keras.optimizers.Optimizer, "apply_gradients"): _applied_pairs(keras.optimizers.Optimizer.apply_gradients),
        (keras.random.SeedGenerator, "next"): _no_draw(keras.random.SeedGenerator.next),
        (keras.Variable, "value"): property(_variable_value(keras.Variable.value.fget)),
        **{(keras.Variable, name): _variable_update(name) for name in ("assign", "assign_add", "assign_sub")},
        **{(keras.Variable, name): _variable_operator(name) for name in _OPERATORS},
    }
    before = [(owner, name, vars(owner).get(name, _NOTHING)) for owner, name in ours]
    for (owner, name), made in ours.items():
        setattr(owner, name, made)
    return before


_BOTH_SIDES = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
_OPERATORS = (
    *(f"__{side}{name}__" for name in _BOTH_SIDES for side in ("", "r")),
    *("__neg__", "__abs__", "__lt__", "__le__", "__gt__", "__ge__", "__getitem__"),
)


def _recording() -> bool:
    """Whether this thread records, and what is called now is the program's own call rather than one of Keras'."""
    return _HERE.depth == 0 and _graph.in_function()


@contextmanager
def _inside() -> Iterator[None]:
    _HERE.depth += 1
    try:
        yield
    finally:
        _HERE.depth -= 1


class _Watching(keras.StatelessScope):  # type: ignore[misc]
    """Notes which variables are read and written; variables made inside get their first values behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.read: dict[int, Any] = {}
        self.written: dict[int, Any] = {}

    def get_current_value(self, variable: Any) -> Any:
        self.read[id(variable)] = variable
        found = super().get_current_value(variable)
        return variable._value if found is None else found  # regularizers ask the scope alone

    def add_update(self, update: Any) -> None:
        self.written[id(update[0])] = update[0]
        super().add_update(update)


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True, eq=False)
class _Call:
    """A call of a Keras object: its arguments with places for the values of tensors."""

    function: Callable[..., Any]
    leaves: tuple[Any, ...]
    tree: Any
    places: tuple[int, ...]

    def __call__(self, *values: Any) -> Any:
        filled = list(self.leaves)
        for place, value in zip(self.places, values, strict=True):
            filled[place] = value
        args, kwargs = jax.tree_util.tree_unflatten(self.tree, filled)
        return self.function(*args, **kwargs)


def _call(function: Callable[..., Any], args: Any, kwargs: Any, trained: Sequence[Any] = ()) -> tuple[_Call, list[Any]]:
    """A call of these arguments, and the tensors among them."""
    leaves, tree = jax.tree_util.tree_flatten((args, kwargs), is_leaf=lambda each: each is None)
    given = [each if _is_variable(each, trained) else symbolic(each) for each in leaves]
    places = tuple(place for place, each in enumerate(given) if isinstance(each, Tensor))
    return _Call(function=function, leaves=tuple(given), tree=tree, places=places), [given[place] for place in places]


def _types(tensors: Sequence[Tensor]) -> list[Any]:
    return [jax.ShapeDtypeStruct(_graph.known_shape(each), str(each._dtype)) for each in tensors]


def _build(function: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Let a layer make its variables, which have their first values behind it."""
    call, inputs = _call(function, args, kwargs)
    with _inside(), keras.StatelessScope():
        jax.eval_shape(call, *_types(inputs))


def _record(
    kind: str, function: Callable[..., Any], args: Any, kwargs: Any, *, role: str = "", trained: Sequence[Any] = ()
) -> Any:
    """The call as one operation of the graph; its result has the structure that the function's has.

    `role`: of variables it touches that are not among those `trained`.
    """
    call, inputs = _call(function, args, kwargs, trained)
    with _inside(), _Watching() as watched:
        results, structure = jax.tree_util.tree_flatten(jax.eval_shape(call, *_types(inputs)))
    layers = [(each.path, known(each).layer) for each in trained if _stands_for(each) is None]

    def held(each: Any) -> Any:
        stood_for = _stands_for(each)
        if stood_for is not None:
            return stood_for
        own = any(each is other for other in trained)
        layer = slot_layer(each, layers) if role and not own else None
        return known(each, "" if own or "seed" in each.path else role, layer)

    touched = {key: (each, held(each)) for key, each in {**watched.read, **watched.written}.items()}
    written = [touched[key] for key in watched.written]
    operation = Operation(
        kind,
        inputs,
        [(tuple(each.shape), str(each.dtype)) for each in results],
        _computing(call, list(touched.values()), written),
        effects=Effects(
            reads=frozenset(variable for _, variable in touched.values()),
            writes=frozenset(variable for _, variable in written),
        ),
    )
    operation.updates = bool(trained)
    return jax.tree_util.tree_unflatten(structure, operation.outputs)


def _computing(call: _Call, touched: Sequence[tuple[Any, Any]], written: Sequence[tuple[Any, Any]]) -> Any:
    def compute(run: Any, values: Sequence[Any]) -> Sequence[Any]:
        mapping = [(each, run.state.read(variable)) for each, variable in touched]
        with _inside(), keras.StatelessScope(state_mapping=mapping) as scope:
            made: list[Any] = jax.tree_util.tree_leaves(call(*values))
        for each, variable in written:
            run.state.write(variable, scope.get_current_value(each))
        return made

    return compute


def _is_variable(each: Any, trained: Sequence[Any]) -> bool:
    """Whether an argument is a variable that is updated, rather than one whose value is meant."""
    return isinstance(each, keras.Variable) and bool(trained)


# -- layers, models and losses --------------------------------------------------------------------------


def _layer_call(original: Any) -> Any:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _recording() or _of_keras_inputs(args, kwargs):
            return original(self, *args, **kwargs)

        def whole(*given: Any, **named: Any) -> Any:
            made = original(self, *given, **named)
            return made, list(self.losses)

        if not self.built:
            _build(functools.partial(original, self), args, kwargs)
        made, losses = _record(type(self).__name__, whole, args, kwargs)
        _keep_losses(self, losses)
        return made

    return call


def _of_keras_inputs(args: Any, kwargs: Any) -> bool:
    """Whether a model is being built of Keras' own inputs."""
    given = [each for each in jax.tree_util.tree_leaves((args, kwargs)) if isinstance(each, keras.KerasTensor)]
    return any(not of_graph(each) for each in given)


def _keep_losses(layer: Any, losses: list[Any]) -> None:
    """The losses of a layer in the graph are those of its last call."""
    kept = _graph.get_default_graph().root.collections.setdefault(_LOSSES, [])
    kept[:] = [(owner, found) for owner, found in kept if owner is not layer]
    kept.append((layer, losses))


def _layer_losses(original: Any) -> Any:
    def losses(self: Any) -> Any:
        if not _recording():
            return original(self)
        kept = _graph.get_default_graph().root.collections.get(_LOSSES, [])
        for owner, found in kept:
            if owner is self:
                return list(found)
        return list(_record("Losses", lambda: list(original(self)), (), {}))

    return losses


def _loss_call(original: Any) -> Any:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _recording() or not any(is_symbolic(each) for each in jax.tree_util.tree_leaves((args, kwargs))):
            return original(self, *args, **kwargs)
        return _record(type(self).__name__, functools.partial(original, self), args, kwargs)

    return call


# -- metrics and optimizers -----------------------------------------------------------------------------

_ASKED_OF_METRICS = ("__call__", "update_state", "result", "reset_state")


def _metric_attribute(self: Any, name: str) -> Any:
    found = object.__getattribute__(self, name)
    if name not in _ASKED_OF_METRICS or not _recording():
        return found

    @functools.wraps(found)
    def asked(*args: Any, **kwargs: Any) -> Any:
        return _record(f"{type(self).__name__}/{name}", found, args, kwargs)

    return asked


def _applied(original: Any) -> Any:
    @functools.wraps(original)
    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> None:
        if not _recording():
            original(self, grads, trainable_variables)
            return
        given = self._trainable_variables if trainable_variables is None else trainable_variables
        _update(self, original, list(grads), list(given))

    return apply


def _applied_pairs(original: Any) -> Any:
    @functools.wraps(original)
    def apply_gradients(self: Any, grads_and_vars: Any) -> Any:
        if not _recording():
            return original(self, grads_and_vars)
        grads, variables = zip(*grads_and_vars, strict=True)
        self.apply(list(grads), list(variables))
        return self.iterations

    return apply_gradients


def _update(optimizer: Any, original: Any, grads: list[Any], variables: list[Any]) -> None:
    """The operation that updates variables, with gradients summed over the replicas of a program."""
    for each in variables:
        if not isinstance(each, Variable | keras.Variable):
            raise InputError(
                f"{optimizer.name} was given {each!r} to update", expected="variables of Keras and tf.Variable"
            )
    if all(each is None for each in grads):
        raise InputError(
            "No gradients provided for any variable: all gradients are None",
            todo="compute the loss inside `with tf.GradientTape()`, from the variables",
        )
    held = [_stand_in(each) if isinstance(each, Variable) else each for each in variables]
    if not optimizer.built:
        check_scale(optimizer)
        with _inside(), keras.name_scope(optimizer.name):
            optimizer.build(held)

    def apply(given: list[Any], updated: list[Any]) -> None:
        present = [each for each in given if each is not None]
        sums = iter(total(present, replicas_here()))
        original(optimizer, [each if each is None else next(sums) for each in given], updated)

    _record(type(optimizer).__name__, apply, (grads, held), {}, role="optimizer", trained=held)


def _stand_in(variable: Variable) -> Any:
    """A variable of Keras that an optimizer takes for one of `tf`, whose value it never has."""
    if variable not in _STAND_INS:
        name = variable.handle.replace("/", "_")
        with _inside():
            made = keras.Variable(variable.held(), dtype=str(variable.dtype), trainable=variable.trainable, name=name)
        made.stands_for_variable = variable
        _STAND_INS[variable] = made
    return _STAND_INS[variable]


def _stands_for(each: Any) -> Variable | None:
    found: Variable | None = getattr(each, "stands_for_variable", None)
    return found


def of_variables(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A function of Keras that is given variables of Keras, as one operation of their values."""
    return _record(function.__name__, function, args, kwargs)


# -- variables ------------------------------------------------------------------------------------------


def _variable_value(original: Any) -> Any:
    def value(self: Any) -> Any:
        return known(self).read_value() if _recording() else original(self)

    return value


def _variable_update(name: str) -> Any:
    original = getattr(keras.Variable, name)

    @functools.wraps(original)
    def update(self: Any, value: Any) -> Any:
        if not _recording():
            return original(self, value)
        given = symbolic(value) if is_symbolic(value) else value
        return getattr(known(self), name)(given)

    return update


def _variable_operator(name: str) -> Any:
    original = getattr(keras.Variable, name)

    @functools.wraps(original)
    def operator(self: Any, *others: Any) -> Any:
        return getattr(known(self).read_value(), name)(*others) if _recording() else original(self, *others)

    return operator


def _no_draw(original: Any) -> Any:
    @functools.wraps(original)
    def next(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _recording():
            raise InputError(
                "keras.random was asked for numbers inside a tf.function, where they would be drawn once",
                todo="use tf.random, which draws in every run, or draw inside a Keras layer",
            )
        return original(self, *args, **kwargs)

    return next


__all__ = ["of_variables", "recorded"]
