"""How a model is run: batch size, mode, precision, optimizer; and one compile's request from all that the app says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ipywidgets

from workbench.errors import InputError
from workbench.executable import OFFLOAD, compile_request, make_request
from workbench.widgets.app.form.number import WholeNumber
from workbench.widgets.app.form.source import Choice

OWN = "as the model"
MODES = ("training", "inference")
PRECISIONS = (OWN, "float32", "float16", "mixed_float16")
OPTIMIZERS = ("own, else SGD", "sgd", "adam", "rmsprop")
OWN_LOSS = "own, or by output"
LOSSES = (
    OWN_LOSS,
    *("sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy"),
    *("mean_squared_error", "mean_absolute_error", "huber"),
)
IPUS = "auto_select_ipus"
EVEN, FOUND, BY_HAND = "by layer count", "by measured cost", "cut by hand"
AUTO = "auto"  # as `wb.compile(stages=...)` says it
MAX_REPLICAS = 64
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
        self.batch_size = WholeNumber("batch size", 4, 1, MAX_BATCH, tooltip="Samples of one micro-batch")
        self.mode = ipywidgets.Dropdown(options=MODES, description="mode", tooltip="A training step, or inference")
        self.precision = ipywidgets.Dropdown(options=PRECISIONS, description="precision", tooltip="Type of the model")
        self.optimizer = ipywidgets.Dropdown(options=OPTIMIZERS, description="optimizer", tooltip="For training")
        self.loss = ipywidgets.Dropdown(options=LOSSES, description="loss", tooltip=_LOWERED)
        self.loss.add_class("wb-app-wide")  # names as "sparse_categorical_crossentropy"
        self.offload = ipywidgets.SelectMultiple(
            options=list(OFFLOAD), rows=len(OFFLOAD), description="offload", tooltip=_OFFLOADED
        )
        self.stages = ipywidgets.Dropdown(options=[EVEN, FOUND], description="stages", tooltip=_STAGES)
        copies = "Copies of the program on IPUs of their own"
        self.replicas = WholeNumber("replicas", 1, 1, MAX_REPLICAS, tooltip=copies)
        self.cuts: list[str] = []  # the layers to cut after, where they were moved by hand
        self._countable = True
        self._wished = EVEN  # where it can be had
        controls = [getattr(self, name) for name in _KEPT]
        for control in controls:
            control.observe(lambda change: on_change(), "value")
        self.mode.observe(self._enable, "value")
        self.box = ipywidgets.Box(controls)
        self.box.add_class("wb-app-run")

    def _enable(self, change: Any) -> None:
        for control in (self.optimizer, self.loss):
            control.disabled = self.mode.value == "inference"

    def arguments(self) -> dict[str, Any]:
        """The arguments of a compile."""
        found: dict[str, Any] = {"batch_size": self.batch_size.value, "mode": self.mode.value}
        if self.precision.value != OWN:
            found["precision"] = self.precision.value
        if self.mode.value == "training":
            if self.optimizer.value != OPTIMIZERS[0]:
                found["optimizer"] = self.optimizer.value
            if self.loss.value != OWN_LOSS:
                found["loss"] = self.loss.value
        if self.offload.value:
            found["offload"] = tuple(self.offload.value)
        if self.replicas.value > 1:
            found["replicas"] = self.replicas.value
        return found

    def writes(self) -> set[str]:
        """The options that fields of this form write over the others: see `wb.compile`."""
        return {OFFLOAD[name][0] for name in self.offload.value}

    def cut_by_hand(self, cuts: list[str]) -> None:
        """Cut behind these layers, or, without any, no more by hand."""
        self.cuts = cuts
        self._offer(BY_HAND if cuts else FOUND if self.stages.value == BY_HAND else self.stages.value)

    def count_layers(self, known: bool) -> None:
        """Whether layers can be spread by their count: where they cannot, that is not offered, and comes back later."""
        if known != self._countable:
            if not known:
                self._wished = self.stages.value
            self._countable = known
            back = known and self.stages.value == FOUND
            self._offer(self._wished if back else self.stages.value)

    def _offer(self, chosen: str) -> None:
        """Show the ways to cut that there are, with one chosen."""
        ways = [*([EVEN] if self._countable else []), FOUND, *([BY_HAND] if self.cuts else [])]
        self.stages.options = ways
        self.stages.value = chosen if chosen in ways else FOUND

    def set(self, values: Mapping[str, Any]) -> None:
        """Move the controls to the arguments of a fix; others are not of this form."""
        for name in ("batch_size", "precision", "replicas"):
            if name in values:
                getattr(self, name).value = values[name]
        if "offload" in values:
            offload = values["offload"]
            self.offload.value = (offload,) if isinstance(offload, str) else tuple(offload)

    def state(self) -> dict[str, Any]:
        """Where the controls stand, for `restore`."""
        return {"cuts": self.cuts, **{name: getattr(self, name).value for name in _KEPT}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Move the controls to where they stood."""
        self.cut_by_hand(state["cuts"])
        for name in _KEPT:
            if name != "stages":
                getattr(self, name).value = state[name]
        self._offer(state["stages"])  # of another source, as there they can be cut


def request_of(choice: Choice, run: RunForm, options: Any, target: Any = None) -> Any:
    """The request of a compile. More than one IPU of a copy makes stages, as `run` says; `AUTO` where they are found.

    The layers of a ready model are only known when it is built, so that its stages are found.
    """
    more = run.arguments()
    ipus, replicas = options.ipus(), run.replicas.value
    if ipus % replicas:
        raise InputError(
            f"{ipus} IPUs are selected, for {replicas} replicas",
            expected="as many for each replica",
            todo=f"select {-(-ipus // replicas) * replicas} IPUs, or take other replicas",
        )
    stages = ipus // replicas
    found = stages > 1 and (run.stages.value == FOUND or choice.layers < stages) and run.stages.value != BY_HAND
    if stages > 1 and not found:
        even = [place * stages // choice.layers for place in range(choice.layers)]
        more["stages"] = run.cuts if run.stages.value == BY_HAND else even
    request = make_request(choice.source, config=Frozen(options), target=target, **more)
    return dataclasses.replace(request, stages=AUTO) if found else request


def compiled(request: Any, progress: Any, like: Any = None) -> Any:
    """The request compiled; stages that are to be found are, and the best split is what comes."""
    if request.stages != AUTO:
        return compile_request(request, progress, like)
    from workbench.splits.find import autosplit

    ipus = request.options.ipus() // request.replicas
    return autosplit(request.replace(stages=None), compile_request, ipus, progress=progress).executable


_KEPT = ("batch_size", "mode", "precision", "loss", "optimizer", "stages", "replicas", "offload")
_OFFLOADED = "What waits in streaming memory beside the IPUs; several with Ctrl"
_LOWERED = "What training lowers: the model's own loss, or the one that goes with its output"
_STAGES = "Layers on each IPU of a copy: as many on each, or as the measured costs of the layers ask for"
