"""Splits that are found and compiled: what they promise, what they keep, and what cannot be cut."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.splits.deep import deep
from workbench.base.units import bytes_text
from workbench.engine.frontends.staging.chain import chain_of
from workbench.errors import InputError
from workbench.splits.costs import costs_of
from workbench.splits.search import along
from workbench.splits.split import Split, busy_cycles, stage_bytes, stages_of

WIDTHS = (256, 64, 64, 64, 64, 64, 64)


def uneven() -> Any:
    """A first layer as dear as the others together."""
    import keras

    layers = [keras.layers.Dense(width, activation="relu", name=f"d{place}") for place, width in enumerate(WIDTHS)]
    return keras.Sequential([keras.Input((256,)), *layers, keras.layers.Dense(10, activation="softmax", name="out")])


def small() -> Any:
    return wb.target("ipu2", tiles_per_ipu=8)


@functools.cache
def found() -> Split:
    return wb.autosplit(uneven, 2, batch_size=16, mode="training", target=small())


def test_the_found_split_is_faster_than_the_even_one_and_compiled() -> None:
    split = found()
    even = split.attempts[0]
    assert stages_of(even.cuts, 8) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert split.best.cuts[0] < 4
    assert split.fits
    assert max(busy_cycles(split.profile)) < max(busy_cycles(even.profile))
    assert split.profile.total_cycles < even.profile.total_cycles
    assert split.tried["total_cycles"].min() == split.profile.total_cycles


def test_its_arguments_compile_to_the_same_program() -> None:
    split = found()
    for stages in (split, split.stages, split.arguments["stages"]):
        again = wb.compile(
            uneven, batch_size=16, mode="training", target=small(), stages=stages, gradient_accumulation_steps=16
        )
        assert again.profile.total_cycles == split.profile.total_cycles
        assert again.profile.max_tile_bytes == split.profile.max_tile_bytes


def test_expected_cycles_and_bytes_are_near_what_is_measured() -> None:
    table = found().table
    assert (np.abs(table["expected_cycles"] / table["cycles"] - 1) < 0.25).all()
    assert (np.abs(table["expected_bytes"] / table["max_tile_bytes"] - 1) < 0.4).all()
    assert table["layers"].sum() == 8
    assert table["max_tile_bytes"].tolist() == stage_bytes(found().profile)


def test_costs_of_a_profile_tell_its_own_stages_to_the_byte() -> None:
    split, chain = found(), chain_of(uneven)
    costs = costs_of(split.profile, chain.names, split.stages, [16 * each for each in chain.crossing_bytes])
    told = [along([costs.stage_bytes(stage)] * 2, split.best.cuts)[stage] for stage in range(2)]
    assert told == pytest.approx(stage_bytes(split.profile))
    own = along([costs.stage_cycles()] * 2, split.best.cuts)
    assert own == pytest.approx(busy_cycles(split.profile), rel=0.1)


def test_recomputation_where_memory_asks_for_it() -> None:
    import keras

    def deep() -> Any:
        layers = [keras.layers.Dense(64, activation="relu", name=f"d{place}") for place in range(12)]
        return keras.Sequential([keras.Input((64,)), *layers])

    again = wb.autosplit(deep, 4, batch_size=256, mode="training", target=small(), recomputation=True, compiles=1)
    tight = small().replace(bytes_per_tile=again.profile.max_tile_bytes + 500)
    split = wb.autosplit(deep, 4, batch_size=256, mode="training", target=tight)
    assert not split.attempts[0].profile.fits
    assert split.fits
    assert split.arguments["recomputation"] is True
    assert "recomputation=True" in split.code


@functools.cache
def deep_recomputed(*checkpoints: str) -> Any:
    """Two stages of three blocks each, whose residuals are made again."""
    return wb.profile(
        deep,
        batch_size=64,
        mode="training",
        target=small(),
        stages=[0, 0, 0, 1, 1, 1],
        gradient_accumulation_steps=16,
        recomputation=True,
        recomputation_checkpoints=checkpoints,
    )


def test_less_is_made_again_at_a_time_where_recomputation_is_not_enough() -> None:
    """Of blocks with narrow results, which are kept, the wide inside of one is made again at a time."""
    at_once, one_by_one = deep_recomputed().max_tile_bytes, deep_recomputed("*").max_tile_bytes
    assert one_by_one < at_once
    tight = small().replace(bytes_per_tile=(at_once + one_by_one) // 2 // 8 * 8)
    split = wb.autosplit(deep, 2, batch_size=64, mode="training", target=tight)
    assert split.fits
    assert split.arguments["recomputation_checkpoints"] == ("*",)
    given = [dict(attempt.arguments) for attempt in split.attempts]
    assert {"recomputation": True} in given
    assert not any("offload" in each for each in given)
    assert "recomputation_checkpoints=('*',)" in split.code


def test_only_what_a_program_holds_is_offloaded() -> None:
    """Without memory for anything: SGD has two numbers of state, so the first offload is of what stages keep."""
    tiny = small().replace(bytes_per_tile=8192)
    split = wb.autosplit(deep, 2, batch_size=64, mode="training", optimizer="sgd", target=tiny)
    assert not split.fits
    given = [dict(attempt.arguments) for attempt in split.attempts]
    assert all("optimizer_state" not in each.get("offload", ()) for each in given)
    assert ("activations", "gradient_accumulation_buffers", "weights") in [each.get("offload") for each in given]
    assert all(given.count(each) == 1 or not each for each in given)  # far over: one compile of each relief


def test_stages_auto_over_the_ipus_of_the_configuration() -> None:
    config = wb.ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    executable = wb.compile(uneven, batch_size=16, mode="training", target=small(), stages="auto", config=config)
    assert executable.profile.ipus == 2
    assert executable.profile.total_cycles == found().profile.total_cycles


def test_schedules_of_the_stages_that_are_found() -> None:
    arguments: dict[str, Any] = {"batch_size": 16, "target": small(), "stages": "auto"}
    compared = wb.compare_schedules(uneven, 2, ("Grouped",), (False,), **arguments)
    assert compared.profiles[0].total_cycles == found().profile.total_cycles
    with pytest.raises(InputError, match="ipus is not given"):
        wb.compare_schedules(uneven, **arguments)
    with pytest.raises(InputError, match=r"stages is 'auto', which .* find.*wb\.autosplit"):
        wb.sweep(uneven, {"stages": ["auto"]}, batch_size=16, target=small())


def test_fewest_ipus_says_why_not_on_fewer() -> None:
    one = wb.profile(uneven, batch_size=16, mode="training", target=small())
    enough = wb.fewest_ipus(uneven, batch_size=16, mode="training", target=small(), most=2)
    assert enough.ipus == 1
    assert enough.split is None
    tight = small().replace(bytes_per_tile=one.max_tile_bytes - 500)
    fewest = wb.fewest_ipus(uneven, batch_size=16, mode="training", target=tight, most=3, gradient_accumulation_steps=4)
    table = fewest.table
    assert not table["fits"].iloc[0]
    assert "over" in table["why"].iloc[0]
    assert (fewest.ipus is None) == (not table["fits"].any())
    over = bytes_text(-int(table["margin_bytes"].iloc[0]))
    assert fewest.sentence == f"It fits on 2 IPUs (modelled); not on 1: the fullest tile is a modelled {over} over"
    assert "The verdict on 2 IPUs is in doubt: it holds if the real memory is at most " in str(fewest)
    assert str(fewest).endswith("\n".join(fewest.errors))
    tiny = small().replace(bytes_per_tile=2048)  # the weights alone are 95,168 floats: 47 kB a tile
    none = wb.fewest_ipus(uneven, batch_size=16, mode="training", target=tiny, most=2)
    assert none.ipus is None
    assert "weights and optimizer state alone" in none.table["why"].iloc[1]
    assert none.sentence.endswith(f"; not on 2: {none.table['why'].iloc[1]}")


@functools.cache
def wide() -> Any:
    import keras

    layers = [keras.layers.Dense(units, name=name) for name, units in (("a", 8000), ("b", 8000), ("c", 10))]
    return keras.Sequential([keras.Input((6000,)), *layers])


@functools.cache
def of_wide(**compiles: int) -> Any:
    return wb.fewest_ipus(wide(), batch_size=64, mode="training", **compiles)


def test_fewest_ipus_says_where_compiles_were_used_up() -> None:
    """Four compiles of each number: two cuts and two recomputations of 2 IPUs. Layer a alone is on IPU 0 of the best on
    2 and on 3, as full as a single one is."""
    fewest = of_wide(compiles=4)
    over = bytes_text(-wb.profile(wide(), batch_size=64, mode="training").margin_bytes)
    offload = "recomputation=True, offload=('activations',)"
    more = "offload=('activations', 'gradient_accumulation_buffers')"
    assert [each.split.used_up for each in fewest.numbers[1:3]] == [
        f"all 4 compiles were used up before {what} was tried (compiles=8 allows more)"
        for what in (offload, f"recomputation=True, {more}")
    ]
    assert fewest.sentence == (
        f"It fits on none of 1 to 3 IPUs; nearest on 3: the fullest tile is a modelled {over} over on IPU 0; "
        f"{fewest.numbers[2].used_up}; 3 layers cannot be 4 or more stages"
    )
    assert fewest.table["ipus"].tolist() == [1, 2, 3, 4]  # one row for 4 to 16
    assert fewest.table["why"].iloc[3] == "3 layers cannot be 4 or more stages"
    assert fewest.numbers[1].split.sentence.endswith(f" micro-batches; {fewest.numbers[1].used_up}")
    assert ".." not in str(fewest)
    shown = fewest._repr_mimebundle_()["text/html"]
    assert "<pre" not in shown
    assert shown.count("<tr>") == 1 + 4
    assert fewest.svg().count("3 layers cannot be 4 or more stages") == 1
    assert list(fewest.figure().data[0].x) == ["1", "2", "3", "4"]


def test_fewest_ipus_reaches_offloading_by_itself() -> None:
    fewest = of_wide()
    assert fewest.ipus == 2
    assert "weights" in fewest.split.arguments["offload"]
    assert fewest.split.used_up == ""


def test_what_cannot_be_split_is_said_before_anything_compiles() -> None:
    with pytest.raises(InputError, match="8 layers cannot be 9 stages"):
        wb.autosplit(uneven, 9, batch_size=16)
    with pytest.raises(InputError, match="ipus is 1"):
        wb.autosplit(uneven, 1, batch_size=16)
    with pytest.raises(InputError, match=r"autosplit: stages and replicas need 65 IPUs, but .* has"):
        wb.autosplit(uneven, 65, batch_size=16)
    with pytest.raises(InputError, match="stages is given"):
        wb.autosplit(uneven, 2, batch_size=16, stages=[0, 0, 0, 0, 1, 1, 1, 1])
    graph = wb.tiles.Graph("ipu2", tiles=2)
    with pytest.raises(InputError, match="no layers to cut"):
        wb.autosplit(graph.sequence(graph.compute_set("nothing")), 2)
    with pytest.raises(InputError, match="nosuch"):
        wb.autosplit(uneven, 2, nosuch=1)


def test_faces() -> None:
    split = found()
    assert "Stages: busy cycles" in split.svg()
    assert len(split.figure().data) == 4
    text = str(split)
    assert split.sentence in text
    assert split.profile.meta["samples_per_call"] == 256  # 16 micro-batches of 16
    assert " cycles a call of 16 micro-batches" in split.sentence
    assert split.code in text
    assert split.decided
    assert split.decided == split.data["decided"] == split.executable.profile.pipeline.decided
    assert split.decided in split.sentence
    assert split.data["stages"] == split.stages
    bundle = split._repr_mimebundle_()
    assert "text/html" in bundle
    progress: list[str] = []
    wb.autosplit(uneven, 2, batch_size=8, mode="inference", target=small(), compiles=1, progress=progress.append)
    assert progress[0] == "split 1 of at most 1: trace"
