"""Small things of ours that ordinary calls are given, each made once in a process."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import workbench as wb

TILES = 4


def machine() -> Any:
    return wb.target("ipu2", tiles_per_ipu=TILES)


def multiplied(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.tanh(x @ x)


def square() -> Any:
    return np.linspace(-1, 1, 16, dtype="float32").reshape(4, 4)


def row() -> Any:
    return np.linspace(-1, 1, 4, dtype="float32")


def images() -> Any:
    return np.linspace(-1, 1, 64, dtype="float32").reshape(2, 4, 4, 2)


def kernel() -> Any:
    return np.linspace(-1, 1, 36, dtype="float32").reshape(3, 3, 2, 2)


def truths() -> Any:
    return np.arange(16).reshape(4, 4) % 3 == 0


@cache
def small_executable() -> Any:
    return wb.compile(multiplied, square(), target=machine())


@cache
def model() -> Any:
    """The one of `fresh_model` that calls are given."""
    return fresh_model()


def fresh_model() -> Any:
    """Two layers, compiled for training."""
    import keras

    keras.utils.set_random_seed(3)
    made = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(8, "relu", name="first"), keras.layers.Dense(2, name="last")]
    )
    made.compile("sgd", "mse")
    return made


@cache
def staged() -> Any:
    """An executable of two stages on two IPUs."""
    arguments = {"stages": [0, 1], "gradient_accumulation_steps": 4, "mode": "training"}
    return wb.compile(model(), batch_size=2, target=machine(), **arguments)


@cache
def profile() -> Any:
    return staged().profile


@cache
def saved() -> str:
    """The path of a profile's file."""
    import tempfile
    from pathlib import Path

    return str(profile().save(Path(tempfile.mkdtemp()) / "saved.wbp"))


@cache
def decisions() -> tuple[Any, ...]:
    """What a search gives: a diagnosis, a split, the fewest IPUs, a plan and a sweep."""
    arguments = {"batch_size": 2, "target": machine(), "mode": "training"}
    small = machine().replace(bytes_per_tile=16_384)
    return (
        wb.diagnose(wb.compile(model(), batch_size=64, mode="training", target=small), compiles=3),
        wb.autosplit(model(), 2, compiles=1, **arguments),
        wb.fewest_ipus(model(), most=1, compiles=1, **arguments),
        wb.plan(model(), global_batch=32, compiles=3, **arguments),
        wb.sweep(model(), {"ipu_model.compile_ipu_code": [True, False]}, **arguments),
    )
