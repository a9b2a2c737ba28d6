"""Why profiles differ: parts that sum to the whole, and planted changes found where they were planted."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.profiler.advice.compare import compare
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


@pytest.mark.slow
def test_planted_changes_are_found_where_they_are() -> None:
    """In bytes always, in cycles but once: 16 channels leave most of it to the next layer, whose sums get shorter."""
    arguments: dict[str, Any] = {"batch_size": 8, "mode": "inference", "target": wb.target("ipu2", tiles_per_ipu=16)}
    before, largest = wb.profile(net(None), **arguments), []
    for place, change in planted():
        after = wb.profile(net(place, **change), **arguments)
        rows = compare(before, after).why
        by_layer = rows.groupby("layer")["cycles"].sum()
        largest.append(by_layer.abs().idxmax() == f"d{place}")
        elsewhere = by_layer.drop([f"d{place}", f"d{place + 1}"], errors="ignore")  # the next has another input
        if "units" in change:  # further on, what a wider layer's result lies on moves what follows
            elsewhere = elsewhere[elsewhere.index.isin([f"d{each}" for each in range(place)])]
        assert not elsewhere.any(), (place, change, by_layer)
        for amount, of in (("cycles", "cause"), ("bytes", "category")):
            left = rows.loc[rows[of] == REMAINDER, amount].abs().sum()
            assert left <= MOST_LEFT * rows[amount].abs().sum(), (place, change, amount, left)
        by_layer = rows[rows["layer"] != ""].groupby("layer")["bytes"].sum()
        assert by_layer.abs().idxmax() == f"d{place}", (place, change, by_layer)
    assert sum(largest) >= PAIRS - 1
