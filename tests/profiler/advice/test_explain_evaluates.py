"""What an explanation prints comes to its number: the arithmetic with the inputs beside it, and nothing else."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.profiler.advice.printed import printed, wrong
from workbench import api
from workbench.engine.target import target
from workbench.profiler.profile import Profile

FIGURES = 30


@pytest.fixture(scope="module")
def small() -> Profile:
    """Convolution, pooling and a dense layer, trained on 16 tiles."""
    import keras
    from keras import layers

    stack = [layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(10)]
    model = keras.Sequential([keras.Input((16, 16, 4)), *stack])
    return api.profile(model, target=target("ipu2", tiles_per_ipu=16), mode="training", batch_size=4)


@pytest.fixture(scope="module")
def resnet() -> Profile:
    return api.profile("resnet50", batch_size=4, mode="training")


def test_every_step_comes_to_its_cycles(small: Profile) -> None:
    for step, cycles in zip(small.steps["id"], small.steps["cycles"], strict=True):
        text = str(small.explain(step=int(step)))
        assert wrong(text) == []
        assert next(printed(text)).value == cycles


def test_a_step_goes_down_to_its_vertices(small: Profile) -> None:
    """Each has its arguments, a rule that is evaluated on them, and its own source."""
    tables = small.tables["steps"]
    computed = tables["id"][tables["kind"] == "OnTileExecute"].tolist()
    vertices = [
        each
        for step in computed
        for each in printed(str(small.explain(step=step)))
        if "::" in each.subject and " " not in each.subject.removeprefix("one of ").partition(" ")[2]
    ]
    assert len(vertices) >= len(computed)
    assert all("poplibs@" in each.source or each.source for each in vertices)
    by_arguments = [each for each in vertices if each.arithmetic and not each.arithmetic.isdigit()]
    assert len(by_arguments) > 0.9 * len(vertices)


def test_every_tile_variable_and_operator_comes_to_its_number(small: Profile) -> None:
    for tile in range(16):
        assert wrong(str(small.explain(tile=tile))) == []
        assert wrong(str(small.explain(tile=tile, step=small.peak.step))) == []
    for variable in small.variables["id"]:
        assert wrong(str(small.explain(variable=int(variable)))) == []
    for operator in small.operators["name"]:
        assert wrong(str(small.explain(operator=operator))) == []


def figures(profile: Profile, seed: int) -> list[dict[str, Any]]:
    """Numbers drawn from all that can be asked: steps of each cause, variables, tiles, tiles at a step, operators."""
    drawn = random.Random(seed)
    steps = profile.tables["steps"]
    causes = sorted(set(steps["cause"].tolist()))
    asked: list[dict[str, Any]] = [
        {"step": int(drawn.choice(steps["id"][steps["cause"] == cause]))} for cause in causes
    ]
    asked += [{"step": int(drawn.choice(steps["id"]))} for _ in range(8)]
    asked += [{"variable": int(drawn.choice(profile.tables["variables"]["id"]))} for _ in range(6)]
    asked += [{"tile": drawn.randrange(int(profile.target["tiles_per_ipu"]))} for _ in range(4)]
    asked += [
        {"tile": drawn.randrange(int(profile.target["tiles_per_ipu"])), "step": int(drawn.choice(steps["id"]))}
        for _ in range(4)
    ]
    operators = profile.tables["operators"]["name"].tolist()
    return asked + [{"operator": drawn.choice(operators)} for _ in range(FIGURES - len(asked))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_thirty_figures_of_resnet_come_to_their_numbers(resnet: Profile, seed: int) -> None:
    asked = figures(resnet, seed)
    assert len(asked) == FIGURES
    for each in asked:
        assert wrong(str(resnet.explain(**each))) == [], each
