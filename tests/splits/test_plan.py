"""Uses of a whole system, every one compiled."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import pytest

import workbench as wb
from tests.splits.deep import deep
from workbench.base.text import markup
from workbench.errors import InputError
from workbench.splits.plan import EACH, Plan


def network(depth: int = 4) -> Any:
    import keras

    layers = [keras.layers.Dense(64, activation="relu", name=f"d{place}") for place in range(depth)]
    return keras.Sequential([keras.Input((64,)), *layers, keras.layers.Dense(10, activation="softmax", name="out")])


@functools.cache
def planned() -> Plan:
    target = wb.target("ipu2", tiles_per_ipu=8)
    return wb.plan(network, global_batch=32, system="pod4", batch_size=4, target=target, compiles=12)


def test_the_best_is_the_most_samples_a_second_of_those_that_fit() -> None:
    plan, table = planned(), planned().table
    fitting = table[table["fits"]]
    assert plan.best.samples_per_second == fitting["samples_per_second"].max()
    assert plan.fits
    assert plan.apply().profile.samples_per_second == plan.best.samples_per_second


def test_every_use_fills_the_system_and_makes_the_global_batch() -> None:
    table = planned().table
    assert (table["ipus"] == 4).all()
    made = table["replicas"] * table["batch_size"] * table["gradient_accumulation_steps"]
    assert (made == 32).all()
    assert table["compiled"].sum() <= 12


def test_its_arguments_compile_to_what_it_measured() -> None:
    plan = planned()
    target = wb.target("ipu2", tiles_per_ipu=8)
    again = wb.profile(network, mode="training", target=target, **plan.best.arguments)
    assert again.samples_per_second == pytest.approx(plan.best.samples_per_second)


def test_a_global_batch_that_replicas_do_not_divide_is_named() -> None:
    target = wb.target("ipu2", tiles_per_ipu=8)
    plan = wb.plan(network, global_batch=6, system="pod4", batch_size=3, target=target, compiles=6)
    assert "1 stage × 4 replicas: 6 samples are no multiple of them" in plan.untried
    assert (plan.table["replicas"] <= 2).all()


def test_the_system_is_what_it_was_and_mistakes_are_named() -> None:
    before = wb.ipu.devices.current()
    planned()
    assert wb.ipu.devices.current() == before
    with pytest.raises(InputError, match="no system is called"):
        wb.plan(network, global_batch=8, system="pod5")
    with pytest.raises(InputError, match="global_batch is 0"):
        wb.plan(network, global_batch=0)
    with pytest.raises(InputError, match=r"stages is given, and wb\.plan finds it"):
        wb.plan(network, global_batch=8, stages=[0, 1])


@pytest.mark.parametrize(("compiles", "asked"), [(24, [(1, 4), (2, 4), (4, 4), (2, 10 + EACH), (2, 2)]), (12, None)])
def test_the_best_is_given_what_is_left(
    monkeypatch: pytest.MonkeyPatch, compiles: int, asked: list[tuple[int, int]] | None
) -> None:
    """Where its own compiles were used up and more are left than those: all but what the other schedule takes.

    Of 24 there are 12 left, two of them for that; what was compiled is asked for again and not compiled.
    """
    heard: list[tuple[int, int]] = []
    made: dict[Any, Any] = {}

    def compiled(request: Any, progress: Any, like: Any) -> Any:
        place = (request.options.changed, request.replicas, len(made))
        return made.setdefault(place, SimpleNamespace(request=request))

    def searched(request: Any, compile: Any, chain: Any, stages: int, most: int, progress: Any) -> Any:
        heard.append((stages, most))
        speed = {1: 10.0, 2: 30.0, 4: 20.0}[stages] + most
        profile = SimpleNamespace(fits=True, samples_per_second=speed, margin_bytes=0)
        cuts = [request.replace(stages=[cut]) for cut in range(most)]
        attempts = [SimpleNamespace(executable=compile(each, progress, None)) for each in cuts]
        return SimpleNamespace(profile=profile, attempts=attempts)

    monkeypatch.setattr("workbench.splits.plan.searched", searched)
    monkeypatch.setattr("workbench.api.compile_request", compiled)
    plan = wb.plan(network, global_batch=32, system="pod4", batch_size=4, compiles=compiles)
    assert heard == (asked or [(1, 4), (2, 4), (4, 4)])
    assert plan.best.stages == 2
    assert plan.best.compiled == (EACH + 10 if asked else EACH)
    assert len(made) == sum(use.compiled for use in plan.uses) <= compiles


@pytest.mark.parametrize(
    ("compiles", "untried"),
    [
        # One and two stages take a compile each; the last two are the other schedule's.
        (4, [f"{stages} stages with micro-batches of 4: the compiles are used up" for stages in (4, 8, 16)]),
        (20, ["16 stages: 2 numbers of stages in a row gave nothing faster"]),
    ],
)
def test_only_what_was_compiled_is_said_to_give_nothing_faster(
    monkeypatch: pytest.MonkeyPatch, compiles: int, untried: list[str]
) -> None:
    def searched(request: Any, compile: Any, chain: Any, stages: int, most: int, progress: Any) -> Any:
        profile = SimpleNamespace(fits=True, samples_per_second={1: 10.0, 2: 30.0}.get(stages, 20.0), margin_bytes=0)
        return SimpleNamespace(profile=profile, attempts=[SimpleNamespace(executable=None)])

    monkeypatch.setattr("workbench.splits.plan.searched", searched)
    plan = wb.plan(lambda: network(15), global_batch=64, system="pod16", batch_size=4, compiles=compiles)
    assert list(plan.untried) == untried


@pytest.mark.slow
def test_where_nothing_fits_the_nearest_is_given_what_is_left() -> None:
    """Four compiles of each number of stages reach no offload; four stages come nearest, and fit with more."""
    target = wb.target("ipu2", tiles_per_ipu=8).replace(bytes_per_tile=102_944)
    heard: list[str] = []
    plan = wb.plan(
        deep, global_batch=128, system="pod4", batch_size=16, target=target, compiles=24, progress=heard.append
    )
    assert plan.fits
    traced = [each for each in heard if each.endswith(": trace")]
    assert len(set(traced)) == len(traced) == plan.table["compiled"].sum()  # none of them twice
    assert plan.best.stages == 4
    assert plan.best.compiled > EACH
    assert plan.table["compiled"].sum() <= 24
    assert not plan.table["fits"].iloc[1:].any()
    assert "gradient_accumulation_buffers" in plan.best.arguments["offload"]


def test_text_and_data() -> None:
    plan = planned()
    assert plan.sentence in str(plan)
    assert plan.code in str(plan)
    assert str(plan).endswith("\n".join(plan.errors))
    assert len(plan.errors) == 2  # of memory and of cycles
    assert plan.data["arguments"]["batch_size"] == 4


def test_a_notebook_is_shown_a_picture_and_a_table() -> None:
    plan = planned()
    shown = plan._repr_mimebundle_()["text/html"]
    assert "<pre" not in shown
    assert shown.count("<tr>") == 1 + len(plan.uses)
    assert markup(plan.sentence) in shown
    assert f"<code>{markup(plan.code)}</code>" in shown
    assert plan.svg().count("samples/s") == plan.table["fits"].fillna(False).sum()
    assert len(plan.figure().data[0].y) == len(plan.uses)
