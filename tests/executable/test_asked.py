"""A profile says which precision, loss and optimizer were asked for, in words."""

from __future__ import annotations

import functools
from typing import Any

import keras
import pytest

import workbench as wb

DECAY = "initial_learning_rate=0.5, decay_steps=100, decay_rate=0.9"


def own_loss(y: Any, predicted: Any, scale: float = 1.0) -> Any:
    return scale * keras.ops.mean(keras.ops.abs(y - predicted))


class Weighted(keras.losses.Loss):
    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = weight

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return own_loss(y_true, y_pred, self.weight)


def small(**arguments: Any) -> wb.Profile:
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
    return wb.profile(model, mode="training", batch_size=2, target=wb.target("ipu2", tiles_per_ipu=8), **arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, {}),
        ({"precision": "float16", "optimizer": "adam"}, {"precision": "float16", "optimizer": "adam"}),
        ({"optimizer": keras.optimizers.Adam()}, {"optimizer": "Adam()"}),  # each argument as by default
        ({"optimizer": keras.optimizers.SGD(0.1, 0.5)}, {"optimizer": "SGD(learning_rate=0.1, momentum=0.5)"}),
        ({"loss": keras.losses.BinaryCrossentropy(True)}, {"loss": "BinaryCrossentropy(from_logits=True)"}),
        ({"loss": own_loss}, {"loss": "own_loss"}),
        ({"loss": ["huber"]}, {"loss": "[huber]"}),
        ({"loss": keras.losses.Huber(delta=2.0)}, {"loss": "Huber(delta=2)"}),  # its get_config leaves it out
        ({"loss": Weighted(3.0)}, {"loss": "Weighted(weight=3)"}),  # it has none
        ({"loss": functools.partial(own_loss, scale=2)}, {"loss": "own_loss(scale=2)"}),
        ({"optimizer": keras.optimizers.Adam(1.2345678e-3)}, {"optimizer": "Adam(learning_rate=0.0012345678)"}),
        (
            {"optimizer": keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.5, 100, 0.9))},
            {"optimizer": f"SGD(learning_rate=ExponentialDecay({DECAY}))"},
        ),
        ({"stages": [0]}, {"stages": "[0]"}),
    ],
)
def test_what_was_given_is_said(arguments: dict[str, Any], said: dict[str, str]) -> None:
    assert small(**arguments).meta["asked"] == said


def test_an_equal_program_that_was_asked_for_otherwise_says_its_own() -> None:
    """The default is SGD at 0.01, so that both are one program, and the second is taken from the cache."""
    first, second = small(), small(optimizer=keras.optimizers.SGD(0.01))
    assert first.total_cycles == second.total_cycles
    assert (first.meta["asked"], second.meta["asked"]) == ({}, {"optimizer": "SGD()"})


def test_a_loss_that_does_not_say_its_settings_is_called_by_its_class() -> None:
    class Silent(keras.losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return own_loss(y_true, y_pred)

        def get_config(self) -> Any:
            raise NotImplementedError

    assert small(loss=Silent()).meta["asked"] == {"loss": "Silent()"}


def test_it_is_kept_in_the_file(tmp_path: Any) -> None:
    found = small(loss="huber")
    assert wb.load_profile(found.save(tmp_path / "of.wbprofile")).meta["asked"] == {"loss": "huber"}


def test_sizes_of_a_ready_model_are_said_where_they_are_others() -> None:
    target = wb.target("ipu2", tiles_per_ipu=8)
    usual, wider = (wb.profile(wb.ready("mlp", **size), batch_size=2, target=target) for size in ({}, {"hidden": 64}))
    assert (usual.meta["asked"], wider.meta["asked"]) == ({}, {"sizes": "{hidden: 64}"})


def test_what_holds_itself_is_said_to_some_depth() -> None:
    class Held:
        def __init__(self, of: Any) -> None:
            self.of = self

        def __call__(self, y: Any, predicted: Any) -> Any:
            return own_loss(y, predicted)

    assert small(loss=Held(None)).meta["asked"] == {"loss": "Held(of=Held(of=Held()))"}


def test_stages_of_many_layers_are_said_by_how_many_each_has() -> None:
    source, stages = wb.ready("mlp", layers=9, hidden=16, input_size=16), [0] * 4 + [1] * 6
    target = wb.target("ipu2", tiles_per_ipu=8)
    found = wb.profile(
        source, batch_size=2, gradient_accumulation_steps=2, mode="inference", target=target, stages=stages
    )
    assert found.meta["asked"]["stages"] == "[0 × 4, 1 × 6]"


def test_what_a_model_was_compiled_with_is_said_where_it_trains() -> None:
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
    model.compile(optimizer=keras.optimizers.SGD(0.5), loss=keras.losses.Huber(delta=2.0))
    given = {"batch_size": 2, "target": wb.target("ipu2", tiles_per_ipu=8)}
    assert wb.profile(model, **given).meta["asked"] == {"loss": "Huber(delta=2)", "optimizer": "SGD(learning_rate=0.5)"}
    assert wb.profile(model, **given, loss="mse").meta["asked"]["loss"] == "mse"
    assert wb.profile(model, **given, mode="inference").meta["asked"] == {}
