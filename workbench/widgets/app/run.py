"""How a model is run: batch size, mode, precision, optimizer; and one compile's request from all that the app says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ipywidgets

from workbench.executable import make_request
from workbench.widgets.app.source import Choice

OWN = "as the model"
MODES = ("training", "inference")
PRECISIONS = (OWN, "float32", "float16", "mixed_float16")
OPTIMIZERS = ("own, else SGD", "sgd", "adam", "rmsprop")
IPUS = "auto_select_ipus"
MAX_BATCH = 65_536


@dataclass(frozen=True, slots=True)
class Frozen:
    """Options in the place of a configuration."""

    options: Any

    def freeze(self) -> Any:
        """The options."""
        return self.options


class RunForm:
    """`box` is the form; `arguments()` what it says."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self.batch_size = ipywidgets.BoundedIntText(
            value=4, min=1, max=MAX_BATCH, description="batch size", tooltip="Samples of one micro-batch"
        )
        self.mode = ipywidgets.Dropdown(options=MODES, description="mode", tooltip="A training step, or inference")
        self.precision = ipywidgets.Dropdown(options=PRECISIONS, description="precision", tooltip="Type of the model")
        self.optimizer = ipywidgets.Dropdown(options=OPTIMIZERS, description="optimizer", tooltip="For training")
        controls = [self.batch_size, self.mode, self.precision, self.optimizer]
        for control in controls:
            control.observe(lambda change: on_change(), "value")
        self.mode.observe(self._enable, "value")
        self.box = ipywidgets.Box(controls)
        self.box.add_class("wb-app-run")

    def _enable(self, change: Any) -> None:
        self.optimizer.disabled = self.mode.value == "inference"

    def arguments(self) -> dict[str, Any]:
        """The arguments of a compile."""
        found: dict[str, Any] = {"batch_size": self.batch_size.value, "mode": self.mode.value}
        if self.precision.value != OWN:
            found["precision"] = self.precision.value
        if self.mode.value == "training" and self.optimizer.value != OPTIMIZERS[0]:
            found["optimizer"] = self.optimizer.value
        return found

    def set(self, values: Mapping[str, Any]) -> None:
        """Move the controls to the arguments of a fix; others are not of this form."""
        for name in ("batch_size", "precision"):
            if name in values:
                getattr(self, name).value = values[name]

    def state(self) -> dict[str, Any]:
        """Where the controls stand, for `restore`."""
        return {name: getattr(self, name).value for name in ("batch_size", "mode", "precision", "optimizer")}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Move the controls to where they stood."""
        for name, value in state.items():
            getattr(self, name).value = value


def request_of(choice: Choice, arguments: Mapping[str, Any], options: Any, target: Any = None) -> Any:
    """The request of a compile. More than one selected IPU spreads the layers evenly over as many stages."""
    more = dict(arguments)
    ipus = options.ipus()
    if ipus > 1 and choice.layers >= ipus:
        more["stages"] = [place * ipus // choice.layers for place in range(choice.layers)]
    return make_request(choice.source, config=Frozen(options), target=target, **more)
