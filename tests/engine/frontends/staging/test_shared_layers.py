"""A layer that is called at both ends of a model: each call runs where what it reads is, its variable on one IPU."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb
from workbench.engine.frontends.staging.chain import chain_of
from workbench.errors import InputError

SMALL = wb.target("ipu2", tiles_per_ipu=4)
TRAINED: dict[str, Any] = {"batch_size": 2, "mode": "training", "target": SMALL, "gradient_accumulation_steps": 6}
TRAINED |= {"optimizer": "sgd", "loss": "mse"}


class Table(keras.layers.Embedding):
    """Embeds, and scores with the same table, as `keras_hub`'s reversible embedding does."""

    def call(self, x: Any, reverse: bool = False) -> Any:
        """Rows of the table, or products with each of them."""
        return keras.ops.matmul(x, keras.ops.transpose(self._embeddings)) if reverse else super().call(x)

    def compute_output_spec(self, x: Any, reverse: bool = False) -> Any:
        """The type of either."""
        return (
            keras.KerasTensor((*x.shape[:-1], self.input_dim), x.dtype) if reverse else super().compute_output_spec(x)
        )


def reversible() -> Any:
    keras.utils.set_random_seed(1)
    words, table = keras.Input((3,), dtype="int32"), Table(12, 8, name="table")
    x = table(words)
    for place in range(4):
        x = keras.layers.Dense(8, "tanh", name=f"d{place}")(x)
    return keras.Model(words, table(x, reverse=True))


def test_each_call_is_on_the_stage_of_what_it_reads_and_trains_one_variable() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 12, (12, 3)), rng.random((12, 3, 12), dtype="float32")
    whole, cut = reversible(), reversible()
    wb.compile(whole, **TRAINED).run(x, y)
    executable = wb.compile(cut, stages=["d0", "d2"], device_mapping=[0, 1, 0], **TRAINED)
    executable.run(x, y)
    for one, other in zip(whole.weights, cut.weights, strict=True):
        np.testing.assert_allclose(other.numpy(), one.numpy(), rtol=1e-5, atol=1e-6)
    steps = executable.profile.steps
    products = steps[(steps["layer"] == "table") & steps["name"].str.contains("matmul")]
    assert set(products["stage"]) == {2}  # the table turned over is made where the product is
    assert set(steps.loc[steps["layer"] == "table", "stage"]) == {0, 2}


def test_stages_of_several_ipus_are_refused_with_what_mends_it() -> None:
    with pytest.raises(
        InputError, match=r"table/embeddings.*is used by stage 0 on IPU 0, stage 2 on IPU 2.*device_mapp"
    ):
        wb.compile(reversible, stages=["d0", "d2"], **TRAINED)


def test_the_first_call_of_a_layer_does_not_step_back() -> None:
    with pytest.raises(InputError, match=r"the layer 'd1' is on stage 0 and uses what stage 1 computes"):
        wb.compile(reversible, stages=[0, 1, 0, 1, 1], **TRAINED)


def test_the_chain_knows_where_a_layer_is_called_again() -> None:
    chain = chain_of(reversible)
    assert chain.names == ("table", "d0", "d1", "d2", "d3")
    assert chain.shared == ((0, 4),)  # the second call stands with the layer it reads
    assert chain.crossing_bytes == (3 * 8 * 4,) * 4 + (0,)  # three words of eight floats, and nothing behind the last


def test_a_layer_that_is_called_again_without_variables_is_not_shared() -> None:
    def again() -> Any:
        inputs, act = keras.Input((4,)), keras.layers.ReLU(name="act")
        return keras.Model(inputs, act(keras.layers.Dense(4, name="d1")(act(keras.layers.Dense(4, name="d0")(inputs)))))

    assert chain_of(again).shared == ()
    profile = wb.profile(again, stages=["act"], **{**TRAINED, "gradient_accumulation_steps": 8})
    assert sorted(profile.stages["ipu"]) == [0, 1]


def test_of_three_calls_each_is_on_the_ipu_of_the_one_before() -> None:
    def thrice() -> Any:
        inputs, shared = keras.Input((8,)), keras.layers.Dense(8, name="shared")
        x = shared(keras.layers.Dense(8, name="d0")(shared(inputs)))
        return keras.Model(inputs, keras.layers.Dense(8, name="d2")(shared(keras.layers.Dense(8, name="d1")(x))))

    chain = chain_of(thrice)
    assert chain.names == ("shared", "d0", "d1", "d2")
    assert chain.shared == ((0, 1), (1, 2))
    split = wb.autosplit(thrice, 2, batch_size=2, mode="training", target=SMALL, compiles=2)
    assert split.stages == [0, 0, 0, 1]  # the only cut behind all calls


def test_autosplit_puts_both_calls_on_one_ipu() -> None:
    split = wb.autosplit(reversible, 2, batch_size=2, mode="training", target=SMALL, compiles=2)
    assert split.device_mapping == [0, 1, 0]
    assert split.stages[0] == 0
    assert split.stages[-1] == 2
    assert split.fits
