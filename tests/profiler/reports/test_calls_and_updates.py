"""What one call of a program is, in the headline, on the card and in the app: not always one weight update."""

from __future__ import annotations

from typing import Any

import keras
import pytest

import workbench as wb
from workbench.profiler.profile import Profile, call_text, samples_text
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


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"mode": "inference"}, "2 samples to a call: batch size 2"),
        ({"mode": "inference", "replicas": 2}, "4 samples to a call: batch size 2 × 2 replicas"),
        ({}, "2 samples to a weight update: batch size 2"),
        ({"gradient_accumulation_steps": 3}, "6 samples to a weight update: batch size 2 × 3 micro-batches"),
        (
            {"gradient_accumulation_steps": 3, "replicas": 2},
            "12 samples to a weight update: batch size 2 × 3 micro-batches × 2 replicas",
        ),
    ],
)
def test_the_throughput_says_its_samples_and_how_they_come_about(arguments: dict[str, Any], text: str) -> None:
    profile = profiled(sgd(), **arguments)
    (note,) = [card["note"] for card in cards(profile.summary) if card["label"] == "Throughput"]
    assert note == text == dict(profile.summary.lines)["Samples"]
    assert profile.samples_per_second == pytest.approx(int(text.partition(" ")[0]) / profile.seconds)


def test_samples_of_a_pipeline_of_several_calls_of_several_updates_and_as_somebody_said() -> None:
    layers = [keras.layers.Dense(4, name=name) for name in ("first", "second")]
    model = keras.Sequential([keras.Input((4,)), *layers])
    model.compile("sgd", "mse")
    asked: dict[str, Any] = {"batch_size": 2, "stages": ["first"], "gradient_accumulation_steps": 4, "target": MACHINE}
    meta = wb.profile(model, **asked, mode="training").meta
    assert samples_text(meta) == "8 samples to a weight update: batch size 2 × 4 micro-batches"
    several = {**meta, "samples_per_call": 24, "pipeline": {**meta["pipeline"], "updates": 3}}
    assert samples_text(several) == (
        "24 samples to an execution of 3 weight updates: batch size 2 × 4 micro-batches × 3 weight updates"
    )
    assert (
        samples_text({**several, "mode": "inference"})
        == "24 samples to a call: batch size 2 × 4 micro-batches × 3 runs"
    )
    assert samples_text({**meta, "samples_per_call": 7}) == "7 samples to a weight update"
    assert samples_text({**meta, "samples_per_call": 0}) == ""
    calls = profiled(sgd(gradient_accumulation_steps=5)).meta
    assert samples_text(calls) == "2 samples to a call: batch size 2; 5 calls, 10 samples, to a weight update"
