"""What the app compiles: a model built row by row, a ready one, or one the notebook already has."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ipywidgets

from workbench.base.text import meant, short, shown
from workbench.errors import InputError
from workbench.executable import layered_source
from workbench.widgets.app.builder import Builder
from workbench.widgets.app.builder.layers import described, input_type, keras_code
from workbench.widgets.app.form.sizes import Sizes

READY = {
    "mlp": "two hidden layers of 128 on 64 features",
    "cnn": "two convolutions with pooling on 32 x 32 colour images",
    "resnet50": "50 layers of residual blocks on 224 x 224 colour images",
    "mobilenetv2": "depthwise convolutions between narrow ones on 224 x 224 colour images",
    "efficientnetb0": "depthwise convolutions with squeeze and excitation on 224 x 224 colour images",
    "lstm": "two LSTM layers of 256 over 64 steps",
    "bert-base": "12 Transformer layers on 128 tokens, with a classifier",
    "bert-large": "24 Transformer layers of width 1024 on 128 tokens, with a classifier",
    "gpt2": "12 causal Transformer layers on 1024 tokens, which tell the next one",
    "llama-block": "one Llama block of width 2048 over 128 positions",
    "llama-decode": "one Llama block for one more token, its cache of 128 updated",
    "vit-b16": "12 Transformer layers on the 16 x 16 patches of a 224 x 224 colour image",
    "transformer-encoder": "6 Transformer layers of width 512 on 128 steps",
}
TABS = ("Build", "Ready-made", "From the notebook")
_NONE = "no Keras model found"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A source with its name; the code that makes `model`, when the app wrote it; the notebook's variable that holds
    it, "" without one; and the number of layers that can be spread over IPUs, 0 where it is not known."""

    name: str
    source: Any
    code: str = ""
    variable: str = ""
    layers: int = 0


def notebook_variables() -> dict[str, Any]:
    """The notebook's variables by name, those that code can write; none outside a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    values: Mapping[str, Any] = {} if shell is None else shell.user_ns
    return {name: value for name, value in values.items() if _is_written(name)}


def _is_written(name: Any) -> bool:
    """Whether a name is one of Python's: what a notebook's dictionary holds under others would be code in a call."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        return False
    return not name.startswith("_")


def notebook_models() -> dict[str, Any]:
    """The Keras models among the notebook's variables by name, when Keras is in use."""
    model_class = getattr(sys.modules.get("keras"), "Model", None)
    if model_class is None:
        return {}
    return {name: value for name, value in notebook_variables().items() if isinstance(value, model_class)}


class SourcePicker:
    """`box` is the picker; `choice()` what is picked."""

    def __init__(self, given: Any = None, on_change: Callable[[], None] = lambda: None) -> None:
        if not (given is None or isinstance(given, str) or callable(given) or hasattr(given, "builder")):
            raise InputError(
                f"source is {short(given)}", expected="a ready name, a Keras model or a function that builds one"
            )
        self._changed = on_change
        self._given = {} if given is None or isinstance(given, str) else {_name_of(given): given}
        self._code = ""
        self._source: Any = None
        self.builder = Builder(on_change)
        self.ready = ipywidgets.Dropdown(options=list(READY), description="ready model")
        self.about = ipywidgets.HTML()
        self.models = ipywidgets.Dropdown(options=[_NONE], description="model")
        self.look = ipywidgets.Button(
            description="Look again", icon="refresh", tooltip="Look for Keras models in the notebook again"
        )
        self.look.on_click(lambda _: self._look())
        self.sizes = Sizes(on_change)
        self.sizes.of(self.ready.value)
        ready = ipywidgets.VBox([self.ready, self.about, self.sizes.box])
        notebook = ipywidgets.VBox([self.models, self.look])
        self.box = ipywidgets.Tab([self.builder.box, ready, notebook], titles=list(TABS))
        self.refresh()
        self._begin_with(given)
        self.ready.observe(self._show, "value")
        self.models.observe(self._show, "value")
        self.box.observe(self._show, "selected_index")
        self._describe()

    def _begin_with(self, given: Any) -> None:
        if isinstance(given, str) and given in READY:
            self.ready.value, self.box.selected_index = given, 1
        elif isinstance(given, str):
            known = "one of: " + ", ".join(READY)
            raise InputError(f"there is no ready model {short(given)}", expected=known, todo=meant(given, READY))
        elif given is not None:
            self.models.value, self.box.selected_index = next(iter(self._given)), 2
        else:
            self.box.selected_index = 0

    def refresh(self) -> None:
        """Look for models in the notebook again; one that is still there stays chosen."""
        self._models = {**self._given, **notebook_models()}
        names = list(self._models) or [_NONE]
        chosen = self.models.value
        self.models.options = [(shown(name), name) for name in names]
        self.models.value = chosen if chosen in names else names[0]

    def _look(self) -> None:
        self.refresh()
        self._changed()  # a model that was made anew has the name of the one before

    def state(self) -> dict[str, Any]:
        """What is picked, for `restore`."""
        rows = (self.builder.state(), self._code, self._source)
        return {"tab": self.box.selected_index, "model": self.models.value, "ready": self.sizes.state(), "rows": rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Pick what was picked. Errors: `InputError` for a model that the notebook has no more."""
        if state["tab"] == 2:
            self.refresh()
            if state["model"] in self._models:
                self.models.value = state["model"]
            elif state["model"] != _NONE:
                raise InputError(
                    f"the notebook has no model {shown(state['model'])} any more",
                    todo="run the cell that makes it again",
                )
        layers, code, source = state["rows"]
        self.builder.restore(layers)
        self._code, self._source = code, source  # the object that these rows were
        self.ready.value = state["ready"]["name"]
        self.sizes.restore(state["ready"])
        self.box.selected_index = state["tab"]

    def choice(self) -> Choice:
        """What is picked; `InputError` when that is nothing that can be compiled."""
        index = self.box.selected_index or 0
        if index == 0:
            return self._from_rows()
        if index == 1:
            return Choice(name=self.ready.value, source=self.sizes.source())
        if self.models.value not in self._models:
            raise InputError(
                "there is no Keras model in the notebook", todo="make one in a cell, then press Look again"
            )
        model = self._models[self.models.value]
        variable = next((name for name, value in notebook_variables().items() if value is model), "")
        return Choice(name=self.models.value, source=model, variable=variable, layers=_layer_count(model))

    def _from_rows(self) -> Choice:
        shape, layers = self.builder.checked()
        name = self.builder.name
        code = keras_code(name, shape, layers)
        if code != self._code:
            # The same rows are the same object: a compile that differs in options alone uses the trace again.
            self._code, self._source = code, _when_called(name, shape, layers)
        return Choice(name=name, source=self._source, code=code, variable="model", layers=len(layers))

    def _show(self, change: Any) -> None:
        self._describe()
        self._changed()

    def _describe(self) -> None:
        self.sizes.of(self.ready.value)
        self.about.value = f'<p class="wb-app-note">{READY[self.ready.value]}</p>'


def _when_called(name: str, shape: tuple[int, ...], layers: Any) -> Callable[[], Any]:
    """A source that loads Keras when it is compiled, not before."""
    return lambda: layered_source(name, shape, described(layers), input_type(layers))()


def _name_of(source: Any) -> str:
    return str(getattr(source, "name", "") or getattr(source, "__name__", "") or "the given model")


def _layer_count(model: Any) -> int:
    keras = sys.modules.get("keras")
    if keras is None or not isinstance(model, keras.Model):
        return 0
    return sum(not isinstance(layer, keras.layers.InputLayer) for layer in model.layers)
