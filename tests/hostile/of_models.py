"""Models of TensorFlow 2.1 in `wb.ipu.keras`, made in the scope of a strategy: constructors and runs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import keras
import numpy as np

import workbench as wb
from tests.hostile.surface import Call, call

ipu = wb.ipu


def layers() -> list[Any]:
    return [keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)]


@cache
def ends() -> tuple[Any, Any]:
    """The input and output of a functional model."""
    inputs = keras.Input((2,))
    return inputs, keras.layers.Dense(1)(inputs)


def trained() -> Any:
    with ipu.ipu_strategy.IPUStrategy().scope(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _trained()


def _trained() -> Any:
    model = ipu.keras.Sequential(layers(), gradient_accumulation_count=2)
    model.compile("sgd", "mse")
    return model


X, Y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")
MODELS: Mapping[str, Mapping[str, Any]] = {
    "Model": {"inputs": lambda: ends()[0], "outputs": lambda: ends()[1]},
    "Sequential": {"layers": layers},
    "PipelineSequential": {
        "stages": lambda: [[keras.layers.Dense(3)], [keras.layers.Dense(1)]],
        "gradient_accumulation_count": 4,
    },
}
METHODS: Mapping[str, Mapping[str, Any]] = {
    "fit": {"x": X, "y": Y, "batch_size": 2, "verbose": 0},
    "evaluate": {"x": X, "y": Y, "batch_size": 2, "verbose": 0},
    "predict": {"x": X, "batch_size": 2},
}


def cells() -> Iterator[Call]:
    for name, given in MODELS.items():
        kind = getattr(ipu.keras, name)
        yield call(f"ipu.keras.{name}", in_scope(lambda k=kind: k, kind), given=given)
    for name, given in METHODS.items():
        yield call(
            f"ipu.keras.Sequential.{name}",
            in_scope(lambda n=name: getattr(trained(), n), getattr(trained(), name)),
            given=given,
        )


def in_scope(found: Callable[[], Any], like: Any) -> Callable[..., Any]:
    """What is called in the scope of a strategy, on a small system."""

    def made(value: Any) -> Any:
        return value() if getattr(value, "__module__", "") == __name__ and callable(value) else value

    def called(*args: Any, **given: Any) -> Any:
        config = ipu.config.IPUConfig()
        config.auto_select_ipus = 2
        config.ipu_model.tiles_per_ipu = 4
        config.configure_ipu_system()
        try:
            with ipu.ipu_strategy.IPUStrategy().scope(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return found()(*map(made, args), **{name: made(value) for name, value in given.items()})
        finally:
            ipu.config.reset_ipu_configuration()

    called.__signature__ = inspect.signature(like)  # type: ignore[attr-defined]
    return called
