"""Models that bring a `train_step` of their own: it is traced as it is, a function of state and data.

Keras on JAX calls `train_step(state, data)` with lists of trainable, other, optimizer and metric variables and takes
logs and the new lists back.
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import keras

from workbench.engine.frontends.describe.name_stack import UPDATE_SCOPE
from workbench.errors import InputError

_TODO = "leave stages, gradient accumulation and replicas out, or move the loss into compute_loss()"


def has_own_step(model: Any) -> bool:
    """Whether the model's class says how it is trained."""
    return type(model).train_step is not keras.Model.train_step


def check_usable(model: Any, *, usable: bool) -> None:
    """A step of its own applies the optimizer the model was compiled with, to the model's own variables."""
    if not usable:
        raise InputError(
            f"the model {model.name!r} has a train_step of its own, which applies the optimizer it is compiled with",
            expected="a model compiled with an optimizer, and no other optimizer, loss or precision",
            todo="call model.compile(optimizer=...) and leave optimizer=, loss= and precision= out",
        )


def check_step(model: Any, name: str) -> None:
    """A step of the model's own is called with the state and a batch, as Keras on JAX calls it."""
    step = getattr(model, name)
    try:
        inspect.signature(step).bind([], [])
    except TypeError as error:
        raise InputError(
            f"the {name} of {model.name!r} takes {inspect.signature(step)}: {error}",
            expected="(state, data), lists of the model's variables and a batch, as Keras on JAX calls it",
            todo="return logs and new state, by stateless_call of the model and stateless_apply of its optimizer; or "
            "move the loss into compute_loss(), or write a loop with tf.GradientTape in a tf.function that an "
            "IPUStrategy runs",
        ) from None


def check_whole(model: Any, *, whole: bool) -> None:
    """A step of its own cannot be cut, nor its gradients be added to others."""
    if not whole:
        raise InputError(
            f"the train_step of {model.name!r} is its own and runs whole",
            expected="one stage, one micro-batch and one replica",
            todo=_TODO,
        )


@contextmanager
def _named_updates(optimizer: Any) -> Iterator[None]:
    """What the optimizer does inside is marked as update."""
    apply = optimizer.stateless_apply

    def named(*args: Any, **kwargs: Any) -> Any:
        with jax.named_scope(UPDATE_SCOPE):
            return apply(*args, **kwargs)

    object.__setattr__(optimizer, "stateless_apply", named)
    try:
        yield
    finally:
        object.__delattr__(optimizer, "stateless_apply")


def _stepped(model: Any, state: Any, data: tuple[Any, ...]) -> Any:
    """What the step returns; an `InputError` with the line where it takes another batch apart than it is given."""
    try:
        return model.train_step(state, data)
    except (TypeError, ValueError) as error:
        if "unpack" not in str(error) or not (line := _line_with(error, data)):
            raise
        given = ", ".join(
            f"{name} {_types(each)}" for name, each in zip(("x", "y", "sample_weight"), data, strict=False)
        )
        raise InputError(
            f"the train_step of {model.name!r} takes its batch apart by `{line}`, which ended in: {error}; "
            f"the batch is ({given}{',' if len(data) == 1 else ''})",
            expected="an example of targets where the step reads others than one like each output; sample weights are "
            "in a batch only where a run is given them",
            todo="compile with an example of the targets as the step takes them apart, wb.compile(model, x, y), or "
            "write x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)",
        ) from error


def _line_with(error: Exception, data: tuple[Any, ...]) -> str:
    """The line an error left from, where it names the batch or one of its parts; "" where it is about others."""
    links = list(traceback.walk_tb(error.__traceback__))
    line = traceback.extract_tb(error.__traceback__)[-1].line or ""
    held = links[-1][0].f_locals
    names = [name for name, value in held.items() if any(value is each for each in (data, *data))]
    return line if any(re.search(rf"\b{re.escape(name)}\b", line) for name in names) else ""


def _types(tree: Any) -> str:
    """The arrays in a part of a batch, in its structure: `float32(4, 3)`."""
    texts = [f"{each.dtype}{tuple(each.shape)}" for each in keras.tree.flatten(tree)]
    return texts[0] if not keras.tree.is_nested(tree) and texts else f"[{', '.join(texts)}]"


def own_step(
    model: Any, trainable: Sequence[Any], state: Sequence[Any], slots: Sequence[Any], data: Sequence[Any]
) -> tuple[dict[str, Any], tuple[list[Any], list[Any], list[Any]]]:
    """The logs, "loss" first, and new values of the three lists; metrics are those of this batch alone.

    Without a log named "loss", the first one is reported as the loss too.
    """
    metrics = [jax.numpy.zeros(v.shape, v.dtype) for v in model.metrics_variables]
    with _named_updates(model.optimizer):
        logs, new = _stepped(model, (list(trainable), list(state), list(slots), metrics), tuple(data))
    if not isinstance(logs, dict) or not logs:
        raise InputError(
            f"the train_step of {model.name!r} returned {logs!r} as logs",
            expected="a dictionary with the loss",
            todo="return {'loss': loss}, state",
        )
    named = {str(name): value for name, value in logs.items()}
    loss = named.pop("loss") if "loss" in named else next(iter(named.values()))
    return {"loss": loss, **named}, (list(new[0]), list(new[1]), list(new[2]))
