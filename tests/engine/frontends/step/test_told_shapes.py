"""A subclassed model that its builder only told its shape: built as by a call, and nothing is left where that fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb

BATCH, STEPS, FEATURES = 4, 6, 8


class Recurrent(keras.Model):
    """Layers in a list and of a recurrent kind, whose initialiser factorises: in halves NumPy has no such."""

    def __init__(self) -> None:
        super().__init__()
        self.first = [keras.layers.Dense(5), keras.layers.BatchNormalization()]
        self.last = keras.layers.LSTM(3)

    def call(self, x: Any) -> Any:
        for layer in self.first:
            x = layer(x)
        return self.last(x)


class Silent(Recurrent):
    """Its `build` says that it is built, and builds nothing."""

    def build(self, shape: Any) -> None:
        self.built = True


class Broken(Recurrent):
    """Its second layer cannot be made, when the first has been."""

    def call(self, x: Any) -> Any:
        super().call(x)
        raise ValueError("no such model")


def told(kind: Callable[[], Any]) -> Callable[[], Any]:
    def build() -> Any:
        made = kind()
        made.build((None, STEPS, FEATURES))
        return made

    return build


def called(kind: Callable[[], Any]) -> Callable[[], Any]:
    def build() -> Any:
        made = kind()
        made(keras.Input((STEPS, FEATURES)))
        return made

    return build


@pytest.mark.filterwarnings("ignore:.build.. was called on layer")
@pytest.mark.parametrize("precision", [None, "float16", "mixed_float16"])
@pytest.mark.parametrize("kind", [Recurrent, Silent])
@pytest.mark.parametrize("mode", ["inference", "training"])
def test_it_is_what_a_builder_that_calls_it_gives(kind: Any, precision: Any, mode: Any) -> None:
    x, y = np.ones((BATCH, STEPS, FEATURES), "float32"), np.ones((BATCH, 3), "float32")
    found, expected = (
        wb.compile(build, batch_size=BATCH, mode=mode, precision=precision) for build in (told(kind), called(kind))
    )
    assert found.profile.max_tile_bytes == expected.profile.max_tile_bytes
    arguments = (x, y) if mode == "training" else (x,)
    one, other = found.run(*arguments), expected.run(*arguments)
    for each in one if mode == "training" else ():
        assert one[each] == pytest.approx(other[each])
    if mode == "inference":
        np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore:.build.. was called on layer")
@pytest.mark.parametrize("precision", [None, "float16"])
def test_one_that_cannot_be_built_leaves_nothing_for_the_next(precision: Any) -> None:
    """Keras kept its variables on a list, and every later scope ended at one that 'is already initialized'."""
    for source in (told(Broken), told(Broken)()):
        with pytest.raises(Exception, match=r"no such model|cannot be copied into float16"):
            wb.compile(source, batch_size=BATCH, mode="inference", precision=precision)
        assert wb.compile(told(Recurrent), batch_size=BATCH, mode="inference").profile.fits
