"""Models that are compiled with an optimizer and no loss, as Keras trains them: by a loss of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from workbench.engine.frontends.describe.source import ArraySpec
from workbench.engine.frontends.step.abstract_call import abstract_call
from workbench.errors import InputError

OWN_LOSS = "loss: that of the model's own compute_loss; targets have the shape of the output unless an example is given"
OF_INPUTS = "loss: that of the model's own {}, of the inputs alone; give an example of targets to train with them"
ADDED_LOSSES = "loss: what layers add by add_loss, because the model was compiled with no other"


def has_own_loss(model: Any) -> bool:
    """Whether the model's class says what its loss is."""
    return type(model).compute_loss is not keras.Model.compute_loss


def check_own_loss(model: Any, *, usable: bool) -> None:
    """A loss of its own is Keras' to call, with the optimizer that the model was compiled with."""
    if not usable:
        raise InputError(
            f"the model {model.name!r} has a compute_loss of its own, which is trained with the optimizer it is "
            "compiled with",
            expected="a model compiled with an optimizer, and no other optimizer",
            todo="call model.compile(optimizer=...) and leave optimizer= out, or give loss= to train by that instead",
        )


def adds_losses(model: Any, structure: Callable[[Sequence[Any]], Any], specs: Sequence[ArraySpec]) -> bool:
    """Whether a call of the model in training adds losses, those of regularised weights aside."""
    return abstract_call(model, structure, specs).losses > 0


def measures_targets(model: Any) -> bool:
    """Whether metrics that the model was compiled with compare its outputs with targets."""
    said = model.get_compile_config() or {}
    return bool(said.get("metrics") or said.get("weighted_metrics"))
