"""Losses and optimizers of a training step: those given, else those compiled, else defaults, each listed."""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import keras

from workbench.engine.frontends.describe.checks import flattened
from workbench.engine.frontends.describe.source import ArraySpec
from workbench.engine.frontends.step.own_step import check_step, check_usable, has_own_step
from workbench.engine.frontends.step.without_loss import (
    ADDED_LOSSES,
    OWN_LOSS,
    check_own_loss,
    has_own_loss,
    measures_targets,
)
from workbench.errors import InputError

DEFAULT_LEARNING_RATE = 0.01


def as_loss(loss: Any) -> Any:
    """A Keras loss object: a class instance as it is, a name or function as the mean over the batch of its values."""
    found = _found_loss(loss)
    if isinstance(found, keras.losses.Loss):
        return found

    class FunctionLoss(keras.losses.Loss):  # type: ignore[misc]
        """The mean over the batch of a loss function."""

        def call(self, y_true: Any, y_pred: Any) -> Any:
            """The loss of each sample; a column of one is as good as none, as Keras has it for functions."""
            if y_true.ndim == y_pred.ndim - 1 and y_pred.shape[-1] == 1:
                y_true = keras.ops.expand_dims(y_true, -1)
            return found(y_true, y_pred)

    return FunctionLoss(name=getattr(found, "__name__", "loss"))


def _found_loss(loss: Any) -> Any:
    """What Keras finds by a name, a configuration or the loss itself; an `InputError` where it finds none."""
    try:
        found = keras.losses.get(loss)
    except (ValueError, TypeError, KeyError):
        found = None
    if callable(found):
        return found
    names = [name for name in dir(keras.losses) if not name.startswith("_") and name.islower()]
    close = difflib.get_close_matches(str(loss), names, n=1)
    raise InputError(
        f"loss is {loss!r}",
        expected="a loss of keras.losses, its name, or a function of the target and the output",
        todo=f"did you mean {close[0]!r}?" if close else "write loss='mean_squared_error', say",
    )


def _check_losses(loss: Any) -> None:
    """Every loss that was given is one; an output may have None."""
    whole = isinstance(loss, dict) and "class_name" in loss
    for each in [loss] if whole else flattened("loss", loss):
        if each is not None:
            _found_loss(each)


def _takes(loss: Any, target: ArraySpec, output: ArraySpec) -> bool:
    """Whether a loss can compare a target with an output: it is tried on their types, in a batch unlike other sizes."""
    sizes = {*target.shape[1:], *output.shape[1:]}
    batch = next(size for size in _BATCHES if size not in sizes)
    return _compares(loss, *(replace(each, shape=(batch, *each.shape[1:])) for each in (target, output)))


def _compares(loss: Any, target: ArraySpec, output: ArraySpec) -> bool:
    """The same, in these very shapes."""
    types = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in (target, output)]
    try:
        jax.eval_shape(as_loss(loss), *types)
    except Exception:  # whatever a loss of somebody else's raises of what it was not made for
        return False
    return True


_BATCHES = (7, 11, 13, 17, 19, 23, 29, 31, 37)


def _last_layer(model: Any) -> Any:
    """The layer that makes the output of a model whose layers follow each other."""
    layer = model
    while isinstance(layer, keras.Model) and layer.layers:
        layer = layer.layers[-1]
    return layer


def _activation(layer: Any) -> str:
    """Name of the activation that ends a layer, "" when there is none or nobody can tell."""
    if isinstance(layer, keras.layers.Softmax):
        return "softmax"
    activation = getattr(layer, "activation", None)
    return str(getattr(activation, "__name__", ""))


_DEFAULTS: dict[str, tuple[type[keras.losses.Loss], str]] = {
    "softmax": (keras.losses.SparseCategoricalCrossentropy, "sparse categorical cross-entropy"),
    "sigmoid": (keras.losses.BinaryCrossentropy, "binary cross-entropy"),
    "": (keras.losses.MeanSquaredError, "mean squared error"),
}
_BECAUSE = {"softmax": "is a softmax", "sigmoid": "is a sigmoid", "": "is neither a softmax nor a sigmoid"}


def default_loss(model: Any, outputs: Sequence[str] = ()) -> tuple[Any, str]:
    """The loss a model is trained with when none was given, and the sentence that says so.

    Of a model with several outputs (their names) one for each, by the layer that makes it.
    """
    if len(outputs) < 2:
        made, text, because = _default(_last_layer(model))
        return made, f"loss: {text}, because none was given and the output {because}"
    makers = [tensor._keras_history.operation for tensor in getattr(model, "outputs", None) or ()]
    found = [_default(maker) for maker in makers or [None] * len(outputs)]
    texts = [f"{name} {because}, so {text}" for name, (_, text, because) in zip(outputs, found, strict=True)]
    return [made for made, _, _ in found], f"losses, because none were given: {'; '.join(texts)}"


_ON_PROBABILITIES = {
    "sparse_categorical_crossentropy": "softmax",
    "categorical_crossentropy": "softmax",
    "binary_crossentropy": "sigmoid",
}


def on_logits(model: Any, loss: Any) -> list[str]:
    """A sentence where a loss on probabilities, as it was given, compares the output of a layer that makes none."""
    layer = _last_layer(model)
    if isinstance(loss, (list, tuple, dict)) or _activation(layer) != "linear":
        return []
    found = keras.losses.get(loss)
    function = getattr(found, "fn", found)
    ending = _ON_PROBABILITIES.get(str(getattr(function, "__name__", "")))
    if ending is None or getattr(found, "_fn_kwargs", {}).get("from_logits"):
        return []
    name = function.__name__.replace("_", " ").replace("crossentropy", "cross-entropy")
    return [
        f"loss: {name} on probabilities, as it was given, though the output of {layer.name!r} has no {ending}: "
        "from_logits=True, or an activation, trains it as meant"
    ]


def _default(layer: Any) -> tuple[Any, str, str]:
    """A loss by the activation of the layer that makes the output, what it is called, and why it was chosen."""
    name = _activation(layer)
    kind = name if name in _DEFAULTS else ""
    loss, text = _DEFAULTS[kind]
    return loss(), text, _BECAUSE[kind]


def default_optimizer() -> tuple[Any, str]:
    """SGD, and the sentence that says so."""
    sentence = f"optimizer: SGD with learning rate {DEFAULT_LEARNING_RATE}, because none was given"
    return keras.optimizers.SGD(DEFAULT_LEARNING_RATE), sentence


OWN_STEP = "loss: that of the model's own train_step; targets have the shape of the output unless an example is given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a model is trained. `loss` is one, or one for each output in a list or by name, weighed by `loss_weights`.

    `compiled`: with the loss and metrics of `model.compile`, through Keras' own step. `own_step`: by the model's own.
    `targets`: there is something to compare with; where layers add all the loss, there need not be.
    """

    optimizer: Any
    loss: Any
    compiled: bool
    loss_weights: Any = None
    assumptions: tuple[str, ...] = ()
    own_step: bool = False
    targets: bool = True


def fresh_optimizer(optimizer: Any) -> Any:
    """An unbuilt optimizer with the same settings."""
    return type(optimizer).from_config(optimizer.get_config())


def steps_of_update(optimizer: Any) -> int:
    """How many of its own steps an optimizer makes a weight update of: Keras' accumulation, also of an inner one."""
    inner = getattr(optimizer, "inner_optimizer", None)
    each = (getattr(found, "gradient_accumulation_steps", None) for found in (optimizer, inner))
    return int(next(filter(None, each), 1))


def find_recipe(
    model: Any,
    optimizer: Any,
    loss: Any,
    origin: Any,
    suggested: tuple[Any, str] | None = None,
    outputs: Sequence[str] = (),
    adds_losses: Callable[[], bool] = lambda: False,
) -> Recipe:
    """What is given wins over what the model was compiled with, which wins over the defaults.

    `origin` is the model as the user made it when `model` is a copy in another precision; `suggested` is the loss
    (and its sentence) a ready model brings; `outputs` are the names of the outputs; `adds_losses` says whether layers
    add some, and is asked of a model that is compiled with none.
    """
    assumptions: list[str] = []
    _check_losses(loss)
    loss = _one_for_each(loss, outputs)
    compiled = bool(origin.compiled)
    chosen_loss = loss if loss is not None else (origin.loss if compiled else None)
    without = "" if chosen_loss is not None or suggested or not compiled else _without_loss(model, adds_losses)
    use_compiled = compiled and loss is None and bool(origin.loss is not None or without)
    if without:
        assumptions.append(without)
    elif chosen_loss is None:
        chosen_loss, sentence = suggested or default_loss(model, outputs)
        assumptions.append(OWN_STEP if has_own_step(model) else sentence)
    else:
        assumptions += on_logits(model, chosen_loss)
    weights = _weights_of(origin) if compiled and loss is None and keras.tree.is_nested(chosen_loss) else None
    own_optimizer = origin.optimizer if compiled else None
    if optimizer is None and own_optimizer is None:
        chosen, sentence = default_optimizer()
        assumptions.append(sentence)
    else:
        chosen = _usable(optimizer if optimizer is not None else own_optimizer, own_optimizer, model is origin)
    kept = model is origin and chosen is own_optimizer
    if has_own_step(model):
        check_usable(model, usable=kept and loss is None)
        check_step(model, "train_step")
    elif has_own_loss(model) and loss is None:
        check_own_loss(model, usable=use_compiled and kept)
    return Recipe(
        optimizer=chosen,
        loss=chosen_loss,
        compiled=use_compiled and kept,
        loss_weights=weights,
        assumptions=tuple(assumptions),
        own_step=has_own_step(model),
        targets=without != ADDED_LOSSES or measures_targets(origin),
    )


def _without_loss(model: Any, adds_losses: Callable[[], bool]) -> str:
    """What a model is trained by that is compiled with no loss, as a sentence; "" where nobody says."""
    if has_own_step(model):
        return ""
    if has_own_loss(model):
        return OWN_LOSS
    return ADDED_LOSSES if adds_losses() else ""


def as_optimizer(optimizer: Any) -> Any:
    """A Keras optimizer: an instance as it is, one by name or as a dictionary as Keras finds it.

    Keras knows no Lamb by name, so names it does not know are looked up among its public classes.
    """
    try:
        found = keras.optimizers.get(optimizer)
    except (ValueError, KeyError):  # a wrapper by name asks its configuration for what it wraps
        known = _optimizers()
        if isinstance(optimizer, str) and optimizer.lower() in known:
            return known[optimizer.lower()]()
        raise InputError(
            f"optimizer is {optimizer!r}",
            expected=f"an optimizer, or in any case one of: {', '.join(each.__name__ for each in known.values())}",
            todo="give an optimizer of keras.optimizers, such as keras.optimizers.Lamb(1e-3)",
        ) from None
    return check_scale(found)


def _optimizers() -> dict[str, Any]:
    """Optimizers that need no arguments, by their names in small letters."""
    public = {name: each for name, each in sorted(vars(keras.optimizers).items()) if isinstance(each, type)}
    return {
        name.lower(): each
        for name, each in public.items()
        if issubclass(each, keras.optimizers.Optimizer) and not _asks(each) and each is not keras.optimizers.Optimizer
    }


def _asks(each: type) -> bool:
    """Whether a class cannot be made without arguments."""
    asked = inspect.signature(each).parameters.values()
    return any(one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD for one in asked)


def check_scale(optimizer: Any) -> Any:
    """The optimizer. Errors: `InputError` for a loss scale that is none, as where arguments of TensorFlow's Keras were
    meant, whose second is `dynamic`: Keras computes a loss with it that is no number."""
    if not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return optimizer
    scale = optimizer.initial_scale
    if isinstance(scale, bool) or not scale > 0:
        raise InputError(
            f"initial_scale of the LossScaleOptimizer is {scale!r}",
            expected="a number above 0; in Keras 3 it is the second argument, and dynamic_growth_steps the third",
            todo="write LossScaleOptimizer(optimizer, initial_scale=...), or for a fixed one leave it out and set "
            "the optimizer's own loss_scale_factor",
        )
    return optimizer


def _usable(optimizer: Any, own: Any, same_variables: bool) -> Any:
    found = as_optimizer(optimizer)
    if not found.built or (found is own and same_variables):
        return found
    return fresh_optimizer(found)


def target_spec(loss: Any, output: ArraySpec, name: str = "y") -> ArraySpec:
    """The target an output is compared with: an array like the output, or class numbers where the loss takes no such.

    A loss that takes neither is left to say so when it is traced.
    """
    like = ArraySpec(name=name, shape=output.shape, dtype=output.dtype)
    classes = ArraySpec(name=name, shape=output.shape[:-1], dtype="int32")
    if loss is None or len(output.shape) < 2 or _takes(loss, like, output) or not _takes(loss, classes, output):
        return like
    return classes


def is_open(loss: Any, target: ArraySpec, output: ArraySpec) -> bool:
    """Whether a loss takes targets of another size too, as CTC does, so that the output does not say which they have.

    A size of 1 is left alone: what is compared with it is repeated to any.
    """
    for axis, size in enumerate(target.shape[1:], 1):
        other = size + 1 if size < 3 else size - 1
        shape = (*target.shape[:axis], other, *target.shape[axis + 1 :])
        if loss is not None and size > 1 and _compares(loss, replace(target, shape=shape), output):
            return True
    return False


def check_target(loss: Any, target: ArraySpec, output: ArraySpec) -> None:
    """An `InputError` that names both shapes where a loss cannot compare the target that was given with the output.

    A loss that cannot compare any target with it is left to say so when it is traced.
    """
    if loss is None or _compares(loss, target, output):
        return
    wanted = target_spec(loss, output, target.name)
    if not _compares(loss, wanted, output):
        return
    raise InputError(
        f"{target.name} has shape {target.shape}, which the loss cannot compare with the output {output.name!r} of "
        f"shape {output.shape}",
        expected=f"{target.name} of shape {wanted.shape}",
        todo=f"pass such targets to wb.compile(model, x, y), or end the model in as many units as {target.name} holds",
    )


def _one_for_each(loss: Any, outputs: Sequence[str]) -> Any:
    """Losses as they were given, one for each output; of a list of one for one output, that one."""
    named = isinstance(loss, dict)
    if not keras.tree.is_nested(loss) or not outputs or (named and "class_name" in loss):  # Keras' text of one loss
        return loss
    if len(loss) != len(outputs) or (named and all(outputs) and set(loss) != set(outputs)):
        count, given = len(outputs), f"losses for {', '.join(map(str, loss))}" if named else f"{len(loss)} losses"
        raise InputError(
            f"{given} were given",
            expected=f"one for each of the {count} outputs ({', '.join(outputs)})" if count > 1 else "one loss",
            todo="give loss= a loss for each output, in a list or by name",
        )
    return next(iter(loss.values() if named else loss)) if len(outputs) == 1 else loss


def loss_of_outputs(recipe: Recipe, model: Any, y: Any, outputs: Any, weight: Any) -> Any:
    """The loss of a batch: of several outputs the weighed sum, as `keras.Model.compile` has it; 0 of no loss."""
    if recipe.loss is None:
        return jax.numpy.zeros((), "float32")
    if not keras.tree.is_nested(outputs):  # a model whose outputs are a list of one gives it alone
        return as_loss(recipe.loss)(_alone(y), outputs, sample_weight=_alone(weight))
    holder = keras.Model()
    holder.output_names = getattr(model, "output_names", None)
    # An optimizer, which is never asked, would make a variable, and a builder's model may not have any here.
    holder.compile(optimizer=None, loss=recipe.loss, loss_weights=recipe.loss_weights)
    with keras.StatelessScope(initialize_variables=False):  # it keeps a mean for each output, which nobody reads
        return holder.compute_loss(y=y, y_pred=outputs, sample_weight=weight)


def _alone(values: Any) -> Any:
    return values[0] if isinstance(values, list | tuple) and len(values) == 1 else values


def _weights_of(model: Any) -> Any:
    """The weights of the losses that a model was compiled with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a loss that is a lambda would be stored as code; only the weights are read
        return (model.get_compile_config() or {}).get("loss_weights")
