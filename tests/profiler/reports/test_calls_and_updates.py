"""What one call of a program is, in the headline, on the card and in the app: not always one weight update."""

from __future__ import annotations

from typing import Any

import keras
import pytest

import workbench as wb
from workbench.profiler.profile import Profile, call_text
from workbench.widgets.app.bar import said_of
from workbench.widgets.views.summary import cards

MACHINE = wb.target("ipu2", tiles_per_ipu=4)


def profiled(optimizer: Any, **arguments: Any) -> Profile:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="out")])
    model.compile(optimizer, "mse")
    return wb.profile(model, batch_size=2, target=MACHINE, **arguments)


def label(profile: Profile) -> str:
    return next(card["label"] for card in cards(profile.summary) if card["label"].startswith("Time of"))


def sgd(**settings: Any) -> Any:
    return keras.optimizers.SGD(**settings)


@pytest.mark.parametrize(
    ("optimizer", "arguments", "calls"),
    [
        (sgd(gradient_accumulation_steps=3), {}, 3),
        (sgd(gradient_accumulation_steps=3), {"gradient_accumulation_steps": 2}, 3),
        (keras.optimizers.LossScaleOptimizer(sgd(gradient_accumulation_steps=5)), {}, 5),
    ],
)
def test_an_optimizer_that_accumulates_updates_with_one_of_several_calls(
    optimizer: Any, arguments: dict[str, Any], calls: int
) -> None:
    profile = profiled(optimizer, **arguments)
    assert profile.summary.time.startswith(f"One call, the dearest of {calls} to a weight update, takes ")
    assert label(profile) == "Time of one call"
    assert f"({2 * arguments.get('gradient_accumulation_steps', 1)} samples to a call)" in said_of(profile)


def test_of_other_optimizers_it_is_one() -> None:
    profile = profiled(sgd(), gradient_accumulation_steps=2)
    assert profile.summary.time.startswith("One weight update takes ")
    assert label(profile) == "Time of one weight update"
    assert "(4 samples to a weight update)" in said_of(profile)
    inference = profiled(sgd(gradient_accumulation_steps=3), mode="inference")
    assert inference.summary.time.startswith("One call takes ")


def test_an_execution_of_several_updates() -> None:
    meta = {"mode": "training", "pipeline": {"updates": 3}}
    assert call_text(meta) == "execution of 3 weight updates"
    assert call_text({**meta, "mode": "inference"}) == "call"
