"""Why profiles differ: parts that sum to the whole, and planted changes found where they were planted."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.profiler.advice.compare import compare
from workbench.profiler.advice.moved import moved
from workbench.profiler.advice.origins import origins
from workbench.profiler.advice.why import COLUMNS, REMAINDER

FITS, OVER, PIPELINE = handmade_profile(), handmade_profile(fits=False), handmade_pipeline()
PAIRS, SEED, LAYERS = 30, 2026, 6
MOST_LEFT = 0.02  # of the absolute parts: what may be left to no layer, cause or category


@pytest.mark.parametrize("others", [(OVER,), (PIPELINE,), (OVER, PIPELINE)])
def test_parts_sum_to_the_whole_and_flip_when_swapped(others: tuple[Any, ...]) -> None:
    found = compare(FITS, *others)
    assert list(found.why.columns) == COLUMNS
    for place, other in enumerate(others, start=1):
        rows = found.why[found.why["profile"] == place]
        assert rows["cycles"].sum() == pytest.approx(other.total_cycles - FITS.total_cycles)
        assert rows["bytes"].sum() == pytest.approx(other.max_tile_bytes - FITS.max_tile_bytes)
        keys = ["layer", "cause", "category"]
        back = compare(other, FITS).why.set_index(keys)[["cycles", "bytes"]].sort_index()
        there = rows.set_index(keys)[["cycles", "bytes"]].sort_index()
        assert there.index.equals(back.index)
        assert ((there + back).abs() < 1e-6).all(axis=None)


def test_the_same_program_has_no_parts() -> None:
    rows = compare(FITS, handmade_profile()).why
    assert set(rows["cause"]) | set(rows["category"]) == {"", REMAINDER}
    assert not rows[["cycles", "bytes"]].any(axis=None)
    assert compare(FITS, handmade_profile()).reasons == ""


def test_reasons_are_said() -> None:
    found = compare(FITS, OVER)
    assert found.reasons in str(found)
    assert found.data["why"][0].keys() == set(COLUMNS)
    assert all(line.startswith(("Cycles of ", "Bytes of ")) for line in found.reasons.splitlines())


def net(changed: int | None, **change: Any) -> Any:
    """Layers of 64 channels, one of them as told."""

    def make() -> Any:
        import keras

        usual: dict[str, Any] = {"units": 64, "activation": "relu"}
        layers = [
            keras.layers.Dense(**{**usual, **(change if place == changed else {})}, name=f"d{place}")
            for place in range(LAYERS)
        ]
        return keras.Sequential([keras.Input((64,)), *layers, keras.layers.Dense(16, name="out")])

    return make


def planted() -> list[tuple[int, dict[str, Any]]]:
    """A layer with another width, precision or activation each."""
    random = Random(SEED)
    kinds: list[Any] = [
        lambda: {"units": random.choice((16, 128, 192, 256))},
        lambda: {"dtype": "float16"},
        lambda: {"activation": random.choice(("gelu", "tanh", "softmax", "sigmoid"))},
    ]
    return [(random.randrange(LAYERS - 1), kinds[place % 3]()) for place in range(PAIRS)]


def assert_bytes_only_by_the_peak(rows: Any, same: set[str]) -> None:
    """Layers of which nothing is different have other bytes only because another tile or step is the fullest."""
    bytes_of = rows[rows["layer"].isin(same) & (rows["bytes"] != 0)]
    assert set(bytes_of["through"]) <= {"peak"}, bytes_of


@pytest.mark.slow
def test_planted_changes_of_training_are_found_where_they_are() -> None:
    """As of inference, where the backward pass and the weight update lie after the change too. What of a layer is
    different is read from the two programs: a layer of which nothing is holds 0, any other says through what."""
    still = 0
    target = wb.target("ipu2", tiles_per_ipu=16)
    arguments: dict[str, Any] = {"batch_size": 8, "mode": "training", "optimizer": "sgd", "target": target}
    before, distinct = wb.profile(net(None), **arguments), {repr(each): each for each in planted()}
    for place, change in distinct.values():
        after = wb.profile(net(place, **change), **arguments)
        rows = compare(before, after).why
        assert rows.groupby("origin")["cycles"].sum().abs().idxmax() == f"d{place}", (place, change)
        # Gradients of another type are made by the layer before; nothing else has changed itself.
        assert set(rows["origin"]) <= {"", f"d{place - 1}", f"d{place}"}, (place, change)
        same = {layer for layer, word in moved(before, after).items() if not word} - {f"d{place}"}
        assert not rows.loc[rows["layer"].isin(same), "cycles"].any(), (place, change)
        assert_bytes_only_by_the_peak(rows, same)
        elsewhere = rows[(rows["origin"] == "") & (rows["layer"] != "") & (rows["cycles"] != 0)]
        assert (elsewhere["through"] != "").all(), (place, change)
        still += len(same)
        left = rows.loc[rows["cause"] == REMAINDER, "cycles"].abs().sum()
        assert left <= MOST_LEFT * rows["cycles"].abs().sum(), (place, change, left)
    assert still > 2 * len(distinct)  # so that what is held to 0 are many


@pytest.mark.slow
def test_planted_changes_are_found_where_they_are() -> None:
    """What comes of the changed layer's change is the most. Layers that did not change, and whose inputs and code did
    not, hold 0; one that holds anything says through what, and none lies before the change."""
    still = 0
    arguments: dict[str, Any] = {"batch_size": 8, "mode": "inference", "target": wb.target("ipu2", tiles_per_ipu=16)}
    before = wb.profile(net(None), **arguments)
    for place, change in planted():
        after = wb.profile(net(place, **change), **arguments)
        rows = compare(before, after).why
        assert set(rows["origin"]) <= {"", f"d{place}"}, (place, change)
        by = {of: rows[rows["origin"] == f"d{place}"].groupby("layer")[of].sum() for of in ("cycles", "bytes")}
        # What reads another width or type takes part in the change; nothing further on does.
        assert set(by["cycles"].index) <= {f"d{place}", f"d{place + 1}"}
        elsewhere = rows[(rows["origin"] == "") & (rows["layer"] != "")]
        assert not elsewhere.loc[elsewhere["layer"].isin([f"d{each}" for each in range(place)]), "cycles"].any()
        same = {layer for layer, word in moved(before, after).items() if word in ("", "place")} - {f"d{place}"}
        assert not rows.loc[rows["layer"].isin(same), "cycles"].any(), (place, change)
        assert set(elsewhere.loc[elsewhere["cycles"] != 0, "through"]) <= {"code", "inputs"}
        unmoved = {layer for layer, word in moved(before, after).items() if not word} - {f"d{place}"}
        assert_bytes_only_by_the_peak(rows, unmoved)
        still += len(same)
        for amount, of in (("cycles", "cause"), ("bytes", "category")):
            left = rows.loc[rows[of] == REMAINDER, amount].abs().sum()
            assert left <= MOST_LEFT * rows[amount].abs().sum(), (place, change, amount, left)
        assert rows.groupby("origin")["cycles"].sum().abs().idxmax() == f"d{place}", (place, change)
        by_layer = rows[rows["layer"] != ""].groupby("layer")["bytes"].sum()
        assert by_layer.abs().idxmax() == f"d{place}", (place, change, by_layer)
    assert still > 2 * PAIRS  # so that what is held to 0 are many


def test_an_origin_is_the_layer_that_changed_or_none() -> None:
    arguments: dict[str, Any] = {"batch_size": 8, "mode": "inference", "target": wb.target("ipu2", tiles_per_ipu=16)}
    before = wb.profile(net(None), **arguments)
    narrower = wb.profile(net(2, units=16), **arguments)
    found = origins(before, narrower)
    # d3 reads 16 channels where it read 64; out has d2's new shape and shares its code, but reads and does what it did.
    assert {layer: origin for layer, origin in found.items() if origin} == {"d2": "d2", "d3": "d2"}
    assert {layer: origin for layer, origin in origins(narrower, before).items() if origin} == {"d2": "d2", "d3": "d2"}
    rows = compare(before, narrower).why
    assert rows.loc[rows["layer"] == "out", "cycles"].sum() != 0
    assert set(rows.loc[rows["layer"] == "out", "origin"]) == {""}
    assert "d3, compute, as d2 changed" in compare(before, narrower).reasons
    # out's product has d2's new shape, and is done by the same code since.
    assert set(rows.loc[rows["layer"] == "out", "through"]) == {"code"}
    assert "out, compute, by the code that it shares" in compare(before, narrower).reasons
    assert set(rows.loc[rows["origin"] != "", "through"]) == {""}
    # Another batch is no layer's change, though every shape is another; nor is another proportion of memory.
    larger = wb.profile(net(None), **{**arguments, "batch_size": 16})
    assert not any(origins(before, larger).values())
    assert set(moved(before, larger).values()) == {"plan"}
    config = wb.ipu.config.IPUConfig()
    config.matmuls.poplar_options["availableMemoryProportion"] = 0.05
    tight = wb.profile(net(None), **arguments, config=config)
    assert not any(origins(before, tight).values())
    assert not any(moved(before, wb.profile(net(None), **arguments)).values())
