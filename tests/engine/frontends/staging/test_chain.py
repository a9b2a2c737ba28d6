"""What crosses a cut, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.engine.frontends.staging.chain import chain_of
from workbench.errors import InputError


def test_a_residual_connection_crosses_every_cut_up_to_its_reader() -> None:
    import keras

    x = keras.Input((8,))
    a = keras.layers.Dense(4, name="a")(x)
    b = keras.layers.Dense(16, name="b")(a)
    c = keras.layers.Dense(4, name="c")(b)
    chain = chain_of(keras.Model(x, keras.layers.Add(name="sum")([a, c])))
    assert chain.names == ("a", "b", "c", "sum")
    assert chain.crossing_bytes == (16, 64 + 16, 16 + 16, 0)
    assert chain.after((1, 3)) == [0, 1, 1, 2]


def test_halves_are_two_bytes_and_a_shared_layer_is_at_its_first_call() -> None:
    import keras

    layer = keras.layers.Dense(8, name="a", dtype="float16")
    x = keras.Input((8,), dtype="float16")
    y = layer(keras.layers.Dense(8, name="b", dtype="float16")(layer(x)))
    assert chain_of(keras.Model(x, y)).crossing_bytes[0] == 16


def test_a_subclass_that_tells_nothing_counts_nothing() -> None:
    import keras

    class Own(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(4, name="dense")

        def call(self, x: Any) -> Any:
            return self.dense(x)

    chain = chain_of(Own())
    assert chain.names == ("dense",)
    assert not chain.known


def test_no_model() -> None:
    with pytest.raises(InputError, match="cannot be cut"):
        chain_of(3)
