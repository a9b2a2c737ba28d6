"""Models built without weights, which are cheap however large, and the first values that they get when they run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import keras

from workbench.engine.frontends.trace import jaxpr

WEIGHT_SEED = 0


@contextmanager
def _policy(precision: str | None) -> Iterator[None]:
    before = keras.config.dtype_policy()
    if precision:
        keras.config.set_dtype_policy(precision)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


@contextmanager
def _seeded() -> Iterator[None]:
    """Keras draws the seeds of initialisers and dropout from Python's generator when a layer is made."""
    state = random.getstate()
    random.seed(WEIGHT_SEED)
    try:
        yield
    finally:
        random.setstate(state)


@contextmanager
def single_precision_factorisations() -> Iterator[None]:
    """Inside, Keras' orthogonal initialiser makes halves too, from the floats of the same seed.

    It factorises what it draws, which LAPACK does not in half precision.
    """
    own = keras.initializers.Orthogonal.__call__

    def called(self: Any, shape: Any, dtype: Any = None) -> Any:
        wanted = keras.backend.standardize_dtype(dtype)
        if wanted not in ("float16", "bfloat16"):
            return own(self, shape, dtype)
        return keras.ops.cast(own(self, shape, "float32"), wanted)

    keras.initializers.Orthogonal.__call__ = called
    try:
        yield
    finally:
        keras.initializers.Orthogonal.__call__ = own


@contextmanager
def without_values() -> Iterator[None]:
    """Variables made inside have no values, and nobody gives them any but who asks for them."""
    with jaxpr.uninitialized_forgotten(), keras.StatelessScope(initialize_variables=False):
        yield


def build_without_weights(builder: Callable[[], Any], precision: str | None) -> tuple[Any, bool]:
    """What a builder gives under a policy, and whether its variables have no values.

    Builders that need values (a compiled optimizer, variables made of arrays) cannot run inside the scope and are
    run again outside it.
    """
    with _policy(precision), _seeded(), jaxpr.names_from_one(), single_precision_factorisations():
        # The second call is no handling of the first one's error: what raises in both is told once.
        with suppress(ValueError), without_values():
            return builder(), True
        return builder(), False
