"""What a case of the zoo is, and what is asked of each: compiled whole, reconciled, numbers equal to Keras' own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import keras
import numpy as np

import workbench as wb
from workbench.engine.frontends.describe.source import ArraySpec

TILES = 16
LARGE_TILE_BYTES = 2**26  # what is asked here is not whether it fits
SEED = 11
RTOL = 1e-5  # float32: XLA compiles the same equations twice, as Keras composes them and as we do


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`build` makes the model (without data); `below` bounds the whole numbers it is fed, `classes` those it learns.

    `inputs` are example arrays for models that do not know their shapes. `trains`: it has something to train.
    """

    build: Callable[[], Any]
    batch_size: int = 2
    below: int = 5
    classes: int = 2
    loss: Any = "mse"
    optimizer: Callable[[], Any] | None = None
    inputs: tuple[Any, ...] = ()
    trains: bool = True
    atol: float = 1e-6

    def model(self) -> Any:
        """The model; equal at every call."""
        keras.utils.clear_session(free_memory=False)  # a collection takes longer than a case
        keras.utils.set_random_seed(SEED)
        return self.build()

    def new_optimizer(self) -> Any:
        """What it is trained with."""
        return self.optimizer() if self.optimizer else keras.optimizers.SGD(0.1)


def compiled(case: Case, mode: str, *, tiles: int = TILES, live: bool = False) -> Any:
    """The executable of the model: built without weights, or `live`, compiled by Keras with its optimizer and loss."""
    target = wb.target("ipu2", tiles_per_ipu=tiles).replace(bytes_per_tile=LARGE_TILE_BYTES)
    given: dict[str, Any] = {"batch_size": case.batch_size, "mode": mode, "target": target}
    if not live and not case.inputs and not isinstance(case.loss, dict):
        if mode == "training":
            given |= {"optimizer": case.new_optimizer(), "loss": case.loss}
        return wb.compile(case.model, **given)
    model = case.model()
    if mode == "training":
        model.compile(case.new_optimizer(), case.loss)
    return wb.compile(model, *case.inputs, **given)


def data_for(case: Case, specs: tuple[ArraySpec, ...]) -> list[Any]:
    """An array for each input and target."""
    rng = np.random.default_rng(SEED)
    found = []
    for spec in specs:
        if spec.dtype.startswith(("int", "uint")):
            most = case.classes if spec.name.startswith("y") else case.below
            found.append(rng.integers(0, most, spec.shape).astype(spec.dtype))
        elif spec.dtype == "bool":
            found.append(rng.integers(0, 2, spec.shape).astype(bool))
        else:
            found.append(rng.random(spec.shape).astype(spec.dtype))
    return found


def assert_close(found: Any, expected: Any, case: Case) -> None:
    """Equal leaf by leaf, relative to the largest of each."""
    pairs = zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True)
    for ours, theirs in pairs:
        theirs = np.asarray(theirs, dtype=np.float64)
        scale = float(np.abs(theirs).max(initial=0.0))
        np.testing.assert_allclose(np.asarray(ours, np.float64), theirs, rtol=0, atol=RTOL * scale + case.atol)
